// SPDX-License-Identifier: GPL-2.0

//! Predicts by earlier Replies to a procedure whether to offer a Reply chunk for the next one.
//!
//! If the connection supports pulled Replies, a Reply that may be too long for a Send needs no
//! Reply chunk. A short Reply is cheapest without one: no memory is registered and none
//! invalidated. A long Reply is cheapest with one: it need not be pulled, which takes another round
//! trip. How long Replies are depends on the procedure, on the data stored and on the workload, so
//! each procedure has a history.
//!
//! The history is a score from 0 to [`MAX`]. A long Reply adds [`LONG`], a short Reply subtracts
//! one. A Reply chunk is offered from a score of [`OFFER`] on. Thus two long Replies in a row start
//! the offers, [`MAX`]` - `[`OFFER`]` + 1` short ones end them, and in the long run a chunk is
//! offered if more than one Reply in `1 + `[`LONG`] is long. That is near the break-even point. An
//! unused chunk costs the requester a registration, and an invalidation for which the RPC waits. A
//! missing chunk costs the responder the same, and also an RDMA_DONE and the time of an RDMA Read.
//!
//! If the responder refuses a Call because it cannot convey the Reply without a chunk, the next
//! Call offers one, whatever the score was.
//!
//! At either end of its range the score does not change while Replies stay long or stay short. The
//! caller then need not write to memory that other CPUs read.

/// Added to the score by a long Reply.
const LONG: u32 = 2;

/// The highest score.
const MAX: u32 = 7;

/// The lowest score at which a Reply chunk is offered.
const OFFER: u32 = 4;

/// The history of one procedure.
///
/// # Invariants
///
/// The score is at most [`MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyHistory(u32);

impl ReplyHistory {
    /// Whether the next Reply is likely to be long.
    #[inline]
    pub const fn is_long(self) -> bool {
        self.0 >= OFFER
    }

    /// The history after another Reply.
    #[inline]
    pub const fn after(self, long: bool) -> Self {
        // INVARIANT: no arm is above `MAX`.
        Self(match (long, self.0) {
            (true, score) if score > MAX - LONG => MAX,
            (true, score) => score + LONG,
            (false, score) => score.saturating_sub(1),
        })
    }

    /// The history after a Call was refused because its Reply was too long and could not be
    /// exposed. The client sends the Call again, with a Reply chunk.
    ///
    /// An NFSv4.1 session may first answer that Call with a short error, so that the client sends
    /// it as another RPC. The score is high enough that one short Reply does not end the offers.
    #[inline]
    pub const fn after_refusal(self) -> Self {
        // INVARIANT: `OFFER + 1` is at most `MAX`.
        if self.0 > OFFER {
            self
        } else {
            Self(OFFER + 1)
        }
    }

    /// The history as a number, for an atomic.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`Self::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        // INVARIANT: holds for any `bits`.
        Self(if bits > MAX { MAX } else { bits })
    }
}
