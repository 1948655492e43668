// SPDX-License-Identifier: GPL-2.0

//! Atomic variables whose loads and stores are inline.
//!
//! C headers: [`include/asm-generic/rwonce.h`](srctree/include/asm-generic/rwonce.h),
//! [`include/asm-generic/barrier.h`](srctree/include/asm-generic/barrier.h)
//!
//! `READ_ONCE()` and `WRITE_ONCE()` are volatile accesses, in C as here. The kernel crate's
//! `Atomic` calls a C function for each, because C has them as macros: for a load of a word that
//! costs ten instructions, and all registers that the call clobbers.

use core::{
    ops::Deref,
    sync::atomic::{
        fence,
        Ordering, //
    }, //
};

use kernel::sync::atomic::ordering::{
    AcquireOrRelaxed,
    OrderingType,
    ReleaseOrRelaxed, //
};

use crate::compat::sync::{
    self,
    AtomicType, //
};

/// The kernel crate's `Atomic` with loads and stores of its own.
#[repr(transparent)]
pub(crate) struct Atomic<T: AtomicType>(sync::Atomic<T>);

impl<T: AtomicType> Atomic<T> {
    /// Volatile accesses of no larger values are atomic.
    const IS_WORD: () = assert!(size_of::<T>() <= size_of::<usize>());

    /// An atomic variable with this value.
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Atomic::new(value))
    }

    /// An atomic variable of C.
    ///
    /// # Safety
    ///
    /// `at` is valid and aligned for `'a`. All accesses meanwhile are atomic.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr<'a>(at: *mut T) -> &'a Self {
        // SAFETY: By this function's contract. The type is a transparent wrapper.
        unsafe { &*core::ptr::from_ref(sync::Atomic::from_ptr(at)).cast() }
    }

    /// The address of the value.
    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// The value: `READ_ONCE()` or `smp_load_acquire()`.
    #[inline(always)]
    pub(crate) fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
        const { Self::IS_WORD }
        // SAFETY: The pointer is valid and aligned, and what is there is a value of the type. In
        // the kernel's memory model volatile accesses of a word do not race.
        let value = unsafe { self.as_ptr().read_volatile() };
        if matches!(O::TYPE, OrderingType::Acquire) {
            fence(Ordering::Acquire);
        }
        value
    }

    /// Sets the value: `WRITE_ONCE()` or `smp_store_release()`.
    #[inline(always)]
    pub(crate) fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
        const { Self::IS_WORD }
        if matches!(O::TYPE, OrderingType::Release) {
            fence(Ordering::Release);
        }
        // SAFETY: As in `load`.
        unsafe { self.as_ptr().write_volatile(value) };
    }
}

/// Read-modify-write operations are those of the kernel, if `atomic_x86` does not have them.
impl<T: AtomicType> Deref for Atomic<T> {
    type Target = sync::Atomic<T>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
