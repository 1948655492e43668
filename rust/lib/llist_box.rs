// SPDX-License-Identifier: GPL-2.0

//! A box with a [`Link`] in front of what is in it, so that it can be in a list.

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
    /// First, so that a pointer to it is a pointer to the whole.
    link: Link,
    content: T,
}

/// An owned object that can be in a list.
///
/// # Invariants
///
/// Points to a `Node` from `KBox` that nobody else can reach.
pub(crate) struct LlistBox<T>(NonNull<Node<T>>);

// SAFETY: Owns what it points to, like a box.
unsafe impl<T: Send> Send for LlistBox<T> {}

// SAFETY: `link` is the first member of the object, which only its owner reaches.
unsafe impl<T> Linked for LlistBox<T> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        mem::ManuallyDrop::new(self).0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: By the contract of this function.
        Self(link.cast())
    }
}

/// Memory for an object that is still to come.
pub(crate) struct UninitBox<T>(KBox<MaybeUninit<Node<T>>>);

impl<T> UninitBox<T> {
    /// Puts the object in.
    #[inline]
    pub(crate) fn fill(self, content: T) -> LlistBox<T> {
        let link = Link::new();
        let node = KBox::write(self.0, Node { link, content });
        // INVARIANT: Nobody else has a pointer to it.
        LlistBox(NonNull::from(KBox::leak(node)))
    }
}

impl<T> LlistBox<T> {
    /// Allocates memory for an object.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn uninit(flags: Flags) -> Result<UninitBox<T>> {
        Ok(UninitBox(KBox::new_uninit(flags)?))
    }

    /// The object whose link this is.
    ///
    /// # Safety
    ///
    /// `link` comes from [`Linked::into_link`] of this type, and has not been taken back.
    #[inline]
    pub(crate) unsafe fn at(link: NonNull<Link>) -> NonNull<T> {
        let node = link.cast::<Node<T>>().as_ptr();
        // SAFETY: By this function's contract; a member of a valid object is not at null.
        unsafe { NonNull::new_unchecked(&raw mut (*node).content) }
    }

    /// The object, for work requests that refer to it.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut T {
        // SAFETY: Owned, by the type's invariants.
        unsafe { &raw mut (*self.0.as_ptr()).content }
    }

    /// Gives the object up.
    #[inline]
    pub(crate) fn into_raw(self) -> *mut T {
        mem::ManuallyDrop::new(self).as_ptr()
    }

    /// Takes the object back.
    ///
    /// # Safety
    ///
    /// `content` comes from [`Self::into_raw`], and this is its only way back.
    #[inline]
    pub(crate) unsafe fn from_raw(content: *mut T) -> Self {
        // SAFETY: By this function's contract it is the content of a `Node`.
        // INVARIANT: Nobody else has a pointer to that, by the same.
        Self(unsafe { NonNull::new_unchecked(kernel::container_of!(content, Node<T>, content)) })
    }

    /// Moves the object out.
    #[inline]
    pub(crate) fn into_inner(self) -> T {
        let node = mem::ManuallyDrop::new(self).0.as_ptr();
        // SAFETY: From `KBox`, and unreachable otherwise, by the type's invariants; not dropped
        // again.
        KBox::into_inner(unsafe { KBox::from_raw(node) }).content
    }
}

impl<T> Deref for LlistBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: Owned, by the type's invariants.
        &unsafe { self.0.as_ref() }.content
    }
}

impl<T> DerefMut for LlistBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: Owned, by the type's invariants; the link is not touched.
        unsafe { &mut (*self.0.as_ptr()).content }
    }
}

impl<T> Drop for LlistBox<T> {
    fn drop(&mut self) {
        // SAFETY: From `KBox`, and unreachable otherwise, by the type's invariants.
        drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
    }
}
