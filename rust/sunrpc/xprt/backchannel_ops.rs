// SPDX-License-Identifier: GPL-2.0

//! The operations for backchannel Calls: their number, their size, and their release.
//!
//! C: backchannel.c, xprt_rdma_bc_setup(), xprt_rdma_bc_maxpayload(), xprt_rdma_bc_max_slots()
//! C: backchannel.c, xprt_rdma_bc_destroy(), xprt_rdma_bc_free_rqst()

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    compat::sunrpc::end_callback_service,
    sunrpc::class::IDLE_TIMEOUT_MS,
    trace::trace, //
};

use super::{
    rpc_xprt::XprtState,
    slot::Slot,
    transport::Transport, //
};

/// Threads of a callback service that may be about to free a slot.
const CALLBACK_THREADS: u32 = 16;

/// `bc_setup`: allocates slots for a callback service.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy` of the transport, as all of the following.
pub(super) unsafe extern "C" fn setup<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    _min: c_uint,
) -> c_int {
    // SAFETY: By this function's contract.
    let state = unsafe { XprtState::<T>::from_raw(raw) };
    let calls = state.transport.backchannel_slots();
    trace!(xprtrdma_cb_setup(state.xprt().peer(), calls));
    // SUNRPC frees a slot some time after it has sent the Reply. The server may have seen the Reply
    // by then, and sent another Call. Each thread of the callback service may have such a slot.
    let slots = calls.saturating_add(calls.max(CALLBACK_THREADS));
    if let Err(error) = state.backchannel.provide(slots as usize) {
        return error.to_errno();
    }
    // The server may have Calls at any time (RFC 8167 Section 5.4). The RPCs that renew a lease
    // rotate among the connections of a mount, which may be too rare to keep this connection.
    state.xprt().lock().set_idle_timeout(0);
    0
}

/// `bc_maxpayload`: the size of a Call or Reply. Called under RCU; must not sleep.
///
/// # Safety
///
/// As for [`setup`].
pub(super) unsafe extern "C" fn max_payload<T: Transport>(raw: *mut bindings::rpc_xprt) -> usize {
    // SAFETY: By this function's contract.
    unsafe { XprtState::<T>::from_raw(raw) }
        .transport
        .backchannel_payload()
}

/// `bc_num_slots`: the number of outstanding Calls that the client accepts.
///
/// # Safety
///
/// As for [`setup`].
pub(super) unsafe extern "C" fn num_slots<T: Transport>(raw: *mut bindings::rpc_xprt) -> c_uint {
    // SAFETY: By this function's contract.
    unsafe { XprtState::<T>::from_raw(raw) }
        .transport
        .backchannel_slots()
}

/// `bc_free_rqst`: releases a Call that was answered or is dropped.
///
/// # Safety
///
/// SUNRPC calls this once for a request of `BackchannelPool::enqueue`.
pub(super) unsafe extern "C" fn free_backchannel<T: Transport>(rqst: *mut bindings::rpc_rqst) {
    // SAFETY: By this function's contract `enqueue` leaked the box of this slot, and SUNRPC has no
    // more use for it. Its two references to the transport keep that until they are put below.
    let (mut slot, raw, state) = unsafe {
        let raw = (*rqst).rq_xprt;
        let slot = KBox::from_raw(rqst.cast::<Slot<T>>());
        (slot, raw, XprtState::<T>::from_raw(raw))
    };
    if let Some(message) = slot.take_message() {
        state.transport.recycle(message);
    }
    state.backchannel.put(slot);
    // SAFETY: `enqueue` took one of the references, and SUNRPC the other. If the second one is the
    // last, it is not put here.
    unsafe {
        bindings::xprt_put(raw);
        if !bindings::refcount_dec_not_one(&raw mut (*raw).kref.refcount) {
            state.backchannel.deferred_put().start();
        }
    }
}

/// `bc_destroy`: lets SUNRPC close an idle connection again. Keeps the slots for the next session;
/// they are freed with the transport.
///
/// # Safety
///
/// As for [`setup`].
pub(super) unsafe extern "C" fn destroy<T: Transport>(raw: *mut bindings::rpc_xprt, _max: c_uint) {
    // SAFETY: By this function's contract.
    let state = unsafe { XprtState::<T>::from_raw(raw) };
    let timeout = msecs_to_jiffies(IDLE_TIMEOUT_MS);
    state.xprt().lock().set_idle_timeout(timeout);
    // SAFETY: By this function's contract the transport is alive, and NFS is about to leave the
    // callback service.
    unsafe { end_callback_service(raw) };
}
