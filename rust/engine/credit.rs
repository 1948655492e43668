// SPDX-License-Identifier: GPL-2.0

//! Credits, which limit outstanding Calls (RFC 8166 Section 3.3.1), and the Receives they require.
//!
//! C: rpc_rdma.c, rpcrdma_update_cwnd()

/// The credits of a requester, for one direction of one connection.
///
/// [`Self::to_bits`] makes it a number, for an atomic.
///
/// # Invariants
///
/// `1 <= granted <= max_granted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The latest grant.
    granted: u32,
    /// The largest grant on this connection. As many Calls may still be outstanding if the latest
    /// grant is smaller.
    max_granted: u32,
}

impl Window {
    /// The window of a new connection: one Call, until its Reply grants more (RFC 8166 Section
    /// 3.3.3).
    pub const FRESH: Self = Self {
        granted: 1,
        max_granted: 1,
    };

    /// Number of Calls that may be outstanding.
    #[inline]
    pub const fn granted(&self) -> u32 {
        self.granted
    }

    /// Applies the grant in a Reply to a Call that requested `wanted` credits; returns whether the
    /// number of credits has changed.
    ///
    /// A grant of zero counts as 1: otherwise no Call could be sent again. A grant of more than
    /// `wanted` counts as `wanted`: there are no Receives for more. The caller posts the Receives
    /// for the new window *before* it sends more Calls.
    #[inline]
    pub const fn grant(&mut self, credits: u32, wanted: u32) -> bool {
        let granted = clamp(credits, wanted);
        let changed = granted != self.granted;
        // INVARIANT: `clamp` returns at least 1.
        self.granted = granted;
        if granted > self.max_granted {
            self.max_granted = granted;
        }
        changed
    }

    /// Number of Receives that this end must keep posted: one for each outstanding Call, and
    /// `backchannel` for the Calls that it grants to its peer (RFC 8167 Section 4.3.1).
    ///
    /// The number never shrinks on a connection: Calls that were sent before a smaller grant are
    /// still outstanding.
    #[inline]
    pub const fn receives(&self, backchannel: u32) -> u32 {
        self.max_granted.saturating_add(backchannel)
    }

    /// Number of Calls that may be outstanding while `posted` Receives are posted, `backchannel` of
    /// them for the Calls of the peer.
    ///
    /// Fewer Receives than [`Self::receives`] are posted only after a memory allocation has failed.
    /// One Call may be sent even then: the handler of its Reply tries again to post Receives.
    #[inline]
    pub const fn covered(&self, posted: u32, backchannel: u32) -> u32 {
        clamp(posted.saturating_sub(backchannel), self.granted)
    }

    /// The window as a number, for an atomic.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        // CAST: u32 to u64 is lossless.
        (self.granted as u64) << 32 | self.max_granted as u64
    }

    /// The inverse of [`Self::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        // CAST: the upper and the lower half of `bits`.
        let granted = clamp((bits >> 32) as u32, u32::MAX);
        let max = bits as u32;
        // INVARIANT: holds for any `bits`: `granted` is clamped, and `max_granted` is no less.
        Self {
            granted,
            max_granted: if max < granted { granted } else { max },
        }
    }
}

/// Number of credits to grant next, while `granted` are granted, `in_progress` Calls are in
/// progress, and `recent` have arrived within a second: twice as many, up to `limit`, for a
/// requester that may need them.
///
/// A responder may change its grant at any time (RFC 8166 Section 3.3.1). A grant that follows use
/// saves the Receives of an idle peer. If the responder is slow, half of the Calls are in progress.
/// If the network is slow, few are. But a requester that is short of credits sends a Call for each
/// in a round trip, and there are at least four of these in a second.
///
/// The caller posts the Receives for the new grant *before* it grants.
#[inline]
pub const fn next_grant(granted: u32, in_progress: u32, recent: u32, limit: u32) -> u32 {
    let is_used = in_progress >= granted.div_ceil(2) || recent >= granted.saturating_mul(4);
    let next = if is_used {
        granted.saturating_mul(2)
    } else {
        granted
    };
    clamp(next, limit)
}

/// Number of Receives to post while `posted` are posted and `needed` are required.
///
/// Once fewer than `needed` are posted, the result fills them up to `needed + batch`, so that one
/// doorbell serves several Receives. The Receive Queue must have `needed + batch` entries.
#[inline]
pub const fn receives_to_post(posted: u32, needed: u32, batch: u32) -> u32 {
    match needed.checked_sub(posted) {
        None | Some(0) => 0,
        Some(missing) => missing.saturating_add(batch),
    }
}

/// `credits`, at most `limit` and at least 1.
#[inline]
const fn clamp(credits: u32, limit: u32) -> u32 {
    let credits = if credits > limit { limit } else { credits };
    if credits == 0 {
        1
    } else {
        credits
    }
}
