// SPDX-License-Identifier: GPL-2.0

//! Properties that the two ends negotiate when they connect.
//!
//! C: verbs.c, rpcrdma_update_cm_private()
//!
//! They are valid for one connection. The ends negotiate them again for the next one (RFC 8797
//! Section 4).

use crate::wire::{
    extensions::Offer,
    private_data::{
        PrivateData,
        MIN_SIZE, //
    },
    MIN_LEN, //
};

/// The inline thresholds of one connection, and whether it uses Remote Invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Most bytes that this end may send in one message, including the transport header.
    pub send: u32,
    /// Most bytes that the peer may send in one message.
    pub receive: u32,
    /// Both ends support Remote Invalidation: a Reply may invalidate an rkey of its Call.
    pub remote_invalidation: bool,
}

impl Agreement {
    /// The result of the two ends' private data (RFC 8797 Section 4.2; RFC 8166 Section 3.3.2).
    ///
    /// The threshold of a direction is the smaller of the sender's and the receiver's size, and at
    /// least 1024 bytes, which every end must be able to receive.
    #[inline]
    pub fn between(own: &PrivateData, peer: &PrivateData) -> Self {
        Self {
            send: own.send_size.min(peer.receive_size).max(MIN_SIZE),
            receive: own.receive_size.min(peer.send_size).max(MIN_SIZE),
            remote_invalidation: own.remote_invalidation && peer.remote_invalidation,
        }
    }

    /// Most bytes in an RPC message of the backchannel, Call or Reply: it must fit a message
    /// without chunks in both directions (RFC 8167 Section 5.3).
    #[inline]
    pub fn backchannel_payload(&self) -> u32 {
        let header = u32::try_from(MIN_LEN).unwrap_or(u32::MAX);
        self.send.min(self.receive).saturating_sub(header)
    }
}

/// The extensions of RFC 8166 that a connection uses. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The server may expose a long Reply as a Read chunk. The client acknowledges it by RDMA_DONE.
    pub pulled_replies: bool,
}

/// Limits on concurrent RDMA Reads, as the connection manager has negotiated them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadDepths {
    /// Most RDMA Reads that the requester issues at a time.
    pub initiator_depth: u32,
    /// Most RDMA Reads of the requester that the responder executes at a time.
    pub responder_resources: u32,
}

impl Extensions {
    /// The result of the two ends' offers.
    ///
    /// Replies can be pulled only if both ends support that, and if the QPs allow the requester to
    /// read from the responder.
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
