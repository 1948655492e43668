// SPDX-License-Identifier: GPL-2.0

//! The requester's choice: how a Call travels, and what it offers for its Reply.
//!
//! The order of preference is that of RFC 8166 Section 3.5: inline if it fits, else without its
//! data item if that may be reduced, else wholly in a chunk. The choice counts the transport header
//! that results from it: every chunk makes the header grow, and a fixed bound on the segments of a
//! chunk, known before any memory is registered, keeps that from going round in circles.

use crate::wire::{
    pad,
    size,
    MIN_LEN, //
};

/// Bytes in three places: what an `xdr_buf` holds, or has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdrLens {
    /// Bytes before the data item.
    pub head: u32,
    /// Bytes of the data item, in pages.
    pub data: u32,
    /// Where in its first page the data item begins.
    pub page_offset: u32,
    /// Bytes after the data item, the item's roundup included.
    pub tail: u32,
}

/// What there is to send, and the most that may come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallShape {
    /// The Call.
    pub call: XdrLens,
    /// The data item of the Call may be reduced (`XDRBUF_WRITE`).
    pub call_eligible: bool,
    /// Room for the largest possible Reply.
    pub reply: XdrLens,
    /// The data item of the Reply may be reduced (`XDRBUF_READ`).
    pub reply_eligible: bool,
    /// GSS integrity or privacy is in use: nothing may be reduced (RFC 8166 Section 8.2.2.3).
    pub protected: bool,
    /// A Reply that is too long for a message is to be expected, rather than only possible.
    pub long_reply: bool,
}

/// What connection and device allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Bytes in a message to the responder.
    pub send: u32,
    /// Bytes in a message from the responder.
    pub receive: u32,
    /// Bytes of a Call that are rather copied than gathered, to be sent in one piece.
    pub pull_up: u32,
    /// Bytes that a message is composed in: header, head and tail, and what is copied. A longer
    /// message has more that is gathered.
    pub buf_len: u32,
    /// Scatter/gather elements of one Send: header, head, pages, tail.
    pub sges: u32,
    /// Segments in one chunk.
    pub segments: u32,
    /// Pages that one segment can cover.
    pub segment_pages: u32,
    /// The number of bits in an offset within a page.
    pub page_shift: u32,
    /// The responder exposes what does not fit a message, to be pulled.
    pub pulled_replies: bool,
}

/// How a Call travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPlan {
    /// RDMA_MSG, all of it inline.
    Inline {
        /// Copy pages and tail behind the head first; otherwise gather them.
        pull_up: bool,
    },
    /// RDMA_MSG with the data item in a Read chunk. Head and tail are inline, without the roundup
    /// of the data item, which the first bytes of the tail are ([`CallShape::roundup`]).
    ReadChunk {
        /// Position of the chunk.
        position: u32,
    },
    /// RDMA_NOMSG with all of it in a Position-zero Read chunk: head, data, tail.
    PositionZero,
}

/// What a Call offers for its Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPlan {
    /// No chunk: the largest possible Reply fits inline.
    Inline,
    /// A Write chunk, of the room for the data item and nothing else.
    WriteChunk,
    /// A Reply chunk, of all the room: head, data, tail.
    ReplyChunk,
    /// No chunk: should the Reply not fit inline, it is pulled.
    Pull,
}

impl ReplyPlan {
    /// Whether it is settled only by the Reply if it is long: worth remembering for the next one.
    #[inline]
    pub const fn may_be_long(&self) -> bool {
        matches!(self, Self::ReplyChunk | Self::Pull)
    }
}

/// How an RPC travels, there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How the Call travels.
    pub call: CallPlan,
    /// What it offers for its Reply.
    pub reply: ReplyPlan,
}

/// There is no way to convey this Call, or any Reply to it, over this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig;

impl XdrLens {
    /// Bytes in all.
    #[inline]
    pub const fn total(&self) -> Option<u32> {
        match self.head.checked_add(self.data) {
            Some(sum) => sum.checked_add(self.tail),
            None => None,
        }
    }
}

impl CallShape {
    /// Bytes at the front of the tail that are the data item's roundup: left out of the message
    /// if the item is in a Read chunk (RFC 8166 Section 3.4.4.4).
    #[inline]
    pub const fn roundup(&self) -> u32 {
        pad(self.call.data)
    }

    /// Whether the data item can be taken out such that what remains is an XDR stream: it begins at
    /// a multiple of four, and the tail begins with its roundup and nothing else unaligned.
    #[inline]
    const fn separable(&self) -> bool {
        self.call.data != 0 && self.call.head % 4 == 0 && self.call.tail % 4 == self.roundup()
    }
}

