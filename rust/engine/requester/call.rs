// SPDX-License-Identifier: GPL-2.0

//! Chooses the form of a Call, and the chunks that the Call offers for its Reply.
//!
//! C: rpc_rdma.c, rpcrdma_args_inline(), rpcrdma_results_inline(), rpcrdma_nonpayload_inline()
//!
//! The order of preference is that of RFC 8166 Section 3.5: inline if the Call fits; otherwise with
//! the data item in a Read chunk, if the item is DDP-eligible; otherwise the whole Call in a
//! Position-zero Read chunk. The threshold includes the transport header, whose length depends on
//! the chunks. The number of segments in a chunk is bounded before memory is registered, so the
//! length of the header can be computed first.

use crate::wire::{
    pad,
    size,
    MIN_LEN, //
};

/// Lengths of the parts of an `xdr_buf`: of its content, or of its room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdrLens {
    /// Bytes in the head, which precedes the data item.
    pub head: u32,
    /// Bytes in the pages: the data item.
    pub data: u32,
    /// Offset of the data item in its first page, in bytes.
    pub page_offset: u32,
    /// Bytes in the tail, including the roundup of the data item.
    pub tail: u32,
}

/// A Call and the room for its Reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallShape {
    /// The Call.
    pub call: XdrLens,
    /// The data item of the Call is DDP-eligible (`XDRBUF_WRITE`).
    pub call_eligible: bool,
    /// Room for the largest possible Reply.
    pub reply: XdrLens,
    /// The data item of the Reply is DDP-eligible (`XDRBUF_READ`).
    pub reply_eligible: bool,
    /// GSS integrity or privacy is in use, so no item may be reduced (RFC 8166 Section 8.2.2.3).
    pub protected: bool,
    /// The Reply is likely to be too long for a Send, not only possibly.
    pub long_reply: bool,
}

/// Limits of the connection and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Inline threshold to the responder, in bytes.
    pub send: u32,
    /// Inline threshold from the responder, in bytes.
    pub receive: u32,
    /// An inline Call of at most this many bytes is copied into the send buffer, with its pages.
    /// The pages of a longer Call are gathered.
    pub pull_up: u32,
    /// Length of the send buffer in bytes. The header, the head and the tail are copied into it.
    pub buf_len: u32,
    /// Most SGEs in one Send: header, head, pages, tail.
    pub sges: u32,
    /// Most segments in one chunk.
    pub segments: u32,
    /// Most pages in one segment.
    pub segment_pages: u32,
    /// The kernel's `PAGE_SHIFT`.
    pub page_shift: u32,
    /// The responder exposes a Reply that does not fit a Send, for the requester to pull.
    pub pulled_replies: bool,
    /// The responder may fail a READ unless the Write chunk has room for the roundup of the data.
    pub room_for_roundup: bool,
}

/// The form of a Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPlan {
    /// RDMA_MSG with the whole Call inline.
    Inline {
        /// Copy pages and tail behind the head. Otherwise gather them.
        pull_up: bool,
    },
    /// RDMA_MSG with the data item in a Read chunk. Head and tail are inline. The tail is sent
    /// without its first [`CallShape::roundup`] bytes.
    ReadChunk {
        /// Position of the chunk.
        position: u32,
    },
    /// RDMA_NOMSG with the whole Call in a Position-zero Read chunk: head, data, tail.
    PositionZero,
}

/// The chunk that a Call offers for its Reply. A word: padding would be copied byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ReplyPlan {
    /// No chunk: the largest possible Reply fits inline.
    Inline,
    /// A Write chunk of the room for the data item.
    WriteChunk,
    /// A Reply chunk of the whole room: head, data, tail.
    ReplyChunk,
    /// No chunk: if the Reply does not fit inline, the requester pulls it.
    Pull,
}

impl ReplyPlan {
    /// Whether the Reply may or may not fit a Send. The caller records such Replies in the history.
    #[inline]
    pub const fn may_be_long(&self) -> bool {
        matches!(self, Self::ReplyChunk | Self::Pull)
    }
}

