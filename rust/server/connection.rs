// SPDX-License-Identifier: GPL-2.0

//! A connection as SUNRPC sees it.
//!
//! C: svc_rdma.h, struct svcxprt_rdma

use kernel::{
    prelude::*,
    sync::Arc, //
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
    pub(super) spare: Spare,
    /// Whether pages of a file have displaced pages of the request in the last Reply that had a
    /// Write chunk.
    pub(super) displaces: Atomic<bool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.spare.calls.release();
        self.spare.replies.release();
    }
}

/// Pages that were displaced from requests of any connection of a listener.
#[derive(Clone)]
pub(super) struct Spare {
    /// Displaced by pages that a Call was read into.
    pub(super) calls: Arc<SparePages>,
    /// Displaced by pages of a file. Nothing was written to these.
    pub(super) replies: Arc<SparePages>,
}

impl Spare {
    /// No pages.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            calls: SparePages::new()?,
            replies: SparePages::new()?,
        })
    }
}