impl CallLimits {
    /// Bytes in a page.
    #[inline]
    const fn page_size(&self) -> u32 {
        // Pages of 2 GiB and more do not exist.
        1 << (self.page_shift & 31)
    }

    /// Pages touched by `bytes` that begin `offset` bytes into one.
    #[inline]
    const fn pages(&self, offset: u32, bytes: u32) -> u32 {
        if bytes == 0 {
            return 0;
        }
        let in_page = self.page_size() - 1;
        // NO-OVERFLOW: the last byte of at most 2^32 is at most that far.
        match (offset & in_page).checked_add(bytes - 1) {
            Some(last) => (last >> (self.page_shift & 31)).saturating_add(1),
            None => u32::MAX,
        }
    }

    /// Most segments needed for `bytes` that begin `offset` bytes into a page.
    #[inline]
    pub const fn segments_for(&self, offset: u32, bytes: u32) -> u32 {
        match self.pages(offset, bytes) {
            pages if self.segment_pages > 1 => pages.div_ceil(self.segment_pages),
            pages => pages,
        }
    }

    /// Most segments needed for head, data and tail, if neither shares a segment with another.
    #[inline]
    pub const fn segments_for_all(&self, lens: &XdrLens) -> u32 {
        // Head and tail are anywhere in their pages.
        let late = self.page_size() - 1;
        self.segments_for(late, lens.head)
            .saturating_add(self.segments_for(lens.page_offset, lens.data))
            .saturating_add(self.segments_for(late, lens.tail))
    }

    /// `Some(segments)` if a chunk may have that many.
    #[inline]
    fn chunk(&self, segments: u32) -> Option<usize> {
        if segments <= self.segments {
            usize::try_from(segments).ok()
        } else {
            None
        }
    }

    /// Scatter/gather elements of a Call that is sent from where it lies.
    #[inline]
    const fn sges_for(&self, call: &XdrLens) -> u32 {
        let head_and_header = 2;
        let tail = if call.tail == 0 { 0 } else { 1 };
        self.pages(call.page_offset, call.data)
            .saturating_add(head_and_header + tail)
    }
}

/// Chooses how a Call travels and what it offers for its Reply.
///
/// # Errors
///
/// [`TooBig`]: the Call, or what has to be offered for its Reply, cannot be kept within the limits.
#[inline]
pub fn plan(shape: &CallShape, limits: &CallLimits) -> Result<Plan, TooBig> {
    let (reply, offered) = plan_reply(shape, limits).ok_or(TooBig)?;
    let header = MIN_LEN.saturating_add(offered);
    let call = plan_call(shape, limits, limits.send, header).ok_or(TooBig)?;
    // Head and tail are copied into `buf_len` bytes, behind the header. Where they fill over half
    // of that, a header might not fit as well: plan again with that as the limit.
    let copied = shape.call.head.saturating_add(shape.call.tail);
    let tight = limits.buf_len < limits.send && copied > limits.buf_len / 2;
    if tight && call != CallPlan::PositionZero {
        let call = plan_call(shape, limits, limits.buf_len, header).ok_or(TooBig)?;
        return Ok(Plan { call, reply });
    }
    Ok(Plan { call, reply })
}

/// What to offer for the Reply, and how many bytes that adds to the header of the Call.
#[inline]
fn plan_reply(shape: &CallShape, limits: &CallLimits) -> Option<(ReplyPlan, usize)> {
    let room = &shape.reply;
    if fits(limits.receive, MIN_LEN, room.total()?) {
        return Some((ReplyPlan::Inline, 0));
    }
    if shape.reply_eligible && !shape.protected && room.data != 0 {
        let segments = limits.segments_for(room.page_offset, room.data);
        let rest = room.head.checked_add(room.tail)?;
        if let Some(growth) = limits.chunk(segments).map(size::write_chunk) {
            // The Reply returns the chunk, so its header grows as that of the Call does.
            if fits(limits.receive, MIN_LEN.saturating_add(growth), rest) {
                return Some((ReplyPlan::WriteChunk, growth));
            }
        }
    }
    if limits.pulled_replies && !shape.long_reply {
        return Some((ReplyPlan::Pull, 0));
    }
    let growth = size::reply_chunk(limits.chunk(limits.segments_for_all(room))?);
    fits(limits.receive, MIN_LEN.saturating_add(growth), 0)
        .then_some((ReplyPlan::ReplyChunk, growth))
}

/// How the Call travels in a message of up to `send` bytes, if its header has `header` bytes
/// before any Read segment.
#[inline]
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

/// Whether a message of `header` and `payload` bytes is within an inline threshold.
#[inline]
fn fits(threshold: u32, header: usize, payload: u32) -> bool {
    u32::try_from(header)
        .ok()
        .and_then(|header| header.checked_add(payload))
        .is_some_and(|length| length <= threshold)
}
