// SPDX-License-Identifier: GPL-2.0

//! The handlers of an endpoint's events, which call its [`EndpointOps`].
//!
//! C: verbs.c, rpcrdma_cm_event_handler(), rpcrdma_ep_removal_done(), rpcrdma_wc_receive()
//! C: svc_rdma_transport.c, qp_event_handler()
//! C: svc_rdma_recvfrom.c, svc_rdma_wc_receive()

use core::{
    cell::Cell,
    ffi::c_void,
    ptr::NonNull, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    verbs::device::ib_client::RemovalWatcher, //
};

use super::{
    cm_event::{
        IncomingConnection,
        RawCmEvent, //
    },
    completion::{
        OnCompletion,
        RecvCq,
        RecvWorker, //
    },
    ep::Endpoint,
    ops::EndpointOps,
    recv_ctxt::RecvBuf, //
};

/// Handles an event of a cm_id. Runs in the CM's workqueue, with the handler lock of the cm_id.
///
/// # Safety
///
/// Only the CM calls this, with a cm_id whose context is an `Endpoint<C>`: the endpoint's own
/// cm_id, or the new cm_id of a connection request, which inherits the context of the listener's.
pub(super) unsafe extern "C" fn cm_handler<C: EndpointOps>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: The context is an endpoint, by this function's contract. Dropping it waits in
    // `rdma_destroy_id` for the handlers of its cm_id. Handlers of connection requests hold the
    // handler lock of the listening cm_id, or of the internal cm_id of a listener on a wildcard
    // address; `rdma_destroy_id` waits for the former, and for the latter in `cma_cancel_listens`.
    let ep = unsafe { &*(*id).context.cast::<Endpoint<C>>() };
    // SAFETY: The event is the argument of this handler.
    let event = unsafe { RawCmEvent::new(event) };
    let closing = ep.is_closing();
    if event.is_request() {
        let taken = Cell::new(false);
        if let (false, Some(id), Some(param)) = (closing, NonNull::new(id), event.peer_param()) {
            // SAFETY: `id` is that of the request. Below, zero is returned if `taken` is set, and
            // then the CM leaves `id` to the endpoint.
            let request = unsafe { IncomingConnection::new(id, param, &taken) };
            C::connect_request(ep, request);
        }
        // On any error the CM destroys `id`. For `ENOMEM` the CM of InfiniBand and RoCE sends no
        // answer, so the peer repeats its request. The CM of iWARP rejects the connection.
        return if taken.get() { 0 } else { ENOMEM.to_errno() };
    }
    if !closing {
        C::cm_event(ep, event.decode());
    }
    0
}

/// Handles an asynchronous event of a QP. May run in hard IRQ context.
///
/// # Safety
///
/// Only the RDMA core calls this, with the `qp_context` of a QP of an `Endpoint<C>`.
pub(super) unsafe extern "C" fn qp_event<C: EndpointOps>(
    event: *mut bindings::ib_event,
    arg: *mut c_void,
) {
    // SAFETY: `arg` is an endpoint, which destroys its QP before it is freed. The device reports no
    // event of a destroyed QP.
    let ep = unsafe { &*arg.cast::<Endpoint<C>>() };
    // SAFETY: The event is valid until this function returns.
    let code = unsafe { (*event).event };
    if matches!(
        code,
        bindings::ib_event_type_IB_EVENT_CQ_ERR
            | bindings::ib_event_type_IB_EVENT_QP_FATAL
            | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR
            | bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR
            | bindings::ib_event_type_IB_EVENT_DEVICE_FATAL
    ) {
        C::qp_fatal(ep, code);
    }
}

impl<C: EndpointOps> RemovalWatcher for Endpoint<C> {
    fn device_removed(&self) {
        C::device_removed(self);
    }
}

/// Handles the completion of a Receive that [`Endpoint::post_recv`] posted.
impl<C: EndpointOps> OnCompletion<C> for RecvBuf<C::RecvData> {
    type Queue = RecvCq;

    #[inline]
    unsafe fn completed(
        worker: &RecvWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The buffer was posted with this `cqe`, and its Receive completes once. The
        // endpoint's domain ends after its CQs.
        let (recv, status) = unsafe { Self::complete(cqe, wc) };
        C::trace_received(worker, recv.serial(), &status, wc.vendor_err);
        C::received(worker, recv, status);
    }
}
