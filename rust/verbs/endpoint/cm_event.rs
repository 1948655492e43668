// SPDX-License-Identifier: GPL-2.0

//! The connection manager's vocabulary: what it reports and what it is told.

use core::{
    cell::Cell,
    slice, //
};

use kernel::prelude::*;

use crate::bindings;

use super::{
    ep::{
        Endpoint,
        EndpointBox, //
    },
    ops::EndpointOps, //
};

/// What the connection manager reports about an identifier.
#[derive(Clone, Copy)]
pub(crate) enum CmEvent<'a> {
    /// The address leads to a device; the endpoint can be opened.
    AddrResolved,
    /// No device leads to the address, or nobody there says where it is.
    AddrError {
        /// There is a device, and nobody answers.
        unanswered: bool,
    },
    /// The route is known; the endpoint can be connected.
    RouteResolved,
    /// There is no route.
    RouteError,
    /// The peer answered.
    Established {
        /// The peer's private data, as long as the fabric says; possibly with padding behind it.
        private_data: &'a [u8],
        /// RDMA Reads that the peer answers at a time, as seen from here: how many may be started.
        reads: u8,
    },
    /// The connection could not be made.
    ConnectError,
    /// The peer does not answer.
    Unreachable,
    /// The peer refused; `stale` if only because it still holds an old connection.
    Rejected {
        /// Whether another attempt is likely to be taken.
        stale: bool,
    },
    /// The connection ended.
    Disconnected,
    /// The address moved to another device.
    AddrChange,
    /// The device is about to go.
    DeviceRemoval,
    /// Anything else.
    Other,
}

impl CmEvent<'_> {
    /// # Safety
    ///
    /// `event` is what the connection manager passed to a handler that is still running.
    pub(in crate::verbs) unsafe fn from_raw(event: &bindings::rdma_cm_event) -> CmEvent<'_> {
        let status = event.status;
        match event.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => CmEvent::AddrResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => CmEvent::AddrError {
                unanswered: status == -bindings::ETIMEDOUT.cast_signed(),
            },
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => CmEvent::RouteResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => CmEvent::RouteError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: By this function's contract; this event carries connection parameters.
                let conn = unsafe { event.param.conn.as_ref() };
                CmEvent::Established {
                    // SAFETY: As above.
                    private_data: unsafe { private_data(conn) },
                    reads: conn.initiator_depth,
                }
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => CmEvent::ConnectError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => CmEvent::Unreachable,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => CmEvent::Rejected {
                // CAST: A small constant.
                stale: status == bindings::ib_cm_rej_reason_IB_CM_REJ_STALE_CONN as i32,
            },
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => CmEvent::Disconnected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => CmEvent::AddrChange,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => CmEvent::DeviceRemoval,
            _ => CmEvent::Other,
        }
    }
}

/// # Safety
///
/// `conn` comes with an event whose handler is still running.
unsafe fn private_data(conn: &bindings::rdma_conn_param) -> &[u8] {
    if conn.private_data.is_null() {
        return &[];
    }
    // SAFETY: The connection manager vouches for pointer and length until the handler returns.
    unsafe { slice::from_raw_parts(conn.private_data.cast(), conn.private_data_len.into()) }
}

/// What one end proposes, or accepts, for a connection.
#[derive(Clone, Copy)]
pub(crate) struct ConnParam<'a> {
    /// RDMA Reads that this end answers at a time.
    pub(crate) responder_resources: u8,
    /// RDMA Reads that this end starts at a time.
    pub(crate) initiator_depth: u8,
    /// Transport retries, 0 to 7.
    pub(crate) retry_count: u8,
    /// Retries when the peer has no Receive posted, 0 to 7.
    pub(crate) rnr_retry_count: u8,
    /// RFC 8797's message; at most 56 bytes fit when connecting, 196 when accepting.
    pub(crate) private_data: &'a [u8],
}

impl ConnParam<'_> {
    pub(in crate::verbs) fn to_raw(self) -> Result<bindings::rdma_conn_param> {
        let mut raw: bindings::rdma_conn_param = pin_init::zeroed();
        raw.responder_resources = self.responder_resources;
        raw.initiator_depth = self.initiator_depth;
        raw.retry_count = self.retry_count;
        raw.rnr_retry_count = self.rnr_retry_count;
        raw.private_data = self.private_data.as_ptr().cast();
        raw.private_data_len = u8::try_from(self.private_data.len())?;
        Ok(raw)
    }
}

/// A peer that wants to connect to a listening endpoint.
///
/// Its request is dropped unless [`IncomingConnection::into_endpoint`] takes it: it gets no answer,
/// and asks again, or is refused over iWARP.
///
/// # Invariants
///
/// `id` and `conn` are those of a connection request whose handler is still running. The handler
/// gives `id` up to the endpoint if `taken` is set when it returns.
pub(crate) struct IncomingConnection<'a> {
    id: *mut bindings::rdma_cm_id,
    conn: &'a bindings::rdma_conn_param,
    taken: &'a Cell<bool>,
}

impl<'a> IncomingConnection<'a> {
    /// # Safety
    ///
    /// `id` and `conn` are those of a connection request whose handler is still running, and that
    /// handler gives `id` up to the endpoint if `taken` is set when it returns.
    pub(in crate::verbs) unsafe fn new(
        id: *mut bindings::rdma_cm_id,
        conn: &'a bindings::rdma_conn_param,
        taken: &'a Cell<bool>,
    ) -> Self {
        // INVARIANT: By this function's contract.
        Self { id, conn, taken }
    }

    /// The peer's private data, possibly with padding behind it.
    pub(crate) fn private_data(&self) -> &[u8] {
        // SAFETY: By the type's invariants.
        unsafe { private_data(self.conn) }
    }

    /// RDMA Reads that the peer answers at a time, as seen from here: how many may be started.
    pub(crate) fn initiator_depth(&self) -> u8 {
        self.conn.initiator_depth
    }

    /// RDMA Reads that the peer starts at a time, as seen from here: how many should be answered.
    pub(crate) fn responder_resources(&self) -> u8 {
        self.conn.responder_resources
    }

    /// Takes the connection, to be opened and accepted later.
    ///
    /// The result must outlive the request's handler: store it, do not drop it there.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what `context` reports; the request is then dropped.
    pub(crate) fn into_endpoint<C: EndpointOps>(
        self,
        context: impl PinInit<C, Error>,
    ) -> Result<EndpointBox<C>> {
        let endpoint = Endpoint::allocate(context)?;
        // SAFETY: The identifier is ours from here on, by the type's invariants, and the handler's
        // mutex is held, so that no event can be delivered while its context changes.
        let endpoint = unsafe { endpoint.adopt(self.id) };
        self.taken.set(true);
        Ok(endpoint)
    }
}
