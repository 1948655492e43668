// SPDX-License-Identifier: GPL-2.0

//! An rkey that the peer has invalidated (RFC 8166 Section 4.4.2, RFC 8797 Section 4.1).

use crate::verbs::device::pd::Pd;

/// The rkey of an MR that the peer's Send With Invalidate has invalidated. Only a completed Receive
/// creates this value.
///
/// # Invariants
///
/// - I1: The device has invalidated the MR, of the domain with the number `pd_id`, whose rkey was
///   `handle` at that time.
#[must_use]
pub(crate) struct Invalidated {
    handle: u32,
    pd_id: u64,
}

impl Invalidated {
    /// # Safety
    ///
    /// A Receive on a QP of the domain with the number `pd_id` has completed, with this rkey in
    /// `ex.invalidate_rkey`.
    #[inline]
    pub(super) unsafe fn new(handle: u32, pd_id: u64) -> Self {
        // INVARIANT: I1: by this function's contract.
        Self { handle, pd_id }
    }

    /// The rkey.
    #[inline]
    pub(crate) fn handle(&self) -> u32 {
        self.handle
    }

    /// Whether the MR is one of `pd`.
    #[inline]
    pub(in crate::verbs) fn is_of(&self, pd: &Pd) -> bool {
        self.pd_id == pd.id()
    }
}
