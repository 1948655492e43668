// SPDX-License-Identifier: GPL-2.0

//! Counted references, which loom knows.

use std::sync;

use crate::alloc::AllocError;
use crate::alloc::Flags;
use crate::ops::Deref;
use crate::ops::DerefMut;

/// A counted reference.
pub struct Arc<T>(loom::sync::Arc<T>);

impl<T> Arc<T> {
    /// Moves a value to memory of its own.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(loom::sync::Arc::new(value)))
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The only reference to a value that will be shared.
pub struct UniqueArc<T>(sync::Arc<T>);

impl<T> UniqueArc<T> {
    /// Moves a value to memory of its own.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(sync::Arc::new(value)))
    }
}

impl<T> Deref for UniqueArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for UniqueArc<T> {
    fn deref_mut(&mut self) -> &mut T {
        match sync::Arc::get_mut(&mut self.0) {
            Some(value) => value,
            None => unreachable!("it is the only reference"),
        }
    }
}

impl<T> From<UniqueArc<T>> for Arc<T> {
    fn from(unique: UniqueArc<T>) -> Self {
        Self(loom::sync::Arc::from_std(unique.0))
    }
}
