// SPDX-License-Identifier: GPL-2.0

//! Locks: spinlocks, mutexes, and those in a static.

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;

use pin_init::PinInit;
use pinned_init::{pin_data, pin_init};

use crate::lockdep;
use crate::sched;

/// A class of locks.
pub struct LockClassKey(());

impl LockClassKey {
    /// A key.
    pub const fn new() -> Self {
        Self(())
    }
}

/// A key for the place where this is written.
#[macro_export]
macro_rules! static_lock_class {
    () => {{
        static CLASS: $crate::sync::LockClassKey = $crate::sync::LockClassKey::new();
        ::core::pin::Pin::static_ref(&CLASS)
    }};
}

/// `spinlock_t`, and what every lock of this crate is.
#[repr(C)]
pub struct spinlock {
    held: Cell<bool>,
    class: Cell<Option<&'static str>>,
}

// SAFETY: All zeroes are a lock that is not held and has no name.
unsafe impl pin_init::Zeroable for spinlock {}

impl Default for spinlock {
    fn default() -> Self {
        Self::new("a lock of SUNRPC")
    }
}

impl spinlock {
    /// A lock.
    pub const fn new(class: &'static str) -> Self {
        Self {
            held: Cell::new(false),
            class: Cell::new(Some(class)),
        }
    }

    fn class(&self) -> &'static str {
        self.class.get().unwrap_or("a lock without name")
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Takes the lock.
    pub fn take(&self, spins: bool) {
        if std::thread::panicking() {
            return;
        }
        if !spins {
            lockdep::might_sleep("a mutex");
        }
        sched::preempt();
        lockdep::take(self.key(), self.class(), spins);
        while self.held.get() {
            sched::wait_on(self.key());
        }
        self.held.set(true);
    }

    /// Takes the lock, if it is free.
    pub fn try_take(&self, spins: bool) -> bool {
        sched::preempt();
        if self.held.get() {
            return false;
        }
        lockdep::try_take(self.key(), self.class(), spins);
        self.held.set(true);
        true
    }

    /// Releases the lock.
    pub fn release(&self) {
        if std::thread::panicking() {
            return;
        }
        if !self.held.get() {
            sched::fail(format_args!("{} is released and not held", self.class()));
        }
        lockdep::release(self.key());
        self.held.set(false);
        sched::wake(self.key());
        sched::preempt();
    }

    /// Whether the lock is held.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }
}

/// Locks.
pub mod lock {
    use super::*;

    /// What a lock does when another context holds it.
    pub trait Backend {
        /// It spins.
        const SPINS: bool;
    }

    /// Spinlocks.
    pub mod spinlock {
        /// Spins.
        pub struct SpinLockBackend;

        impl super::Backend for SpinLockBackend {
            const SPINS: bool = true;
        }
    }

    /// Mutexes.
    pub mod mutex {
        /// Sleeps.
        pub struct MutexBackend;

        impl super::Backend for MutexBackend {
            const SPINS: bool = false;
        }
    }

    /// A lock.
    #[repr(C)]
    #[pin_data]
    pub struct Lock<T: ?Sized, B: Backend> {
        state: super::spinlock,
        _backend: PhantomData<B>,
        data: UnsafeCell<T>,
    }

    // SAFETY: As for the content; one context runs at a time.
    unsafe impl<T: ?Sized + Send, B: Backend> Send for Lock<T, B> {}
    // SAFETY: As above.
    unsafe impl<T: ?Sized + Send, B: Backend> Sync for Lock<T, B> {}

    impl<T, B: Backend> Lock<T, B> {
        /// A lock.
        pub fn new(data: T, class: &'static str) -> impl PinInit<Self> {
            pin_init!(Self {
                state: super::spinlock::new(class),
                _backend: PhantomData,
                data: UnsafeCell::new(data),
            })
        }

