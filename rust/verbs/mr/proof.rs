// SPDX-License-Identifier: GPL-2.0

//! Proofs that the peer cannot reach memory any more (RFC 8166 Section 4.4.1).

/// Proof that the memory of an RPC is out of the peer's reach and unmapped. An RPC cannot be
/// completed without.
#[must_use]
pub(crate) struct Fenced(());

impl Fenced {
    #[inline]
    pub(super) fn new() -> Self {
        Self(())
    }
}

/// The QP is in the error state, and MRs could not be invalidated before. The peer reaches nothing
/// through the QP any more, and the MRs are unmapped and not used again; but what arrived last
/// cannot be trusted.
#[derive(Clone, Copy)]
pub(crate) struct QpEnded(());

impl QpEnded {
    #[inline]
    pub(super) fn new() -> Self {
        Self(())
    }

    /// The end of the QP is a fence, too: for a task that abandons an RPC, not for completing one.
    pub(crate) fn fence(self) -> Fenced {
        Fenced(())
    }
}
