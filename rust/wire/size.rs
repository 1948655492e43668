// SPDX-License-Identifier: GPL-2.0

//! Encoded lengths of headers, in bytes.
//!
//! C: rpc_rdma.c, rpcrdma_set_max_header_sizes(), rpcrdma_max_call_header_size()
//!
//! The engine chooses the form of a message before it writes the header, so it needs the length of
//! the header first. The host tests check these functions against the encoder.

use super::{
    Segment,
    MIN_LEN,
    WORD, //
};

/// Bytes that one Read segment adds to a header: discriminator, Position, segment.
pub(super) const READ_SEGMENT: usize = 2 * WORD + Segment::LEN;

/// Bytes that a Write chunk adds to a header before its segments: discriminator, count.
const WRITE_CHUNK: usize = 2 * WORD;

/// Bytes that a Reply chunk adds to a header before its segments: the count. Every header has the
/// discriminator.
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

/// Bytes in the longest header of a Call whose chunks have at most `segments` segments each.
///
/// A Call has at most one Read chunk, and at most one Write chunk or Reply chunk. A Write chunk
/// takes more bytes than a Reply chunk.
#[inline]
pub const fn max_call(segments: usize) -> usize {
    MIN_LEN
        .saturating_add(reads(segments))
        .saturating_add(write_chunk(segments))
}
