// SPDX-License-Identifier: GPL-2.0

//! How a Call with Read chunks becomes whole again.
//!
//! Each Read chunk was taken out of the Payload stream at its Position, which counts bytes of the
//! stream as it was before (RFC 8166 Section 3.4.5). What is left of the stream is inline, or, for
//! a Long Call, in the Position-zero chunk. Putting it together again is one rule for all forms:
//!
//! * chunks go in by rising Position; segments of equal Position, wherever they are in the list,
//!   make one chunk, in the order of the list;
//! * a chunk stands for its bytes and their roundup, whether or not the roundup travels;
//! * so the chunk at Position `p` goes in after `p - r` bytes of what is left of the stream, where
//!   `r` is what the chunks before it stand for. That place must exist and must not be before that
//!   of the chunk before it: otherwise chunks overlap or leave gaps, and the Call is refused.
//!
//! All of this is checked once, in [`Assembly::plan`], before anything is pulled.

use crate::wire::{
    pad,
    ReadList,
    Segment, //
};

use super::read_chunks::{
    Chunk,
    Chunks,
    Sequence,
    Survey, //
};

/// What a responder is prepared to pull for one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the whole Call, once assembled.
    pub message: u32,
    /// Inline bytes that may stay where they are.
    pub max_inline: u32,
    /// Read chunks, the Position-zero chunk included. Bounds the work of scanning the list.
    pub chunks: u32,
    /// Segments that are not empty, of all chunks together: one RDMA Read at least for each.
    pub segments: u32,
}

/// Why a Read list cannot be used. The Call is answered with ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReads {
    /// More bytes, chunks or segments than the responder is prepared to pull.
    TooComplex,
    /// A Position that is not in the stream, or chunks that overlap.
    Position,
    /// A Long Call without bytes in its Position-zero chunk, or any other Call with such a chunk.
    PositionZero,
}

/// A Call to be assembled.
///
/// # Invariants
///
/// The list satisfies what [`Assembly::plan`] checks.
#[derive(Clone, Copy, Debug)]
pub struct Assembly<'a> {
    list: ReadList<'a>,
    stream: Reduced,
    /// Bytes of the reduced stream.
    length: u32,
    layout: Layout,
}

/// What the Call looks like when it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One data item, not in a Long Call, nor beside more than may stay in place: head and tail
    /// stay in the Receive buffer, the data item goes to the front of a page.
    DataItem {
        /// Inline bytes before the data item.
        head: u32,
        /// Bytes pulled, and their roundup if that did not travel.
        data: u32,
        /// Inline bytes after the data item.
        tail: u32,
    },
    /// Everything is put together in one run of bytes, as [`Assembly::parts`] says.
    Whole {
        /// Bytes in all.
        length: u32,
    },
}

/// Where the reduced stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduced {
    Inline,
    PositionZero,
}

/// The next bytes of the assembled Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Copy from the inline payload.
    Inline {
        /// Where the bytes start in the inline payload.
        offset: u32,
        /// How many.
        length: u32,
    },
    /// Pull from the requester's memory.
    Read(Segment),
    /// Roundup that did not travel: skip these bytes, or clear them.
    Pad {
        /// How many: 1 to 3.
        length: u32,
    },
}

impl<'a> Assembly<'a> {
    /// Checks a Read list and decides on the layout; `Ok(None)` if there is nothing to pull.
    ///
    /// `inline` is the length of the inline payload of RDMA_MSG, or `None` for RDMA_NOMSG.
    ///
    /// # Errors
    ///
    /// See [`BadReads`].
    #[inline]
    pub fn plan(
        inline: Option<usize>,
        list: ReadList<'a>,
        bounds: &Bounds,
    ) -> Result<Option<Self>, BadReads> {
        let Some(inline) = inline else {
            return Self::plan_long(list, bounds).map(Some);
        };
        let length = u32::try_from(inline).map_err(|_| BadReads::TooComplex)?;
        let all = Survey::of(list);
        let Some(first) = all.first else {
            return Ok(None);
        };
        if all.segments > bounds.segments {
            return Err(BadReads::TooComplex);
        }
        // One chunk is what most Calls with chunks have.
        let total = if all.only_one {
            check(length, core::iter::once(first), bounds.chunks, bounds)?
        } else {
            check(length, Chunks::new(list), bounds.chunks, bounds)?
        };
        let layout = if all.only_one && length <= bounds.max_inline {
            Layout::DataItem {
                head: first.position,
                // NO-OVERFLOW: checked: the item is within the stream, and adds to its length.
                data: total - length,
                tail: length - first.position,
            }
        } else {
            Layout::Whole { length: total }
        };
        Ok(Some(Self {
            list,
            stream: Reduced::Inline,
            length,
            layout,
        }))
    }

    /// As [`Self::plan`], for RDMA_NOMSG.
    fn plan_long(list: ReadList<'a>, bounds: &Bounds) -> Result<Self, BadReads> {
        let segments = Survey::of(list).segments;
        let mut chunks = Chunks::new(list);
        let length = match chunks.next() {
            Some(chunk) if chunk.position == 0 => chunk.bytes,
            _ => return Err(BadReads::PositionZero),
        };
        let length = u32::try_from(length).map_err(|_| BadReads::TooComplex)?;
        let others = bounds.chunks.checked_sub(1).ok_or(BadReads::TooComplex)?;
        if segments > bounds.segments {
            return Err(BadReads::TooComplex);
        }
        let total = check(length, chunks, others, bounds)?;
        Ok(Self {
            list,
            stream: Reduced::PositionZero,
            length,
            layout: Layout::Whole { length: total },
        })
    }

