// SPDX-License-Identifier: GPL-2.0

//! SUNRPC's backchannel, as in `net/sunrpc/backchannel_rqst.c` and `svc_process_bc()`: the callback
//! service of the client, and the transports over which a server calls its clients.
//!
//! A mount ends as in Linux 7.1: NFS does not clear the transport's pointer to the service.

use core::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use kernel::ffi::c_int;
use kernel::sched;

use super::rpc::{Client, Manner};
use super::*;

/// The program of the callback service.
pub(crate) trait Callbacks {
    /// Executes a Call: the Reply, or `None` if it is dropped.
    fn execute(&self, call: &[u8]) -> Option<Vec<u8>>;
}

#[derive(Default)]
struct Service {
    program: Option<Rc<dyn Callbacks>>,
    queue: VecDeque<usize>,
    /// The transports of its mounts.
    mounts: BTreeSet<usize>,
}

thread_local! {
    static SERVICE: RefCell<Service> = RefCell::default();
}

fn service<R>(f: impl FnOnce(&mut Service) -> R) -> R {
    SERVICE.with_borrow_mut(f)
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    SERVICE.with(|service| {
        if let Ok(mut service) = service.try_borrow_mut() {
            core::mem::forget(core::mem::take(&mut *service));
        }
    });
}

/// The key that the threads of the callback service wait for.
const WORK: usize = 9;

/// A key that nothing wakes.
const STILL: usize = 12;

thread_local! {
    static SERV: Cell<*mut svc_serv> = Cell::new(Box::leak(Box::default()));
}

/// The lock is `bc_pa_lock`.
pub(crate) unsafe extern "C" fn spin_lock(lock: *mut spinlock) {
    unsafe { (*lock).take(true) };
}