/// The form of a Call, and the chunk for its Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The form of the Call.
    pub call: CallPlan,
    /// The chunk that the Call offers for its Reply.
    pub reply: ReplyPlan,
    /// Bytes at the front of the tail that the Write chunk has room for, behind the data item, in a
    /// segment of their own.
    pub roundup: u32,
}

/// The Call, or a chunk for its Reply, exceeds the limits of the connection in every form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig;

impl XdrLens {
    /// Bytes in head, data and tail. `None` if the sum overflows.
    #[inline]
    pub const fn total(&self) -> Option<u32> {
        match self.head.checked_add(self.data) {
            Some(sum) => sum.checked_add(self.tail),
            None => None,
        }
    }
}

impl CallShape {
    /// Bytes of roundup of the data item, which are at the front of the tail. They are not sent if
    /// the item is in a Read chunk (RFC 8166 Section 3.4.4.4).
    #[inline]
    pub const fn roundup(&self) -> u32 {
        pad(self.call.data)
    }

    /// Whether the rest of the Call is an XDR stream without the data item and its roundup: whole
    /// words before and after the item.
    #[inline]
    const fn separable(&self) -> bool {
        self.call.data != 0 && self.call.head % 4 == 0 && self.call.tail % 4 == self.roundup()
    }
}

impl CallLimits {
    /// Bytes in a page.
    #[inline]
    const fn page_size(&self) -> u32 {
        // The mask has no effect: pages are smaller than 2 GiB.
        1 << (self.page_shift & 31)
    }

    /// Number of pages with bytes of a range of `len` bytes that begins `offset` bytes into a page.
    #[inline]
    const fn pages(&self, offset: u32, len: u32) -> u32 {
        if len == 0 {
            return 0;
        }
        let in_page = self.page_size() - 1;
        // NO-OVERFLOW: `len` is not 0.
        match (offset & in_page).checked_add(len - 1) {
            Some(last) => (last >> (self.page_shift & 31)).saturating_add(1),
            None => u32::MAX,
        }
    }

    /// Most segments for a range of `len` bytes that begins `offset` bytes into a page.
    #[inline]
    pub const fn segments_for(&self, offset: u32, len: u32) -> u32 {
        match self.pages(offset, len) {
            pages if self.segment_pages > 1 => pages.div_ceil(self.segment_pages),
            pages => pages,
        }
    }

    /// Most segments for head, data and tail, if each has its own segments.
    #[inline]
    pub const fn segments_for_all(&self, lens: &XdrLens) -> u32 {
        // Head and tail begin anywhere in a page. At the last byte, they take most pages.
        let last_byte = self.page_size() - 1;
        self.segments_for(last_byte, lens.head)
            .saturating_add(self.segments_for(lens.page_offset, lens.data))
            .saturating_add(self.segments_for(last_byte, lens.tail))
    }

    /// Bytes of room for the roundup of the data item to add to a Write chunk of `segments`
    /// segments.
    ///
    /// A requester SHOULD NOT provide it (RFC 8166 Section 3.4.6.2), but illumos fails a READ
    /// without it. The bytes are within a word, so they take one segment.
    #[inline]
    fn roundup(&self, room: &XdrLens, segments: u32) -> u32 {
        let roundup = pad(room.data);
        if self.room_for_roundup && room.tail >= roundup && segments < self.segments {
            roundup
        } else {
            0
        }
    }

    /// `Some(segments)` if a chunk may have `segments` segments.
    #[inline]
    fn chunk(&self, segments: u32) -> Option<usize> {
        if segments <= self.segments {
            usize::try_from(segments).ok()
        } else {
            None
        }
    }

    /// SGEs of the Send of a Call whose pages are gathered.
    #[inline]
    const fn sges_for(&self, call: &XdrLens) -> u32 {
        let head_and_header = 2;
        let tail = if call.tail == 0 { 0 } else { 1 };
        self.pages(call.page_offset, call.data)
            .saturating_add(head_and_header + tail)
    }
}

