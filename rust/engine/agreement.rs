// SPDX-License-Identifier: GPL-2.0

//! What may be sent on a connection, as settled when it is made.
//!
//! All of it holds for one connection and has to be settled anew for the next (RFC 8797 Section 4).

use crate::wire::{
    extensions::Offer,
    private_data::{
        PrivateData,
        MIN_SIZE, //
    },
    MIN_LEN, //
};

/// The inline thresholds and the use of Remote Invalidation on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Bytes that this end may send in one message, transport header included.
    pub send: u32,
    /// Bytes that the peer may send in one message.
    pub receive: u32,
    /// Both ends allow that a Reply invalidates a handle of its Call.
    pub remote_invalidation: bool,
}

impl Agreement {
    /// What follows from what the two ends said (RFC 8797 Section 4.2; RFC 8166 Section 3.3.2).
    ///
    /// For each direction the smaller of the sender's and the receiver's size counts. Nothing under
    /// 1024 bytes can be agreed, because every end has to take that much.
    #[inline]
    pub fn between(own: &PrivateData, peer: &PrivateData) -> Self {
        Self {
            send: own.send_size.min(peer.receive_size).max(MIN_SIZE),
            receive: own.receive_size.min(peer.send_size).max(MIN_SIZE),
            remote_invalidation: own.remote_invalidation && peer.remote_invalidation,
        }
    }

    /// Bytes of an RPC message that fit a message without chunks, in either direction: what
    /// reverse Calls and Replies are limited to (RFC 8167 Section 5.3).
    #[inline]
    pub fn backchannel_payload(&self) -> u32 {
        let header = u32::try_from(MIN_LEN).unwrap_or(u32::MAX);
        self.send.min(self.receive).saturating_sub(header)
    }
}

/// What a connection has agreed on beyond RFC 8166.
///
/// The default is plain version 1: as RFC 8166 says, to the letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Replies may be offered as Read chunks, and RDMA_DONE acknowledges them.
    pub pulled_replies: bool,
}

/// RDMA Reads that each end of a connection can have under way, as the connection manager settled
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadDepths {
    /// Reads that the requester starts at a time.
    pub initiator_depth: u32,
    /// Reads of the requester that the responder answers at a time.
    pub responder_resources: u32,
}

impl Extensions {
    /// What follows from what the two ends offered.
    ///
    /// A Reply can be pulled only if both ends said that they know how, and if their queue pairs
    /// let the requester read from the responder.
    #[inline]
    pub const fn between(own: &Offer, peer: &Offer, depths: &ReadDepths) -> Self {
        Self {
            pulled_replies: own.pulled_replies
                && peer.pulled_replies
                && depths.initiator_depth > 0
                && depths.responder_resources > 0,
        }
    }
}
