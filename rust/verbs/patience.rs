// SPDX-License-Identifier: GPL-2.0

//! Asking for memory, with or without waiting for it.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::bindings::memalloc::NoReclaim;

/// How memory is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// By a thread that may wait for it.
    Waits,
    /// At once or not at all, by a worker for which others wait who may have memory to give back.
    /// The allocator would not let a few pages fail that may wait, not even without I/O: it tries
    /// for ever.
    Fails,
}

impl Patience {
    /// For what is allocated here.
    #[inline]
    pub(super) fn flags(self) -> Flags {
        match self {
            Self::Waits => GFP_KERNEL,
            Self::Fails => GFP_NOWAIT | __GFP_NOWARN,
        }
    }

    /// Calls what allocates in its own way. There is no scope in which that does not wait but one
    /// that opens the reserves: so have something from [`Self::flags`] first, which does not touch
    /// them.
    #[inline]
    pub(super) fn scope<R>(self, f: impl FnOnce() -> R) -> R {
        let _scope = (self == Self::Fails).then(NoReclaim::begin);
        f()
    }
}
