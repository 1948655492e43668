// SPDX-License-Identifier: GPL-2.0

//! RPCs that are answered but whose memory is not fenced yet.

use crate::{
    sunrpc::xprt::{
        Fencing,
        Refusal, //
    },
    verbs::{
        Mapped,
        MrList,
        RecvBuf,
        Registered,
        Waiting, //
    }, //
};

use super::shared::RdmaXprt;

/// An RPC whose MRs are being invalidated, and the message that answers it.
pub(super) type FenceWaiter = Waiting<Fencing<RdmaXprt>, Answer>;

/// MRs of a Call that is being composed.
pub(super) type MappedMrs<'m> = MrList<Mapped<'m>, FenceWaiter>;

/// MRs of a Call that was posted.
pub(super) type RegisteredMrs = MrList<Registered, FenceWaiter>;

/// The message that answers an RPC.
pub(super) struct Answer {
    pub(super) recv: RecvBuf<()>,
    pub(super) completion: Completion,
}

/// How an RPC completes.
#[derive(Clone, Copy)]
pub(super) enum Completion {
    /// The Reply, except perhaps for one data item, arrived inline.
    Inline {
        /// Offset of the payload in the message.
        start: usize,
        /// Length of the payload.
        len: usize,
        /// Bytes that arrived by RDMA Write.
        by_write: u32,
    },
    /// The whole Reply, of this length, arrived by RDMA Write.
    InReplyChunk(u32),
    /// The whole Reply, of this length, was fetched by RDMA Read.
    Read(u32),
    /// The peer could not serve the Call.
    Refused(Refusal),
}
