// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client, and of a server's backchannel.

use core::cell::RefCell;
use core::ffi::c_void;

use kernel::bindings::work_struct;
use kernel::ffi::{c_int, c_ushort};
use kernel::sched;

use super::*;

macro_rules! later {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {$(
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            $(let _ = $arg;)*
            sched::fail(concat!(stringify!($name), "() is not simulated yet"))
        }
    )*};
}

later! {
    fn xprt_alloc(net: *mut net, size: usize, slots: u32, most: u32) -> *mut rpc_xprt;
    fn xprt_free(xprt: *mut rpc_xprt);
    fn xprt_get(xprt: *mut rpc_xprt) -> *mut rpc_xprt;
    fn xprt_put(xprt: *mut rpc_xprt);
    fn xprt_reserve_xprt_cong(xprt: *mut rpc_xprt, task: *mut rpc_task) -> c_int;
    fn xprt_release_xprt_cong(xprt: *mut rpc_xprt, task: *mut rpc_task);
    fn xprt_alloc_slot(xprt: *mut rpc_xprt, task: *mut rpc_task);
    fn xprt_free_slot(xprt: *mut rpc_xprt, rqst: *mut rpc_rqst);
    fn xprt_release_rqst_cong(task: *mut rpc_task);
    fn xprt_request_get_cong(xprt: *mut rpc_xprt, rqst: *mut rpc_rqst) -> bool;
    fn xprt_wait_for_reply_request_def(task: *mut rpc_task);
    fn xprt_lookup_rqst(xprt: *mut rpc_xprt, xid: u32) -> *mut rpc_rqst;
    fn xprt_pin_rqst(rqst: *mut rpc_rqst);
    fn xprt_unpin_rqst(rqst: *mut rpc_rqst);
    fn xprt_complete_rqst(task: *mut rpc_task, copied: c_int);
    fn xprt_write_space(xprt: *mut rpc_xprt) -> bool;
    fn xprt_wait_for_buffer_space(xprt: *mut rpc_xprt);
    fn xprt_wake_pending_tasks(xprt: *mut rpc_xprt, status: c_int);
    fn xprt_wake_up_backlog(xprt: *mut rpc_xprt, rqst: *mut rpc_rqst) -> bool;
    fn xprt_add_backlog(xprt: *mut rpc_xprt, task: *mut rpc_task);
    fn xprt_add_backlog_noncongested(xprt: *mut rpc_xprt, task: *mut rpc_task);
    fn xprt_force_disconnect(xprt: *mut rpc_xprt);
    fn xprt_disconnect_done(xprt: *mut rpc_xprt);
    fn xprt_lock_connect(xprt: *mut rpc_xprt, task: *mut rpc_task, cookie: *mut c_void) -> bool;
    fn xprt_unlock_connect(xprt: *mut rpc_xprt, cookie: *mut c_void);
    fn xprt_reconnect_backoff(xprt: *mut rpc_xprt, least: usize);
    fn xprt_enqueue_bc_request(rqst: *mut rpc_rqst);
    fn rpcb_getport_async(task: *mut rpc_task);
    fn rpcrdma_xprt_clear_connecting(xprt: *mut rpc_xprt);
    fn rpcrdma_bc_slot_inc(xprt: *mut rpc_xprt);
    fn rpcrdma_bc_enqueue(serv: *mut svc_serv, rqst: *mut rpc_rqst);
    fn svc_pool_wake_idle_thread(pool: *mut svc_pool);
    fn refcount_dec_not_one(refcount: *mut refcount_t) -> bool;
}

pub(crate) unsafe extern "C" fn rpc_task_gfp_mask() -> gfp_t {
    GFP_KERNEL
}

pub(crate) unsafe extern "C" fn rpcrdma_rpc_reply_expected(task: *mut rpc_task) -> bool {
    unsafe { (*(*task).tk_msg.rpc_proc).p_decode.is_some() }
}

const _: Option<(*mut work_struct, c_ushort)> = None;

thread_local! {
    static CLASSES: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(crate) unsafe extern "C" fn xprt_register_transport(class: *mut xprt_class) -> c_int {
    CLASSES.with_borrow_mut(|classes| classes.push(class.expose_provenance()));
    0
}

pub(crate) unsafe extern "C" fn xprt_unregister_transport(class: *mut xprt_class) -> c_int {
    CLASSES.with_borrow_mut(|classes| classes.retain(|other| *other != class.addr()));
    0
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    CLASSES.with_borrow_mut(Vec::clear);
}
