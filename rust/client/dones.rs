// SPDX-License-Identifier: GPL-2.0

//! Replies that are fetched by RDMA Read, and the RDMA_DONEs that acknowledge them.

use crate::{
    lib::bvec::BVec,
    sunrpc::xprt::Claimed,
    verbs::{
        ReadTarget,
        RecvBuf,
        Remote, //
    },
    wire::{
        HeaderWriter,
        Outline,
        ReadList,
        FIXED_LEN, //
    }, //
};

use super::{
    ctrl_queue::CtrlMessage,
    shared::RdmaXprt,
    stall::WatchedRead,
    tunables, //
};

/// An RPC whose Reply is being fetched by RDMA Read. Owns the memory that the Reads write to.
pub(super) struct ReplyRead {
    pub(super) rpc: Claimed<RdmaXprt>,
    pub(super) recv: RecvBuf<()>,
    /// Length of the message in `recv`.
    pub(super) len: usize,
    /// Positions of the chunk lists in that message.
    pub(super) outline: Outline,
    /// Length of the Reply.
    pub(super) length: u32,
    pub(super) done: Done,
    pub(super) watch: WatchedRead<RdmaXprt>,
}

impl ReadTarget for ReplyRead {
    fn room(&self) -> impl Iterator<Item = BVec<'_>> {
        let room = self.rpc.room();
        let front = Iterator::chain(room.head(), room.pages());
        Iterator::chain(front, room.tail())
    }

    fn sources(&self) -> impl Iterator<Item = (Remote, u32)> {
        let lists = self.outline.lists(self.recv.bytes(self.len));
        // The outline was made from the same bytes, so that it always fits.
        let reads = lists.unwrap_or_default().reads;
        let segments = reads.segments().map(|read| read.segment);
        let segments = segments.filter(|segment| !segment.is_empty());
        segments.map(|segment| {
            let source = Remote {
                handle: segment.handle,
                offset: segment.offset,
            };
            (source, segment.length)
        })
    }
}

/// An RDMA_DONE to be sent. The order of RDMA_DONEs matters for fairness only: the server keeps the
/// pages of each Reply until the RDMA_DONE for this Reply arrives.
#[derive(Clone, Copy)]
pub(super) struct Done {
    xid: u32,
    /// The peer's handle that the Send invalidates.
    invalidate: Option<u32>,
}

impl Done {
    /// The RDMA_DONE for the Reply `xid` that exposes `reads`; `None` if `reads` is empty.
    /// `remote_invalidation`: both ends support Remote Invalidation.
    pub(super) fn for_reply(
        xid: u32,
        reads: ReadList<'_>,
        remote_invalidation: bool,
    ) -> Option<Self> {
        let first = reads.segments().next()?;
        Some(Self {
            xid,
            invalidate: remote_invalidation.then_some(first.segment.handle),
        })
    }
}

impl CtrlMessage for Done {
    const MAX_LEN: usize = FIXED_LEN;
    const UNUSED: Self = Self {
        xid: 0,
        invalidate: None,
    };

    fn encode(&self, credits: u32, buf: &mut [u8]) -> Option<usize> {
        HeaderWriter::done(buf, self.xid, credits).ok()
    }

    fn invalidates(&self) -> Option<u32> {
        self.invalidate
    }

    fn posted(&self) {
        tunables::DONES.inc();
    }
}
