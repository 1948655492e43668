// SPDX-License-Identifier: GPL-2.0

//! RPC tasks of the client, as in `net/sunrpc/clnt.c` and `sched.c`: each is a context.

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use std::rc::Rc;

use kernel::ffi::{c_int, c_ulong};
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::rpc_clock::Clock;
use super::rpc_pages::Pages;
use super::*;

/// What the module ends an attempt to connect with and `call_connect_status()` tries again after.
const RETRIED: [u32; 6] = [
    ENETUNREACH,
    EHOSTUNREACH,
    ECONNREFUSED,
    EPIPE,
    EPROTO,
    ENOTCONN,
];

/// A message to be sent, and the room for its Reply.
pub(crate) struct Call {
    /// Encodes the Call with this XID: head, data, tail.
    pub(crate) encode: Box<dyn Fn(u32, u32) -> (Vec<u8>, Vec<u8>, Vec<u8>)>,
    /// Whether the data of the Call may be reduced.
    pub(crate) is_write: bool,
    /// Bytes of the Reply's head, data and tail.
    pub(crate) room: [usize; 3],
    /// Whether the data of the Reply may be reduced.
    pub(crate) is_read: bool,
    /// Whether the RPC may fail, since mappings do.
    pub(crate) may_fail: bool,
    /// Looks at the Reply.
    pub(crate) decode: Box<dyn Fn(u32, &[u8])>,
}

/// How the tasks of a client behave, as its mount options say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The time for a Reply, in milliseconds; 0 for ever.
    pub(crate) timeout: u32,
    /// How many more of these times there are for an RPC.
    pub(crate) retries: u32,
    /// `RPC_TASK_SOFT` and others.
    pub(crate) flags: u32,
}

impl Manner {
    /// Waits for ever.
    pub(crate) const PATIENT: Self = Self {
        timeout: 0,
        retries: 0,
        flags: RPC_TASK_NO_RETRANS_TIMEOUT,
    };
}

/// A client's transport, with a reference to it.
pub(crate) struct Client {
    pub(crate) xprt: *mut rpc_xprt,
    manner: Manner,
    /// The tasks that have not ended.
    running: RefCell<Vec<*mut rpc_task>>,
    /// The RPCs that were killed.
    pub(crate) killed: Cell<u64>,
    /// The attempts to connect since a Reply, and when the one that matters began.
    connects: Cell<u32>,
    /// The cookie of the connection that a task has found last.
    connection: Cell<u32>,
    /// Connections are lost for no reason that asks for a longer delay.
    pub(crate) patient: Cell<bool>,
    started: Cell<usize>,
    xid: Cell<u32>,
    attempts: Cell<u32>,
    /// The RPCs that have failed.
    pub(crate) failures: Cell<u64>,
    /// The tasks that have not ended.
    pub(crate) tasks: Cell<usize>,
}

unsafe extern "C" fn decodes() {}

thread_local! {
    static FIXED: &'static Fixed = Box::leak(Box::new(Fixed::default()));
}

/// What each task refers to.
#[derive(Default)]
struct Fixed {
    client: core::cell::UnsafeCell<rpc_clnt>,
    program: core::cell::UnsafeCell<rpc_program>,
    procedure: core::cell::UnsafeCell<rpc_procinfo>,
    /// Of a task that sends a Reply: none is decoded.
    reply: core::cell::UnsafeCell<rpc_procinfo>,
    auth: core::cell::UnsafeCell<rpc_auth>,
    cred: core::cell::UnsafeCell<rpc_cred>,
}

fn fixed() -> &'static Fixed {
    let fixed = FIXED.with(|fixed| *fixed);
    unsafe {
        (*fixed.program.get()).name = c"sim".as_ptr().cast();
        (*fixed.client.get()).cl_program = fixed.program.get();
        (*fixed.client.get()).cl_vers = 1;
        (*fixed.procedure.get()).p_name = c"CALL".as_ptr().cast();
        (*fixed.procedure.get()).p_decode = Some(decodes);
        (*fixed.cred.get()).cr_auth = fixed.auth.get();
    }
    fixed
}

impl Client {
    /// Creates a transport to the server. Its Calls have XIDs from `first_xid` on.
    ///
    /// # Errors
    ///
    /// That of the class.
    pub(crate) fn new(first_xid: u32, manner: Manner) -> kernel::error::Result<Self> {
        Self::to(server_address(), first_xid, manner)
    }

    /// The same, to this address.
    ///
    /// # Errors
    ///
    /// That of the class.
    pub(crate) fn to(
        mut addr: __kernel_sockaddr_storage,
        first_xid: u32,
        manner: Manner,
    ) -> kernel::error::Result<Self> {
        let mut args = xprt_create {
            ident: xprt_transports_XPRT_TRANSPORT_RDMA,
            net: core::ptr::with_exposed_provenance_mut(svc::NET),
            dstaddr: (&raw mut addr).cast(),
            addrlen: 16,
            ..xprt_create::default()
        };
        let xprt = unsafe { xprt::xprt_create_transport(&mut args)? };
        Ok(Self::of_xprt(xprt, first_xid, manner))
    }

