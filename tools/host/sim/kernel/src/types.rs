// SPDX-License-Identifier: GPL-2.0

//! Types.

use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;

use pin_init::{PinInit, Zeroable};

use crate::ffi::c_void;

/// A structure of C.
#[repr(transparent)]
pub struct Opaque<T>(UnsafeCell<MaybeUninit<T>>, PhantomPinned);

impl<T> Opaque<T> {
    /// Not initialized.
    pub const fn uninit() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()), PhantomPinned)
    }

    /// All zeroes.
    pub const fn zeroed() -> Self {
        Self(UnsafeCell::new(MaybeUninit::zeroed()), PhantomPinned)
    }

    /// The structure.
    pub const fn get(&self) -> *mut T {
        UnsafeCell::get(&self.0).cast()
    }

    /// The structure.
    pub const fn cast_into(this: *const Self) -> *mut T {
        this.cast_mut().cast()
    }

    /// Has `init` initialize the structure.
    pub fn ffi_init(init: impl FnOnce(*mut T)) -> impl PinInit<Self> {
        // SAFETY: The memory is for the structure, which need not be initialized.
        unsafe {
            pin_init::pin_init_from_closure(move |slot: *mut Self| {
                init(Self::cast_into(slot));
                Ok(())
            })
        }
    }

    /// Has `init` initialize the structure.
    pub fn try_ffi_init<E>(init: impl FnOnce(*mut T) -> Result<(), E>) -> impl PinInit<Self, E> {
        // SAFETY: As above.
        unsafe {
            pin_init::pin_init_from_closure(move |slot: *mut Self| init(Self::cast_into(slot)))
        }
    }
}

// SAFETY: The structure need not be initialized.
unsafe impl<T> Zeroable for Opaque<T> {}

/// An object that C may own as a pointer.
///
/// # Safety
///
/// The pointer is aligned, and not null.
pub unsafe trait ForeignOwnable: Sized {
    /// The alignment of the pointer.
    const FOREIGN_ALIGN: usize;
    /// A shared borrow.
    type Borrowed<'a>;
    /// An exclusive borrow.
    type BorrowedMut<'a>;

    /// Gives the object to C.
    fn into_foreign(self) -> *mut c_void;
    /// Takes the object back.
    ///
    /// # Safety
    ///
    /// `ptr` comes from [`Self::into_foreign`], and is passed here once.
    unsafe fn from_foreign(ptr: *mut c_void) -> Self;

    /// Takes the object back, if there is one.
    ///
    /// # Safety
    ///
    /// Null, or as for [`Self::from_foreign`].
    unsafe fn try_from_foreign(ptr: *mut c_void) -> Option<Self> {
        if ptr.is_null() {
            None
        } else {
            // SAFETY: By this function's contract.
            unsafe { Some(Self::from_foreign(ptr)) }
        }
    }

    /// Borrows the object.
    ///
    /// # Safety
    ///
    /// C owns the object within `'a`.
    unsafe fn borrow<'a>(ptr: *mut c_void) -> Self::Borrowed<'a>;
    /// Borrows the object.
    ///
    /// # Safety
    ///
    /// C owns the object within `'a`, and there is no other borrow.
    unsafe fn borrow_mut<'a>(ptr: *mut c_void) -> Self::BorrowedMut<'a>;
}
