// SPDX-License-Identifier: GPL-2.0

//! What a Call exposes until its Reply has come.

use crate::{
    engine::{
        inbound::RpcMsg,
        requester::{
            call::{
                ReplyPlan, //
                XdrLens,
            },
            match_reply::{
                self,
                Arrived,
                Mismatch,
                Offered, //
            }, //
        }, //
    },
    sunrpc::xdr::XdrBuf,
    verbs::{
        Exposed,
        MrList,
        Registered, //
    },
    wire::Segment, //
};

use super::answer::FenceWaiter;

/// What a Call exposes.
pub(super) struct Inflight {
    /// The regions: those of Read chunks first.
    pub(super) mrs: MrList<Registered, FenceWaiter>,
    /// How many regions are those of Read chunks.
    pub(super) reads: u32,
    /// What the other regions are.
    pub(super) offer: ReplyPlan,
    /// What kind of Call it is, if its Reply may be long: see
    /// [`ReplyHistories`](super::reply_history::ReplyHistories).
    pub(super) procedure: u32,
}

/// A region, as a header names it.
#[inline]
pub(super) fn segment(exposed: Exposed) -> Segment {
    Segment {
        handle: exposed.handle,
        length: exposed.length,
        offset: exposed.offset,
    }
}

/// What a message has, or has room for, in each part.
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
    /// Compares a Reply with what was offered for it.
    #[inline]
    pub(super) fn arrived<'a>(&self, message: &RpcMsg<'a>) -> Result<Arrived<'a>, Mismatch> {
        let offered = || self.mrs.exposed().skip(self.reads as usize).map(segment);
        let of = |plan| offered().take(if self.offer == plan { usize::MAX } else { 0 });
        match_reply::arrived(
            message,
            Offered {
                write: of(ReplyPlan::WriteChunk),
                reply: of(ReplyPlan::ReplyChunk),
            },
        )
    }
}
