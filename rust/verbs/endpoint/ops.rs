// SPDX-License-Identifier: GPL-2.0

//! What handles an endpoint's reports.

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

/// Handles what an endpoint's identifier and queues report.
///
/// No method may drop the endpoint that it is called with.
pub(crate) trait EndpointOps: Send + Sync + Sized + 'static {
    /// What travels with each Receive buffer.
    type RecvData: Send + 'static;

    /// Bytes of the buffers of all such endpoints.
    const BUFFERS: &'static Gauge;

    /// The identifier reports. The connection manager's worker; may sleep.
    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>);

    /// A peer wants to connect to this listening endpoint. The connection manager's worker; may
    /// sleep.
    fn connect_request(_ep: &Endpoint<Self>, _request: IncomingConnection<'_>) {}

    /// The queue pair reports, outside of its work requests, that the connection cannot go on; the
    /// `code` is the `ib_event_type`. May be an interrupt; must not sleep.
    fn qp_fatal(_ep: &Endpoint<Self>, _code: u32) {}

    /// The device is to be removed: start closing. The removal waits for the endpoint's end, but
    /// this must not: it is called with the device's list locked. May sleep.
    fn device_removed(ep: &Endpoint<Self>);

    /// Traces the end of a Receive, before [`Self::received`].
    #[inline]
    fn trace_received(_ep: &Endpoint<Self>, _serial: i32, _status: &RecvStatus, _vendor_err: u32) {}

    /// A Receive ended, and its buffer is owned again. The receive queue's worker.
    fn received(worker: &RecvWorker<'_, Self>, recv: RecvBuf<Self::RecvData>, status: RecvStatus);

    /// The endpoint is about to end: no handler is running and none will. Whatever is still mapped
    /// for its queue pair has to be released now. May sleep.
    fn drained(_ep: &Drained<'_, Self>) {}
}
