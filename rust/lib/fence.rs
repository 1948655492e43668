// SPDX-License-Identifier: GPL-2.0

//! Memory that a peer can reach, and the proofs that it no longer can (RFC 8166 Section 4.4.1).
//!
//! `sunrpc` and the server's messages own memory; `verbs` exposes it to the peer, and fences it. An
//! owner travels through the fence:
//!
//! ```text
//! Reachable<O, E> --nothing exposed, or all of it invalidated--> Fenced<O>
//!                \--QP in the error state-----------------------> Unreachable<O>
//! ```
//!
//! Only unsafe code makes these types or takes a [`Reachable`] apart. Code without it can neither
//! fence one owner with the proof of another, nor lose what exposes an owner's memory.

use core::{
    mem::ManuallyDrop,
    ops::Deref,
    ptr, //
};

/// An owner of memory that `E` exposes to a peer.
pub(crate) trait Owner<E>: Sized {
    /// Takes back memory that is still exposed. The owner keeps both together.
    fn keep_exposed(self, exposed: E);
}

/// An owner of memory, with all that exposes this memory to a peer. Dropping it gives both back to
/// the owner.
///
/// # Invariants
///
/// - I1: The peer can reach no memory of the owner but by `exposed`.
#[must_use]
pub(crate) struct Reachable<O: Owner<E>, E> {
    owner: ManuallyDrop<O>,
    exposed: ManuallyDrop<E>,
}

impl<O: Owner<E>, E> Reachable<O, E> {
    /// # Safety
    ///
    /// The peer can reach no memory of `owner` but by `exposed`.
    #[inline]
    pub(crate) unsafe fn new(owner: O, exposed: E) -> Self {
        // INVARIANT: By this function's contract (I1).
        Self {
            owner: ManuallyDrop::new(owner),
            exposed: ManuallyDrop::new(exposed),
        }
    }

    /// What exposes the memory.
    #[inline]
    pub(crate) fn exposed(&self) -> &E {
        &self.exposed
    }

    /// What exposes the memory, for the room that has made it.
    #[inline]
    pub(crate) fn exposed_mut(&mut self) -> Locked<'_, E> {
        Locked(&mut self.exposed)
    }

    /// # Safety
    ///
    /// The caller neither drops nor uses the owner before the peer can no longer reach its memory.
    #[inline]
    pub(crate) unsafe fn into_parts(self) -> (O, E) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, so that both are moved, not copied.
        unsafe { (ptr::read(&*this.owner), ptr::read(&*this.exposed)) }
    }
}

impl<O: Owner<E>, E> Deref for Reachable<O, E> {
    type Target = O;

    #[inline]
    fn deref(&self) -> &O {
        &self.owner
    }
}

impl<O: Owner<E>, E> Drop for Reachable<O, E> {
    fn drop(&mut self) {
        // SAFETY: Neither is used again.
        let (owner, exposed) = unsafe {
            (
                ManuallyDrop::take(&mut self.owner),
                ManuallyDrop::take(&mut self.exposed),
            )
        };
        owner.keep_exposed(exposed);
    }
}

/// An exclusive reference to what exposes memory. Only the room that made what is behind it can
/// change it.
pub(crate) struct Locked<'a, E>(&'a mut E);

impl<'a, E> Locked<'a, E> {
    #[inline]
    pub(crate) fn new(exposed: &'a mut E) -> Self {
        Self(exposed)
    }

    /// # Safety
    ///
    /// The caller removes nothing by which the peer can still reach memory.
    #[inline]
    pub(crate) unsafe fn into_mut(self) -> &'a mut E {
        self.0
    }
}

/// An owner whose memory the peer cannot reach: nothing exposes it, or all of it has been
/// invalidated and unmapped. What the peer has written is complete.
#[must_use]
pub(crate) struct Fenced<O>(O);

impl<O> Fenced<O> {
    /// # Safety
    ///
    /// The peer cannot reach memory of `owner`, which is not mapped, and whatever it wrote there it
    /// wrote before.
    #[inline]
    pub(crate) unsafe fn new(owner: O) -> Self {
        Self(owner)
    }

    /// The owner.
    #[inline]
    pub(crate) fn into_inner(self) -> O {
        self.0
    }
}

/// An owner whose memory the peer cannot reach: [`Fenced`] if it is `complete`.
///
/// # Safety
///
/// The peer cannot reach memory of `owner`, which is not mapped. If it is `complete`, whatever the
/// peer wrote there it wrote before.
#[inline]
pub(crate) unsafe fn fenced_if<O>(complete: bool, owner: O) -> Result<Fenced<O>, Unreachable<O>> {
    if complete {
        Ok(Fenced(owner))
    } else {
        Err(Unreachable(owner))
    }
}

impl<O> Deref for Fenced<O> {
    type Target = O;

    #[inline]
    fn deref(&self) -> &O {
        &self.0
    }
}

/// An owner whose memory the peer cannot reach, and which is not mapped: as [`Fenced`], or because
/// the QP is in the error state. In that case what arrived last cannot be trusted.
#[must_use]
pub(crate) struct Unreachable<O>(O);

impl<O> Unreachable<O> {
    /// # Safety
    ///
    /// The peer cannot reach memory of `owner`, which is not mapped.
    #[inline]
    pub(crate) unsafe fn new(owner: O) -> Self {
        Self(owner)
    }
}

impl<O> From<Fenced<O>> for Unreachable<O> {
    #[inline]
    fn from(fenced: Fenced<O>) -> Self {
        Self(fenced.0)
    }
}

impl<O> Deref for Unreachable<O> {
    type Target = O;

    #[inline]
    fn deref(&self) -> &O {
        &self.0
    }
}

/// An end of a connection.
///
/// # Safety
///
/// When the drop of one returns, no peer can reach memory by anything that was exposed there, and
/// none of that is mapped.
#[allow(
    dead_code,
    reason = "rustc 1.85 does not see uses in bounds of associated types"
)]
pub(crate) unsafe trait FencesOnDrop {}

/// Keeps memory that was mapped while `'m` lasted, beyond that.
///
/// # Safety
///
/// After [`Self::keep`], memory that [`BVec<'m>`](super::bvec::BVec) name stays until `exposed`
/// has passed through a [`Reachable`] to a [`Fenced`] or an [`Unreachable`], or until the
/// endpoint has been dropped. If [`Self::frees_early`] says so, it stays only while there are
/// references to its pages. `'m` is a lifetime that no caller can choose.
pub(crate) unsafe trait Keep<'m, E> {
    /// The end of the connection that the memory is exposed on.
    type Endpoint: FencesOnDrop;
    /// What holds it then.
    type Kept;

    /// The end of the connection that the memory is to be exposed on.
    fn endpoint(&self) -> &'m Self::Endpoint;

    /// Whether memory may be freed before the peer can no longer reach it.
    fn frees_early(&self) -> bool;

    /// Keeps the memory that `exposed` is about to expose. Must not sleep.
    fn keep(self, exposed: E) -> Self::Kept;
}

/// An owner of memory that knows where the memory is exposed.
///
/// # Safety
///
/// What exposes the memory was posted on [`Self::endpoint`], or on one that has been dropped.
pub(crate) unsafe trait ExposedOn {
    /// The end of a connection.
    type Endpoint: FencesOnDrop;

    /// The end of the connection that the memory is exposed on, unless that has been dropped.
    fn endpoint(&self) -> &Self::Endpoint;
}
