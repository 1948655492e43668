// SPDX-License-Identifier: GPL-2.0

//! RDMA-CM private data (RFC 8797): what the ends tell each other when they connect.
//!
//! The message is eight bytes, of which the first four are a Format Identifier. A receiver looks
//! for the identifier at any offset, because some connection managers put bytes of their own in
//! front, and ignores what follows, because others pad. That leaves room for further messages, each
//! with an identifier of its own: they follow the eight bytes and are invisible to a peer that
//! does not know them.

/// The Format Identifier of RFC 8797 Section 4.
pub const IDENTIFIER: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// Bytes in the message, its identifier included.
pub const LEN: usize = 8;

/// The version of the message described here.
const VERSION: u8 = 1;

/// Flag bit 15: Remote Invalidation is supported. Bits 8 to 14 are reserved: sent as zero,
/// ignored on receipt.
const REMOTE_INVALIDATION: u8 = 0x01;

/// Sizes travel in units of 1024 bytes, less one.
const UNIT: u32 = 1024;

/// The smallest size that can be told, and what holds if nothing is told.
pub const MIN_SIZE: u32 = UNIT;

/// The largest size that can be told.
pub const MAX_SIZE: u32 = 256 * UNIT;

/// What one end tells about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateData {
    /// Any handle this end exposes on the connection may be invalidated remotely.
    pub remote_invalidation: bool,
    /// Bytes this end may send in one message.
    pub send_size: u32,
    /// Bytes this end can receive in one message.
    pub receive_size: u32,
}

/// What holds for a peer that says nothing (RFC 8797 Section 5.1).
impl Default for PrivateData {
    #[inline]
    fn default() -> Self {
        Self {
            remote_invalidation: false,
            send_size: MIN_SIZE,
            receive_size: MIN_SIZE,
        }
    }
}

impl PrivateData {
    /// Finds the message in received private data; `None` if there is none that conforms.
    pub fn find(received: &[u8]) -> Option<Self> {
        received
            .windows(LEN)
            .find_map(|window| Self::decode(window.first_chunk()?))
    }

    /// What `received` says about the peer, or the default if it says nothing.
    pub fn of_peer(received: &[u8]) -> Self {
        Self::find(received).unwrap_or_default()
    }

    fn decode(bytes: &[u8; LEN]) -> Option<Self> {
        let [i0, i1, i2, i3, version, flags, send, receive] = *bytes;
        if [i0, i1, i2, i3] != IDENTIFIER || version != VERSION {
            return None;
        }
        Some(Self {
            remote_invalidation: flags & REMOTE_INVALIDATION != 0,
            send_size: decode_size(send),
            receive_size: decode_size(receive),
        })
    }

    /// Encodes the message. Sizes are rounded down to what can be told.
    pub fn encode(&self) -> [u8; LEN] {
        let [i0, i1, i2, i3] = IDENTIFIER;
        let flags = if self.remote_invalidation {
            REMOTE_INVALIDATION
        } else {
            0
        };
        let send = encode_size(self.send_size);
        let receive = encode_size(self.receive_size);
        [i0, i1, i2, i3, VERSION, flags, send, receive]
    }
}

/// `size` rounded down to what can be told.
#[inline]
pub const fn round_down(size: u32) -> u32 {
    decode_size(encode_size(size))
}

/// The size code of the largest multiple of 1024 that is not over `size`.
///
/// Sizes under 1024 bytes do not exist: every end must be able to take that much.
const fn encode_size(size: u32) -> u8 {
    let code = (size / UNIT).saturating_sub(1);
    if code > 0xff {
        return 0xff;
    }
    // CAST: `code` is at most 0xff.
    code as u8
}

/// The inverse of [`encode_size`] for multiples of 1024.
const fn decode_size(code: u8) -> u32 {
    // CAST: u8 to u32 is lossless; NO-OVERFLOW: at most 256 * 1024.
    (code as u32 + 1) * UNIT
}
