// SPDX-License-Identifier: GPL-2.0

//! Guards for `memalloc_noio_save()` and `memalloc_noreclaim_save()`. Drop them in reverse order.

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

/// While there is one, no allocation of this thread starts I/O, by way of a file system or not.
#[must_use = "it ends when it is dropped"]
pub(crate) struct NoIo {
    before: c_uint,
    /// The flags are the thread's.
    _thread: PhantomData<*mut ()>,
}

impl NoIo {
    /// From here on, until it is dropped.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: Concerns this thread alone.
            before: unsafe { bindings::rpcrdma_memalloc_noio_save() },
            _thread: PhantomData,
        }
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: Saved in `begin`, by this thread, which this cannot leave.
        unsafe { bindings::rpcrdma_memalloc_noio_restore(self.before) };
    }
}

/// While there is one, no allocation of this thread waits for memory to be freed. It may use what
/// is set aside for those who free some.
#[must_use = "it ends when it is dropped"]
pub(crate) struct NoReclaim {
    before: c_uint,
    /// As in [`NoIo`].
    _thread: PhantomData<*mut ()>,
}

impl NoReclaim {
    /// From here on, until it is dropped.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: Concerns this thread alone.
            before: unsafe { bindings::rpcrdma_memalloc_noreclaim_save() },
            _thread: PhantomData,
        }
    }
}

impl Drop for NoReclaim {
    fn drop(&mut self) {
        // SAFETY: As in `NoIo`.
        unsafe { bindings::rpcrdma_memalloc_noreclaim_restore(self.before) };
    }
}
