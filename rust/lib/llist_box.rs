// SPDX-License-Identifier: GPL-2.0

//! A box with a [`Link`] beside its content, to be kept in a list of [`llist`](super::llist).
//!
//! A [`KBox`] of a type that has a link can be in such a list too. This box adds the link to any
//! type, and lets work requests refer to the content by a raw pointer.

use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::llist::{
    Link,
    Linked, //
};

#[repr(C)]
struct Node<T> {
    /// The first member: a pointer to it is a pointer to the node.
    link: Link,
    content: T,
}

/// An owned object that can be in a list.
///
/// # Invariants
///
/// - I1: The pointer is to a `Node` that was allocated by `KBox`.
/// - I2: The box owns the node: no other pointer to it is used while the box exists.
pub(crate) struct LlistBox<T>(NonNull<Node<T>>);

// SAFETY: The box owns its content, and `KBox` may be freed on any thread.
unsafe impl<T: Send> Send for LlistBox<T> {}

// SAFETY: `link` is part of the node, which `into_link` does not free or move, and which the box
// owns (I2).
unsafe impl<T> Linked for LlistBox<T> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        mem::ManuallyDrop::new(self).0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: I1, I2: by this function's contract.
        Self(link.cast())
    }
}

/// The memory for a [`LlistBox`].
pub(crate) struct UninitBox<T>(KBox<MaybeUninit<Node<T>>>);

impl<T> UninitBox<T> {
    /// Writes `content` to the memory.
    #[inline]
    pub(crate) fn write(self, content: T) -> LlistBox<T> {
        let link = Link::new();
        let node = KBox::write(self.0, Node { link, content });
        // INVARIANT: I1, I2: the node comes from a `KBox`, which gives it up.
        LlistBox(NonNull::from(KBox::leak(node)))
    }
}

impl<T> LlistBox<T> {
    /// Allocates the memory for an object.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn new_uninit(flags: Flags) -> Result<UninitBox<T>> {
        Ok(UninitBox(KBox::new_uninit(flags)?))
    }

    /// The content of the box that `link` is part of, like `llist_entry()`.
    ///
    /// # Safety
    ///
    /// `link` comes from [`Linked::into_link`] of this type and was not converted back since.
    #[inline]
    pub(crate) unsafe fn entry(link: NonNull<Link>) -> NonNull<T> {
        let node = link.cast::<Node<T>>().as_ptr();
        // SAFETY: The node is valid by this function's contract, so its member is not at null.
        unsafe { NonNull::new_unchecked(&raw mut (*node).content) }
    }

    /// A pointer to the content, for work requests that refer to it.
    #[inline]
    pub(crate) fn as_non_null(&self) -> NonNull<T> {
        // SAFETY: The node is valid (I1).
        unsafe { Self::entry(self.0.cast()) }
    }

    /// A pointer to the content, for work requests that refer to it.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.as_non_null().as_ptr()
    }

    /// Converts the box to a pointer to its content. [`Self::from_raw`] reverts this.
    #[inline]
    pub(crate) fn into_non_null(self) -> NonNull<T> {
        mem::ManuallyDrop::new(self).as_non_null()
    }

    /// Converts the box to a pointer to its content. [`Self::from_raw`] reverts this.
    #[inline]
    pub(crate) fn into_raw(self) -> *mut T {
        self.into_non_null().as_ptr()
    }

    /// Converts a pointer to the content back to the box.
    ///
    /// # Safety
    ///
    /// `content` comes from [`Self::into_raw`] or [`Self::into_non_null`], and each pointer is
    /// converted back at most once.
    #[inline]
    pub(crate) unsafe fn from_raw(content: *mut T) -> Self {
        // SAFETY: `content` is the member of a node by this function's contract.
        // INVARIANT: I1, I2: by the same.
        Self(unsafe { NonNull::new_unchecked(kernel::container_of!(content, Node<T>, content)) })
    }

    /// Moves the content out of the box.
    #[inline]
    pub(crate) fn into_inner(self) -> T {
        let node = mem::ManuallyDrop::new(self).0.as_ptr();
        // SAFETY: The node comes from a `KBox` (I1), and its owner is not dropped.
        KBox::into_inner(unsafe { KBox::from_raw(node) }).content
    }
}

impl<T> Deref for LlistBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The box owns the node (I1, I2).
        unsafe { self.as_non_null().as_ref() }
    }
}

impl<T> DerefMut for LlistBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The box owns the node (I1, I2). The reference does not cover the link.
        unsafe { self.as_non_null().as_mut() }
    }
}

impl<T> Drop for LlistBox<T> {
    fn drop(&mut self) {
        // SAFETY: The node comes from a `KBox` (I1), and its owner is dropped.
        drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
    }
}