/// Chooses the form of a Call and the chunk for its Reply.
///
/// # Errors
///
/// [`TooBig`] if the Call or the chunk for its Reply exceeds the limits in every form.
#[inline(always)]
pub fn plan(shape: &CallShape, limits: &CallLimits) -> Result<Plan, TooBig> {
    let (reply, roundup, offered) = plan_reply(shape, limits).ok_or(TooBig)?;
    let header = MIN_LEN.saturating_add(offered);
    // Header, head and tail are copied into the send buffer. If head and tail take more than half
    // of it, the header may not fit, so the buffer's length is the threshold.
    let copied = shape.call.head.saturating_add(shape.call.tail);
    let tight = limits.buf_len < limits.send && copied > limits.buf_len / 2;
    let send = if tight { limits.buf_len } else { limits.send };
    let call = plan_call(shape, limits, send, header).ok_or(TooBig)?;
    Ok(Plan {
        call,
        reply,
        roundup,
    })
}

/// Chooses the chunk for the Reply, and its room for the roundup. Also returns the bytes that the
/// chunk adds to the header.
#[inline(always)]
fn plan_reply(shape: &CallShape, limits: &CallLimits) -> Option<(ReplyPlan, u32, usize)> {
    let room = &shape.reply;
    if fits(limits.receive, MIN_LEN, room.total()?) {
        return Some((ReplyPlan::Inline, 0, 0));
    }
    if shape.reply_eligible && !shape.protected && room.data != 0 {
        let segments = limits.segments_for(room.page_offset, room.data);
        let rest = room.head.checked_add(room.tail)?;
        let roundup = limits.roundup(room, segments);
        let segments = segments.saturating_add(u32::from(roundup != 0));
        if let Some(growth) = limits.chunk(segments).map(size::write_chunk) {
            // The Reply returns the chunk, so its header has as many bytes more as the Call's.
            if fits(limits.receive, MIN_LEN.saturating_add(growth), rest) {
                return Some((ReplyPlan::WriteChunk, roundup, growth));
            }
        }
    }
    if limits.pulled_replies && !shape.long_reply {
        return Some((ReplyPlan::Pull, 0, 0));
    }
    let growth = size::reply_chunk(limits.chunk(limits.segments_for_all(room))?);
    fits(limits.receive, MIN_LEN.saturating_add(growth), 0).then_some((
        ReplyPlan::ReplyChunk,
        0,
        growth,
    ))
}

/// Chooses the form of a Call for a threshold of `send` bytes. The header has `header` bytes
/// without Read segments.
#[inline(always)]
fn plan_call(shape: &CallShape, limits: &CallLimits, send: u32, header: usize) -> Option<CallPlan> {
    let call = &shape.call;
    let total = call.total()?;
    if fits(send, header, total) {
        if call.data == 0 && call.tail == 0 {
            return Some(CallPlan::Inline { pull_up: false });
        }
        if total <= limits.pull_up {
            return Some(CallPlan::Inline { pull_up: true });
        }
        if limits.sges_for(call) <= limits.sges {
            return Some(CallPlan::Inline { pull_up: false });
        }
    }
    if shape.call_eligible && !shape.protected && shape.separable() {
        let segments = limits.segments_for(call.page_offset, call.data);
        let rest = total.checked_sub(call.data)?.checked_sub(shape.roundup())?;
        if let Some(growth) = limits.chunk(segments).map(size::reads) {
            if fits(send, header.saturating_add(growth), rest) {
                return Some(CallPlan::ReadChunk {
                    position: call.head,
                });
            }
        }
    }
    let growth = size::reads(limits.chunk(limits.segments_for_all(call))?);
    fits(send, header.saturating_add(growth), 0).then_some(CallPlan::PositionZero)
}

/// Whether a message with `header` bytes of header and `payload` bytes of payload fits a threshold.
#[inline]
fn fits(threshold: u32, header: usize, payload: u32) -> bool {
    u32::try_from(header)
        .ok()
        .and_then(|header| header.checked_add(payload))
        .is_some_and(|len| len <= threshold)
}
