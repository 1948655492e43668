// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client: requests for which a transport has room, as in `net/sunrpc/xprt.c`.

use kernel::ffi::c_int;
use kernel::sched;

use super::*;

pub(super) unsafe fn give_slot(xprt: *mut rpc_xprt, rqst: *mut rpc_rqst) {
    unsafe {
        rqst.write_bytes(0, 1);
        (*rqst).next_free = (*xprt).free;
        (*xprt).free = rqst;
    }
}

pub(super) unsafe fn take_slot(xprt: *mut rpc_xprt) -> *mut rpc_rqst {
    unsafe {
        let rqst = (*xprt).free;
        if !rqst.is_null() {
            (*xprt).free = (*rqst).next_free;
            (*rqst).next_free = core::ptr::null_mut();
        }
        rqst
    }
}

/// `xprt_free_all_slots()`.
pub(super) unsafe fn free_slots(xprt: *mut rpc_xprt) {
    unsafe {
        loop {
            let rqst = take_slot(xprt);
            if rqst.is_null() {
                break;
            }
            kfree(rqst.cast());
        }
    }
}

/// `xprt_alloc_slot()`, with `xprt_dynamic_alloc_slot()`.
pub(crate) unsafe extern "C" fn xprt_alloc_slot(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe {
        (*xprt).reserve_lock.take(true);
        let mut rqst = take_slot(xprt);
        let mut status = 0;
        if rqst.is_null() && (*xprt).num_reqs < (*xprt).max_reqs {
            rqst = rpcrdma_kmalloc_node(size_of::<rpc_rqst>(), GFP_NOWAIT, 0).cast();
            if rqst.is_null() {
                status = -(ENOMEM as c_int);
            } else {
                (*xprt).num_reqs += 1;
            }
        } else if rqst.is_null() {
            xprt_add_backlog(xprt, task);
            status = -(EAGAIN as c_int);
        }
        (*task).tk_status = status;
        if status == 0 {
            (*task).tk_rqstp = rqst;
        }
        (*xprt).reserve_lock.release();
    }
}

/// `xprt_free_slot()`.
pub(crate) unsafe extern "C" fn xprt_free_slot(xprt: *mut rpc_xprt, rqst: *mut rpc_rqst) {
    unsafe {
        (*xprt).reserve_lock.take(true);
        if !xprt_wake_up_backlog(xprt, rqst) {
            give_slot(xprt, rqst);
        }
        (*xprt).reserve_lock.release();
    }
}

pub(crate) unsafe extern "C" fn refcount_dec_not_one(refcount: *mut refcount_t) -> bool {
    sched::preempt();
    unsafe {
        let counter = &raw mut (*refcount).refs.counter;
        let more = *counter != 1;
        *counter -= c_int::from(more);
        more
    }
}

pub(crate) unsafe extern "C" fn xprt_add_backlog(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe { sleep_on(&raw mut (*xprt).backlog, task) };
}

pub(crate) unsafe extern "C" fn xprt_add_backlog_noncongested(
    xprt: *mut rpc_xprt,
    task: *mut rpc_task,
) {
    unsafe { sleep_on(&raw mut (*xprt).backlog, task) };
}

pub(crate) unsafe extern "C" fn xprt_wake_up_backlog(
    xprt: *mut rpc_xprt,
    rqst: *mut rpc_rqst,
) -> bool {
    unsafe {
        let queue = &raw mut (*xprt).backlog;
        match first(queue) {
            None => false,
            Some(task) => {
                let task = ptr::<rpc_task>(task);
                rqst.write_bytes(0, 1);
                (*task).tk_rqstp = rqst;
                wake_task(queue, task, Some(0))
            }
        }
    }
}
