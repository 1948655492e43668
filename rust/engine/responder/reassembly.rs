// SPDX-License-Identifier: GPL-2.0

//! Reassembles a Call from its inline bytes and its Read chunks.
//!
//! C: svc_rdma_rw.c, svc_rdma_read_multiple_chunks(), svc_rdma_read_chunk_range()
//! C: svc_rdma_pcl.c, pcl_alloc_call()
//!
//! The requester has removed each Read chunk from the Payload stream at the Position of the chunk,
//! which is an offset in the unreduced stream (RFC 8166 Section 3.4.5). The rest, the reduced
//! stream, is inline, or in the Position-zero chunk of a Long Call. The rules of reassembly are the
//! same for all forms:
//!
//! * Chunks are inserted by ascending Position. Segments of equal Position, in any part of the
//!   list, are one chunk, in list order.
//! * A chunk takes the place of its bytes and their roundup, whether or not the roundup is sent.
//! * The chunk at Position `p` is inserted after `p - r` bytes of the reduced stream, where `r` is
//!   the total of the chunks before it, with roundup. The reduced stream must have that many bytes,
//!   and the offset must be at least that of the chunk before. Otherwise chunks overlap or leave
//!   gaps, and the Call is refused.
//! * The roundup of a single chunk may be inline behind the chunk: see [`inline_roundup`].
//!
//! [`Assembly::plan`] checks all of this before the first RDMA Read.

use crate::wire::{
    pad,
    ReadList,
    Segment, //
};

use super::read_chunks::{
    Chunk,
    ChunkSegments,
    Chunks,
    Summary, //
};

/// Limits of a responder on the Read chunks of one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes in the reassembled Call.
    pub message: u32,
    /// Most inline bytes in a Call whose head and tail stay in the Receive buffer.
    pub max_inline: u32,
    /// Most Read chunks, including the Position-zero chunk. Limits the scans of the list.
    pub chunks: u32,
    /// Most segments, without empty ones. Each takes at least one RDMA Read.
    pub segments: u32,
}

/// Why a Read list is refused. The Call is answered with ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReads {
    /// The bytes, chunks or segments exceed the [`Bounds`].
    TooComplex,
    /// A Position is outside the stream, or chunks overlap.
    Position,
    /// A Long Call has no bytes in a Position-zero chunk, or another Call has.
    PositionZero,
}

/// A Call to be reassembled.
///
/// # Invariants
///
/// [`Assembly::plan`] has accepted the list.
#[derive(Clone, Copy, Debug)]
pub struct Assembly<'a> {
    list: ReadList<'a>,
    stream: Reduced,
    /// Bytes in the reduced stream.
    len: u32,
    /// Bytes of inline roundup at the Position of the chunk, which are not in the reduced stream.
    roundup: u32,
    layout: Layout,
}

/// The layout of a reassembled Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One data item beside at most [`Bounds::max_inline`] inline bytes. Head and tail stay in the
    /// Receive buffer, and the data item begins at the front of a page.
    DataItem {
        /// Inline bytes before the data item.
        head: u32,
        /// Bytes in the Read chunk, including roundup.
        data: u32,
        /// Inline bytes after the data item: the last ones of the payload.
        tail: u32,
    },
    /// The Call is copied and read into one range of bytes, part by part: see [`Assembly::parts`].
    Whole {
        /// Bytes in the Call.
        length: u32,
    },
}

impl Layout {
    /// Bytes in the Call.
    #[inline]
    pub const fn length(self) -> u32 {
        match self {
            // NO-OVERFLOW: at most [`Bounds::message`].
            Self::DataItem { head, data, tail } => head + data + tail,
            Self::Whole { length } => length,
        }
    }
}

/// Location of the reduced stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduced {
    Inline,
    PositionZero,
}

/// The next bytes of the reassembled Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes to copy from the inline payload.
    Inline {
        /// Offset in the inline payload.
        offset: u32,
        /// Length in bytes.
        length: u32,
    },
    /// Bytes to read from the requester's memory.
    Read(Segment),
    /// Roundup that is not in the chunk. The content does not matter.
    Pad {
        /// Length in bytes: 1 to 3.
        length: u32,
    },
}

