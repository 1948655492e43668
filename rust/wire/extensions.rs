// SPDX-License-Identifier: GPL-2.0

//! A second block of RDMA-CM private data: what an end can do beyond RFC 8166.
//!
//! It follows the eight bytes of RFC 8797, behind an identifier of its own. A peer that knows only
//! those eight bytes does not see it. Like them, it is looked for at any offset, and what is
//! around it has no meaning. `Documentation/pulled-replies.rst` describes it byte by byte.

use super::private_data::{
    self,
    PrivateData, //
};

/// The identifier: four bytes that are neither text nor the beginning of a known message.
pub const IDENTIFIER: [u8; 4] = [0xd3, 0x97, 0x1e, 0xa4];

/// Bytes in the block, its identifier included.
pub const LEN: usize = 8;

/// The version of the block described here.
const VERSION: u8 = 1;

/// Replies may be pulled. The other flags are reserved: sent as zero, ignored on receipt.
const PULLED_REPLIES: u8 = 0x01;

/// What one end offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Replies may be exposed as Read chunks: the connecting end can pull them, the
    /// listening end exposes them.
    pub pulled_replies: bool,
}

impl Offer {
    /// Finds the block in received private data. Without one, nothing is offered.
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

/// All private data of one end, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    bytes: [u8; private_data::LEN + LEN],
    length: usize,
}

impl Announcement {
    /// RFC 8797's message, and behind it what is offered. An end that offers nothing sends the
    /// eight bytes alone.
    pub fn new(own: &PrivateData, offer: &Offer) -> Self {
        let mut bytes = [0; private_data::LEN + LEN];
        let all = own.encode().into_iter().chain(offer.encode());
        for (byte, value) in bytes.iter_mut().zip(all) {
            *byte = value;
        }
        Self {
            bytes,
            length: if *offer == Offer::default() {
                private_data::LEN
            } else {
                private_data::LEN + LEN
            },
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}
