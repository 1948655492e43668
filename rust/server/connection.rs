// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it.
//!
//! C: svc_rdma.h, struct svcxprt_rdma

use core::ops::Deref;

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions, //
        },
        responder::{
            reassembly::Bounds,
            reply::ReplyLimits, //
        }, //
    },
    lib::sync::Atomic,
    sunrpc::svc::SparePages,
    verbs::EndpointBox, //
};

use super::{
    ep::ServerEp,
    read_mrs::ReadMrBudget, //
};

/// An accepted connection.
///
/// A handler may call [`has_wspace`](crate::sunrpc::svc::Connection::has_wspace) while this is
/// dropped. So the endpoint is the first field, whose drop waits for all handlers, and there is no
/// `Drop` for the whole.
pub(super) struct Connection {
    pub(super) ep: EndpointBox<ServerEp>,
    /// Message sizes, and whether to invalidate the client's handles.
    pub(super) agreement: Agreement,
    /// The extensions beyond RFC 8166 that both ends support.
    pub(super) extensions: Extensions,
    pub(super) reply_limits: ReplyLimits,
    /// Backchannel Calls that may be outstanding.
    pub(super) backchannel: u32,
    /// Send Queue entries that each Send reserves at least.
    pub(super) min_sq_entries: u32,
    /// Limits on a Call with Read chunks.
    pub(super) bounds: Bounds,
    /// iWARP: MRs for RDMA Reads.
    pub(super) read_mr_budget: ReadMrBudget,
    /// Whether the client answers RDMA Reads.
    pub(super) may_read: bool,
    pub(super) spare: SharedSpare,
    /// Whether pages of a file have displaced pages of the request in the last Reply that had a
    /// Write chunk.
    pub(super) displaces: Atomic<bool>,
}

/// Pages that were displaced from requests of the connections of a listener.
#[pin_data]
pub(super) struct Spare {
    /// Displaced by pages that a Call was read into.
    #[pin]
    pub(super) calls: SparePages,
    /// Displaced by pages of a file. Nothing was written to these.
    #[pin]
    pub(super) replies: SparePages,
    /// The number of connections that use the pages.
    connections: Atomic<u32>,
}

impl Spare {
    /// No pages, and no connections.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                calls <- SparePages::new(),
                replies <- SparePages::new(),
                connections: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }
}

/// The [`Spare`] of the listener of one connection. Only the last connection to end frees the
/// pages: otherwise a client that ends its own connection would make the others allocate pages
/// again.
pub(super) struct SharedSpare(Arc<Spare>);

impl SharedSpare {
    /// Counts a connection.
    pub(super) fn new(spare: Arc<Spare>) -> Self {
        spare.connections.fetch_add(1, Relaxed);
        Self(spare)
    }
}

impl Deref for SharedSpare {
    type Target = Spare;

    #[inline]
    fn deref(&self) -> &Spare {
        &self.0
    }
}

impl Drop for SharedSpare {
    fn drop(&mut self) {
        // Full: a connection stores no page after this, so the last one finds the pages of all. A
        // connection that begins meanwhile may lose pages, which costs time only.
        if self.0.connections.fetch_sub(1, Full) == 1 {
            self.0.calls.release();
            self.0.replies.release();
        }
    }
}