pub(crate) unsafe extern "C" fn spin_unlock(lock: *mut spinlock) {
    unsafe { (*lock).release() };
    // The worker may stand still here, and the service be faster.
    if sched::one_in(4) {
        let later = sched::now() + sched::below(3_000_000) as u64;
        sched::wait_until(STILL, later);
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_bc_slot_inc(xprt: *mut rpc_xprt) {
    unsafe {
        if (*xprt).kref.refcount.refs.counter <= 0 {
            sched::fail("a backchannel Call arrives for a transport without references");
        }
        (*xprt).bc_slot_count.counter += 1;
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_bc_slot_dec(xprt: *mut rpc_xprt) {
    unsafe {
        (*xprt).bc_slot_count.counter -= 1;
        if (*xprt).bc_slot_count.counter < 0 {
            sched::fail("a slot for a backchannel Call is returned that is not in use");
        }
    }
}

/// The transport is freed: no backchannel Call has a slot.
pub(super) unsafe fn all_slots_are_free(xprt: *mut rpc_xprt) {
    let used = unsafe { (*xprt).bc_slot_count.counter };
    if used != 0 {
        sched::fail(format_args!(
            "a transport is freed that counts {used} backchannel Calls"
        ));
    }
}

unsafe fn free_request(rqst: *mut rpc_rqst) {
    unsafe {
        let ops = (*(*rqst).rq_xprt).ops;
        (*ops).bc_free_rqst.expect("an operation")(rqst);
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_bc_enqueue(serv: *mut svc_serv, rqst: *mut rpc_rqst) {
    assert_eq!(serv, SERV.get());
    let xprt = unsafe { (*rqst).rq_xprt };
    service(|s| {
        if !s.mounts.contains(&xprt.addr()) {
            sched::fail("a backchannel Call reaches the service after the mount has ended");
        }
        s.queue.push_back(rqst.expose_provenance());
    });
}

pub(crate) unsafe extern "C" fn svc_pool_wake_idle_thread(_pool: *mut svc_pool) {
    sched::wake(WORK);
}

/// Starts a thread of the callback service.
pub(crate) fn start_callbacks(program: Rc<dyn Callbacks>, threads: usize) {
    service(|s| s.program = Some(program));
    for number in 0..threads {
        sched::spawn(format!("callback {number}"), || loop {
            let (next, ends) = service(|s| (s.queue.pop_front(), s.program.is_none()));
            match next {
                Some(rqst) => unsafe { process(ptr(rqst)) },
                None if ends => break,
                None => sched::wait_for_work(WORK),
            }
        });
    }
}

/// Ends the callback service, after all transports have left it.
pub(crate) fn end_callbacks() {
    service(|s| s.program = None);
    sched::wake(WORK);
}

/// `svc_process_bc()`, and the task that sends the Reply.
unsafe fn process(rqst: *mut rpc_rqst) {
    unsafe {
        let xprt = (*rqst).rq_xprt;
        let head = (*rqst).rq_rcv_buf.head[0];
        let len = (*rqst).rq_private_buf.len as usize;
        if len > head.iov_len {
            sched::fail("a backchannel Call is longer than its buffer");
        }
        let call = core::slice::from_raw_parts(head.iov_base.cast::<u8>(), len).to_vec();
        sched::preempt();
        let program = service(|s| s.program.clone());
        let reply = program.and_then(|program| program.execute(&call));
        // The message stays in place until the service has read it.
        if core::slice::from_raw_parts(head.iov_base.cast::<u8>(), len) != &call[..] {
            sched::fail("a backchannel Call is overwritten while the service reads it");
        }
        rpcrdma_bc_slot_dec(xprt);
        let Some(reply) = reply else {
            free_request(rqst);
            return;
        };
        let snd = &raw mut (*rqst).rq_snd_buf;
        assert!(reply.len() <= (*snd).buflen as usize);
        let to = (*snd).head[0].iov_base.cast::<u8>();
        to.copy_from(reply.as_ptr(), reply.len());
        (*snd).head[0].iov_len = reply.len();
        (*snd).len = reply.len() as u32;
        rpc_reply::reply(rqst);
    }
}

impl Client {
    /// Sets up the backchannel, as NFS does for a session.
    ///
    /// # Errors
    ///
    /// That of `bc_setup`.
    pub(crate) fn set_up_backchannel(&self) -> c_int {
        let xprt = self.xprt;
        unsafe {
            let ret = (*(*xprt).ops).bc_setup.expect("an operation")(xprt, 16);
            if ret == 0 {
                service(|s| s.mounts.insert(xprt.addr()));
                (*xprt).bc_serv = SERV.get();
            }
            ret
        }
    }

    /// Leaves the callback service.
    pub(crate) fn end_backchannel(&self) {
        let xprt = self.xprt;
        unsafe {
            (*(*xprt).ops).bc_destroy.expect("an operation")(xprt, 16);
        }
        service(|s| s.mounts.remove(&xprt.addr()));
    }
}

/// A client of nfsd that nfsd calls, on one of its connections.
pub(crate) struct CallbackClient {
    svc: *mut svc_xprt,
    /// The RPC client.
    pub(crate) client: Rc<Client>,
}

impl CallbackClient {
    /// Chooses a connection. Calls have XIDs from `first_xid` on.
    pub(crate) fn any(first_xid: u32, manner: Manner) -> Option<Self> {
        let all = svc::connections();
        if all.is_empty() {
            return None;
        }
        let svc: *mut svc_xprt = ptr(all[sched::below(all.len())]);
        unsafe {
            // register_xpt_user() finds that the connection is closing.
            if (*svc).xpt_flags & (1 << XPT_CLOSE | 1 << XPT_DEAD) != 0 {
                return None;
            }
            svc::svc_xprt_get(svc);
            let xprt = match (*svc).xpt_bc_xprt {
                xprt if xprt.is_null() => Self::create(svc),
                xprt => xprt_get(xprt),
            };
            if xprt.is_null() {
                svc_xprt_put(svc);
                return None;
            }
            let client = Rc::new(Client::of_xprt(xprt, first_xid, manner));
            Some(Self { svc, client })
        }
    }

    /// Whether the connection is about to end, or has ended.
    pub(crate) fn is_over(&self) -> bool {
        unsafe { (*self.svc).xpt_flags & (1 << XPT_CLOSE | 1 << XPT_DEAD) != 0 }
    }

    unsafe fn create(svc: *mut svc_xprt) -> *mut rpc_xprt {
        unsafe {
            let mut addr = (*svc).xpt_remote;
            let mut args = xprt_create {
                ident: xprt_transports_XPRT_TRANSPORT_BC_RDMA,
                net: (*svc).xpt_net,
                dstaddr: (&raw mut addr).cast(),
                addrlen: (*svc).xpt_remotelen,
                bc_xprt: svc,
                ..xprt_create::default()
            };
            xprt_create_transport(&mut args).unwrap_or(core::ptr::null_mut())
        }
    }

    /// Puts what nfsd has of the connection. There are no tasks any more.
    pub(crate) fn put(self) {
        self.client.put();
        unsafe { svc_xprt_put(self.svc) };
    }
}
