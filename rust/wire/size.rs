// SPDX-License-Identifier: GPL-2.0

//! Encoded sizes of headers, for choosing a form before writing it.
//!
//! The builder in `encode` and these functions are tested against each other: what a function here
//! says is what the builder writes.

use super::{
    RdmaError,
    Segment,
    FIXED_LEN,
    MIN_LEN,
    WORD, //
};

/// Bytes that one Read segment adds to a header: discriminator, Position, segment.
pub(super) const READ_SEGMENT: usize = 2 * WORD + Segment::LEN;

/// Bytes that a Write chunk adds to a header before its segments: discriminator, count.
const WRITE_CHUNK: usize = 2 * WORD;

/// Bytes that a Reply chunk adds to a header before its segments. Its discriminator is in every
/// header.
const REPLY_CHUNK: usize = WORD;

/// Bytes that one segment adds to a Write or Reply chunk.
const SEGMENT: usize = Segment::LEN;

/// Bytes that a Read list of `segments` segments adds to a header without chunks.
#[inline]
pub const fn reads(segments: usize) -> usize {
    segments.saturating_mul(READ_SEGMENT)
}

/// Bytes that a Write chunk of `segments` segments adds to a header without chunks.
#[inline]
pub const fn write_chunk(segments: usize) -> usize {
    segments.saturating_mul(SEGMENT).saturating_add(WRITE_CHUNK)
}

/// Bytes that a Reply chunk of `segments` segments adds to a header without chunks.
#[inline]
pub const fn reply_chunk(segments: usize) -> usize {
    segments.saturating_mul(SEGMENT).saturating_add(REPLY_CHUNK)
}

/// Bytes in the largest header a Call can have if each of its chunks has at most `segments`
/// segments: one Read chunk, and one Write chunk or Reply chunk.
///
/// A fixed bound ends the recursion between the size of a message and that of its header.
#[inline]
pub const fn max_call(segments: usize) -> usize {
    MIN_LEN
        .saturating_add(reads(segments))
        .saturating_add(write_chunk(segments))
}

/// Bytes in an RDMA_ERROR message.
#[inline]
pub const fn error(error: &RdmaError) -> usize {
    match error {
        RdmaError::Vers { .. } => FIXED_LEN + 3 * WORD,
        RdmaError::Chunk => FIXED_LEN + WORD,
    }
}
