// SPDX-License-Identifier: GPL-2.0

//! Synchronization: what contexts wait for, beside locks.

use core::cell::UnsafeCell;

use pin_init::PinInit;

pub use crate::arc::{Arc, Refcount, UniqueArc};
pub use crate::atomic;
pub use crate::global_lock;
use crate::lockdep;
pub use crate::locks::*;
use crate::sched;

/// References to values that count them.
pub mod aref {
    pub use crate::arc::{ARef, AlwaysRefCounted};
}

/// A condition variable.
#[macro_export]
macro_rules! new_condvar {
    ($class:literal) => {
        $crate::sync::CondVar::new()
    };
}

/// A condition variable.
#[repr(C)]
pub struct CondVar {
    /// Its address is what waits.
    _place: u8,
}

/// How a wait with a timeout has ended.
pub enum CondVarTimeoutResult {
    /// The time is over.
    Timeout,
    /// It was woken.
    Woken {
        /// The jiffies that were left.
        jiffies: usize,
    },
    /// A signal has come.
    Signal {
        /// The jiffies that were left.
        jiffies: usize,
    },
}

impl CondVar {
    /// A condition variable.
    pub fn new() -> impl PinInit<Self> {
        Self { _place: 0 }
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Waits.
    pub fn wait<T: ?Sized, B: lock::Backend>(&self, guard: &mut lock::Guard<'_, T, B>) {
        let key = self.key();
        guard.unlocked(|| {
            lockdep::might_sleep("a wait");
            sched::wait_on(key);
        });
    }

    /// Waits for so many jiffies at most.
    pub fn wait_interruptible_timeout<T: ?Sized, B: lock::Backend>(
        &self,
        guard: &mut lock::Guard<'_, T, B>,
        jiffies: usize,
    ) -> CondVarTimeoutResult {
        let key = self.key();
        let deadline = sched::now() + jiffies as u64 * 1_000_000;
        let woken = guard.unlocked(|| {
            lockdep::might_sleep("a wait");
            sched::wait_until(key, deadline)
        });
        if woken {
            let left = deadline.saturating_sub(sched::now()) / 1_000_000;
            CondVarTimeoutResult::Woken {
                jiffies: left as usize,
            }
        } else {
            CondVarTimeoutResult::Timeout
        }
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        sched::wake(self.key());
        sched::preempt();
    }

    /// Wakes one, or more.
    pub fn notify_one(&self) {
        self.notify_all();
    }
}

/// `struct completion`.
#[allow(non_camel_case_types, reason = "the name is that of C")]
#[repr(C)]
pub struct completion {
    done: bool,
}

/// Completions, as C has them.
pub mod completions {
    pub use super::completion;
    use crate::ffi::c_ulong;
    use crate::{lockdep, sched};

    /// The longest wait without a timeout, in nanoseconds.
    const MOST: u64 = 20_000_000_000;

    /// `init_completion()`.
    ///
    /// # Safety
    ///
    /// `x` may be written.
    pub unsafe fn init_completion(x: *mut completion) {
        // SAFETY: By this function's contract.
        unsafe { x.write(completion { done: false }) };
    }

    /// `complete_all()`.
    ///
    /// # Safety
    ///
    /// The completion is initialized.
    pub unsafe fn complete_all(x: *mut completion) {
        // SAFETY: By this function's contract.
        unsafe { (*x).done = true };
        sched::wake(x.addr());
        sched::preempt();
    }

    /// `wait_for_completion()`. No task may wait for long.
    ///
    /// # Safety
    ///
    /// The completion is initialized, and stays.
    pub unsafe fn wait_for_completion(x: *mut completion) {
        lockdep::might_sleep("a wait");
        let begin = sched::now();
        // SAFETY: By this function's contract.
        while !unsafe { (*x).done } {
            sched::wait_on(x.addr());
        }
        let seconds = (sched::now() - begin) / 1_000_000_000;
        if sched::now() - begin > MOST {
            sched::fail(format_args!("a task has waited for {seconds} seconds"));
        }
    }

    /// `wait_for_completion_timeout()`.
    ///
    /// # Safety
    ///
    /// As for [`wait_for_completion`].
    pub unsafe fn wait_for_completion_timeout(x: *mut completion, timeout: c_ulong) -> c_ulong {
        lockdep::might_sleep("a wait");
        let deadline = sched::now() + timeout as u64 * 1_000_000;
        // SAFETY: By this function's contract.
        while !unsafe { (*x).done } {
            if !sched::wait_until(x.addr(), deadline) {
                break;
            }
        }
        // SAFETY: As above.
        c_ulong::from(unsafe { (*x).done })
    }
}

/// A value that is set at most once.
pub struct SetOnce<T>(UnsafeCell<Option<T>>);

// SAFETY: As for the content; one context runs at a time.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// Not set.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// The value.
    pub fn as_ref(&self) -> Option<&T> {
        // SAFETY: The value is not changed once it is set.
        unsafe { (*self.0.get()).as_ref() }
    }

    /// Sets the value; `false` if there is one.
    pub fn populate(&self, value: T) -> bool {
        sched::preempt();
        if self.as_ref().is_some() {
            return false;
        }
        // SAFETY: There are no references to a value that is not set.
        unsafe { *self.0.get() = Some(value) };
        true
    }

    /// A copy of the value.
    pub fn copy(&self) -> Option<T>
    where
        T: Copy,
    {
        self.as_ref().copied()
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Read-copy-update.
pub mod rcu {
    use std::cell::Cell;

    use crate::{lockdep, sched};

    thread_local! {
        static READERS: Cell<usize> = const { Cell::new(0) };
    }

    /// The key that [`synchronize`] waits for.
    const KEY: usize = 3;

    /// A read-side critical section.
    pub struct Guard(());

    /// Begins a read-side critical section.
    pub fn read_lock() -> Guard {
        READERS.set(READERS.get() + 1);
        Guard(())
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            READERS.set(READERS.get() - 1);
            sched::wake(KEY);
        }
    }

    /// Waits until no reader is left.
    pub fn synchronize() {
        lockdep::might_sleep("synchronize_rcu()");
        while READERS.get() > 0 {
            sched::wait_on(KEY);
        }
    }
}
