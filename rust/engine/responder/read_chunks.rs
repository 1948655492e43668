// SPDX-License-Identifier: GPL-2.0

//! The Read list seen as chunks: segments of equal Position, wherever they are in the list.
//!
//! No memory is needed for that. Chunks are few, and the list is short enough to be looked through
//! once for each; the caller bounds both.

use crate::wire::{
    ReadList,
    ReadSegments,
    Segment, //
};

/// A Read chunk: all segments of one Position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Where it belongs.
    pub(super) position: u32,
    /// Bytes of its segments together.
    pub(super) bytes: u64,
}

/// The Read chunks by rising Position. Chunks without bytes are passed over.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    list: ReadList<'a>,
    /// The lowest Position that has not been visited; `None` when there can be no more.
    from: Option<u32>,
}

impl<'a> Chunks<'a> {
    #[inline]
    pub(super) const fn new(list: ReadList<'a>) -> Self {
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
            let bytes = u64::from(read.segment.length);
            if bytes == 0 || read.position < from {
                continue;
            }
            match &mut chunk {
                Some(chunk) if chunk.position == read.position => {
                    chunk.bytes = chunk.bytes.saturating_add(bytes);
                }
                Some(chunk) if chunk.position < read.position => more = true,
                other => {
                    more |= other.is_some();
                    *other = Some(Chunk {
                        position: read.position,
                        bytes,
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
pub(super) struct Sequence<'a> {
    segments: ReadSegments<'a>,
    position: u32,
    /// What has not been handed out of the segment at hand.
    current: Segment,
}

impl<'a> Sequence<'a> {
    #[inline]
    pub(super) fn new(list: ReadList<'a>, position: u32) -> Self {
        Self {
            segments: list.segments(),
            position,
            current: Segment::default(),
        }
    }

    /// The next part, of at most `most` bytes.
    #[inline]
    pub(super) fn next_part(&mut self, most: u32) -> Option<Segment> {
        while self.current.is_empty() {
            let read = self.segments.next()?;
            if read.position == self.position {
                self.current = read.segment;
            }
        }
        Some(self.current.take(most))
    }
}

/// What a Read list is like, in one look at it.
pub(super) struct Survey {
    /// Segments that are not empty.
    pub(super) segments: u32,
    /// The first chunk that has one; all of it, if it is the only one.
    pub(super) first: Option<Chunk>,
    /// Whether there are no segments of another chunk.
    pub(super) only_one: bool,
}

impl Survey {
    #[inline]
    pub(super) fn of(list: ReadList<'_>) -> Self {
        let mut survey = Self {
            segments: 0,
            first: None,
            only_one: true,
        };
        for read in list.segments().filter(|read| !read.segment.is_empty()) {
            survey.segments = survey.segments.saturating_add(1);
            let bytes = u64::from(read.segment.length);
            match &mut survey.first {
                Some(first) if first.position == read.position => {
                    first.bytes = first.bytes.saturating_add(bytes);
                }
                Some(_) => survey.only_one = false,
                first => {
                    *first = Some(Chunk {
                        position: read.position,
                        bytes,
                    });
                }
            }
        }
        survey
    }
}
