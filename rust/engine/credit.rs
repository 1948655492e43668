// SPDX-License-Identifier: GPL-2.0

//! Credits: how many Calls may be outstanding in one direction (RFC 8166 Section 3.3.1).

/// A requester's view of the credits of one direction on one connection.
///
/// # Invariants
///
/// `1 <= granted <= most <= wanted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    wanted: u32,
    granted: u32,
    /// The largest grant on this connection: as many Calls may be outstanding, even if the latest
    /// grant is smaller.
    most: u32,
}

impl Window {
    /// A window on a fresh connection: one Call, until its Reply says more (Section 3.3.3).
    ///
    /// `wanted` is what every Call asks for; at least 1.
    #[inline]
    pub const fn fresh(wanted: u32) -> Self {
        // INVARIANT: `wanted` is raised to 1 if need be.
        Self {
            wanted: if wanted == 0 { 1 } else { wanted },
            granted: 1,
            most: 1,
        }
    }

    /// What every Call asks for.
    #[inline]
    pub const fn wanted(&self) -> u32 {
        self.wanted
    }

    /// How many Calls may be outstanding now.
    #[inline]
    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// Takes the grant of a Reply; returns whether the window has changed.
    ///
    /// A grant of zero would stop the connection for good and counts as 1. More than was asked for
    /// is more than there are Receives for, and counts as what was asked for. The caller posts the
    /// Receives for the new window *before* it lets more Calls out.
    #[inline]
    pub fn grant(&mut self, credits: u32) -> bool {
        let granted = clamp(credits, self.wanted);
        let changed = granted != self.granted;
        // INVARIANT: `clamp` returns a number from 1 to `wanted`.
        self.granted = granted;
        self.most = self.most.max(granted);
        changed
    }

    /// How many more Calls may be sent while `outstanding` are not answered.
    #[inline]
    pub const fn available(&self, outstanding: u32) -> u32 {
        self.granted.saturating_sub(outstanding)
    }

    /// How many Receives this end must keep posted: one for each Reply that may come, and
    /// `reverse` for the Calls that it allows its peer (RFC 8167 Section 4.3.1).
    ///
    /// A grant that shrinks does not call back the Calls sent under a larger one, so this number
    /// never shrinks on a connection.
    #[inline]
    pub const fn receives(&self, reverse: u32) -> u32 {
        self.most.saturating_add(reverse)
    }
}

/// What a responder grants: never zero, and never more than there are Receives for.
///
/// `wanted` is what the Call asks for, `posted` how many Receives stand for Calls of this
/// direction.
#[inline]
pub const fn grant(wanted: u32, posted: u32) -> u32 {
    clamp(wanted, if posted == 0 { 1 } else { posted })
}

/// `credits` within 1 to `limit`. `limit` is at least 1.
#[inline]
const fn clamp(credits: u32, limit: u32) -> u32 {
    if credits == 0 {
        1
    } else if credits > limit {
        limit
    } else {
        credits
    }
}
