// SPDX-License-Identifier: GPL-2.0

//! A lock-free list that only grows.

use core::marker::PhantomData;

use super::{
    llist::Stack,
    llist_box::{
        content,
        LlistBox, //
    }, //
};

/// A list to which any thread may add objects, and which keeps them until it is dropped.
///
/// # Invariants
///
/// - I1: No object leaves the list before its drop.
pub(crate) struct GrowList<T> {
    objects: Stack<LlistBox<T>>,
    /// Any thread gets references to the objects, so the list is `Sync` only if they are.
    _shared: PhantomData<T>,
}

impl<T> GrowList<T> {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        // INVARIANT: I1: there are no objects.
        Self {
            objects: Stack::new(),
            _shared: PhantomData,
        }
    }

    /// Adds an object.
    pub(crate) fn push(&self, object: LlistBox<T>) {
        self.objects.push(object);
    }

    /// Iterates over the objects, the last added first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: The list is borrowed, so its objects stay (I1), and each link is that of one. All
        // references to the objects are shared.
        unsafe { self.objects.links().map(|link| content(link).as_ref()) }
    }
}
