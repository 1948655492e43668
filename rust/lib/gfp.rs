// SPDX-License-Identifier: GPL-2.0

//! Asking for memory, with or without waiting for it.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::memalloc::NoReclaim;

/// How memory is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gfp {
    /// By a thread that may wait for it.
    Sleep,
    /// At once or not at all, for a worker that others wait for, who may hold the memory.
    /// `GFP_NOIO` would not do: small allocations that may sleep are retried for ever.
    NoWait,
}

impl Gfp {
    /// For what is allocated here.
    #[inline]
    pub(crate) fn flags(self) -> Flags {
        match self {
            Self::Sleep => GFP_KERNEL,
            Self::NoWait => GFP_NOWAIT | __GFP_NOWARN,
        }
    }

    /// Runs `f`, which allocates with flags of its own. The only scope in which that does not wait
    /// also opens the reserves. So first allocate something with [`Self::flags`]: that fails before
    /// the reserves are touched.
    #[inline]
    pub(crate) fn scope<R>(self, f: impl FnOnce() -> R) -> R {
        let _scope = (self == Self::NoWait).then(NoReclaim::begin);
        f()
    }
}
