// SPDX-License-Identifier: GPL-2.0

//! What Replies to a procedure have been like: whether to offer a Reply chunk for the next.
//!
//! A Reply that may be longer than a message, and mostly is not, is cheapest without a Reply chunk:
//! nothing is registered and nothing invalidated, and the rare long one costs a round trip more, to
//! be pulled. A Reply that is mostly long is cheapest with one. Which is which depends on the
//! procedure, on what is stored and on how it is used; so it is learnt.
//!
//! The record of a procedure is a score. A long Reply raises it by [`UP`], a short one lowers it by
//! one, within 0 and [`MOST`]; from [`ENOUGH`] on a Reply chunk is offered. So two long Replies in
//! a row are enough to begin, [`MOST`]` - `[`ENOUGH`]` + 1` short ones to end, and in the long run
//! a chunk is offered if more than one Reply in `1 + `[`UP`] is long. That is about where the
//! prices are even: a chunk that is not used costs a registration and an invalidation, which is
//! waited for; one that is missing costs the same at the responder, one message, and the time of a
//! Read. A Reply that was refused for want of a chunk has it offered next time, whatever the score
//! was.
//!
//! A score at either end does not change by more of the same, so that a steady habit writes
//! nothing.

/// What a long Reply adds.
const UP: u32 = 2;

/// The highest score.
const MOST: u32 = 7;

/// The lowest score at which a Reply chunk is offered.
const ENOUGH: u32 = 4;

/// The record of one procedure.
///
/// # Invariants
///
/// At most [`MOST`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyHistory(u32);

impl ReplyHistory {
    /// Whether the next Reply is to be expected to be long.
    #[inline]
    pub const fn is_long(self) -> bool {
        self.0 >= ENOUGH
    }

    /// The record after one more Reply.
    #[inline]
    pub const fn after(self, long: bool) -> Self {
        // INVARIANT: Within the bounds.
        Self(match (long, self.0) {
            (true, score) if score > MOST - UP => MOST,
            (true, score) => score + UP,
            (false, score) => score.saturating_sub(1),
        })
    }

    /// The record after a Call whose Reply was too long, and could not be exposed: it is made once
    /// more, and then with a Reply chunk. A session may answer that with the short Reply that it
    /// has to be another RPC; so one short Reply does not undo this.
    #[inline]
    pub const fn after_refusal(self) -> Self {
        // INVARIANT: Within the bounds.
        if self.0 > ENOUGH {
            self
        } else {
            Self(ENOUGH + 1)
        }
    }

    /// The record as a number, for an atomic.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The record that [`Self::to_bits`] made the number from.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        // INVARIANT: Of any other number, too.
        Self(if bits > MOST { MOST } else { bits })
    }
}