impl<'a> Assembly<'a> {
    /// Checks a Read list and chooses the layout. `Ok(None)` if the list has no bytes to read.
    ///
    /// `inline` is the length of the inline payload of an RDMA_MSG, or `None` for an RDMA_NOMSG.
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
        let inline = u32::try_from(inline).map_err(|_| BadReads::TooComplex)?;
        let all = Summary::of(list);
        let Some(first) = all.first else {
            return Ok(None);
        };
        if all.segments > bounds.segments {
            return Err(BadReads::TooComplex);
        }
        let roundup = if all.only_one {
            inline_roundup(inline, first)
        } else {
            0
        };
        // NO-OVERFLOW: the roundup is at most `inline % 4`.
        let len = inline - roundup;
        // Most Calls with Read chunks have one.
        let total = if all.only_one {
            check(len, core::iter::once(first), bounds.chunks, bounds)?
        } else {
            check(len, Chunks::new(list), bounds.chunks, bounds)?
        };
        let layout = if all.only_one && len <= bounds.max_inline {
            Layout::DataItem {
                head: first.position,
                // NO-OVERFLOW: `check` ensures `total >= len` and `position <= len`.
                data: total - len,
                tail: len - first.position,
            }
        } else {
            Layout::Whole { length: total }
        };
        Ok(Some(Self {
            list,
            stream: Reduced::Inline,
            len,
            roundup,
            layout,
        }))
    }

    /// [`Self::plan`] for an RDMA_NOMSG.
    fn plan_long(list: ReadList<'a>, bounds: &Bounds) -> Result<Self, BadReads> {
        let segments = Summary::of(list).segments;
        let mut chunks = Chunks::new(list);
        let len = match chunks.next() {
            Some(chunk) if chunk.position == 0 => chunk.len,
            _ => return Err(BadReads::PositionZero),
        };
        let len = u32::try_from(len).map_err(|_| BadReads::TooComplex)?;
        let others = bounds.chunks.checked_sub(1).ok_or(BadReads::TooComplex)?;
        if segments > bounds.segments {
            return Err(BadReads::TooComplex);
        }
        let total = check(len, chunks, others, bounds)?;
        Ok(Self {
            list,
            stream: Reduced::PositionZero,
            len,
            roundup: 0,
            layout: Layout::Whole { length: total },
        })
    }

    /// The layout of the reassembled Call.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The parts of the reassembled Call, in order and without gaps.
    ///
    /// For [`Layout::DataItem`] the caller needs only [`Self::reads`]: the inline parts stay in the
    /// Receive buffer.
    #[inline]
    pub fn parts(&self) -> Parts<'a> {
        let mut chunks = Chunks::new(self.list);
        let stream = match self.stream {
            Reduced::Inline => Stream::Inline {
                offset: 0,
                roundup: self.roundup,
            },
            Reduced::PositionZero => {
                chunks.next();
                Stream::PositionZero(ChunkSegments::new(self.list, 0))
            }
        };
        Parts {
            list: self.list,
            stream,
            left: self.len,
            before: 0,
            end: 0,
            chunks,
            chunk: None,
            pad: 0,
        }
    }

    /// The segments to read, without empty ones, in list order. For [`Layout::DataItem`] they fill
    /// the pages in this order.
    #[inline]
    pub fn reads(&self) -> impl Iterator<Item = Segment> + Clone + 'a {
        let segments = self.list.segments().map(|read| read.segment);
        segments.filter(|segment| !segment.is_empty())
    }
}

/// Bytes of the roundup of `chunk` that are inline, of `inline` bytes that have no other chunk.
///
/// Solaris and illumos send the roundup so, although RFC 8166 Section 3.4.4.4 has it removed with
/// the chunk. The reduced stream is whole words. If the inline bytes are not, and would be without
/// the roundup, then the roundup is among them: at the Position, where it ends the item.
///
/// Several chunks would be ambiguous, because the lengths of their roundup can add up to a word.
#[inline]
fn inline_roundup(inline: u32, chunk: Chunk) -> u32 {
    let rest = inline % 4;
    if u64::from(rest) == chunk.len.wrapping_neg() % 4 {
        rest
    } else {
        0
    }
}

