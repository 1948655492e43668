// SPDX-License-Identifier: GPL-2.0

//! What is remembered of a Call, beside its Receive buffer, until its Reply has been sent.

use crate::{
    engine::responder::{
        reassembly::Layout,
        reply::Payload, //
    },
    verbs::{
        RecvBuf, //
        RecvCtxt,
    },
    wire::{
        ChunkLists,
        Outline, //
    }, //
};

use super::page_charge::PageCharge;

/// A Receive buffer with a Call's state beside it.
pub(super) type Buffer = RecvBuf<RecvCtxt<Call>>;

/// Results of one Reply that can be placed directly, and so the Write chunks that a Call may have.
pub(super) const MAX_RESULTS: usize = 16;

/// A Call. All of it is set anew for each.
#[derive(Default)]
pub(super) struct Call {
    /// Bytes received.
    pub(super) bytes: usize,
    /// The handle that the message has invalidated.
    pub(super) invalidated: Option<u32>,
    /// The XID in the transport header, which goes into the Reply's.
    pub(super) xid: u32,
    /// Where the inline payload starts in the buffer.
    pub(super) payload: usize,
    /// Where the chunk lists are in the buffer.
    pub(super) outline: Outline,
    /// Whether there is no inline payload, not even an empty one.
    pub(super) long: bool,
    /// Bytes of all that it may be put together from.
    pub(super) parts: u32,
    /// The pages that it is pulled to, as long as that goes on.
    pub(super) share: Option<PageCharge>,
    /// Regions that its Reads have.
    pub(super) mrs: u32,
    /// How the Call is put together, if it has to be.
    pub(super) layout: Option<Layout>,
    results: [Payload; MAX_RESULTS],
    result_count: usize,
}

impl Call {
    /// Starts a Call that was received just now.
    #[inline]
    pub(super) fn begin(
        &mut self,
        xid: u32,
        payload: usize,
        long: bool,
        parts: u32,
        outline: Outline,
    ) {
        self.xid = xid;
        self.payload = payload;
        self.outline = outline;
        self.long = long;
        self.parts = parts;
        self.layout = None;
        self.result_count = 0;
    }

    /// The chunk lists, in the buffer that they came in.
    #[inline]
    pub(super) fn chunks<'a>(&self, bytes: &'a [u8]) -> ChunkLists<'a> {
        // It is the same buffer, so that there is nothing to miss.
        self.outline.lists(bytes).unwrap_or_default()
    }

    /// Notes a result that may be placed directly. One without bytes is one, too: it takes its
    /// chunk, which receives nothing. What is beyond [`MAX_RESULTS`] has no chunk.
    #[inline]
    pub(super) fn add_result(&mut self, offset: u32, length: u32) {
        if let Some(next) = self.results.get_mut(self.result_count) {
            *next = Payload { offset, length };
            self.result_count += 1;
        }
    }

    /// The results, in the order of the Reply.
    #[inline]
    pub(super) fn results(&self) -> &[Payload] {
        self.results.get(..self.result_count).unwrap_or(&[])
    }
}
