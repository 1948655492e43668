// SPDX-License-Identifier: GPL-2.0

//! A box with a [`Link`] beside its content, to be kept in a list of [`llist`](super::llist).
//!
//! A [`KBox`] of a type that has a link can be in such a list too. This box adds the link to any
//! type, and lets work requests refer to the content by a raw pointer.

use core::{
    marker::PhantomPinned,
    mem::MaybeUninit,
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
    Chain,
    Link,
    Linked,
    Queue, //
};

#[repr(C)]
struct Node<T> {
    /// The first member: a pointer to it is a pointer to the node.
    link: Link,
    content: T,
    /// Lists and work requests have raw pointers to the node while its owner has references.
    _pin: PhantomPinned,
}

/// An owned object that can be in a list.
///
/// Other pointers to the object exist, but are not used while this does.
pub(crate) struct LlistBox<T>(KBox<Node<T>>);

// SAFETY: The box owns its content, and `KBox` may be freed on any thread.
unsafe impl<T: Send> Send for LlistBox<T> {}

// SAFETY: `link` is part of the node, which `into_link` does not free or move, and which the box
// owned.
unsafe impl<T> Linked for LlistBox<T> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        NonNull::from(KBox::leak(self.0)).cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `into_link` has leaked the node that `link` is the
        // first member of.
        Self(unsafe { KBox::from_raw(link.cast().as_ptr()) })
    }
}

/// The memory for a [`LlistBox`].
pub(crate) struct UninitBox<T>(KBox<MaybeUninit<Node<T>>>);

impl<T> UninitBox<T> {
    /// Writes `content` to the memory.
    #[inline]
    pub(crate) fn write(self, content: T) -> LlistBox<T> {
        LlistBox(KBox::write(
            self.0,
            Node {
                link: Link::new(),
                content,
                _pin: PhantomPinned,
            },
        ))
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

    /// A pointer to the content, for work requests that refer to it.
    #[inline]
    pub(crate) fn as_ptr(&mut self) -> *mut T {
        &raw mut self.0.content
    }

    /// A pointer to the content, for work requests that refer to it.
    #[inline]
    pub(crate) fn as_non_null(&mut self) -> NonNull<T> {
        NonNull::from(&mut self.0.content)
    }

    /// Converts the box to a pointer to its content. [`Self::from_raw`] reverts this.
    #[inline]
    pub(crate) fn into_non_null(self) -> NonNull<T> {
        NonNull::from(&mut KBox::leak(self.0).content)
    }

    /// Converts the box to a pointer to its content. [`Self::from_raw`] reverts this.
    #[inline]
    pub(crate) fn into_raw(self) -> *mut T {
        &raw mut KBox::leak(self.0).content
    }

    /// Converts a pointer to the content back to the box.
    ///
    /// # Safety
    ///
    /// `content` comes from [`Self::into_raw`] or [`Self::into_non_null`], and each pointer is
    /// converted back at most once.
    #[inline]
    pub(crate) unsafe fn from_raw(content: *mut T) -> Self {
        // SAFETY: By this function's contract, `content` is the member of a node that was leaked.
        Self(unsafe { KBox::from_raw(kernel::container_of!(content, Node<T>, content)) })
    }

    /// Moves the content out of the box.
    #[inline]
    pub(crate) fn into_inner(self) -> T {
        KBox::into_inner(self.0).content
    }
}

impl<T> Deref for LlistBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T> DerefMut for LlistBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.content
    }
}

/// The content of the box that `link` is part of, like `llist_entry()`.
///
/// # Safety
///
/// `link` comes from [`Linked::into_link`] of a `LlistBox<T>` and was not converted back since.
#[inline]
pub(super) unsafe fn content<T>(link: NonNull<Link>) -> NonNull<T> {
    let node = link.cast::<Node<T>>().as_ptr();
    // SAFETY: The link is the first member of a node that was leaked, by this function's contract.
    unsafe { NonNull::new_unchecked(&raw mut (*node).content) }
}

impl<T> Chain<LlistBox<T>> {
    /// Iterates over the contents of the boxes, in order.
    #[inline]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: The link is that of a box that was given up to the chain (I1), which is borrowed
        // exclusively. The iterator returns each link once.
        self.links().map(|link| unsafe { content(link).as_mut() })
    }
}

impl<T> Queue<LlistBox<T>> {
    /// Iterates over the contents of the boxes, in order.
    #[inline]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        // SAFETY: As for the chain, by which the queue owns its boxes.
        self.links().map(|link| unsafe { content(link).as_mut() })
    }

    /// The content of the first box, which stays in the queue.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.iter_mut().next()
    }
}
