// SPDX-License-Identifier: GPL-2.0

//! RDMA segments: one contiguous piece of a peer's exposed memory (RFC 8166 Section 3.4.3).

/// A plain segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The R_key (Steering Tag) the memory is registered under.
    pub handle: u32,
    /// Bytes in the segment. Zero is legal: an empty segment.
    pub length: u32,
    /// The address of the first byte, in the terms of the registration.
    pub offset: u64,
}

impl Segment {
    /// Encoded length in bytes.
    pub const LEN: usize = 16;

    /// Decodes a segment. Every bit pattern is one.
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

    /// Whether there is no memory behind the segment.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The same memory with another length, as returned in a Reply.
    #[inline]
    pub const fn with_length(self, length: u32) -> Self {
        Self { length, ..self }
    }

    /// Takes at most `most` bytes off the front.
    #[inline]
    pub const fn take(&mut self, most: u32) -> Self {
        let part = self.part(0, most);
        *self = self.part(part.length, u32::MAX);
        part
    }

    /// The part of at most `length` bytes that starts `skip` bytes into the segment.
    ///
    /// Addresses wrap: a peer may name any 64-bit offset, and its device is the judge of it.
    #[inline]
    pub const fn part(self, skip: u32, length: u32) -> Self {
        let rest = self.length.saturating_sub(skip);
        Self {
            handle: self.handle,
            length: if length < rest { length } else { rest },
            // CAST: u32 to u64 is lossless.
            offset: self.offset.wrapping_add(skip as u64),
        }
    }
}

/// A segment of a Read chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSegment {
    /// Where the chunk belongs in the unreduced Payload stream (RFC 8166 Section 3.4.5). Segments
    /// of equal Position form one chunk.
    pub position: u32,
    /// The memory to read.
    pub segment: Segment,
}