        /// A lock, as a constant.
        pub const fn constant(data: T, class: &'static str) -> Self {
            Self {
                state: super::spinlock::new(class),
                _backend: PhantomData,
                data: UnsafeCell::new(data),
            }
        }
    }

    impl<B: Backend> Lock<(), B> {
        /// A lock of C.
        ///
        /// # Safety
        ///
        /// `ptr` is an initialized lock, which stays for `'a`.
        pub unsafe fn from_raw<'a>(ptr: *mut super::spinlock) -> &'a Self {
            // SAFETY: The state is the first member, and there is no data.
            unsafe { &*ptr.cast() }
        }
    }

    impl<T: ?Sized, B: Backend> Lock<T, B> {
        /// Takes the lock.
        pub fn lock(&self) -> Guard<'_, T, B> {
            self.state.take(B::SPINS);
            Guard(self)
        }

        /// Takes the lock, if it is free.
        pub fn try_lock(&self) -> Option<Guard<'_, T, B>> {
            self.state.try_take(B::SPINS).then(|| Guard(self))
        }
    }

    /// A lock that is held.
    #[must_use]
    pub struct Guard<'a, T: ?Sized, B: Backend>(&'a Lock<T, B>);

    impl<T: ?Sized, B: Backend> Deref for Guard<'_, T, B> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: The lock is held.
            unsafe { &*self.0.data.get() }
        }
    }

    impl<T: ?Sized, B: Backend> DerefMut for Guard<'_, T, B> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: The lock is held.
            unsafe { &mut *self.0.data.get() }
        }
    }

    impl<T: ?Sized, B: Backend> Drop for Guard<'_, T, B> {
        fn drop(&mut self) {
            self.0.state.release();
        }
    }

    impl<T: ?Sized, B: Backend> Guard<'_, T, B> {
        pub(crate) fn unlocked<R>(&mut self, f: impl FnOnce() -> R) -> R {
            // Without a step between: what is waited for cannot happen before the wait.
            lockdep::release(self.0.state.key());
            self.0.state.held.set(false);
            sched::wake(self.0.state.key());
            let result = f();
            self.0.state.take(B::SPINS);
            result
        }
    }
}

/// A spinlock.
pub type SpinLock<T> = lock::Lock<T, lock::spinlock::SpinLockBackend>;
/// A spinlock that is held.
pub type SpinLockGuard<'a, T> = lock::Guard<'a, T, lock::spinlock::SpinLockBackend>;
/// A mutex.
pub type Mutex<T> = lock::Lock<T, lock::mutex::MutexBackend>;
/// A mutex that is held.
pub type MutexGuard<'a, T> = lock::Guard<'a, T, lock::mutex::MutexBackend>;

/// A spinlock.
#[macro_export]
macro_rules! new_spinlock {
    ($data:expr, $class:literal) => {
        $crate::sync::SpinLock::new($data, $class)
    };
}

/// A mutex.
#[macro_export]
macro_rules! new_mutex {
    ($data:expr, $class:literal) => {
        $crate::sync::Mutex::new($data, $class)
    };
}

/// A lock in a static.
pub struct GlobalLock<T>(Mutex<T>);

impl<T> GlobalLock<T> {
    /// A lock.
    pub const fn new(data: T, class: &'static str) -> Self {
        Self(Mutex::constant(data, class))
    }

    /// Does nothing.
    ///
    /// # Safety
    ///
    /// None; the kernel's must be called once.
    pub unsafe fn init(&'static self) {}
}

impl<T> Deref for GlobalLock<T> {
    type Target = Mutex<T>;

    fn deref(&self) -> &Mutex<T> {
        &self.0
    }
}

/// A lock in a static.
#[macro_export]
macro_rules! global_lock {
    (unsafe(uninit) static $name:ident: Mutex<$ty:ty> = $value:expr;) => {
        static $name: $crate::sync::GlobalLock<$ty> =
            $crate::sync::GlobalLock::new($value, stringify!($name));
    };
}

const _: fn(Pin<&LockClassKey>) = |_| ();
