// SPDX-License-Identifier: GPL-2.0

//! `KVec`: a vector whose growth can fail.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use std::alloc::Layout;

use crate::alloc_flags::{AllocError, Flags, PushError, RemoveError};
use crate::memory;

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

    /// A vector of memory that was allocated elsewhere.
    ///
    /// # Safety
    ///
    /// [`Kmalloc`](crate::alloc::allocator::Kmalloc) has allocated the memory, which has `capacity`
    /// elements, of which `length` are initialized.
    pub unsafe fn from_raw_parts(memory: *mut T, length: usize, capacity: usize) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { Vec::from_raw_parts(memory, length, capacity) })
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
