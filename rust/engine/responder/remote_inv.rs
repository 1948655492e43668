// SPDX-License-Identifier: GPL-2.0

//! Which handle the Send of a Reply invalidates: Responder's Choice (RFC 8797 Section 4.1).

use crate::wire::{
    ChunkLists,
    Segment,
    WORD, //
};

/// Chooses the handle, from those of the Call being answered.
///
/// To be asked only if both ends allow Remote Invalidation
/// ([`Agreement`](super::agreement::Agreement)), and not for an RDMA_ERROR. The largest region is
/// the dearest to invalidate locally on most devices; among Write and Reply chunks first, since
/// their requester is about to touch that memory.
///
/// A Write segment of up to four bytes is never chosen: some requesters point every Write chunk's
/// roundup at one standing registration, which they need again for the next Call.
#[inline]
pub fn handle_to_invalidate(chunks: &ChunkLists<'_>) -> Option<u32> {
    let to_write = chunks.writes.chunks().chain(chunks.reply);
    let written = to_write.flat_map(|chunk| chunk.segments());
    let read = || chunks.reads.segments().map(|read| read.segment);
    largest(written.filter(not_a_pad))
        .or_else(|| largest(read()))
        .map(|segment| segment.handle)
}

#[inline]
fn not_a_pad(segment: &Segment) -> bool {
    usize::try_from(segment.length).is_ok_and(|length| length > WORD)
}

/// The first of the largest segments that are not empty.
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
