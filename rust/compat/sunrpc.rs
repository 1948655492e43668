// SPDX-License-Identifier: GPL-2.0

//! Functions of SUNRPC.

#[cfg(rpcrdma_has_xprt_add_backlog_noncongested)]
pub(crate) use crate::bindings::xprt_add_backlog_noncongested;
#[cfg(rpcrdma_has_xprt_svc_shutdown_bc)]
pub(crate) use crate::bindings::xprt_enqueue_bc_request;

use crate::bindings;

/// Queues a task for a slot, without the mark that sends all other tasks to the queue.
///
/// `xprt_add_backlog()` sets `XPRT_CONGESTED`. SUNRPC then queues new tasks without a call of
/// `alloc_slot`, and clears the flag when a slot becomes free and the queue is empty. A task that
/// joins the queue after that would set the flag again, and no slot would be in use whose end
/// clears it. `xprt_throttle_congested()` reads the flag with `reserve_lock` held before it queues
/// a task. It never finds the flag set, because this function sets and clears it with the lock
/// held.
///
/// # Safety
///
/// As for `xprt_add_backlog()`: called by `alloc_slot` for its task.
#[cfg(not(rpcrdma_has_xprt_add_backlog_noncongested))]
pub(crate) unsafe fn xprt_add_backlog_noncongested(
    xprt: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract. SUNRPC takes the lock in the same contexts, and calls
    // `xprt_add_backlog()` with it held.
    unsafe {
        bindings::spin_lock(&raw mut (*xprt).reserve_lock);
        bindings::xprt_add_backlog(xprt, task);
        bindings::clear_bit(bindings::XPRT_CONGESTED as usize, &raw mut (*xprt).state);
        bindings::spin_unlock(&raw mut (*xprt).reserve_lock);
    }
}

/// Passes a backchannel Call to the callback service, or frees the Call if the service has ended.
///
/// A kernel that has `xprt_svc_shutdown_bc()` has this function. That of 6.19 and 7.1 leaks the
/// Call if the service has ended.
///
/// # Safety
///
/// The request is a backchannel Call for the service, and in no list. `bc_slot_count` of its
/// transport counts it. The transport is alive.
#[cfg(not(rpcrdma_has_xprt_svc_shutdown_bc))]
pub(crate) unsafe fn xprt_enqueue_bc_request(rqst: *mut bindings::rpc_rqst) {
    // SAFETY: By this function's contract. NFS sets the pointer to a service that exists. The lock
    // excludes `end_callback_service`, and NFS frees the service after that. The exception is a
    // service whose threads could not be started (Documentation/kernels.rst): NFS frees that one
    // before, and no session exists yet in which a server may send a Call.
    unsafe {
        let xprt = (*rqst).rq_xprt;
        bindings::xprt_get(xprt);
        bindings::spin_lock(&raw mut (*xprt).bc_pa_lock);
        let service = (*xprt).bc_serv;
        if !service.is_null() {
            bindings::rpcrdma_bc_enqueue(service, rqst);
            bindings::svc_pool_wake_idle_thread((*service).sv_pools);
        }
        bindings::spin_unlock(&raw mut (*xprt).bc_pa_lock);
        if service.is_null() {
            bindings::rpcrdma_bc_slot_dec(xprt);
            if let Some(free) = (*(*xprt).ops).bc_free_rqst {
                free(rqst);
            }
        }
    }
}

/// Makes sure that no backchannel Call reaches the callback service any more.
///
/// All mounts share the service. NFS of a kernel that has `xprt_svc_shutdown_bc()` clears the
/// pointer to the service in the transport of each mount that ends. NFS of 6.19 and 7.1 clears the
/// pointer in the transport of the last mount only, and NFS of 6.18 in none. On all of them NFS
/// calls `bc_destroy` before a mount leaves the service, and sets the pointer before it uses the
/// backchannel again.
///
/// # Safety
///
/// The transport is alive.
#[inline]
pub(crate) unsafe fn end_callback_service(xprt: *mut bindings::rpc_xprt) {
    #[cfg(not(rpcrdma_has_xprt_svc_shutdown_bc))]
    // SAFETY: By this function's contract. `xprt_enqueue_bc_request` reads the pointer with the
    // lock held.
    unsafe {
        bindings::spin_lock(&raw mut (*xprt).bc_pa_lock);
        (*xprt).bc_serv = core::ptr::null_mut();
        bindings::spin_unlock(&raw mut (*xprt).bc_pa_lock);
    }
    #[cfg(rpcrdma_has_xprt_svc_shutdown_bc)]
    let _ = xprt;
}
