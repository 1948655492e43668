// SPDX-License-Identifier: GPL-2.0

//! The operations for reverse Calls: how many there may be, how long they may be, and their end.

use kernel::prelude::*;

use crate::{
    bindings,
    trace::trace, //
};

use super::{
    handle::peer_of,
    rpc_xprt::Xprt,
    slot::Slot,
    transport::Transport, //
};

/// `bc_setup`.
///
/// # Safety
///
/// Called by SUNRPC while the transport is live: after its `setup`, and before it is destroyed.
pub(super) unsafe extern "C" fn setup<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    _min: c_uint,
) -> c_int {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    let calls = live.transport.backchannel_slots();
    // SAFETY: By this function's contract the transport's memory is there.
    trace!(xprtrdma_cb_setup(unsafe { peer_of(raw) }, calls));
    // A slot comes back when SUNRPC has let go of the Reply, a little after it was sent. By then
    // the server may have seen it, and have called again.
    live.backchannel
        .provide(2 * calls as usize)
        .map_or_else(|e| e.to_errno(), |()| 0)
}

/// `bc_maxpayload`.
///
/// # Safety
///
/// As for [`setup`]; under RCU: must not sleep.
pub(super) unsafe extern "C" fn max_payload<T: Transport>(raw: *mut bindings::rpc_xprt) -> usize {
    // SAFETY: By this function's contract.
    unsafe { Xprt::<T>::from_raw(raw).live() }
        .transport
        .backchannel_payload()
}

/// `bc_num_slots`.
///
/// # Safety
///
/// As for [`setup`].
pub(super) unsafe extern "C" fn num_slots<T: Transport>(raw: *mut bindings::rpc_xprt) -> c_uint {
    // SAFETY: By this function's contract.
    unsafe { Xprt::<T>::from_raw(raw).live() }
        .transport
        .backchannel_slots()
}

/// `bc_free_rqst`: SUNRPC is done with a reverse Call.
///
/// # Safety
///
/// Called by SUNRPC for a request from `BackchannelPool::enqueue`, once.
pub(super) unsafe extern "C" fn free_backchannel<T: Transport>(rqst: *mut bindings::rpc_rqst) {
    // SAFETY: By this function's contract; the request holds two references to its transport, which
    // is therefore not destroyed.
    unsafe {
        let raw = (*rqst).rq_xprt;
        let live = Xprt::<T>::from_raw(raw).live();
        let slot = KBox::from_raw(rqst.cast::<Slot<T>>());
        if let Some(message) = slot.take_reply() {
            live.transport.recycle(message);
        }
        live.backchannel.put(slot);
        // The references that `enqueue` and SUNRPC took.
        bindings::xprt_put(raw);
        if !bindings::refcount_dec_not_one(&raw mut (*raw).kref.refcount) {
            // It is the last one, and still there.
            live.backchannel.put_last();
        }
    }
}

/// `bc_destroy`.
///
/// # Safety
///
/// As for [`setup`].
pub(super) unsafe extern "C" fn destroy<T: Transport>(_raw: *mut bindings::rpc_xprt, _max: c_uint) {
    // The slots stay for the next session on this transport, and end with it.
}
