// SPDX-License-Identifier: GPL-2.0

//! Read-modify-write operations of atomic variables, inline.
//!
//! C header: [`arch/x86/include/asm/atomic.h`](srctree/arch/x86/include/asm/atomic.h)
//!
//! On x86 such an operation of `core` is one instruction with a lock prefix, as that of the kernel
//! is, and is a full barrier whatever order is asked for. The kernel crate calls a C function for
//! each. On other processors the kernel's full order is more than `SeqCst` of `core`. With KASAN
//! and KCSAN the kernel's functions also report the access.

use core::sync::atomic::{
    AtomicBool,
    AtomicI32,
    AtomicPtr,
    AtomicU32,
    AtomicU64,
    AtomicUsize,
    Ordering::SeqCst, //
};

use kernel::sync::atomic::ordering::{
    Ordering,
    Relaxed, //
};

use crate::compat::sync::AtomicType;

use super::atomic::Atomic;

/// A type of which `core` has atomic variables.
pub(crate) trait Locked: AtomicType {
    /// See [`Atomic::xchg`].
    ///
    /// # Safety
    ///
    /// `at` is valid and aligned, and all accesses of what is there are atomic.
    unsafe fn xchg(at: *mut Self, value: Self) -> Self;

    /// See [`Atomic::cmpxchg`].
    ///
    /// # Safety
    ///
    /// As for [`Self::xchg`].
    unsafe fn cmpxchg(at: *mut Self, old: Self, new: Self) -> Result<Self, Self>;
}

/// The same, for a number.
pub(crate) trait LockedNumber: Locked {
    /// See [`Atomic::fetch_add`].
    ///
    /// # Safety
    ///
    /// As for [`Locked::xchg`].
    unsafe fn fetch_add(at: *mut Self, delta: Self) -> Self;

    /// The number that, added to a number, subtracts this one from it.
    fn negative(self) -> Self;
}

macro_rules! locked {
    ($([$($param:ident)?] $ty:ty => $core:ty),*) => {$(
        impl$(<$param>)? Locked for $ty {
            #[inline(always)]
            unsafe fn xchg(at: *mut Self, value: Self) -> Self {
                // SAFETY: By this function's contract.
                unsafe { <$core>::from_ptr(at) }.swap(value, SeqCst)
            }

            #[inline(always)]
            unsafe fn cmpxchg(at: *mut Self, old: Self, new: Self) -> Result<Self, Self> {
                // SAFETY: By this function's contract.
                unsafe { <$core>::from_ptr(at) }.compare_exchange(old, new, SeqCst, SeqCst)
            }
        }
    )*};
}

macro_rules! locked_number {
    ($($ty:ty => $core:ty),*) => {$(
        locked!([] $ty => $core);

        impl LockedNumber for $ty {
            #[inline(always)]
            unsafe fn fetch_add(at: *mut Self, delta: Self) -> Self {
                // SAFETY: By this function's contract.
                unsafe { <$core>::from_ptr(at) }.fetch_add(delta, SeqCst)
            }

            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
        }
    )*};
}

locked!([] bool => AtomicBool, [T] *mut T => AtomicPtr<T>);
locked_number!(i32 => AtomicI32, u32 => AtomicU32, u64 => AtomicU64, usize => AtomicUsize);

/// Operations that the kernel crate's `Atomic` has, too.
impl<T: Locked> Atomic<T> {
    /// Sets the value, and returns the old one.
    #[inline(always)]
    pub(crate) fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
        // SAFETY: The variable is borrowed, and all accesses of it are atomic.
        unsafe { T::xchg(self.as_ptr(), value) }
    }

    /// Sets the value if it is `old`. Returns the old one, as an error if it is another.
    #[inline(always)]
    pub(crate) fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        // SAFETY: As in `xchg`.
        unsafe { T::cmpxchg(self.as_ptr(), old, new) }
    }
}

impl<T: LockedNumber> Atomic<T> {
    /// Adds `delta`, with wraparound.
    #[inline(always)]
    pub(crate) fn add(&self, delta: T, order: Relaxed) {
        self.fetch_add(delta, order);
    }

    /// Adds `delta`, with wraparound. Returns the old value.
    #[inline(always)]
    pub(crate) fn fetch_add<O: Ordering>(&self, delta: T, _: O) -> T {
        // SAFETY: As in `xchg`.
        unsafe { T::fetch_add(self.as_ptr(), delta) }
    }

    /// Subtracts `delta`, with wraparound. Returns the old value.
    #[inline(always)]
    pub(crate) fn fetch_sub<O: Ordering>(&self, delta: T, order: O) -> T {
        self.fetch_add(delta.negative(), order)
    }
}
