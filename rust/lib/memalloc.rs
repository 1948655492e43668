// SPDX-License-Identifier: GPL-2.0

//! Guards for `memalloc_noio_save()` and `memalloc_noreclaim_save()`.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

/// A scope in which no allocation of this thread starts I/O.
pub(crate) type NoIo = Scope<{ bindings::PF_MEMALLOC_NOIO }>;

/// A scope in which no allocation of this thread reclaims memory. Allocations may use the memory
/// reserves instead.
pub(crate) type NoReclaim = Scope<{ bindings::PF_MEMALLOC }>;

/// A scope in which the allocations of this thread have the task flag `FLAG`.
#[must_use = "the scope ends when the guard is dropped"]
pub(crate) struct Scope<const FLAG: c_uint> {
    /// `FLAG`, unless an outer scope has set it.
    added: c_uint,
    /// Makes the guard `!Send`: it clears the flag of the thread that created it.
    _thread: PhantomData<*mut ()>,
}

impl<const FLAG: c_uint> Scope<FLAG> {
    /// Begins the scope.
    pub(crate) fn begin() -> Self {
        const { assert!(FLAG == bindings::PF_MEMALLOC_NOIO || FLAG == bindings::PF_MEMALLOC) };
        Self {
            // SAFETY: The flag is one that the kernel sets in the same way, and only the current
            // thread's.
            added: unsafe { bindings::rpcrdma_memalloc_flags_save(FLAG) },
            _thread: PhantomData,
        }
    }
}

impl<const FLAG: c_uint> Drop for Scope<FLAG> {
    fn drop(&mut self) {
        // SAFETY: `begin` has set the flag in this thread, which the guard cannot leave.
        unsafe { bindings::rpcrdma_memalloc_flags_restore(self.added) };
    }
}