/// Checks the Positions of `chunks`, of which there may be `max_chunks`, for a reduced stream of
/// `len` bytes. Returns the length of the reassembled Call.
///
/// # Errors
///
/// See [`BadReads`].
#[inline]
fn check<I>(len: u32, chunks: I, max_chunks: u32, bounds: &Bounds) -> Result<u32, BadReads>
where
    I: Iterator<Item = Chunk>,
{
    // Bytes in the chunks so far, with roundup, and the offset of the last one in the reduced
    // stream.
    let mut removed: u64 = 0;
    let mut offset: u64 = 0;
    let mut left = max_chunks;
    for chunk in chunks {
        left = left.checked_sub(1).ok_or(BadReads::TooComplex)?;
        if chunk.position == 0 {
            return Err(BadReads::PositionZero);
        }
        offset = u64::from(chunk.position)
            .checked_sub(removed)
            .filter(|next| (offset..=u64::from(len)).contains(next))
            .ok_or(BadReads::Position)?;
        // The sum does not saturate: a message has fewer than 2^28 segments, of less than 2^32
        // bytes.
        removed = removed.saturating_add(aligned(chunk.len));
    }
    u32::try_from(removed.saturating_add(u64::from(len)))
        .ok()
        .filter(|total| *total <= bounds.message)
        .ok_or(BadReads::TooComplex)
}

/// Bytes in an item of `len` bytes with its roundup.
#[inline]
const fn aligned(len: u64) -> u64 {
    len.saturating_add(3) & !3
}

/// The rest of the reduced stream.
#[derive(Clone, Debug)]
enum Stream<'a> {
    /// The inline payload from this offset on, with this many bytes of roundup behind the chunk.
    Inline {
        offset: u32,
        roundup: u32,
    },
    PositionZero(ChunkSegments<'a>),
}

impl Stream<'_> {
    /// Takes the next part, of at most `max_len` bytes; also returns its length.
    #[inline]
    fn next_part(&mut self, max_len: u32) -> Option<(Part, u32)> {
        match self {
            Self::Inline { offset, .. } => {
                let part = Part::Inline {
                    offset: *offset,
                    length: max_len,
                };
                *offset = offset.saturating_add(max_len);
                Some((part, max_len))
            }
            Self::PositionZero(segments) => {
                let part = segments.next_part(max_len)?;
                Some((Part::Read(part), part.length))
            }
        }
    }

    /// Skips the inline roundup, once.
    #[inline]
    fn skip_roundup(&mut self) {
        if let Self::Inline { offset, roundup } = self {
            *offset = offset.saturating_add(core::mem::take(roundup));
        }
    }
}

/// Iterator over the parts of a reassembled Call.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    list: ReadList<'a>,
    stream: Stream<'a>,
    /// Bytes left of the reduced stream.
    left: u32,
    /// Bytes of the reduced stream before the current chunk.
    before: u32,
    /// Offset of the end of the current chunk in the reassembled Call.
    end: u32,
    chunks: Chunks<'a>,
    /// The rest of the current chunk.
    chunk: Option<ChunkSegments<'a>>,
    /// Bytes of roundup after the current chunk.
    pad: u32,
}

impl Iterator for Parts<'_> {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        loop {
            if self.before > 0 {
                let (part, len) = self.stream.next_part(self.before)?;
                self.before = self.before.saturating_sub(len);
                self.left = self.left.saturating_sub(len);
                return Some(part);
            }
            if let Some(part) = self.chunk.as_mut().and_then(|c| c.next_part(u32::MAX)) {
                return Some(Part::Read(part));
            }
            self.chunk = None;
            if self.pad > 0 {
                let length = core::mem::take(&mut self.pad);
                return Some(Part::Pad { length });
            }
            match self.chunks.next() {
                // `check` has verified the Position, so no operation saturates.
                Some(chunk) => {
                    let len = u32::try_from(chunk.len).unwrap_or(u32::MAX);
                    self.before = chunk.position.saturating_sub(self.end).min(self.left);
                    self.pad = pad(len);
                    self.end = chunk.position.saturating_add(len).saturating_add(self.pad);
                    self.chunk = Some(ChunkSegments::new(self.list, chunk.position));
                }
                None if self.left > 0 => {
                    // If there is inline roundup, there was one chunk.
                    self.stream.skip_roundup();
                    self.before = self.left;
                }
                None => return None,
            }
        }
    }
}
