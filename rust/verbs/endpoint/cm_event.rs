// SPDX-License-Identifier: GPL-2.0

//! Events of the connection manager, and the parameters of a connection.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use core::{
    cell::Cell,
    ptr::NonNull,
    slice, //
};

use kernel::prelude::*;

use crate::bindings;

/// An event of a cm_id.
#[derive(Clone, Copy)]
pub(crate) enum CmEvent<'a> {
    /// A device reaches the address: the endpoint can be opened.
    AddrResolved,
    /// The address cannot be resolved: no device reaches it, or the neighbour does not answer.
    AddrError {
        /// A device reaches the address, and the neighbour does not answer.
        unanswered: bool,
    },
    /// The route is known: the endpoint can be connected.
    RouteResolved,
    /// There is no route to the address.
    RouteError,
    /// The connection is established.
    Established {
        /// The peer's private data. Its length is that of the fabric's message, so padding may
        /// follow the data.
        private_data: &'a [u8],
        /// The number of RDMA Reads that the peer answers at a time, hence that this end may
        /// have outstanding.
        reads: u8,
    },
    /// The connection could not be established.
    ConnectError,
    /// The peer does not answer.
    Unreachable,
    /// The peer rejected the connection.
    Rejected {
        /// The peer still has an older connection with the same QP. Another attempt is likely to
        /// succeed.
        stale: bool,
        /// The `ib_cm_rej_reason`, or the errno over iWARP.
        reason: i32,
    },
    /// The connection has ended.
    Disconnected,
    /// The address has moved to another device.
    AddrChange,
    /// The device is about to be removed.
    DeviceRemoval,
    /// Any other event.
    Other,
}

/// An event as the handler of a cm_id gets it.
///
/// # Invariants
///
/// - I1: This is the argument of a handler that does not return within `'a`.
#[derive(Clone, Copy)]
pub(super) struct RawCmEvent<'a>(&'a bindings::rdma_cm_event);

impl<'a> RawCmEvent<'a> {
    /// # Safety
    ///
    /// `event` is the argument of a CM event handler that does not return within `'a`.
    pub(super) unsafe fn new(event: *const bindings::rdma_cm_event) -> Self {
        // SAFETY: The CM keeps the event until its handler returns.
        // INVARIANT: I1: by this function's contract.
        Self(unsafe { &*event })
    }

    /// Returns whether this is a connection request.
    pub(super) fn is_request(self) -> bool {
        self.0.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST
    }

    /// The parameters of the peer, if this is a connection request, or the connection is
    /// established.
    pub(super) fn peer_param(self) -> Option<PeerParam<'a>> {
        match self.0.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: The union member of these events.
                // INVARIANT: I1: part of the event.
                Some(PeerParam(unsafe { self.0.param.conn.as_ref() }))
            }
            _ => None,
        }
    }

    /// Decodes any event but a connection request, see [`Self::is_request`].
    pub(super) fn decode(self) -> CmEvent<'a> {
        if let (bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED, Some(param)) =
            (self.0.event, self.peer_param())
        {
            return CmEvent::Established {
                private_data: param.private_data(),
                reads: param.0.initiator_depth,
            };
        }
        let status = self.0.status;
        match self.0.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => CmEvent::AddrResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => CmEvent::AddrError {
                unanswered: status == ETIMEDOUT.to_errno(),
            },
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => CmEvent::RouteResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => CmEvent::RouteError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => CmEvent::ConnectError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => CmEvent::Unreachable,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => CmEvent::Rejected {
                // CAST: A small constant.
                stale: status == bindings::ib_cm_rej_reason_IB_CM_REJ_STALE_CONN as i32,
                reason: status,
            },
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => CmEvent::Disconnected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => CmEvent::AddrChange,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => CmEvent::DeviceRemoval,
            _ => CmEvent::Other,
        }
    }
}

/// The parameters of the peer in an event.
///
/// # Invariants
///
/// - I1: This is part of an event whose handler does not return within `'a`.
#[derive(Clone, Copy)]
pub(super) struct PeerParam<'a>(&'a bindings::rdma_conn_param);

impl<'a> PeerParam<'a> {
    fn private_data(self) -> &'a [u8] {
        let (data, len) = (self.0.private_data, self.0.private_data_len);
        if data.is_null() {
            return &[];
        }
        // SAFETY: The CM keeps `len` bytes at this address until the handler returns (I1).
        unsafe { slice::from_raw_parts(data.cast(), len.into()) }
    }
}

/// The parameters that one end proposes, or accepts, for a connection.
#[derive(Clone, Copy)]
pub(crate) struct ConnParam<'a> {
    /// The number of RDMA Reads that this end answers at a time.
    pub(crate) responder_resources: u8,
    /// The number of RDMA Reads that this end may have outstanding.
    pub(crate) initiator_depth: u8,
    /// Transport retries, 0 to 7.
    pub(crate) retry_count: u8,
    /// Retries after an RNR NAK (the peer has no Receive posted), 0 to 7.
    pub(crate) rnr_retry_count: u8,
    /// The private message of RFC 8797. At most 56 bytes fit into a connection request, 196 into
    /// its acceptance.
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

/// A connection request to a listening endpoint.
///
/// The CM of InfiniBand and RoCE does not answer a dropped request, so the peer repeats it. The CM
/// of iWARP rejects it. `IncomingConnection::into_endpoint` takes the request.
///
/// # Invariants
///
/// - I1: `id` is that of a connection request whose handler has not returned.
/// - I2: If `taken` is set when the handler returns, the cm_id belongs to the endpoint.
pub(crate) struct IncomingConnection<'a> {
    id: NonNull<bindings::rdma_cm_id>,
    param: PeerParam<'a>,
    taken: &'a Cell<bool>,
}

impl<'a> IncomingConnection<'a> {
    /// # Safety
    ///
    /// `id` is that of a connection request whose handler has not returned. If `taken` is set when
    /// that handler returns, it leaves `id` to the endpoint.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        param: PeerParam<'a>,
        taken: &'a Cell<bool>,
    ) -> Self {
        // INVARIANT: I1, I2: by this function's contract.
        Self { id, param, taken }
    }

    /// Takes the cm_id of the request. The handler does not destroy it.
    pub(super) fn into_id(self) -> NonNull<bindings::rdma_cm_id> {
        self.taken.set(true);
        self.id
    }

    /// The peer's private data. Padding may follow the data.
    pub(crate) fn private_data(&self) -> &[u8] {
        self.param.private_data()
    }

    /// The number of RDMA Reads that the peer answers at a time, hence that this end may have
    /// outstanding.
    pub(crate) fn initiator_depth(&self) -> u8 {
        self.param.0.initiator_depth
    }

    /// The number of RDMA Reads that the peer may have outstanding, hence that this end should
    /// answer at a time.
    pub(crate) fn responder_resources(&self) -> u8 {
        self.param.0.responder_resources
    }
}
