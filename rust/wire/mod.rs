// SPDX-License-Identifier: GPL-2.0

//! The wire formats: headers of RPC-over-RDMA version 1, and RDMA-CM private data.
//!
//! All functions are pure functions of bytes. [`Header::decode`] parses a received header once,
//! into a borrowed view that is valid by construction. [`HeaderWriter`] encodes a header; its types
//! enforce the order of the chunk lists. No input causes a panic: values from the wire go through
//! checked arithmetic and `get()`.
//!
//! RFC 8166 Section 4.1.2 has the grammar. `engine` decides to which role and direction a message
//! belongs, and what follows from its content.
//!
//! | file           | content                                   | specification          |
//! |----------------|-------------------------------------------|------------------------|
//! | `cursor`       | readers and writers of XDR words          | RFC 4506               |
//! | `segment`      | RDMA segments: handle, length, offset     | RFC 8166 Section 3.4.3 |
//! | `chunks`       | the three chunk lists, as borrowed views  | RFC 8166 Section 4.3   |
//! | `decode`       | the parser of received headers            | RFC 8166 Section 4.1   |
//! | `encode`       | the encoder of headers                    | RFC 8166 Section 4.1   |
//! | `size`         | encoded lengths of headers                | RFC 8166 Section 4.1   |
//! | `error`        | malformed headers and RDMA_ERROR messages | RFC 8166 Section 4.5   |
//! | `private_data` | inline thresholds, Remote Invalidation    | RFC 8797               |
//! | `extensions`   | offers of extensions in private data      | `pulled-replies.rst`   |

#![forbid(unsafe_code)]

mod chunks;
mod cursor;
mod decode;
mod encode;
mod error;
pub mod extensions;
pub mod private_data;
mod segment;
pub mod size;

pub use chunks::{
    ChunkLists,
    Outline,
    ReadList,
    ReadSegments,
    Segments,
    WriteChunk,
    WriteChunks, //
};
pub use cursor::{
    Overflow,
    Reader,
    Truncated,
    Writer, //
};
pub use decode::{
    fixed_words,
    Body,
    Header, //
};
pub use encode::HeaderWriter;
pub use error::{
    ErrorReply,
    Malformed,
    RdmaError, //
};
pub use segment::{
    ReadSegment,
    Segment, //
};

/// `rdma_vers`: the only supported protocol version.
pub const VERSION: u32 = 1;

/// Bytes in an XDR word.
pub const WORD: usize = 4;

/// Bytes in the fields that every version has: xid, vers, credit, proc (RFC 8166 Section 4.2).
pub const FIXED_LEN: usize = 4 * WORD;

/// Bytes in a header without chunks. A shorter message is not parsed (RFC 8166 Section 4.5).
pub const MIN_LEN: usize = 7 * WORD;

/// `rdma_proc`: the Payload stream follows the header.
pub const RDMA_MSG: u32 = 0;
/// `rdma_proc`: the Payload stream is in a chunk.
pub const RDMA_NOMSG: u32 = 1;
// 2 is RDMA_MSGP, which is obsolete and never sent (RFC 8166 Section 4.6.1).
/// `rdma_proc`: the requester has pulled a Reply (RFC 8166 Section 4.6.2).
pub const RDMA_DONE: u32 = 3;
/// `rdma_proc`: the responder's transport refuses the Call.
pub const RDMA_ERROR: u32 = 4;

/// `rdma_err`: the version is not supported.
pub const ERR_VERS: u32 = 1;
/// `rdma_err`: the header or its chunks cannot be processed.
pub const ERR_CHUNK: u32 = 2;

/// Bytes of XDR roundup after an item of `len` bytes.
#[inline]
pub const fn pad(len: u32) -> u32 {
    len.wrapping_neg() & 3
}

/// Rounds `len` up to whole words, or down if the result exceeds 32 bits.
#[inline]
pub const fn whole_words(len: u32) -> u32 {
    len.saturating_add(3) & !3
}
