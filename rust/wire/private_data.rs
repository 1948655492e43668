// SPDX-License-Identifier: GPL-2.0

//! RDMA-CM private data (RFC 8797): inline thresholds and Remote Invalidation.
//!
//! C: verbs.c, rpcrdma_update_cm_private()
//! C: svc_rdma_transport.c, svc_rdma_parse_connect_private()
//!
//! The message has eight bytes, of which the first four are the Format Identifier. Some connection
//! managers put bytes of their own in front of it, so a receiver searches for the identifier at any
//! offset. Others append padding, so a receiver ignores the bytes after the message.

/// The Format Identifier of RFC 8797 Section 4.
pub const IDENTIFIER: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// Bytes in the message, including the identifier.
pub const LEN: usize = 8;

/// The only version of the message.
const VERSION: u8 = 1;

/// Flag, bit 15 of RFC 8797: Remote Invalidation is supported. Bits 8 to 14 are reserved: sent as
/// zero, ignored on receipt.
const REMOTE_INVALIDATION: u8 = 0x01;

/// Sizes are encoded in units of 1024 bytes, minus one.
const UNIT: u32 = 1024;

/// The smallest size that can be encoded, in bytes. Also the default (RFC 8797 Section 5.1).
pub const MIN_SIZE: u32 = UNIT;

/// The largest size that can be encoded, in bytes.
pub const MAX_SIZE: u32 = 256 * UNIT;

/// The properties that one end announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateData {
    /// The peer may invalidate any rkey that this end exposes on the connection.
    pub remote_invalidation: bool,
    /// Most bytes that this end sends in one message.
    pub send_size: u32,
    /// Most bytes that this end can receive in one message.
    pub receive_size: u32,
}

/// The properties of a peer that sends no message (RFC 8797 Section 5.1).
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
    /// Finds the message in received private data. `None` if there is no valid message.
    pub fn find(received: &[u8]) -> Option<Self> {
        received
            .windows(LEN)
            .find_map(|window| Self::decode(window.first_chunk()?))
    }

    /// The properties of the peer that sent `received`. Without a valid message, the default.
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

    /// Encodes the message. Sizes are rounded as by [`round_down`].
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

/// Rounds `size` down to a size that can be encoded, or up to [`MIN_SIZE`].
#[inline]
pub const fn round_down(size: u32) -> u32 {
    decode_size(encode_size(size))
}

/// Halves the larger of two message sizes, but not below `smallest`, all in bytes. Returns `false`
/// if neither size is larger than `smallest`.
pub fn shrink(send: &mut u32, receive: &mut u32, smallest: u32) -> bool {
    let largest = (*send).max(*receive);
    if largest <= smallest {
        return false;
    }
    let limit = round_down((largest / 2).max(smallest));
    *send = (*send).min(limit);
    *receive = (*receive).min(limit);
    true
}

/// The code of the largest multiple of 1024 that is at most `size`.
///
/// A size below 1024 has the code of 1024, which every end must be able to receive.
const fn encode_size(size: u32) -> u8 {
    let code = (size / UNIT).saturating_sub(1);
    if code > 0xff {
        return 0xff;
    }
    // CAST: `code` is at most 0xff.
    code as u8
}

/// The size in bytes of a code.
const fn decode_size(code: u8) -> u32 {
    // CAST: u8 to u32 is lossless. NO-OVERFLOW: at most 256 * 1024.
    (code as u32 + 1) * UNIT
}
