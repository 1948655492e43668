// SPDX-License-Identifier: GPL-2.0

//! The bytes on the wire: RPC-over-RDMA version 1 headers and RDMA-CM private data.
//!
//! Everything here is a pure function of bytes. A received header is parsed once, into a borrowed
//! view that is valid by construction ([`Header::decode`]); a header to be sent is written by a
//! builder that knows the order of the chunk lists ([`HeaderWriter`]). Nothing here can panic,
//! whatever the peer sends: quantities from the wire go through checked arithmetic and `get()`.
//!
//! The grammar is that of RFC 8166 Section 4.1.2. Which role and which direction a message belongs
//! to, and what follows from that, is decided in `engine`.
//!
//! | file               | what                                              | see                    |
//! |--------------------|---------------------------------------------------|------------------------|
//! | `reader`, `writer` | cursors that hand out and take XDR words          | RFC 4506               |
//! | `segment`          | one piece of a peer's exposed memory              | RFC 8166 Section 3.4.3 |
//! | `chunks`           | the three lists of chunks, as borrowed views      | RFC 8166 Section 4.3   |
//! | `decode`           | the parser of received headers                    | RFC 8166 Section 4.1   |
//! | `encode`, `size`   | the builder of headers, and how long they will be | RFC 8166 Section 4.1   |
//! | `error`            | what is wrong with a header, and what is answered | RFC 8166 Section 4.5   |
//! | `private_data`     | what the ends tell each other when they connect   | RFC 8797               |
//! | `extensions`       | what they can do beyond that                      | `pulled-replies.rst`   |

#![forbid(unsafe_code)]

mod chunks;
mod decode;
mod encode;
mod error;
pub mod extensions;
pub mod private_data;
mod reader;
mod segment;
pub mod size;
mod writer;

pub use chunks::{
    ChunkLists,
    Outline,
    ReadList,
    ReadSegments,
    Segments,
    WriteChunk,
    WriteChunks, //
};
pub use decode::{
    Body,
    Header, //
};
pub use encode::HeaderWriter;
pub use error::{
    ErrorReply,
    Malformed,
    RdmaError, //
};
pub use reader::{
    Reader,
    Truncated, //
};
pub use segment::{
    ReadSegment,
    Segment, //
};
pub use writer::{
    Overflow,
    Writer, //
};

/// The protocol version spoken here.
pub const VERSION: u32 = 1;

/// Bytes in an XDR word.
pub const WORD: usize = 4;

/// Bytes in the fields that every version shares: xid, vers, credit, proc (RFC 8166 Section 4.2).
pub const FIXED_LEN: usize = 4 * WORD;

/// Bytes in a header without chunks, and the floor under which a message is not parsed
/// (RFC 8166 Section 4.5).
pub const MIN_LEN: usize = 7 * WORD;

/// `rdma_proc`: the payload follows the header.
pub const RDMA_MSG: u32 = 0;
/// `rdma_proc`: the payload is in a chunk.
pub const RDMA_NOMSG: u32 = 1;
// 2 is RDMA_MSGP: obsolete, never sent (RFC 8166 Section 4.6.1).
/// `rdma_proc`: a Read chunk of a Reply has been pulled (RFC 8166 Section 4.6.2).
pub const RDMA_DONE: u32 = 3;
/// `rdma_proc`: the Call was refused by the transport.
pub const RDMA_ERROR: u32 = 4;

/// `rdma_err`: the version is not supported.
pub const ERR_VERS: u32 = 1;
/// `rdma_err`: the header or its chunks cannot be processed.
pub const ERR_CHUNK: u32 = 2;

/// The words of these fields; zero for those that are not there.
pub fn fixed_words(bytes: &[u8]) -> [u32; 4] {
    let mut reader = Reader::new(bytes);
    [(); 4].map(|()| reader.word().unwrap_or(0))
}

/// Bytes of XDR roundup after an item of `length` bytes.
#[inline]
pub const fn pad(length: u32) -> u32 {
    length.wrapping_neg() & 3
}
