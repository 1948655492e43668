// SPDX-License-Identifier: GPL-2.0

//! `KBox` and `KVec`.

use core::fmt;
use core::marker::{PhantomData, Unsize};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{BitOr, CoerceUnsized, Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;
use std::alloc::Layout;

use pin_init::PinInit;

use crate::error::{Error, Result};
use crate::memory;

/// How to allocate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Whether the allocation may sleep.
    pub(crate) fn may_sleep(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the memory has to be cleared.
    fn clear(self) -> bool {
        self.0 & flags::__GFP_ZERO.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Flags.
pub mod flags {
    use super::Flags;

    /// May sleep.
    pub const GFP_KERNEL: Flags = Flags(1);
    /// Must not sleep.
    pub const GFP_ATOMIC: Flags = Flags(2);
    /// Must not sleep.
    pub const GFP_NOWAIT: Flags = Flags(4);
    /// Logs nothing.
    pub const __GFP_NOWARN: Flags = Flags(8);
    /// Clears the memory.
    pub const __GFP_ZERO: Flags = Flags(16);
}

/// There is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError;

/// A vector has no capacity for one more element, which this is.
pub struct PushError<T>(pub T);

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushError")
    }
}

/// A vector has no such element.
#[derive(Debug)]
pub struct RemoveError;

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
            free(this.0.cast(), size_of::<T>());
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

/// # Safety
///
/// `memory` was allocated for a value of this size, which has been dropped or moved.
unsafe fn free(memory: NonNull<u8>, size: usize) {
    if let Some(layout) = memory::forget(memory.as_ptr().addr(), size) {
        // SAFETY: By this function's contract.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
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
            free(self.0.cast(), size);
        }
    }
}

impl<T> From<KBox<T>> for Pin<KBox<T>> {
    fn from(this: KBox<T>) -> Self {
        // SAFETY: A box does not move its value.
        unsafe { Pin::new_unchecked(this) }
    }
}

/// A vector.
pub struct KVec<T>(Vec<T>);

/// A vector, of any length.
pub type KVVec<T> = KVec<T>;

impl<T> KVec<T> {
    /// A vector without memory.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A vector with room for so many elements.
    pub fn with_capacity(capacity: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut this = Self::new();
        this.reserve(capacity, flags)?;
        Ok(this)
    }

    /// A vector of copies.
    pub fn from_elem(element: T, count: usize, flags: Flags) -> Result<Self, AllocError>
    where
        T: Clone,
    {
        let mut this = Self::with_capacity(count, flags)?;
        this.0.resize(count, element);
        Ok(this)
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }

    /// Provides room for so many more elements.
    pub fn reserve(&mut self, more: usize, flags: Flags) -> Result<(), AllocError> {
        if size_of::<T>() == 0 || self.0.capacity() - self.0.len() >= more {
            return Ok(());
        }
        let what = core::any::type_name::<[T]>();
        if memory::fails(flags, what) {
            return Err(AllocError);
        }
        let wanted = (self.0.len() + more).max(2 * self.0.capacity());
        let mut larger = Vec::with_capacity(wanted);
        larger.append(&mut self.0);
        if flags.clear() {
            let spare: &mut [MaybeUninit<T>] = larger.spare_capacity_mut();
            // SAFETY: The bytes are those of the slice.
            unsafe { spare.as_mut_ptr().write_bytes(0, spare.len()) };
        }
        memory::forget(self.0.as_ptr().addr(), self.bytes());
        self.0 = larger;
        let layout = Layout::array::<T>(self.0.capacity()).map_err(|_| AllocError)?;
        memory::note(self.0.as_ptr().addr(), layout, what);
        Ok(())
    }

    /// Adds an element.
    pub fn push(&mut self, value: T, flags: Flags) -> Result<(), AllocError> {
        self.reserve(1, flags)?;
        self.0.push(value);
        Ok(())
    }

    /// Adds an element if there is room.
    pub fn push_within_capacity(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.0.len() < self.capacity() {
            self.0.push(value);
            Ok(())
        } else {
            Err(PushError(value))
        }
    }

    /// Adds copies of elements.
    pub fn extend_from_slice(&mut self, other: &[T], flags: Flags) -> Result<(), AllocError>
    where
        T: Clone,
    {
        self.reserve(other.len(), flags)?;
        self.0.extend_from_slice(other);
        Ok(())
    }

    /// The memory behind the elements.
    pub fn spare_capacity_mut(&mut self) -> &mut [MaybeUninit<T>] {
        self.0.spare_capacity_mut()
    }

    /// Counts elements that were written to the memory behind the others.
    ///
    /// # Safety
    ///
    /// There are so many.
    pub unsafe fn inc_len(&mut self, additional: usize) {
        let len = self.0.len() + additional;
        // SAFETY: By this function's contract.
        unsafe { self.0.set_len(len) };
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Removes an element.
    pub fn remove(&mut self, index: usize) -> Result<T, RemoveError> {
        if index < self.0.len() {
            Ok(self.0.remove(index))
        } else {
            Err(RemoveError)
        }
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes all elements from this one on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Removes the elements for which `f` is false.
    pub fn retain(&mut self, f: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(f);
    }

    /// Removes all elements, and returns them.
    pub fn drain_all(&mut self) -> impl Iterator<Item = T> + '_ {
        self.0.drain(..)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of elements that there is room for.
    pub fn capacity(&self) -> usize {
        if size_of::<T>() == 0 {
            usize::MAX
        } else {
            self.0.capacity()
        }
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> Deref for KVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Default for KVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for KVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'a, T> IntoIterator for &'a KVec<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut KVec<T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl<T> Drop for KVec<T> {
    fn drop(&mut self) {
        self.0.clear();
        let bytes = self.bytes();
        if bytes > 0 {
            memory::forget(self.0.as_ptr().addr(), bytes);
        }
    }
}
