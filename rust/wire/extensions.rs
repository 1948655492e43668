// SPDX-License-Identifier: GPL-2.0

//! A second block of RDMA-CM private data, which offers extensions of RFC 8166.
//!
//! The block has its own identifier and follows the eight bytes of RFC 8797. A peer that supports
//! RFC 8797 only ignores it. A receiver searches for the identifier at any offset and ignores the
//! bytes around the block. `Documentation/pulled-replies.rst` specifies the block.

use super::private_data::{
    self,
    PrivateData, //
};

/// The identifier of the block: four bytes that begin neither text nor a known message.
pub const IDENTIFIER: [u8; 4] = [0xd3, 0x97, 0x1e, 0xa4];

/// Bytes in the block, including the identifier.
pub const LEN: usize = 8;

/// The only version of the block.
const VERSION: u8 = 1;

/// Flag: pulled Replies are supported. The other bits are reserved: sent as zero, ignored on
/// receipt.
const PULLED_REPLIES: u8 = 0x01;

/// The extensions that one end offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The client can pull Replies by RDMA Read; the server can expose them as Read chunks.
    pub pulled_replies: bool,
}

impl Offer {
    /// The offer in received private data. A peer that sends no block offers no extensions.
    pub fn of_peer(received: &[u8]) -> Self {
        received
            .windows(LEN)
            .find_map(|window| Self::decode(window.first_chunk()?))
            .unwrap_or_default()
    }

    fn decode(bytes: &[u8; LEN]) -> Option<Self> {
        let [i0, i1, i2, i3, version, flags, _, _] = *bytes;
        if [i0, i1, i2, i3] != IDENTIFIER || version != VERSION {
            return None;
        }
        Some(Self {
            pulled_replies: flags & PULLED_REPLIES != 0,
        })
    }

    fn encode(&self) -> [u8; LEN] {
        let [i0, i1, i2, i3] = IDENTIFIER;
        let flags = if self.pulled_replies {
            PULLED_REPLIES
        } else {
            0
        };
        [i0, i1, i2, i3, VERSION, flags, 0, 0]
    }
}

/// The encoded private data of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    buf: [u8; private_data::LEN + LEN],
    /// Bytes in use.
    len: usize,
}

impl Announcement {
    /// Encodes the message of RFC 8797 and the offer. An end that offers no extensions sends the
    /// eight bytes of RFC 8797 only.
    pub fn new(own: &PrivateData, offer: &Offer) -> Self {
        let mut buf = [0; private_data::LEN + LEN];
        let all = own.encode().into_iter().chain(offer.encode());
        for (byte, value) in buf.iter_mut().zip(all) {
            *byte = value;
        }
        Self {
            buf,
            len: if *offer == Offer::default() {
                private_data::LEN
            } else {
                private_data::LEN + LEN
            },
        }
    }

    /// The bytes to send.
    pub fn as_bytes(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or(&self.buf)
    }
}
