// SPDX-License-Identifier: GPL-2.0

//! The transport's state of an outstanding Call.
//!
//! C: xprt_rdma.h, struct rpcrdma_req

use crate::{
    engine::{
        inbound::RpcMsg,
        requester::{
            call::{
                ReplyPlan,
                XdrLens, //
            },
            match_reply::{
                self,
                Mismatch,
                OfferedChunks,
                ReplyLocation, //
            }, //
        }, //
    },
    sunrpc::xdr::XdrBuf,
    verbs::Exposed,
    wire::Segment, //
};

use super::answer::RegisteredMrs;

/// The transport's state of an outstanding Call. The slot has the Call's MRs: those of the Read
/// chunk, followed by those of the Write chunk or Reply chunk.
#[derive(Clone, Copy)]
pub(super) struct Inflight {
    /// Number of MRs of the Read chunk.
    pub(super) reads: u32,
    /// The chunk of the other MRs.
    pub(super) offer: ReplyPlan,
    /// The procedure for [`ReplyHistories`](super::reply_history::ReplyHistories), if the Reply may
    /// be long.
    pub(super) procedure: u32,
}

/// The segment of an MR in a header.
#[inline]
pub(super) fn segment(mr: Exposed) -> Segment {
    Segment::new(mr.handle, mr.length, mr.offset)
}

/// The lengths of the content or the room of each part of `buf`.
#[inline]
pub(super) fn lens(buf: &XdrBuf) -> XdrLens {
    XdrLens {
        head: buf.head_len(),
        data: buf.page_len(),
        page_offset: buf.page_base(),
        tail: buf.tail_len(),
    }
}

impl Inflight {
    /// Compares the chunks of a Reply with those that the Call has offered, which `mrs` are for.
    ///
    /// # Errors
    ///
    /// [`Mismatch`]: the message is not the Reply to this Call.
    #[inline(always)]
    pub(super) fn locate<'a>(
        &self,
        mrs: &RegisteredMrs,
        reply: &RpcMsg<'a>,
    ) -> Result<ReplyLocation<'a>, Mismatch> {
        let of = |plan| {
            let reads = (self.offer == plan).then_some(self.reads);
            mrs.exposed_behind(reads).map(segment)
        };
        match_reply::locate(
            reply,
            OfferedChunks {
                write: of(ReplyPlan::WriteChunk),
                reply: of(ReplyPlan::ReplyChunk),
            },
        )
    }
}
