// SPDX-License-Identifier: GPL-2.0

//! A value that is set at most once.
//!
//! That of the kernel crate calls a C function for each access. Linux 6.18 has none, and that of
//! 6.19 is not `Sync`.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed,
    Release, //
};

use super::sync::Atomic;

const EMPTY: u32 = 0;
const BUSY: u32 = 1;
const SET: u32 = 2;

/// A value that is set at most once. Its functions are those of the kernel crate's `SetOnce`.
///
/// # Invariants
///
/// - I1: `state` goes from `EMPTY` to `BUSY` and from there to `SET`, and not back.
/// - I2: While `state` is `BUSY`, the thread that made it so has exclusive access to `value`.
/// - I3: While `state` is `SET`, `value` is initialized, and not changed.
pub(crate) struct SetOnce<T> {
    state: Atomic<u32>,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: The type owns the value.
unsafe impl<T: Send> Send for SetOnce<T> {}

// SAFETY: By I2 and I3 shared references give shared access to the value, which any thread may set
// and so drop.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// Without a value.
    pub(crate) const fn new() -> Self {
        // INVARIANT: I1 to I3: empty.
        Self {
            state: Atomic::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The value, if it is set.
    #[inline]
    pub(crate) fn as_ref(&self) -> Option<&T> {
        if self.state.load(Acquire) != SET {
            return None;
        }
        // SAFETY: By I3 the value is initialized, and not changed as long as `self` is borrowed.
        // The load pairs with the store in `populate`.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Sets the value. Returns false, and drops `value`, if another one is or is being set.
    pub(crate) fn populate(&self, value: T) -> bool {
        // INVARIANT: I1.
        if self.state.cmpxchg(EMPTY, BUSY, Relaxed).is_err() {
            return false;
        }
        // SAFETY: By I2 this thread has exclusive access.
        unsafe { (*self.value.get()).write(value) };
        // INVARIANT: I1. I3: just initialized.
        self.state.store(SET, Release);
        true
    }

    /// A copy of the value, if it is set.
    #[inline]
    pub(crate) fn copy(&self) -> Option<T>
    where
        T: Copy,
    {
        self.as_ref().copied()
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        if self.state.load(Relaxed) == SET {
            // SAFETY: By I3 the value is initialized. It is not used after this.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}
