// SPDX-License-Identifier: GPL-2.0

//! A task that sends a Call and waits for the Reply, as in `net/sunrpc/clnt.c`.

use std::rc::Rc;

use kernel::ffi::{c_int, c_ulong};
use kernel::sched;

use super::rpc::{Call, Client};
use super::rpc_clock::Clock;
use super::rpc_pages::Pages;
use super::rpc_tasks::*;
use super::*;

/// How often a task may be woken to send a Call for which there is no space, while no completion
/// can have made some.
const WAKES: u32 = 16;
/// A key that nothing wakes.
const LATE: usize = 20;

/// After these ends of an attempt to connect `call_connect_status()` closes the connection, and has
/// a task try again later that is not SOFTCONN. After ENOTCONN it has any task try again.
const CLOSED: [u32; 5] = [ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EPIPE, EPROTO];
/// A late task may be as late as that.
const LATE_NS: u64 = 5_000_000_000;

impl Client {
    /// Starts a task.
    pub(crate) fn start(self: &Rc<Self>, call: Call) {
        let this = self.clone();
        self.tasks.set(self.tasks.get() + 1);
        self.started.set(self.started.get() + 1);
        sched::spawn(format!("task {}", self.started.get()), move || {
            unsafe { this.execute(&call) };
            this.tasks.set(this.tasks.get() - 1);
            sched::wake(this.key());
        });
    }

    unsafe fn execute(&self, call: &Call) {
        let task = self.new_task();
        self.running.borrow_mut().push(task);
        unsafe {
            self.call(task, call);
            self.running.borrow_mut().retain(|other| *other != task);
            free_task(task);
        }
    }

    fn new_task(&self) -> *mut rpc_task {
        let fixed = fixed();
        let mut task = Box::new(rpc_task {
            tk_client: fixed.client.get(),
            tk_xprt: self.xprt,
            tk_flags: self.manner.flags as u16,
            number: self.started.get(),
            ..rpc_task::default()
        });
        task.tk_msg.rpc_proc = fixed.procedure.get();
        known_task(task)
    }

    unsafe fn call(&self, task: *mut rpc_task, call: &Call) {
        unsafe {
            let xprt = self.xprt;
            let ops = (*xprt).ops;
            // call_reserve
            while (*task).tk_rqstp.is_null() && (*task).killed == 0 {
                (*task).tk_status = 0;
                (*ops).alloc_slot.expect("an operation")(xprt, task);
                sleep_if_queued(task);
                if (*task).tk_status == -(ENOMEM as c_int) {
                    delay(task);
                }
            }
            let rqst = (*task).tk_rqstp;
            if rqst.is_null() {
                self.killed.set(self.killed.get() + 1);
                return;
            }
            // As SUNRPC, which counts in the byte order of the CPU.
            let number = self.xid.get();
            self.xid.set(number + 1);
            let xid = u32::from_be(number);
            (*rqst).rq_xid = number;
            (*rqst).rq_task = task;
            (*rqst).rq_xprt = xprt;
            (*rqst).rq_cred = fixed().cred.get();
            (*rqst).rq_connect_cookie = (*xprt).connect_cookie.wrapping_sub(1);
            (*rqst).rq_timeout = match self.manner.timeout {
                0 => (*(*xprt).timeout).to_initval,
                ms => ms as c_ulong,
            };
            let mut clock = Clock::new(&self.manner);
            (*task).deadline = clock.minor;
            let mut pages = Pages::new(call);
            // call_allocate
            let (head, data, tail) = (call.encode)(xid, 0);
            (*rqst).rq_callsize = head.len() + tail.len() + 8;
            (*rqst).rq_rcvsize = call.room[0] + call.room[2] + 8;
            while (*task).killed == 0 && (*ops).buf_alloc.expect("an operation")(task) != 0 {
                delay(task);
            }
            pages.store(&data);
            // call_encode, call_connect, call_transmit, call_status
            while (*task).killed == 0 && !self.attempt(task, call, &mut pages, &mut clock) {}
            if (*task).killed != 0 {
                self.killed.set(self.killed.get() + 1);
                if (*rqst).rq_reply_bytes_recvd > 0 {
                    rqst::wait_again(task);
                }
            } else if (*rqst).rq_reply_bytes_recvd > 0 {
                let reply = pages.reply(rqst, call);
                (call.decode)(xid, &reply);
                self.connects.set(0);
                self.replied.set(sched::now());
            }
            release(task);
        }
    }

