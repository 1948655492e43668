// SPDX-License-Identifier: GPL-2.0

//! What the connection manager, a queue pair and a device report, on its way to an endpoint's
//! context.

use core::{
    cell::Cell,
    ffi::c_void, //
};

use kernel::prelude::*;

use crate::bindings;

use super::{
    cm_event::{
        CmEvent,
        IncomingConnection, //
    },
    ep::Endpoint,
    ops::EndpointOps, //
};

/// # Safety
///
/// Called by the connection manager for an identifier of an `Endpoint<C>`, or, for a connection
/// request, for a new identifier that has taken over a listening one's context.
pub(in crate::verbs) unsafe extern "C" fn cm_handler<C: EndpointOps>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: The context is an endpoint, which destroys its identifier, and so waits for this
    // handler, before it ends. A new identifier's request holds off the listening one's end.
    let ep = unsafe { &*(*id).context.cast::<Endpoint<C>>() };
    // SAFETY: Valid until this handler returns.
    let event = unsafe { &*event };
    let silent = ep.is_closing();
    if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST {
        let taken = Cell::new(false);
        // SAFETY: A request carries connection parameters; `id` is kept below if it was taken.
        let request = unsafe { IncomingConnection::new(id, event.param.conn.as_ref(), &taken) };
        if !silent {
            C::connect_request(ep, request);
        }
        // Anything but zero has the connection manager destroy `id`. With `ENOMEM` that of
        // InfiniBand and RoCE says nothing to the peer, which asks again; that of iWARP refuses.
        return if taken.get() { 0 } else { ENOMEM.to_errno() };
    }
    if !silent {
        // SAFETY: As above.
        C::cm_event(ep, unsafe { CmEvent::from_raw(event) });
    }
    0
}

/// # Safety
///
/// Called by the RDMA core with the endpoint that [`Endpoint::open`] passed as `qp_context`.
pub(in crate::verbs) unsafe extern "C" fn qp_event<C: EndpointOps>(
    event: *mut bindings::ib_event,
    owner: *mut c_void,
) {
    // SAFETY: The endpoint outlives its queue pair.
    let ep = unsafe { &*owner.cast::<Endpoint<C>>() };
    // SAFETY: Valid for the call.
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

/// # Safety
///
/// `who` is an endpoint whose notice stands.
pub(in crate::verbs) unsafe fn device_removed<C: EndpointOps>(who: *const c_void) {
    // SAFETY: By this function's contract.
    C::device_removed(unsafe { &*who.cast::<Endpoint<C>>() });
}
