// SPDX-License-Identifier: GPL-2.0

//! Whether an allocation may sleep.
//!
//! C header: [`include/linux/gfp_types.h`](srctree/include/linux/gfp_types.h)

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::memalloc::NoReclaim;

/// Whether an allocation may sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gfp {
    /// It may sleep.
    Sleep,
    /// It fails rather than sleep. For a completion worker: memory reclaim may wait for the
    /// completions that it handles. `GFP_NOIO` does not suffice, because the allocator retries
    /// small allocations that may sleep without limit.
    NoWait,
}

impl Gfp {
    /// The flags of an allocation.
    #[inline]
    pub(crate) fn flags(self) -> Flags {
        match self {
            Self::Sleep => GFP_KERNEL,
            Self::NoWait => GFP_NOWAIT | __GFP_NOWARN,
        }
    }

    /// Calls `f`, which allocates with flags of its own.
    ///
    /// For [`Gfp::NoWait`] this sets `PF_MEMALLOC`, the only scope in which such an allocation does
    /// not sleep. It also gives access to the memory reserves, so the caller should allocate
    /// something with [`Self::flags`] first: that fails before the reserves are used. A later
    /// allocation that fails is logged, because no scope stands for `__GFP_NOWARN`.
    #[inline]
    pub(crate) fn scope<R>(self, f: impl FnOnce() -> R) -> R {
        let _scope = (self == Self::NoWait).then(NoReclaim::begin);
        f()
    }
}
