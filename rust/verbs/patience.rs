// SPDX-License-Identifier: GPL-2.0

//! Asking for memory, with or without waiting for it, or for I/O.

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::bindings;

/// Calls what allocates memory that others may have to wait for who write back dirty pages, or
/// close files: no allocation in `f` starts I/O.
pub(super) fn without_io<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: Restored below.
    let flags = unsafe { bindings::rpcrdma_memalloc_noio_save() };
    let result = f();
    // SAFETY: Saved above.
    unsafe { bindings::rpcrdma_memalloc_noio_restore(flags) };
    result
}

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
        if self == Self::Waits {
            return f();
        }
        // SAFETY: Restored below.
        let flags = unsafe { bindings::rpcrdma_memalloc_noreclaim_save() };
        let result = f();
        // SAFETY: Saved above.
        unsafe { bindings::rpcrdma_memalloc_noreclaim_restore(flags) };
        result
    }
}
