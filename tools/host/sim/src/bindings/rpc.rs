// SPDX-License-Identifier: GPL-2.0

//! RPC tasks of the client, as in `net/sunrpc/clnt.c` and `sched.c`: each is a context.

use core::cell::Cell;
use core::ffi::c_void;
use std::rc::Rc;

use kernel::ffi::c_int;
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::*;

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

/// A client's transport, with a reference to it.
pub(crate) struct Client {
    xprt: *mut rpc_xprt,
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
    pub(crate) fn new(first_xid: u32) -> kernel::error::Result<Self> {
        Self::to(server_address(), first_xid)
    }

    /// The same, to this address.
    ///
    /// # Errors
    ///
    /// That of the class.
    pub(crate) fn to(
        mut addr: __kernel_sockaddr_storage,
        first_xid: u32,
    ) -> kernel::error::Result<Self> {
        let mut args = xprt_create {
            ident: xprt_transports_XPRT_TRANSPORT_RDMA,
            net: core::ptr::with_exposed_provenance_mut(svc::NET),
            dstaddr: (&raw mut addr).cast(),
            addrlen: 16,
            ..xprt_create::default()
        };
        let class = xprt::class(xprt_transports_XPRT_TRANSPORT_RDMA);
        let xprt = unsafe { (*class).setup.expect("an operation")(&mut args) };
        Ok(Self {
            xprt: kernel::error::from_err_ptr(xprt)?,
            xid: Cell::new(first_xid),
            attempts: Cell::new(0),
            failures: Cell::new(0),
            tasks: Cell::new(0),
        })
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

    /// Starts a task.
    pub(crate) fn start(self: &Rc<Self>, call: Call) {
        let this = self.clone();
        self.tasks.set(self.tasks.get() + 1);
        sched::spawn(format!("task {}", self.tasks.get()), move || {
            unsafe { this.execute(&call) };
            this.tasks.set(this.tasks.get() - 1);
        });
    }

    unsafe fn execute(&self, call: &Call) {
        let fixed = fixed();
        let xprt = self.xprt;
        let mut task = Box::new(rpc_task {
            tk_client: fixed.client.get(),
            tk_xprt: xprt,
            tk_flags: RPC_TASK_NO_RETRANS_TIMEOUT as u16,
            ..rpc_task::default()
        });
        task.tk_msg.rpc_proc = fixed.procedure.get();
        let task = Box::into_raw(task);
        unsafe {
            let ops = (*xprt).ops;
            // call_reserve
            while (*task).tk_rqstp.is_null() {
                (*ops).alloc_slot.expect("an operation")(xprt, task);
                sleep_if_queued(task);
            }
            let rqst = (*task).tk_rqstp;
            let xid = self.xid.get();
            self.xid.set(xid + 1);
            (*rqst).rq_xid = xid.to_be();
            (*rqst).rq_task = task;
            (*rqst).rq_xprt = xprt;
            (*rqst).rq_cred = fixed.cred.get();
            (*rqst).rq_connect_cookie = (*xprt).connect_cookie.wrapping_sub(1);
            (*rqst).rq_timeout = (*(*xprt).timeout).to_initval;
            let mut pages = Pages::new(call);
            // call_allocate
            let (head, data, tail) = (call.encode)(xid, 0);
            (*rqst).rq_callsize = head.len() + tail.len() + 8;
            (*rqst).rq_rcvsize = call.room[0] + call.room[2] + 8;
            while (*ops).buf_alloc.expect("an operation")(task) != 0 {
                delay();
            }
            pages.store(&data);
            // call_encode, call_connect, call_transmit, call_status
            while !self.attempt(task, call, &mut pages) {}
            let rqst = (*task).tk_rqstp;
            if (*rqst).rq_reply_bytes_recvd > 0 {
                let reply = pages.reply(rqst, call);
                (call.decode)(xid, &reply);
            }
            release(task);
        }
        drop(unsafe { Box::from_raw(task) });
    }

    /// One attempt to send the Call and to get the Reply; `false` to try again.
    unsafe fn attempt(&self, task: *mut rpc_task, call: &Call, pages: &mut Pages) -> bool {
        unsafe {
            let rqst = (*task).tk_rqstp;
            let xprt = (*rqst).rq_xprt;
            if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                let attempt = self.attempts.get() + 1;
                self.attempts.set(attempt);
                pages.encode(rqst, call, attempt);
                rqst::enqueue_receive(task);
                rqst::enqueue_transmit(task);
            }
            // call_connect
            let state = &raw const (*xprt).state;
            while !test_bit(XPRT_CONNECTED, state) {
                (*task).tk_status = 0;
                xprt::connect_task(task);
                sleep_if_queued(task);
                if (*task).tk_status != 0 && (*task).tk_status != -(EAGAIN as c_int) {
                    delay();
                }
            }
            // call_transmit
            loop {
                (*task).tk_status = 0;
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                    break;
                }
                if xprt::lock_write(xprt, task) {
                    if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT != 0 {
                        (*task).tk_status = 0;
                        rqst::transmit(task);
                    }
                    let status = (*task).tk_status;
                    xprt::release_write(xprt, task);
                    match -status {
                        0 => {}
                        errno if errno == ENOBUFS as c_int => delay(),
                        errno if errno == EBADSLT as c_int || errno == EAGAIN as c_int => {}
                        errno if errno == ENOTCONN as c_int => return false,
                        errno => return self.failed(call, errno),
                    }
                } else if (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 {
                    // Race breaker: someone may have transmitted the request.
                    xprt::wake_task(&raw mut (*xprt).sending, task, Some(0));
                }
                sleep_if_queued(task);
            }
            // call_status
            (*task).tk_status = 0;
            if (*task).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0 {
                (*xprt).queue_lock.take(true);
                if (*task).tk_runstate & 1 << RPC_TASK_NEED_RECV != 0 {
                    let wait = (*(*xprt).ops).wait_for_reply_request.expect("an operation");
                    wait(task);
                    // xprt_request_retransmit_after_disconnect()
                    if (*rqst).rq_connect_cookie != (*xprt).connect_cookie
                        || !test_bit(XPRT_CONNECTED, state)
                    {
                        let status = Some(-(ENOTCONN as c_int));
                        xprt::wake_task(&raw mut (*xprt).pending, task, status);
                    }
                }
                (*xprt).queue_lock.release();
                sleep_if_queued(task);
            }
            let status = (*task).tk_status;
            if (*rqst).rq_reply_bytes_recvd > 0 {
                return true;
            }
            if status < 0 && status != -(ENOTCONN as c_int) {
                return self.failed(call, -status);
            }
            false
        }
    }

