// SPDX-License-Identifier: GPL-2.0

//! Chooses the rkey that a Reply invalidates: Responder's Choice (RFC 8797 Section 4.1).
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_get_inv_rkey()

use crate::wire::{
    ChunkLists,
    Segment, //
};

/// No roundup is longer, in bytes.
const ROUNDUP: u32 = 4;

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
    largest(written, ROUNDUP).or_else(|| largest(read(), 0))
}

/// The handle of the first of the largest segments, if these are longer than `least` bytes.
#[inline]
fn largest(segments: impl Iterator<Item = Segment>, least: u32) -> Option<u32> {
    let none = Segment::new(0, least, 0);
    let largest = segments.fold(none, |best, next| {
        if next.length > best.length {
            next
        } else {
            best
        }
    });
    (largest.length > least).then_some(largest.handle)
}