    /// Uses a transport, with the caller's reference.
    pub(super) fn of_xprt(xprt: *mut rpc_xprt, first_xid: u32, manner: Manner) -> Self {
        Self {
            xprt,
            manner,
            running: RefCell::default(),
            killed: Cell::new(0),
            connects: Cell::new(0),
            connection: Cell::new(0),
            started: Cell::new(0),
            patient: Cell::new(false),
            xid: Cell::new(first_xid),
            attempts: Cell::new(0),
            failures: Cell::new(0),
            tasks: Cell::new(0),
        }
    }

    /// A signal kills a task, as `rpc_signal_task()`.
    pub(crate) fn kill(&self) {
        let running = self.running.borrow();
        if running.is_empty() {
            return;
        }
        let task = running[sched::below(running.len())];
        say!("a signal for task {}", unsafe { (*task).number });
        unsafe {
            (*task).killed = 1;
            let status = Some(-(ERESTARTSYS as c_int));
            if !(*task).tk_waitqueue.is_null() {
                wait_queue::wake_task((*task).tk_waitqueue, task, status);
            }
        }
        sched::wake(delay_key(task));
    }

    /// The XID of the next Call.
    pub(crate) fn next_xid(&self) -> u32 {
        self.xid.get()
    }

    /// Puts the reference. There are no tasks any more.
    pub(crate) fn put(&self) {
        unsafe { xprt_put(self.xprt) };
    }

    /// The network breaks the connection off some time, as SUNRPC's fault injection does.
    pub(crate) fn inject_disconnect(self: &Rc<Self>) {
        let this = self.clone();
        unsafe { xprt_get(self.xprt) };
        sched::spawn("network", move || unsafe {
            (*(*this.xprt).ops).inject_disconnect.expect("an operation")(this.xprt);
            this.put();
        });
    }

    fn key(&self) -> usize {
        (1 << 43) ^ core::ptr::from_ref(self).addr()
    }

    /// Waits until all tasks have ended.
    pub(crate) fn wait(&self) {
        while self.tasks.get() > 0 {
            sched::wait_on(self.key());
        }
    }

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
            } else if (*rqst).rq_reply_bytes_recvd > 0 {
                let reply = pages.reply(rqst, call);
                (call.decode)(xid, &reply);
                self.connects.set(0);
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
            while !test_bit(XPRT_CONNECTED, state) {
                (*task).tk_status = 0;
                xprt_connect::connect_task(task);
                sleep_if_queued(task);
                if (*task).killed != 0 {
                    return true;
                }
                match -(*task).tk_status {
                    0 => {}
                    errno if errno == EAGAIN as c_int || errno == ETIMEDOUT as c_int => {}
                    errno if (*task).tk_flags & RPC_TASK_SOFTCONN as u16 != 0 => {
                        return self.failed(call, errno);
                    }
                    errno if RETRIED.contains(&(errno as u32)) => delay(task),
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
            loop {
                (*task).tk_status = 0;
                if (*task).killed != 0 {
                    return true;
                }
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                    break;
                }
                if xprt_lock::lock_write(xprt, task) {
                    if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
                        (*task).tk_status = 0;
                        rqst::transmit(task);
                    }
                    let status = (*task).tk_status;
                    xprt_lock::release_write(xprt, task);
                    match -status {
                        0 => {}
                        errno if errno == ENOBUFS as c_int || errno == ENOMEM as c_int => {
                            delay(task);
                        }
                        errno if errno == EBADSLT as c_int || errno == EAGAIN as c_int => {}
                        errno if errno == ENOTCONN as c_int => {
                            return match clock.check(task) {
                                Some(errno) => self.failed(call, errno),
                                None => false,
                            };
                        }
                        errno if errno == ERESTARTSYS as c_int => return true,
                        errno => return self.failed(call, errno),
                    }
                } else if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                    // Race breaker: someone may have transmitted the request.
                    wait_queue::wake_task(&raw mut (*xprt).sending, task, Some(0));
                }
                sleep_if_queued(task);
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
                    if needs_retransmit(task) {
                        let status = Some(-(ENOTCONN as c_int));
                        wait_queue::wake_task(&raw mut (*xprt).pending, task, status);
                    }
                }
                (*xprt).queue_lock.release();
                sleep_if_queued(task);
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

    /// The first task has a connection, and began to wait for it at `began`.
    fn connected(&self, began: u64) {
        let connects = self.connects.get();
        self.connects.set(connects + 1);
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
        self.failures.set(self.failures.get() + 1);
        true
    }
}

/// `xprt_request_need_retransmit()`.
unsafe fn needs_retransmit(task: *mut rpc_task) -> bool {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        (*rqst).rq_connect_cookie != (*xprt).connect_cookie
            || !test_bit(XPRT_CONNECTED, &raw const (*xprt).state)
    }
}

