// SPDX-License-Identifier: GPL-2.0

//! Atomic variables of types for which the kernel crate has none.
//!
//! Linux 6.18 and 6.19 have atomics of integers alone, and no `fetch_sub()`. [`Atomic`] is one of
//! those integers, so that the kernel's memory model applies.

use kernel::sync::atomic::{
    self,
    ordering::{
        Ordering,
        Relaxed, //
    }, //
    AtomicType,
};

/// An integer of which the kernel crate has atomics.
pub(crate) trait Word: AtomicType {
    /// All bits clear.
    const ZERO: Self;

    /// See [`Atomic::xchg`].
    fn xchg<O: Ordering>(at: &atomic::Atomic<Self>, new: Self, order: O) -> Self;

    /// See [`Atomic::cmpxchg`].
    fn cmpxchg<O: Ordering>(
        at: &atomic::Atomic<Self>,
        old: Self,
        new: Self,
        order: O,
    ) -> Result<Self, Self>;

    /// See [`Atomic::fetch_add`].
    fn fetch_add<O: Ordering>(at: &atomic::Atomic<Self>, delta: Self, order: O) -> Self;

    /// The number that, added to a number, subtracts this one from it.
    fn negative(self) -> Self;
}

macro_rules! word {
    ($($word:ty),*) => {
        $(impl Word for $word {
            const ZERO: Self = 0;

            #[inline(always)]
            fn xchg<O: Ordering>(at: &atomic::Atomic<Self>, new: Self, order: O) -> Self {
                at.xchg(new, order)
            }

            #[inline(always)]
            fn cmpxchg<O: Ordering>(
                at: &atomic::Atomic<Self>,
                old: Self,
                new: Self,
                order: O,
            ) -> Result<Self, Self> {
                at.cmpxchg(old, new, order)
            }

            #[inline(always)]
            fn fetch_add<O: Ordering>(at: &atomic::Atomic<Self>, delta: Self, order: O) -> Self {
                at.fetch_add(delta, order)
            }

            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
        })*
    };
}

word!(i32, i64);

#[cfg(CONFIG_64BIT)]
type Address = i64;
#[cfg(not(CONFIG_64BIT))]
type Address = i32;

/// A type of which there are atomics.
///
/// # Safety
///
/// `Word` is at least as large as the type, and aligned at least as well. A value of the type has
/// no uninitialized bytes.
pub(crate) unsafe trait Value: Copy {
    /// The integer that contains the value.
    type Word: Word;
}

/// A number.
///
/// # Safety
///
/// Every value of `Word` is a value of the type, and addition is that of `Word`.
pub(crate) unsafe trait Number: Value {}

macro_rules! number {
    ($($number:ty => $word:ty),*) => {
        $(
            // SAFETY: Both are integers of the same size.
            unsafe impl Value for $number {
                type Word = $word;
            }

            // SAFETY: As above. Two's complement addition does not depend on the sign.
            unsafe impl Number for $number {}
        )*
    };
}

number!(i32 => i32, u32 => i32, u64 => i64, usize => Address);

// SAFETY: A `bool` is one initialized byte.
unsafe impl Value for bool {
    type Word = i32;
}

// SAFETY: An address has the size of `usize`.
unsafe impl<T> Value for *mut T {
    type Word = Address;
}

/// A value at the first address of the word that contains it.
#[repr(C)]
union Contained<T: Value> {
    value: T,
    word: T::Word,
}

#[inline(always)]
const fn into_word<T: Value>(value: T) -> T::Word {
    let mut contained = Contained {
        word: T::Word::ZERO,
    };
    contained.value = value;
    // SAFETY: By the contract of `Value` no byte of the value is uninitialized. The others are
    // zeroes.
    unsafe { contained.word }
}

/// # Safety
///
/// `word` comes from [`into_word`].
#[inline(always)]
unsafe fn from_word<T: Value>(word: T::Word) -> T {
    // SAFETY: By this function's contract the word contains a value.
    unsafe { Contained { word }.value }
}

/// An atomic variable. Its functions are those of the kernel crate's `Atomic`.
///
/// # Invariants
///
/// - I1: The word comes from [`into_word`], or is the sum of such words if `T` is a [`Number`].
#[repr(transparent)]
pub(crate) struct Atomic<T: Value>(atomic::Atomic<T::Word>);

impl<T: Value> Atomic<T> {
    /// An atomic variable with this value.
    pub(crate) const fn new(value: T) -> Self {
        // INVARIANT: I1.
        Self(atomic::Atomic::new(into_word(value)))
    }

    /// An atomic variable of C.
    ///
    /// # Safety
    ///
    /// `at` is valid and aligned for `'a`. All accesses meanwhile are atomic.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr<'a>(at: *mut T) -> &'a Self {
        const { assert!(size_of::<T>() == size_of::<Self>()) };
        // SAFETY: The type is a transparent wrapper of the word, which has the size of the value,
        // and hence its alignment. All else by this function's contract.
        // INVARIANT: I1: without other bytes, the word is the value.
        unsafe { &*at.cast() }
    }

    /// The address of the value.
    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0.as_ptr().cast()
    }

    /// Sets the value, and returns the old one.
    #[inline(always)]
    pub(crate) fn xchg<O: Ordering>(&self, value: T, order: O) -> T {
        // INVARIANT: I1.
        let old = T::Word::xchg(&self.0, into_word(value), order);
        // SAFETY: By I1.
        unsafe { from_word(old) }
    }

    /// Sets the value if it is `old`. Returns the old one, as an error if it is another.
    #[inline(always)]
    pub(crate) fn cmpxchg<O: Ordering>(&self, old: T, new: T, order: O) -> Result<T, T> {
        // INVARIANT: I1.
        match T::Word::cmpxchg(&self.0, into_word(old), into_word(new), order) {
            // SAFETY: By I1.
            Ok(was) => Ok(unsafe { from_word(was) }),
            // SAFETY: By I1.
            Err(was) => Err(unsafe { from_word(was) }),
        }
    }
}

impl<T: Number> Atomic<T> {
    /// Adds `delta`, with wraparound.
    #[inline(always)]
    pub(crate) fn add(&self, delta: T, order: Relaxed) {
        self.fetch_add(delta, order);
    }

    /// Adds `delta`, with wraparound. Returns the old value.
    #[inline(always)]
    pub(crate) fn fetch_add<O: Ordering>(&self, delta: T, order: O) -> T {
        // INVARIANT: I1.
        let old = T::Word::fetch_add(&self.0, into_word(delta), order);
        // SAFETY: By I1, and by the contract of `Number`.
        unsafe { from_word(old) }
    }

    /// Subtracts `delta`, with wraparound. Returns the old value.
    #[inline(always)]
    pub(crate) fn fetch_sub<O: Ordering>(&self, delta: T, order: O) -> T {
        // INVARIANT: I1.
        let old = T::Word::fetch_add(&self.0, into_word(delta).negative(), order);
        // SAFETY: By I1, and by the contract of `Number`.
        unsafe { from_word(old) }
    }
}
