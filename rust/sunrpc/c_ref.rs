// SPDX-License-Identifier: GPL-2.0

//! References to structures of SUNRPC that other threads may change.
//!
//! A `&T` would promise that the structure does not change. `kernel::types::Opaque` makes no such
//! promise, but gives no access to the fields.

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::bindings;

/// A reference to a structure of C.
///
/// # Invariants
///
/// - I1: The structure is initialised, as the alias for its type says, and its memory is not freed
///   within `'a`.
pub(crate) struct CRef<'a, T>(*mut T, PhantomData<&'a ()>);

impl<T> Clone for CRef<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for CRef<'_, T> {}

impl<T> CRef<'_, T> {
    /// # Safety
    ///
    /// I1 holds.
    #[inline]
    pub(super) unsafe fn new(raw: *mut T) -> Self {
        // INVARIANT: I1: by this function's contract.
        Self(raw, PhantomData)
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(self) -> *mut T {
        self.0
    }
}

/// A field that one access reads or writes, and of which each bit pattern is a value.
pub(super) trait Word: Copy + sealed::Sealed {}

impl<T: Copy + sealed::Sealed> Word for T {}

mod sealed {
    pub(crate) trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
    impl Sealed for u64 {}
    impl Sealed for i64 {}
    impl Sealed for usize {}
    impl<T> Sealed for *mut T {}
    impl<T> Sealed for *const T {}
}

/// Reads a [`Word`] with one access, as `READ_ONCE()`. Other threads may write it meanwhile.
///
/// # Safety
///
/// `word` may be read.
#[inline(always)]
pub(super) unsafe fn load<F: Word>(word: *const F) -> F {
    // SAFETY: By this function's contract. A `Word` has no invalid value, whatever is written.
    unsafe { word.read_volatile() }
}

/// Reads a field of the structure of a [`CRef`] with one access, as `READ_ONCE()`. The type of the
/// field is a [`Word`].
macro_rules! read_once {
    ($of:expr, $($field:ident).+) => {{
        let of: $crate::sunrpc::c_ref::CRef<'_, _> = $of;
        // SAFETY: By I1 of `CRef` the structure, of which this is a field, is there.
        unsafe { $crate::sunrpc::c_ref::load(&raw const (*of.raw()).$($field).+) }
    }};
}
pub(super) use read_once;

/// A word of flags that C and this module change by atomic operations.
///
/// # Invariants
///
/// - I1: The memory of the word is not freed within `'a`.
/// - I2: All threads change the word by atomic operations.
#[derive(Clone, Copy)]
pub(super) struct Flags<'a>(*mut c_ulong, PhantomData<&'a ()>);

impl Flags<'_> {
    /// # Safety
    ///
    /// I1 and I2 hold.
    #[inline]
    pub(super) unsafe fn new(word: *mut c_ulong) -> Self {
        // INVARIANT: I1 and I2: by this function's contract.
        Self(word, PhantomData)
    }

    /// Sets flag number `FLAG`.
    #[inline]
    pub(super) fn set<const FLAG: u32>(self) {
        const { assert!(FLAG < c_ulong::BITS) };
        // SAFETY: By I1 the word is there, and it has such a bit.
        unsafe { bindings::set_bit(FLAG as usize, self.0) };
    }

    /// Sets flag number `FLAG`, and is a full barrier behind that.
    #[inline]
    pub(super) fn set_mb<const FLAG: u32>(self) {
        const { assert!(FLAG < c_ulong::BITS) };
        // SAFETY: As in `set`.
        unsafe { bindings::rpcrdma_set_bit_mb(FLAG as usize, self.0) };
    }

    /// Clears flag number `FLAG`.
    #[inline]
    pub(super) fn clear<const FLAG: u32>(self) {
        const { assert!(FLAG < c_ulong::BITS) };
        // SAFETY: As in `set`.
        unsafe { bindings::clear_bit(FLAG as usize, self.0) };
    }

    /// Whether any of the flags in `mask` is set.
    #[inline]
    pub(super) fn test(self, mask: c_ulong) -> bool {
        // SAFETY: By I1 the word is there.
        unsafe { load(self.0) & mask != 0 }
    }
}
