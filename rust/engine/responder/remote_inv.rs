// SPDX-License-Identifier: GPL-2.0

//! Chooses the rkey that a Reply invalidates: Responder's Choice (RFC 8797 Section 4.1).
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_get_inv_rkey()

use crate::wire::{
    ChunkLists,
    Segment,
    WORD, //
};

/// Chooses an rkey from the chunks of the Call that is answered.
///
/// The caller uses it only if both ends support Remote Invalidation
/// ([`Agreement`](crate::engine::agreement::Agreement)), and not for an RDMA_ERROR.
///
/// Of all segments the choice is the largest, whose MR takes longest to invalidate locally on most
/// devices. Write and Reply chunks take precedence over Read chunks, because the requester is about
/// to access that memory.
///
/// A Write segment of up to four bytes is never chosen. Some requesters add such a segment to every
/// Write chunk, to receive roundup. Its registration is permanent and serves the next Call as well.
#[inline]
pub fn handle_to_invalidate(chunks: &ChunkLists<'_>) -> Option<u32> {
    let write_chunks = chunks.writes.chunks().chain(chunks.reply);
    let written = write_chunks.flat_map(|chunk| chunk.segments());
    let read = || chunks.reads.segments().map(|read| read.segment);
    largest(written.filter(not_a_pad))
        .or_else(|| largest(read()))
        .map(|segment| segment.handle)
}

/// Whether the segment is longer than a roundup.
#[inline]
fn not_a_pad(segment: &Segment) -> bool {
    usize::try_from(segment.length).is_ok_and(|len| len > WORD)
}

/// The first of the largest segments, unless all are empty.
#[inline]
fn largest<I: Iterator<Item = Segment>>(segments: I) -> Option<Segment> {
    segments
        .filter(|segment| !segment.is_empty())
        .reduce(|best, next| {
            if next.length > best.length {
                next
            } else {
                best
            }
        })
}
