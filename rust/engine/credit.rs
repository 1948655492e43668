// SPDX-License-Identifier: GPL-2.0

//! Credits: how many Calls may be outstanding in one direction (RFC 8166 Section 3.3.1), and the
//! Receives that this takes.

/// A requester's view of the credits of one direction on one connection.
///
/// Small enough for an atomic word: [`Self::to_bits`].
///
/// # Invariants
///
/// `1 <= granted <= most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    granted: u32,
    /// The largest grant on this connection: as many Calls may be outstanding, even if the latest
    /// grant is smaller.
    most: u32,
}

impl Window {
    /// A window on a fresh connection: one Call, until its Reply says more (Section 3.3.3).
    pub const FRESH: Self = Self {
        granted: 1,
        most: 1,
    };

    /// How many Calls may be outstanding now.
    #[inline]
    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// Takes the grant of a Reply to a Call that asked for `wanted`; returns whether the window has
    /// changed.
    ///
    /// A grant of zero would stop the connection for good and counts as 1. More than was asked for
    /// is more than there are Receives for, and counts as what was asked for. The caller posts the
    /// Receives for the new window *before* it lets more Calls out.
    #[inline]
    pub const fn grant(&mut self, credits: u32, wanted: u32) -> bool {
        let granted = clamp(credits, wanted);
        let changed = granted != self.granted;
        // INVARIANT: `clamp` returns at least 1.
        self.granted = granted;
        if granted > self.most {
            self.most = granted;
        }
        changed
    }

    /// How many Receives this end must keep posted: one for each Reply that may come, and
    /// `backchannel` for the Calls that it allows its peer (RFC 8167 Section 4.3.1).
    ///
    /// A grant that shrinks does not call back the Calls sent under a larger one, so this number
    /// never shrinks on a connection.
    #[inline]
    pub const fn receives(&self, backchannel: u32) -> u32 {
        self.most.saturating_add(backchannel)
    }

    /// How many Calls may be outstanding while no more than `standing` Receives are posted,
    /// `backchannel` of which are for the Calls of the peer.
    ///
    /// Fewer than [`Self::receives`] asks for stand only if there is no memory for them. One Call
    /// may be sent in any case: its Reply is what the next attempt to post more comes with.
    #[inline]
    pub const fn covered(&self, standing: u32, backchannel: u32) -> u32 {
        clamp(standing.saturating_sub(backchannel), self.granted)
    }

    /// The window as a number, for an atomic.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        // CAST: u32 to u64 is lossless.
        (self.granted as u64) << 32 | self.most as u64
    }

    /// The window that [`Self::to_bits`] made the number from.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        // CAST: the halves of the number.
        let granted = clamp((bits >> 32) as u32, u32::MAX);
        let most = bits as u32;
        // INVARIANT: of any other number, too.
        Self {
            granted,
            most: if most < granted { granted } else { most },
        }
    }
}

/// How many Receives to post now, so that doorbells are rung in batches.
///
/// `posted` stand, `needed` must stand, and up to `batch` more are posted each time that the number
/// falls below. The Receive Queue therefore needs `needed + batch` entries.
#[inline]
pub const fn receives_to_post(posted: u32, needed: u32, batch: u32) -> u32 {
    match needed.checked_sub(posted) {
        None | Some(0) => 0,
        Some(missing) => missing.saturating_add(batch),
    }
}

/// `credits`, but at most `limit`, and at least 1.
#[inline]
const fn clamp(credits: u32, limit: u32) -> u32 {
    let credits = if credits > limit { limit } else { credits };
    if credits == 0 {
        1
    } else {
        credits
    }
}
