// SPDX-License-Identifier: GPL-2.0

//! State of a Call, kept with its Receive buffer until the Reply is sent.
//!
//! C: svc_rdma.h, struct svc_rdma_recv_ctxt

use crate::{
    engine::responder::{
        reassembly::Layout,
        reply::Payload, //
    },
    verbs::{
        RecvBuf,
        RecvBufMut,
        RecvCtxt, //
    },
    wire::{
        ChunkLists,
        Outline, //
    }, //
};

use super::{
    exposed::HandleOf,
    page_charge::PageCharge, //
};

/// A Receive buffer and the state of the Call in it.
pub(super) type Buffer = RecvBuf<RecvCtxt<Call>>;

/// The same, while a request refers to it.
pub(super) type BufferMut<'a> = RecvBufMut<'a, RecvCtxt<Call>>;

/// The most results of a Reply that can be placed directly, and the most Write chunks of a Call.
pub(super) const MAX_RESULTS: usize = 16;

/// A Call. Every field but the number is set again for each Call in the buffer.
#[derive(Default)]
pub(super) struct Call {
    /// The number of the buffer, below that of the connection's buffers.
    pub(super) number: u32,
    /// The number of the received message, in the order of arrival, from 1 on.
    pub(super) message: u64,
    /// Its length.
    pub(super) len: usize,
    /// Whose handle the message has invalidated, if any.
    pub(super) invalidated: Option<HandleOf>,
    /// The XID in the transport header; the Reply returns it.
    pub(super) xid: u32,
    /// Offset of the inline payload in the buffer.
    pub(super) payload: usize,
    /// Offsets of the chunk lists in the buffer.
    pub(super) outline: Outline,
    /// There is no inline payload, not even an empty one (RDMA_NOMSG).
    pub(super) long: bool,
    /// Total length of the inline payload and the Read segments.
    pub(super) parts: u32,
    /// The pages that RDMA Reads write to, until these Reads complete.
    pub(super) charge: Option<PageCharge>,
    /// MRs that these Reads use.
    pub(super) mrs: u32,
    /// How the Call is reassembled, if it has Read chunks.
    pub(super) layout: Option<Layout>,
    results: [Payload; MAX_RESULTS],
    result_count: usize,
}

impl Call {
    /// Creates the state for the buffer with this number.
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Starts a Call that was just received.
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

    /// The chunk lists in `bytes`, the content of the Call's own buffer.
    #[inline]
    pub(super) fn chunks<'a>(&self, bytes: &'a [u8]) -> ChunkLists<'a> {
        // The outline was made from the same bytes, so that it always fits.
        self.outline.lists(bytes).unwrap_or_default()
    }

    /// Adds a result that may be placed directly. An empty result counts: it consumes its Write
    /// chunk, which receives nothing. There are no chunks for results beyond [`MAX_RESULTS`].
    ///
    /// C: svc_rdma_sendto.c, svc_rdma_result_payload()
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
