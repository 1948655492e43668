// SPDX-License-Identifier: GPL-2.0

//! The callbacks of an endpoint.

use kernel::prelude::*;

use crate::lib::counter::Gauge;

use super::{
    cm_event::{
        CmEvent,
        IncomingConnection, //
    },
    completion::RecvWorker,
    ep::{
        Drained,
        Endpoint, //
    },
    recv_ctxt::{
        RecvBuf,
        RecvStatus, //
    }, //
};

/// The part of the sending side that an endpoint owns. It has the chains that may be posted on the
/// endpoint, and no others.
pub(crate) trait SendSide: Send + Sync + Sized + 'static {
    /// Creates a side that is not open.
    fn new() -> impl PinInit<Self>;
}

/// For an endpoint that posts nothing.
impl SendSide for () {
    fn new() -> impl PinInit<Self> {}
}

/// The state of the client or server in an [`Endpoint`], and the handlers of its events.
///
/// No method may drop the endpoint that it is called with: the drop waits for the handlers.
pub(crate) trait EndpointOps: Send + Sync + Sized + 'static {
    /// The data that stays with each Receive buffer.
    type RecvData: Send + 'static;

    /// The part of the sending side that the endpoint owns.
    type SendSide: SendSide;

    /// Counts the bytes of the buffers of all such endpoints.
    fn buffers() -> &'static Gauge;

    /// Handles a CM event. Called in the CM's workqueue; may sleep.
    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>);

    /// Handles a connection request to this listening endpoint. Called in the CM's workqueue; may
    /// sleep.
    fn connect_request(_ep: &Endpoint<Self>, _request: IncomingConnection<'_>) {}

    /// Handles an asynchronous event of the QP or its device that ends the connection. `code` is
    /// the `ib_event_type`. May be called in hard IRQ context; must not sleep.
    fn qp_fatal(_ep: &Endpoint<Self>, _code: u32) {}

    /// Starts to close the endpoint because its device is to be removed. The removal waits until
    /// the endpoint is dropped. This function must not wait for that, since it is called with the
    /// lock of the device's list of notifiers. May sleep.
    fn device_removed(ep: &Endpoint<Self>);

    /// Traces the completion of a Receive, before [`Self::received`].
    #[inline]
    fn trace_received(_ep: &Endpoint<Self>, _serial: i32, _status: &RecvStatus, _vendor_err: u32) {}

    /// Handles a completed Receive, whose buffer belongs to the host again. Called in the worker of
    /// the receive CQ.
    fn received(worker: &RecvWorker<'_, Self>, recv: RecvBuf<Self::RecvData>, status: RecvStatus);

    /// Releases everything that is mapped for the QP. Called while the endpoint is dropped, when no
    /// completion handler runs any more. May sleep.
    fn drained(_ep: &Drained<'_, Self>) {}
}
