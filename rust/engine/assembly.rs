// SPDX-License-Identifier: GPL-2.0

//! How a Call with Read chunks becomes whole again.
//!
//! Each Read chunk was taken out of the Payload stream at its Position, which counts octets of the
//! stream as it was before (RFC 8166 Section 3.4.5). What is left of the stream is inline, or, for
//! a Long Call, in the Position-zero chunk. Putting it together again is one rule for all forms:
//!
//! * chunks go in by rising Position; segments of equal Position, wherever they are in the list,
//!   make one chunk, in the order of the list;
//! * a chunk stands for its octets and their roundup, whether or not the roundup travels;
//! * so the chunk at Position `p` goes in after `p - r` octets of what is left of the stream, where
//!   `r` is what the chunks before it stand for. That place must exist and must not be before that
//!   of the chunk before it: otherwise chunks overlap or leave gaps, and the Call is refused.
//!
//! All of this is checked once, in [`Assembly::plan`], before anything is pulled. It needs no
//! memory: chunks are few, and the list is short enough to be scanned once for each.

use crate::wire::pad;
use crate::wire::ReadList;
use crate::wire::ReadSegments;
use crate::wire::Segment;

/// What a responder is prepared to pull for one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Octets of the whole Call, once assembled.
    pub message: u32,
    /// Read chunks, the Position-zero chunk included. Bounds the work of scanning the list.
    pub chunks: u32,
    /// Segments that are not empty, of all chunks together: one RDMA Read at least for each.
    pub segments: u32,
}

/// Why a Read list cannot be used. The Call is answered with ERR_CHUNK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReads {
    /// More octets, chunks or segments than the responder is prepared to pull.
    TooComplex,
    /// A Position that is not in the stream, or chunks that overlap.
    Position,
    /// A Long Call without octets in its Position-zero chunk, or any other Call with such a chunk.
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
    /// Octets of the reduced stream.
    length: u32,
    layout: Layout,
    segments: u32,
}

/// What the Call looks like when it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One data item, not in a Long Call: head and tail stay in the Receive buffer, the data item
    /// goes to the front of a page.
    DataItem {
        /// Inline octets before the data item.
        head: u32,
        /// Octets pulled, and their roundup if that did not travel.
        data: u32,
        /// Inline octets after the data item.
        tail: u32,
    },
    /// Everything is put together in one run of octets, as [`Assembly::pieces`] says.
    Whole {
        /// Octets in all.
        length: u32,
    },
}

/// Where the reduced stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduced {
    Inline,
    PositionZero,
}

/// The next octets of the assembled Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Copy from the inline payload.
    Inline {
        /// Where the octets start in the inline payload.
        offset: u32,
        /// How many.
        length: u32,
    },
    /// Pull from the requester's memory.
    Pull(Segment),
    /// Roundup that did not travel: skip these octets, or clear them.
    Pad {
        /// How many: 1 to 3.
        length: u32,
    },
}

impl<'a> Assembly<'a> {
    /// Checks a Read list and decides on the layout; `Ok(None)` if there is nothing to pull.
    ///
    /// `inline` is the length of the inline payload of RDMA_MSG, or `None` for RDMA_NOMSG.
    #[inline]
    pub fn plan(
        inline: Option<usize>,
        list: ReadList<'a>,
        bounds: &Bounds,
    ) -> Result<Option<Self>, BadReads> {
        if inline.is_some() && list.is_empty() {
            return Ok(None);
        }
        let mut segments: u32 = 0;
        for _ in list.segments().filter(|read| !read.segment.is_empty()) {
            segments = segments.saturating_add(1);
        }
        if segments > bounds.segments {
            return Err(BadReads::TooComplex);
        }
        let mut chunks = Chunks::new(list);
        let (stream, length) = match inline {
            Some(octets) => {
                let length = u32::try_from(octets).map_err(|_| BadReads::TooComplex)?;
                (Reduced::Inline, length)
            }
            None => match chunks.next() {
                Some(Chunk {
                    position: 0,
                    octets,
                }) => {
                    let length = u32::try_from(octets).map_err(|_| BadReads::TooComplex)?;
                    (Reduced::PositionZero, length)
                }
                _ => return Err(BadReads::PositionZero),
            },
        };
        let layout = Self::check(stream, length, chunks, bounds)?;
        Ok(layout.map(|layout| Self {
            list,
            stream,
            length,
            layout,
            segments,
        }))
    }

    /// Checks that the chunks tile the stream.
    #[inline]
    fn check(
        stream: Reduced,
        length: u32,
        chunks: Chunks<'_>,
        bounds: &Bounds,
    ) -> Result<Option<Layout>, BadReads> {
        // Octets that the chunks so far stand for, and where in the reduced stream the last went.
        let mut removed: u64 = 0;
        let mut place: u64 = 0;
        let mut count: u32 = match stream {
            Reduced::Inline => 0,
            Reduced::PositionZero => 1,
        };
        for chunk in chunks {
            if count >= bounds.chunks {
                return Err(BadReads::TooComplex);
            }
            // NO-OVERFLOW: less than the bound.
            count += 1;
            if chunk.position == 0 {
                return Err(BadReads::PositionZero);
            }
            let next = u64::from(chunk.position)
                .checked_sub(removed)
                .filter(|next| (place..=u64::from(length)).contains(next))
                .ok_or(BadReads::Position)?;
            place = next;
            // NO-OVERFLOW: fewer than 2^28 segments of fewer than 2^32 octets are in a message.
            removed = removed.saturating_add(aligned(chunk.octets));
        }
        let total = u32::try_from(removed.saturating_add(u64::from(length)))
            .ok()
            .filter(|total| *total <= bounds.message)
            .ok_or(BadReads::TooComplex)?;
        // NO-OVERFLOW: `place` is at most `length`, and `length` at most `total`.
        let head = u32::try_from(place).unwrap_or(length);
        Ok(match (stream, count) {
            (Reduced::Inline, 0) => None,
            (Reduced::Inline, 1) => Some(Layout::DataItem {
                head,
                data: total - length,
                tail: length - head,
            }),
            _ => Some(Layout::Whole { length: total }),
        })
    }

