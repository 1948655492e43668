// SPDX-License-Identifier: GPL-2.0

//! `KBox`: a value with memory of its own.

use core::marker::{PhantomData, Unsize};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{CoerceUnsized, Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use std::alloc::Layout;

use pin_init::PinInit;

use crate::alloc_flags::{AllocError, Flags};
use crate::error::{Error, Result};
use crate::memory;

/// A box.
pub struct KBox<T: ?Sized>(NonNull<T>, PhantomData<T>);

// SAFETY: As for the content.
unsafe impl<T: ?Sized + Send> Send for KBox<T> {}
// SAFETY: As for the content.
unsafe impl<T: ?Sized + Sync> Sync for KBox<T> {}

impl<T: ?Sized + Unsize<U>, U: ?Sized> CoerceUnsized<KBox<U>> for KBox<T> {}

impl<T> KBox<T> {
    /// Allocates memory.
    pub fn new_uninit(flags: Flags) -> Result<KBox<MaybeUninit<T>>, AllocError> {
        let layout = Layout::new::<T>();
        let memory = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            memory::alloc(layout, flags, core::any::type_name::<T>())?.cast()
        };
        Ok(KBox(memory, PhantomData))
    }

    /// Allocates memory for a value.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        Ok(KBox::write(Self::new_uninit(flags)?, value))
    }

    /// Gives the memory up.
    pub fn leak<'a>(this: Self) -> &'a mut T {
        // SAFETY: The box owned the value, and is gone.
        unsafe { &mut *Self::into_raw(this) }
    }

    /// Gives the memory up.
    pub fn into_raw(this: Self) -> *mut T {
        ManuallyDrop::new(this).0.as_ptr()
    }

    /// Takes back what was given up.
    ///
    /// # Safety
    ///
    /// `raw` was given up by a box, and is not used again.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { NonNull::new_unchecked(raw) }, PhantomData)
    }

    /// Moves the content out.
    pub fn into_inner(this: Self) -> T {
        let this = ManuallyDrop::new(this);
        // SAFETY: The value is moved once: the box is not dropped.
        unsafe {
            let value = this.0.read();
            memory::free(this.0.cast(), size_of::<T>());
            value
        }
    }

    /// Allocates and initializes a value in place.
    pub fn try_pin_init<E: From<AllocError>>(
        init: impl PinInit<T, E>,
        flags: Flags,
    ) -> Result<Pin<Self>, E> {
        let memory = Self::new_uninit(flags)?;
        // SAFETY: The memory is for a `T`, and is neither moved nor used otherwise.
        unsafe {
            init.__pinned_init(memory.0.as_ptr().cast())?;
            Ok(Pin::new_unchecked(KBox::assume_init(memory)))
        }
    }

    /// Allocates and initializes a value in place.
    pub fn pin_init<E>(init: impl PinInit<T, E>, flags: Flags) -> Result<Pin<Self>>
    where
        Error: From<E>,
    {
        let memory = Self::new_uninit(flags)?;
        // SAFETY: As above.
        unsafe {
            init.__pinned_init(memory.0.as_ptr().cast())?;
            Ok(Pin::new_unchecked(KBox::assume_init(memory)))
        }
    }
}

impl<T> KBox<MaybeUninit<T>> {
    /// Writes to the memory.
    pub fn write(mut this: Self, value: T) -> KBox<T> {
        (*this).write(value);
        // SAFETY: Just written.
        unsafe { Self::assume_init(this) }
    }

    /// # Safety
    ///
    /// The value is initialized.
    pub unsafe fn assume_init(this: Self) -> KBox<T> {
        KBox(ManuallyDrop::new(this).0.cast(), PhantomData)
    }
}

impl<T: ?Sized> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The box owns the value.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The box owns the value.
        unsafe { self.0.as_mut() }
    }
}

impl<T: ?Sized> Drop for KBox<T> {
    fn drop(&mut self) {
        let size = size_of_val::<T>(self);
        // SAFETY: The box owns value and memory.
        unsafe {
            core::ptr::drop_in_place(self.0.as_ptr());
            memory::free(self.0.cast(), size);
        }
    }
}

impl<T> From<KBox<T>> for Pin<KBox<T>> {
    fn from(this: KBox<T>) -> Self {
        // SAFETY: A box does not move its value.
        unsafe { Pin::new_unchecked(this) }
    }
}