    /// The RPC has failed.
    fn failed(&self, call: &Call, errno: c_int) -> bool {
        if !call.may_fail {
            sched::fail(format_args!("an RPC fails with errno {errno}"));
        }
        self.failures.set(self.failures.get() + 1);
        true
    }
}

/// A task that is queued sleeps.
unsafe fn sleep_if_queued(task: *mut rpc_task) {
    while unsafe { (*task).tk_runstate } & 1 << RPC_TASK_QUEUED != 0 {
        sched::wait_on(task.addr());
    }
}

/// `rpc_delay()`.
fn delay() {
    let later = sched::now() + 250_000_000;
    sched::wait_until(7, later);
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
        (*ops).buf_free.expect("an operation")(task);
        (*task).tk_rqstp = core::ptr::null_mut();
        (*ops).free_slot.expect("an operation")(xprt, rqst);
    }
}

/// The pages of a Call and of its Reply.
struct Pages {
    call: Vec<*mut page>,
    reply: Vec<*mut page>,
}

impl Pages {
    fn new(call: &Call) -> Self {
        let (_, data, _) = (call.encode)(0, 0);
        let pages = |bytes: usize| (0..bytes.div_ceil(PAGE_SIZE)).map(|_| new_page()).collect();
        Self {
            call: pages(data.len()),
            reply: pages(call.room[1]),
        }
    }

    fn store(&self, data: &[u8]) {
        for (page, part) in self.call.iter().zip(data.chunks(PAGE_SIZE)) {
            unsafe { page.cast::<u8>().copy_from(part.as_ptr(), part.len()) };
        }
    }

    unsafe fn encode(&mut self, rqst: *mut rpc_rqst, call: &Call, attempt: u32) {
        unsafe {
            let xid = u32::from_be((*rqst).rq_xid);
            let (head, data, tail) = (call.encode)(xid, attempt);
            self.store(&data);
            let start = (*rqst).rq_buffer.cast::<u8>();
            start.copy_from(head.as_ptr(), head.len());
            let end = start.add(head.len());
            end.copy_from(tail.as_ptr(), tail.len());
            let mut snd = xdr_buf::default();
            snd.head[0].iov_base = start.cast();
            snd.head[0].iov_len = head.len();
            snd.tail[0].iov_base = end.cast();
            snd.tail[0].iov_len = tail.len();
            snd.pages = self.call.as_mut_ptr();
            snd.page_len = data.len() as u32;
            snd.len = (head.len() + data.len() + tail.len()) as u32;
            snd.buflen = snd.len;
            snd.flags = if call.is_write { XDRBUF_WRITE } else { 0 };
            (*rqst).rq_snd_buf = snd;
            let [head, data, tail] = call.room;
            let start = (*rqst).rq_rbuffer.cast::<u8>();
            start.write_bytes(0xa7, head + tail);
            let mut rcv = xdr_buf::default();
            rcv.head[0].iov_base = start.cast();
            rcv.head[0].iov_len = head;
            rcv.tail[0].iov_base = start.add(head).cast();
            rcv.tail[0].iov_len = tail;
            rcv.pages = self.reply.as_mut_ptr();
            rcv.page_len = data as u32;
            rcv.buflen = (head + data + tail) as u32;
            rcv.flags = if call.is_read { XDRBUF_READ } else { 0 };
            (*rqst).rq_rcv_buf = rcv;
        }
    }

    /// The Reply, from head, pages and tail.
    unsafe fn reply(&self, rqst: *mut rpc_rqst, call: &Call) -> Vec<u8> {
        unsafe {
            let buf = &(*rqst).rq_private_buf;
            let mut bytes = Vec::new();
            let linear = |part: &kvec| {
                let base: *const c_void = part.iov_base;
                core::slice::from_raw_parts(base.cast::<u8>(), part.iov_len).to_vec()
            };
            bytes.extend(linear(&buf.head[0]));
            let mut left = buf.page_len as usize;
            for page in &self.reply {
                let count = left.min(PAGE_SIZE);
                bytes.extend(core::slice::from_raw_parts(page.cast::<u8>(), count));
                left -= count;
            }
            if call.room[2] > 0 {
                bytes.extend(linear(&buf.tail[0]));
            }
            bytes.truncate(buf.len as usize);
            bytes
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in self.call.drain(..).chain(self.reply.drain(..)) {
            unsafe { rpcrdma_put_page(page) };
        }
    }
}