    /// What the Call looks like when it is whole.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Segments that are not empty: how many [`Piece::Pull`] there are at least.
    #[inline]
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    /// The pieces in the order of the assembled Call. They tile it exactly.
    ///
    /// For [`Layout::DataItem`] only the pulls matter: they go to the front of the pages one after
    /// another ([`Self::pulls`]), all else stays where it is.
    #[inline]
    pub fn pieces(&self) -> Pieces<'a> {
        let mut chunks = Chunks::new(self.list);
        let stream = match self.stream {
            Reduced::Inline => Stream::Inline { offset: 0 },
            Reduced::PositionZero => {
                chunks.next();
                Stream::PositionZero(Sequence::new(self.list, 0))
            }
        };
        Pieces {
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

    /// The segments to pull, in the order of the assembled Call.
    #[inline]
    pub fn pulls(&self) -> impl Iterator<Item = Segment> + Clone + 'a {
        self.pieces().filter_map(|piece| match piece {
            Piece::Pull(segment) => Some(segment),
            _ => None,
        })
    }
}

/// `octets` and their roundup.
#[inline]
const fn aligned(octets: u64) -> u64 {
    octets.saturating_add(3) & !3
}

/// A Read chunk: all segments of one Position.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    position: u32,
    octets: u64,
}

/// The Read chunks by rising Position. Chunks without octets are passed over.
#[derive(Clone, Debug)]
struct Chunks<'a> {
    list: ReadList<'a>,
    /// The lowest Position that has not been visited; `None` when there can be no more.
    from: Option<u32>,
}

impl<'a> Chunks<'a> {
    #[inline]
    const fn new(list: ReadList<'a>) -> Self {
        Self {
            list,
            from: Some(0),
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        let from = self.from?;
        let mut chunk: Option<Chunk> = None;
        let mut more = false;
        for read in self.list.segments() {
            let octets = u64::from(read.segment.length);
            if octets == 0 || read.position < from {
                continue;
            }
            match &mut chunk {
                Some(chunk) if chunk.position == read.position => {
                    chunk.octets = chunk.octets.saturating_add(octets);
                }
                Some(chunk) if chunk.position < read.position => more = true,
                other => {
                    more |= other.is_some();
                    *other = Some(Chunk {
                        position: read.position,
                        octets,
                    });
                }
            }
        }
        self.from = match &chunk {
            Some(chunk) if more => chunk.position.checked_add(1),
            _ => None,
        };
        chunk
    }
}

/// The segments of one Position that are not empty, in the order of the list.
#[derive(Clone, Debug)]
struct Sequence<'a> {
    segments: ReadSegments<'a>,
    position: u32,
    /// What has not been handed out of the segment at hand.
    current: Segment,
}

impl<'a> Sequence<'a> {
    #[inline]
    fn new(list: ReadList<'a>, position: u32) -> Self {
        Self {
            segments: list.segments(),
            position,
            current: Segment::default(),
        }
    }

    /// The next part, of at most `most` octets.
    #[inline]
    fn next_part(&mut self, most: u32) -> Option<Segment> {
        while self.current.is_empty() {
            let read = self.segments.next()?;
            if read.position == self.position {
                self.current = read.segment;
            }
        }
        let part = self.current.part(0, most);
        self.current = self.current.part(part.length, u32::MAX);
        Some(part)
    }
}

/// What is left of the reduced stream.
#[derive(Clone, Debug)]
enum Stream<'a> {
    Inline { offset: u32 },
    PositionZero(Sequence<'a>),
}

impl Stream<'_> {
    #[inline]
    fn next_piece(&mut self, most: u32) -> Option<(Piece, u32)> {
        match self {
            Self::Inline { offset } => {
                let piece = Piece::Inline {
                    offset: *offset,
                    length: most,
                };
                *offset = offset.saturating_add(most);
                Some((piece, most))
            }
            Self::PositionZero(sequence) => {
                let part = sequence.next_part(most)?;
                Some((Piece::Pull(part), part.length))
            }
        }
    }
}

/// Iterator over the pieces of an assembled Call.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    list: ReadList<'a>,
    stream: Stream<'a>,
    /// Octets of the reduced stream that have not been handed out.
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

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        loop {
            if self.before > 0 {
                let (piece, length) = self.stream.next_piece(self.before)?;
                self.before = self.before.saturating_sub(length);
                self.left = self.left.saturating_sub(length);
                return Some(piece);
            }
            if let Some(part) = self.pulling.as_mut().and_then(|s| s.next_part(u32::MAX)) {
                return Some(Piece::Pull(part));
            }
            self.pulling = None;
            if self.pad > 0 {
                let length = core::mem::take(&mut self.pad);
                return Some(Piece::Pad { length });
            }
            match self.chunks.next() {
                // The place of the chunk in the reduced stream was checked when this was planned.
                Some(chunk) => {
                    let octets = u32::try_from(chunk.octets).unwrap_or(u32::MAX);
                    self.before = chunk.position.saturating_sub(self.at).min(self.left);
                    self.pad = pad(octets);
                    self.at = chunk
                        .position
                        .saturating_add(octets)
                        .saturating_add(self.pad);
                    self.pulling = Some(Sequence::new(self.list, chunk.position));
                }
                None if self.left > 0 => self.before = self.left,
                None => return None,
            }
        }
    }
}
