// SPDX-License-Identifier: GPL-2.0

//! RDMA segments: contiguous ranges of the peer's registered memory (RFC 8166 Section 3.4.3).
//!
//! C: rpc_rdma.c, encode_rdma_segment(), decode_rdma_segment()
//! C: svc_rdma_pcl.h, struct svc_rdma_segment

/// An RDMA segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The rkey (steering tag) under which the memory is registered.
    pub handle: u32,
    /// Length in bytes. Zero is legal: an empty segment.
    pub length: u32,
    /// Address of the first byte, as registered: a virtual address or an offset.
    pub offset: u64,
}

impl Segment {
    /// Bytes in an encoded segment.
    pub const LEN: usize = 16;

    /// A segment of `length` bytes at `offset` in the registration `handle`.
    #[inline]
    pub const fn new(handle: u32, length: u32, offset: u64) -> Self {
        Self {
            handle,
            length,
            offset,
        }
    }

    /// Decodes a segment. Every bit pattern is valid.
    #[inline]
    pub const fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [h0, h1, h2, h3, l0, l1, l2, l3, offset @ ..] = *bytes;
        Self {
            handle: u32::from_be_bytes([h0, h1, h2, h3]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
            offset: u64::from_be_bytes(offset),
        }
    }

    /// Encodes the segment.
    #[inline]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let [h0, h1, h2, h3] = self.handle.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = self.offset.to_be_bytes();
        [h0, h1, h2, h3, l0, l1, l2, l3, a, b, c, d, e, f, g, h]
    }

    /// Whether the segment has no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The segment with another length, as a Reply returns it.
    #[inline]
    pub const fn with_length(self, length: u32) -> Self {
        Self { length, ..self }
    }

    /// Splits off and returns a segment of at most `max_len` bytes at the front.
    #[inline]
    pub const fn take(&mut self, max_len: u32) -> Self {
        let part = self.part(0, max_len);
        *self = self.part(part.length, u32::MAX);
        part
    }

    /// The part of at most `max_len` bytes that starts `skip` bytes into the segment.
    ///
    /// The address may wrap: a peer may send any 64-bit offset, and its device checks the access.
    #[inline]
    pub const fn part(self, skip: u32, max_len: u32) -> Self {
        let rest = self.length.saturating_sub(skip);
        Self {
            handle: self.handle,
            length: if max_len < rest { max_len } else { rest },
            // CAST: u32 to u64 is lossless.
            offset: self.offset.wrapping_add(skip as u64),
        }
    }
}

/// A segment of a Read chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSegment {
    /// Offset of the chunk in the unreduced Payload stream, in bytes (RFC 8166 Section 3.4.5).
    /// Segments of equal Position form one chunk.
    pub position: u32,
    /// The memory to read.
    pub segment: Segment,
}
