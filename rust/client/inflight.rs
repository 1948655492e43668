// SPDX-License-Identifier: GPL-2.0

//! What is noted of a Call until its Reply has arrived.

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
    verbs::Exposed,
    wire::Segment, //
};

use super::answer::RegisteredMrs;

/// What is noted of a Call that was posted.
#[derive(Clone, Copy)]
pub(super) struct Inflight {
    /// The number of MRs of Read chunks. They come first.
    pub(super) reads: u32,
    /// The use of the other MRs.
    pub(super) offer: ReplyPlan,
    /// The procedure, if the Reply may be long: see
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
    /// Compares a Reply with the MRs of the Call.
    #[inline]
    pub(super) fn arrived<'a>(
        &self,
        mrs: &RegisteredMrs,
        message: &RpcMsg<'a>,
    ) -> Result<Arrived<'a>, Mismatch> {
        let offered = || mrs.exposed().skip(self.reads as usize).map(segment);
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