    /// What the Call looks like when it is whole.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The pieces in the order of the assembled Call. They tile it exactly.
    ///
    /// For [`Layout::DataItem`] only the pulls matter, all else stays where it is: see
    /// [`Self::reads`].
    #[inline]
    pub fn parts(&self) -> Parts<'a> {
        let mut chunks = Chunks::new(self.list);
        let stream = match self.stream {
            Reduced::Inline => Stream::Inline { offset: 0 },
            Reduced::PositionZero => {
                chunks.next();
                Stream::PositionZero(Sequence::new(self.list, 0))
            }
        };
        Parts {
            list: self.list,
            stream,
            left: self.length,
            before: 0,
            at: 0,
            chunks,
            pulling: None,
            pad: 0,
        }
    }

    /// The segments to pull that are not empty, in the order of the list: for
    /// [`Layout::DataItem`] the order in which they go to the pages.
    #[inline]
    pub fn reads(&self) -> impl Iterator<Item = Segment> + Clone + 'a {
        let segments = self.list.segments().map(|read| read.segment);
        segments.filter(|segment| !segment.is_empty())
    }
}

/// Checks that the chunks tile a stream of which `length` bytes are left; returns the length of
/// the assembled Call.
#[inline]
fn check<I>(length: u32, chunks: I, most: u32, bounds: &Bounds) -> Result<u32, BadReads>
where
    I: Iterator<Item = Chunk>,
{
    // Bytes that the chunks so far stand for, and where in the reduced stream the last went.
    let mut removed: u64 = 0;
    let mut place: u64 = 0;
    let mut left = most;
    for chunk in chunks {
        left = left.checked_sub(1).ok_or(BadReads::TooComplex)?;
        if chunk.position == 0 {
            return Err(BadReads::PositionZero);
        }
        place = u64::from(chunk.position)
            .checked_sub(removed)
            .filter(|next| (place..=u64::from(length)).contains(next))
            .ok_or(BadReads::Position)?;
        // Fewer than 2^28 segments of fewer than 2^32 bytes are in a message.
        removed = removed.saturating_add(aligned(chunk.bytes));
    }
    u32::try_from(removed.saturating_add(u64::from(length)))
        .ok()
        .filter(|total| *total <= bounds.message)
        .ok_or(BadReads::TooComplex)
}

/// `bytes` and their roundup.
#[inline]
const fn aligned(bytes: u64) -> u64 {
    bytes.saturating_add(3) & !3
}

/// What is left of the reduced stream.
#[derive(Clone, Debug)]
enum Stream<'a> {
    Inline { offset: u32 },
    PositionZero(Sequence<'a>),
}

impl Stream<'_> {
    #[inline]
    fn next_part(&mut self, most: u32) -> Option<(Part, u32)> {
        match self {
            Self::Inline { offset } => {
                let part = Part::Inline {
                    offset: *offset,
                    length: most,
                };
                *offset = offset.saturating_add(most);
                Some((part, most))
            }
            Self::PositionZero(sequence) => {
                let part = sequence.next_part(most)?;
                Some((Part::Read(part), part.length))
            }
        }
    }
}

/// Iterator over the pieces of an assembled Call.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    list: ReadList<'a>,
    stream: Stream<'a>,
    /// Bytes of the reduced stream that have not been handed out.
    left: u32,
    /// How many of them go before the chunk at hand.
    before: u32,
    /// Where in the assembled Call the chunk at hand ends.
    at: u32,
    chunks: Chunks<'a>,
    pulling: Option<Sequence<'a>>,
    /// Roundup to follow the chunk at hand.
    pad: u32,
}

impl Iterator for Parts<'_> {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        loop {
            if self.before > 0 {
                let (part, length) = self.stream.next_part(self.before)?;
                self.before = self.before.saturating_sub(length);
                self.left = self.left.saturating_sub(length);
                return Some(part);
            }
            if let Some(part) = self.pulling.as_mut().and_then(|s| s.next_part(u32::MAX)) {
                return Some(Part::Read(part));
            }
            self.pulling = None;
            if self.pad > 0 {
                let length = core::mem::take(&mut self.pad);
                return Some(Part::Pad { length });
            }
            match self.chunks.next() {
                // The place of the chunk in the reduced stream was checked when this was planned.
                Some(chunk) => {
                    let bytes = u32::try_from(chunk.bytes).unwrap_or(u32::MAX);
                    self.before = chunk.position.saturating_sub(self.at).min(self.left);
                    self.pad = pad(bytes);
                    self.at = chunk
                        .position
                        .saturating_add(bytes)
                        .saturating_add(self.pad);
                    self.pulling = Some(Sequence::new(self.list, chunk.position));
                }
                None if self.left > 0 => self.before = self.left,
                None => return None,
            }
        }
    }
}
