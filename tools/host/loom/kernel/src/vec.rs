// SPDX-License-Identifier: GPL-2.0

//! Vectors. No allocation fails.

use crate::alloc::Flags;
use crate::ops::Deref;
use crate::ops::DerefMut;
use crate::prelude::Result;

/// A vector.
pub struct KVec<T>(Vec<T>);

/// A vector whose memory need not be contiguous.
pub type KVVec<T> = KVec<T>;

impl<T> KVec<T> {
    /// An empty vector with room for so many elements.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn with_capacity(count: usize, _: Flags) -> Result<Self> {
        Ok(Self(Vec::with_capacity(count)))
    }

    /// The number of elements that there is room for.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Appends an element.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn push(&mut self, element: T, _: Flags) -> Result {
        self.0.push(element);
        Ok(())
    }

    /// Appends an element, if there is room.
    ///
    /// # Errors
    ///
    /// The element, if there is none.
    pub fn push_within_capacity(&mut self, element: T) -> Result<(), T> {
        if self.0.len() == self.0.capacity() {
            return Err(element);
        }
        self.0.push(element);
        Ok(())
    }

    /// Drops all elements.
    pub fn clear(&mut self) {
        self.0.clear();
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
