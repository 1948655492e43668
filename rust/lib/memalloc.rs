// SPDX-License-Identifier: GPL-2.0

//! Guards for `memalloc_noio_save()` and `memalloc_noreclaim_save()`.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)
//!
//! Guards that are nested must be dropped in reverse order.

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

/// A scope in which no allocation of this thread starts I/O.
#[must_use = "the scope ends when the guard is dropped"]
pub(crate) struct NoIo {
    before: c_uint,
    /// Makes the guard `!Send`: it restores the flags of the thread that created it.
    _thread: PhantomData<*mut ()>,
}

impl NoIo {
    /// Begins the scope.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: This changes the flags of the current thread only.
            before: unsafe { bindings::rpcrdma_memalloc_noio_save() },
            _thread: PhantomData,
        }
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: `begin` has saved the flags in this thread, which the guard cannot leave.
        unsafe { bindings::rpcrdma_memalloc_noio_restore(self.before) };
    }
}

/// A scope in which no allocation of this thread reclaims memory. Allocations may use the memory
/// reserves instead.
#[must_use = "the scope ends when the guard is dropped"]
pub(crate) struct NoReclaim {
    before: c_uint,
    /// Makes the guard `!Send`, as in [`NoIo`].
    _thread: PhantomData<*mut ()>,
}

impl NoReclaim {
    /// Begins the scope.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: This changes the flags of the current thread only.
            before: unsafe { bindings::rpcrdma_memalloc_noreclaim_save() },
            _thread: PhantomData,
        }
    }
}

impl Drop for NoReclaim {
    fn drop(&mut self) {
        // SAFETY: As for `NoIo`.
        unsafe { bindings::rpcrdma_memalloc_noreclaim_restore(self.before) };
    }
}
