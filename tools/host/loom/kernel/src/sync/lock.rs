// SPDX-License-Identifier: GPL-2.0

//! Locks.

use crate::ops::Deref;
use crate::ops::DerefMut;
use loom::sync::Mutex;
use loom::sync::MutexGuard;
use pinned_init::pin_init_from_closure;
use pinned_init::PinInit;

/// A spinlock. loom has a thread that finds it locked wait.
pub struct SpinLock<T>(Mutex<T>);

/// The right to what a lock protects.
pub struct Guard<'a, T>(MutexGuard<'a, T>);

impl<T> SpinLock<T> {
    /// A lock that is not held.
    pub fn new(value: T) -> impl PinInit<Self> {
        let init = move |slot: *mut Self| {
            // SAFETY: The slot is valid for writes.
            unsafe { slot.write(Self(Mutex::new(value))) };
            Ok(())
        };
        // SAFETY: The closure initializes the slot, and does not fail.
        unsafe { pin_init_from_closure(init) }
    }

    /// Takes the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        match self.0.lock() {
            Ok(guard) => Guard(guard),
            Err(_) => panic!("a thread with the lock has panicked"),
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// An initializer of a lock. The name is for lockdep.
#[macro_export]
macro_rules! new_spinlock {
    ($value:expr, $name:literal) => {
        $crate::sync::SpinLock::new($value)
    };
}
