// SPDX-License-Identifier: GPL-2.0

//! The chunks of a Read list. A chunk is all segments of equal Position, in any part of the list.
//!
//! C: svc_rdma_pcl.c, pcl_alloc_read(), pcl_insert_position(), pcl_lookup_position()
//! C: svc_rdma_pcl.h, struct svc_rdma_chunk
//!
//! The iterators allocate no memory. They scan the list once for each chunk; the caller bounds the
//! number of chunks and of segments.

use crate::wire::{
    ReadList,
    ReadSegments,
    Segment, //
};

/// A Read chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Position of its segments.
    pub(super) position: u32,
    /// Sum of the lengths of its segments, in bytes.
    pub(super) len: u64,
}

/// Iterator over the Read chunks that have bytes, by ascending Position.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    list: ReadList<'a>,
    /// The lowest Position that has not been visited. `None` after the last chunk.
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
            let len = u64::from(read.segment.length);
            if len == 0 || read.position < from {
                continue;
            }
            match &mut chunk {
                Some(chunk) if chunk.position == read.position => {
                    chunk.len = chunk.len.saturating_add(len);
                }
                Some(chunk) if chunk.position < read.position => more = true,
                other => {
                    more |= other.is_some();
                    *other = Some(Chunk {
                        position: read.position,
                        len,
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

/// The segments of one chunk that are not empty, in list order.
#[derive(Clone, Debug)]
pub(super) struct ChunkSegments<'a> {
    segments: ReadSegments<'a>,
    position: u32,
    /// The rest of the current segment.
    current: Segment,
}

impl<'a> ChunkSegments<'a> {
    #[inline]
    pub(super) fn new(list: ReadList<'a>, position: u32) -> Self {
        Self {
            segments: list.segments(),
            position,
            current: Segment::default(),
        }
    }

    /// Takes the next contiguous part, of at most `max_len` bytes.
    #[inline]
    pub(super) fn next_part(&mut self, max_len: u32) -> Option<Segment> {
        while self.current.is_empty() {
            let read = self.segments.next()?;
            if read.position == self.position {
                self.current = read.segment;
            }
        }
        Some(self.current.take(max_len))
    }
}

/// A summary of a Read list. Empty segments do not count.
pub(super) struct Summary {
    /// Number of segments.
    pub(super) segments: u32,
    /// The chunk of the first segment. Its length is complete only if `only_one` is set.
    pub(super) first: Option<Chunk>,
    /// Whether all segments belong to the same chunk.
    pub(super) only_one: bool,
}

impl Summary {
    /// Summarizes `list` in one pass.
    #[inline]
    pub(super) fn of(list: ReadList<'_>) -> Self {
        let mut summary = Self {
            segments: 0,
            first: None,
            only_one: true,
        };
        for read in list.segments().filter(|read| !read.segment.is_empty()) {
            summary.segments = summary.segments.saturating_add(1);
            let len = u64::from(read.segment.length);
            match &mut summary.first {
                Some(first) if first.position == read.position => {
                    first.len = first.len.saturating_add(len);
                }
                Some(_) => summary.only_one = false,
                first => {
                    *first = Some(Chunk {
                        position: read.position,
                        len,
                    });
                }
            }
        }
        summary
    }
}