/// `rpc_task_need_encode()`.
unsafe fn needs_encode(task: *mut rpc_task) -> bool {
    unsafe {
        let flags = u32::from((*task).tk_flags);
        (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0
            && (flags & RPC_TASK_SENT == 0
                || flags & RPC_TASK_NO_RETRANS_TIMEOUT == 0
                || needs_retransmit(task))
    }
}

/// `xprt_timer()`.
unsafe fn xprt_timer(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if (*task).tk_status != -(ETIMEDOUT as c_int) {
            return;
        }
        if (*rqst).rq_reply_bytes_recvd > 0 {
            (*task).tk_status = 0;
        } else if let Some(timer) = (*(*xprt).ops).timer {
            timer(xprt, task);
        }
    }
}

/// A task that is queued sleeps. SUNRPC sets no timer for a slot, nor for the send lock unless the
/// task is soft.
unsafe fn sleep_if_queued(task: *mut rpc_task) {
    unsafe {
        while (*task).tk_runstate & 1 << RPC_TASK_QUEUED != 0 {
            let (xprt, queue) = ((*task).tk_xprt, (*task).tk_waitqueue);
            let soft = u32::from((*task).tk_flags) & RPC_TASK_SOFT != 0;
            let timed =
                queue == &raw mut (*xprt).pending || soft && queue == &raw mut (*xprt).sending;
            let deadline = (*task).deadline;
            if deadline == 0 || !timed {
                sched::wait_on(task.addr());
            } else if !sched::wait_until(task.addr(), deadline) {
                wait_queue::wake_task(queue, task, Some(-(ETIMEDOUT as c_int)));
            }
        }
    }
}

fn delay_key(task: *mut rpc_task) -> usize {
    (1 << 44) ^ task.addr()
}

/// `rpc_delay()`.
unsafe fn delay(task: *mut rpc_task) {
    let later = sched::now() + 250_000_000;
    while unsafe { (*task).killed } == 0 && sched::wait_until(delay_key(task), later) {}
}

/// `xprt_release()`.
unsafe fn release(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        let ops = (*xprt).ops;
        rqst::dequeue(task);
        (*xprt).transport_lock.take(true);
        (*ops).release_xprt.expect("an operation")(xprt, task);
        (*ops).release_request.expect("an operation")(task);
        (*xprt).last_used = rpcrdma_jiffies();
        (*xprt).transport_lock.release();
        if !(*rqst).rq_buffer.is_null() {
            (*ops).buf_free.expect("an operation")(task);
        }
        (*task).tk_rqstp = core::ptr::null_mut();
        if (*rqst).rq_bc_pa_state & 1 << RPC_BC_PA_IN_USE == 0 {
            (*ops).free_slot.expect("an operation")(xprt, rqst);
        } else {
            (*ops).bc_free_rqst.expect("an operation")(rqst);
        }
    }
}

/// Sends the Reply to a backchannel Call, as `rpc_run_bc_task()`.
pub(super) unsafe fn reply(rqst: *mut rpc_rqst) {
    unsafe {
        let xprt = (*rqst).rq_xprt;
        let task = known_task(Box::new(rpc_task {
            tk_client: fixed().client.get(),
            tk_xprt: xprt,
            tk_rqstp: rqst,
            tk_flags: (RPC_TASK_SOFTCONN | RPC_TASK_NO_RETRANS_TIMEOUT) as u16,
            ..rpc_task::default()
        }));
        (*task).tk_msg.rpc_proc = fixed().reply.get();
        (*rqst).rq_task = task;
        (*rqst).rq_connect_cookie = (*xprt).connect_cookie.wrapping_sub(1);
        rqst::enqueue_transmit(task);
        // call_bc_transmit
        while (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
            (*task).tk_status = 0;
            if xprt_lock::lock_write(xprt, task) {
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
                    (*task).tk_status = 0;
                    rqst::transmit(task);
                }
                let status = (*task).tk_status;
                xprt_lock::release_write(xprt, task);
                match -status as u32 {
                    0 | EBADSLT | EAGAIN => {}
                    ENOMEM | ENOBUFS => delay(task),
                    ENOTCONN => break,
                    errno => sched::fail(format_args!("a Reply is not sent: errno {errno}")),
                }
            } else if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                wait_queue::wake_task(&raw mut (*xprt).sending, task, Some(0));
            }
            sleep_if_queued(task);
        }
        release(task);
        free_task(task);
    }
}

fn known_task(task: Box<rpc_task>) -> *mut rpc_task {
    let task = Box::into_raw(task);
    xprt::sunrpc(|s| s.tasks.insert(task.addr()));
    task
}

unsafe fn free_task(task: *mut rpc_task) {
    xprt::sunrpc(|s| s.tasks.remove(&task.addr()));
    drop(unsafe { Box::from_raw(task) });
}
