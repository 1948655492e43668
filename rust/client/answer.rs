// SPDX-License-Identifier: GPL-2.0

//! RPCs that are answered but whose memory is not fenced yet.

use crate::{
    sunrpc::xprt::{
        Fencing,
        Refusal, //
    },
    verbs::RecvBuf, //
};

use super::shared::RdmaXprt;

/// The owner of MRs that are being invalidated; receives the fence.
pub(super) enum FenceWaiter {
    /// An RPC that is answered.
    Reply(Answer),
    /// The task that abandons an RPC.
    GivenUp,
}

/// An RPC and the message that answers it.
pub(super) struct Answer {
    pub(super) rpc: Fencing<RdmaXprt>,
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