    /// One attempt to send the Call and to get the Reply; `false` to try again.
    unsafe fn attempt(
        &self,
        task: *mut rpc_task,
        call: &Call,
        pages: &mut Pages,
        clock: &mut Clock,
    ) -> bool {
        unsafe {
            let rqst = (*task).tk_rqstp;
            let xprt = (*rqst).rq_xprt;
            if needs_encode(task) {
                rqst::dequeue(task);
                let attempt = self.attempts.get() + 1;
                self.attempts.set(attempt);
                pages.encode(rqst, call, attempt);
                rqst::enqueue_receive(task);
                rqst::enqueue_transmit(task);
            }
            // call_connect
            let state = &raw const (*xprt).state;
            let began = sched::now();
            let cookie = (*xprt).connect_cookie;
            while !test_bit(XPRT_CONNECTED, state) && !is_transmitted(task) {
                (*task).tk_status = 0;
                xprt_connect::connect_task(task);
                sleep_if_queued(task);
                if (*task).killed != 0 {
                    return true;
                }
                // call_connect_status
                let status = (*task).tk_status;
                let has_failed = CLOSED.contains(&(-status as u32));
                if has_failed && sched::one_in(self.manner.late) {
                    sched::wait_until(cm::REQUEST_KEY, sched::now() + LATE_NS);
                }
                if is_transmitted(task) {
                    break;
                }
                if status < 0 && test_bit(XPRT_CONNECTED, state) {
                    break;
                }
                if has_failed {
                    xprt_connect::conditional_disconnect(xprt, (*rqst).rq_connect_cookie);
                }
                match -status {
                    0 => {}
                    errno if errno == EAGAIN as c_int || errno == ETIMEDOUT as c_int => {}
                    errno if errno == ENOTCONN as c_int => delay(task),
                    errno if (*task).tk_flags & RPC_TASK_SOFTCONN as u16 != 0 => {
                        return self.failed(call, errno);
                    }
                    errno if CLOSED.contains(&(errno as u32)) => delay(task),
                    errno => {
                        if errno == ENOMEM as c_int {
                            sched::fail("an RPC ends because there is no memory to connect");
                        }
                        return self.failed(call, errno);
                    }
                }
                if let Some(errno) = clock.check(task) {
                    return self.failed(call, errno);
                }
            }
            let now = (*xprt).connect_cookie;
            if now != cookie && self.connection.replace(now) != now {
                self.connected(began);
            }
            // call_transmit
            let (mut tries, mut handled) = (0, 0);
            loop {
                (*task).tk_status = 0;
                if (*task).killed != 0 {
                    return true;
                }
                if is_transmitted(task) {
                    // rpc_task_handle_transmitted
                    xprt_lock::release_write(xprt, task);
                    break;
                }
                match -try_transmit(xprt, task) {
                    // Another task may have sent the Call on the next connection.
                    _ if is_transmitted(task) => {}
                    0 => {}
                    errno if errno == ENOBUFS as c_int || errno == ENOMEM as c_int => {
                        delay(task);
                    }
                    errno if errno == EBADSLT as c_int => {}
                    errno if errno == EAGAIN as c_int => {
                        let now = fabric(|f| f.handled);
                        if handled != now {
                            (tries, handled) = (0, now);
                        }
                        tries += 1;
                        if tries > WAKES {
                            sched::fail("a task is woken again and again, and there is no space");
                        }
                    }
                    errno if errno == ENOTCONN as c_int => {
                        return match clock.check(task) {
                            Some(errno) => self.failed(call, errno),
                            None => false,
                        };
                    }
                    errno if errno == ERESTARTSYS as c_int => return true,
                    errno => return self.failed(call, errno),
                }
                sleep_if_queued(task);
                // call_transmit_status
                if is_transmitted(task) {
                    break;
                }
                if let Some(errno) = clock.check(task) {
                    return self.failed(call, errno);
                }
            }
            // call_status
            (*task).tk_status = 0;
            if (*task).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0 {
                (*xprt).queue_lock.take(true);
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0 {
                    let wait = (*(*xprt).ops).wait_for_reply_request.expect("an operation");
                    wait(task);
                    if (*xprt).snd_task == task {
                        sched::fail("a task waits for its Reply with the send lock");
                    }
                    if needs_retransmit(task) {
                        let status = Some(-(ENOTCONN as c_int));
                        wait_queue::wake_task(&raw mut (*xprt).pending, task, status);
                    }
                }
                (*xprt).queue_lock.release();
                sleep_if_queued(task);
                if (*task).tk_status == -(ETIMEDOUT as c_int) && sched::one_in(self.manner.late) {
                    let ms = 1 + sched::below(1000) as u64;
                    sched::wait_until(LATE, sched::now() + ms * 1_000_000);
                }
                xprt_timer(task);
            }
            let status = (*task).tk_status;
            if (*rqst).rq_reply_bytes_recvd > 0 || (*task).killed != 0 {
                return true;
            }
            let again = [0, ENOTCONN, ETIMEDOUT, EAGAIN, EPIPE];
            if !again.contains(&((-status) as u32)) {
                return self.failed(call, -status);
            }
            clock
                .check(task)
                .is_some_and(|errno| self.failed(call, errno))
        }
    }

    /// A task has a connection, and began to wait for one at `began`. It may have slept through one
    /// that worked meanwhile.
    fn connected(&self, began: u64) {
        let connects = self.connects.get();
        self.connects.set(connects + 1);
        let began = began.max(self.replied.get());
        // The first delay after a Reply is five seconds, and each failure since doubles it.
        if connects == 0 && sched::now() - began > 25_000_000_000 && self.patient.get() {
            sched::fail("a task waits long to connect, although the last connection worked");
        }
    }

    /// The RPC has failed.
    fn failed(&self, call: &Call, errno: c_int) -> bool {
        say!("an RPC fails with errno {errno}");
        if !call.may_fail {
            sched::fail(format_args!("an RPC fails with errno {errno}"));
        }
        if self.is_nfsd.get() && errno == EMSGSIZE as c_int {
            sched::fail("nfsd makes a Call again and again, without a pause");
        }
        self.failures.set(self.failures.get() + 1);
        true
    }
}
