// SPDX-License-Identifier: GPL-2.0

//! Singly linked lists of owned objects. An object contains its link, so adding it cannot fail.
//!
//! * [`Stack`]: lock-free. Any thread may push; taking removes all objects at once.
//! * [`Chain`]: last in, first out, with one owner.
//! * [`Queue`]: first in, first out, with one owner.
//!
//! C header: [`include/linux/llist.h`](srctree/include/linux/llist.h)
//!
//! [`Stack`] is a `struct llist_head` that owns its entries: `push` is `llist_add()`, `push_all` is
//! `llist_add_batch()`, and `take_all` is `llist_del_all()`. The lists of the kernel crate do not
//! fit: `kernel::list` holds reference-counted objects only, and has no lock-free list.

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::sync::atomic::ordering::{
    Acquire,
    Full,
    Relaxed, //
};

use super::sync::Atomic;

/// The link of an object, like `struct llist_node`.
///
/// The owner of the object writes it before the object is in a list, and the owner of a list reads
/// the links of its objects. A [`Stack`] orders the two by the exchange of its head.
pub(crate) struct Link {
    next: Atomic<*mut Link>,
}

impl Link {
    /// Creates a link that is in no list.
    pub(crate) const fn new() -> Self {
        Self {
            next: Atomic::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn next(&self) -> *mut Link {
        self.next.load(Relaxed)
    }

    #[inline]
    fn set_next(&self, next: *mut Link) {
        self.next.store(next, Relaxed);
    }
}

/// An owning pointer to an object that contains a [`Link`].
///
/// # Safety
///
/// `into_link` gives the object up and returns a pointer to its link. The link stays valid and in
/// place, and only the receiver of the pointer uses it, until `from_link` returns the object.
pub(crate) unsafe trait Linked: Sized {
    /// Converts the object to its link.
    fn into_link(self) -> NonNull<Link>;

    /// Converts a link back to its object.
    ///
    /// # Safety
    ///
    /// `link` comes from [`Self::into_link`], and each link is converted back at most once.
    unsafe fn from_link(link: NonNull<Link>) -> Self;
}

/// A wrapper that is kept in lists as the entry inside it.
///
/// Only this file can call the functions, since it alone makes a [`ByList`]: a wrapper may promise
/// what its entry does not.
///
/// # Safety
///
/// The implementation uses the [`ByList`] for nothing but a wrapper that is itself the entry of
/// this one.
pub(crate) unsafe trait Wrapper: Sized {
    /// The entry.
    type Entry: Linked;

    /// Unwraps the entry.
    fn into_entry(self, by: ByList) -> Self::Entry;

    /// Wraps an entry that [`Self::into_entry`] has unwrapped.
    fn from_entry(entry: Self::Entry, by: ByList) -> Self;
}

/// The right to call the functions of [`Wrapper`].
pub(crate) struct ByList(());

// SAFETY: The functions are those of the entry, which fulfils the requirements.
unsafe impl<T: Wrapper> Linked for T {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        self.into_entry(ByList(())).into_link()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `link` comes from the entry's `into_link`.
        Self::from_entry(unsafe { T::Entry::from_link(link) }, ByList(()))
    }
}

/// A lock-free list to which any thread may push, and of which all objects are taken at once.
///
/// # Invariants
///
/// - I1: `head` starts a null-terminated list of links that were given up to this stack.
pub(crate) struct Stack<T: Linked> {
    head: Atomic<*mut Link>,
    _owns: PhantomData<T>,
}

// SAFETY: The stack owns its objects and gives each to one thread.
unsafe impl<T: Linked + Send> Send for Stack<T> {}
// SAFETY: As above. `head` is atomic.
unsafe impl<T: Linked + Send> Sync for Stack<T> {}

impl<T: Linked> Stack<T> {
    /// Creates an empty stack.
    pub(crate) const fn new() -> Self {
        Self {
            head: Atomic::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// Adds an object. Returns whether the stack was empty.
    ///
    /// This is a full barrier. A caller may rely on it to read, after the push, whether a thread
    /// waits for the object: if the waiter has a full barrier between announcing itself and looking
    /// at the stack, one of the two sees the other.
    #[inline]
    pub(crate) fn push(&self, object: T) -> bool {
        let link = object.into_link();
        self.push_links(link, link)
    }

    /// Adds all objects of `chain`, in its order.
    #[inline]
    pub(crate) fn push_all(&self, chain: Chain<T>) {
        if let Some((first, last)) = chain.into_ends() {
            self.push_links(first, last);
        }
    }

    /// Adds the list from `first` to `last`, whose objects were given up.
    #[inline]
    fn push_links(&self, first: NonNull<Link>, last: NonNull<Link>) -> bool {
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: The object was given up to this function, and is not in the stack yet.
            unsafe { last.as_ref() }.set_next(head);
            // INVARIANT: I1: the list from `first` to `last` precedes the old head.
            match self.head.cmpxchg(head, first.as_ptr(), Full) {
                Ok(old) => return old.is_null(),
                Err(other) => head = other,
            }
        }
    }

    /// Returns whether the stack is empty at this moment.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Relaxed).is_null()
    }

    /// Takes all objects, the last pushed first.
    #[inline]
    pub(crate) fn take_all(&self) -> Chain<T> {
        if self.is_empty() {
            return Chain::new();
        }
        // INVARIANT: I1 of both types: the list moves from the stack to the chain.
        let head = self.head.xchg(ptr::null_mut(), Full);
        Chain {
            head,
            _owns: PhantomData,
        }
    }

    /// Iterates over the links of the objects.
    ///
    /// # Safety
    ///
    /// No thread takes objects while the iterator is used.
    pub(super) unsafe fn links(&self) -> Links<'_> {
        // INVARIANT: I1: the load pairs with the cmpxchg of a push, and the links stay in the stack
        // by this function's contract.
        Links {
            at: self.head.load(Acquire),
            _list: PhantomData,
        }
    }
}

impl<T: Linked> Drop for Stack<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// A list with one owner, last in, first out.
///
/// # Invariants
///
/// - I1: `head` starts a null-terminated list of links that were given up to this chain.
pub(crate) struct Chain<T: Linked> {
    head: *mut Link,
    _owns: PhantomData<T>,
}

// SAFETY: The chain owns its objects.
unsafe impl<T: Linked + Send> Send for Chain<T> {}

// Moving the chain does not move the objects.
impl<T: Linked> Unpin for Chain<T> {}

impl<T: Linked> Chain<T> {
    /// Creates an empty chain.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            head: ptr::null_mut(),
            _owns: PhantomData,
        }
    }

    /// Returns whether the chain is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Adds an object as the first.
    #[inline]
    pub(crate) fn push(&mut self, object: T) {
        let link = object.into_link();
        self.push_links(link, link);
    }

    /// Adds all objects of `front` before those of this chain, in their order.
    #[inline]
    pub(crate) fn prepend(&mut self, front: Self) {
        if let Some((first, last)) = front.into_ends() {
            self.push_links(first, last);
        }
    }

    /// Adds the list from `first` to `last`, whose objects were given up.
    #[inline]
    fn push_links(&mut self, first: NonNull<Link>, last: NonNull<Link>) {
        // SAFETY: The object was given up to this function.
        unsafe { last.as_ref() }.set_next(self.head);
        // INVARIANT: I1: the list from `first` to `last` precedes the old head.
        self.head = first.as_ptr();
    }

    /// Removes the first object.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let mut links = self.links();
        let link = links.next()?;
        // INVARIANT: I1: the list loses its first link.
        self.head = links.at;
        // SAFETY: The link was given up to this chain (I1), and is not in it any more.
        Some(unsafe { T::from_link(link) })
    }

    /// Converts the chain to its first and its last link.
    #[inline]
    fn into_ends(self) -> Option<(NonNull<Link>, NonNull<Link>)> {
        let chain = mem::ManuallyDrop::new(self);
        let first = NonNull::new(chain.head)?;
        let last = chain.links().last()?;
        Some((first, last))
    }

    /// Iterates over the links of the objects, in order.
    #[inline]
    pub(super) fn links(&self) -> Links<'_> {
        // INVARIANT: I1: by I1 of the chain, which is borrowed.
        Links {
            at: self.head,
            _list: PhantomData,
        }
    }
}

impl<T: Linked> Drop for Chain<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// An iterator over the links of a list.
///
/// # Invariants
///
/// - I1: `at` starts a null-terminated list of links that are valid for the iterator's lifetime.
pub(super) struct Links<'a> {
    at: *mut Link,
    _list: PhantomData<&'a Link>,
}

impl Iterator for Links<'_> {
    type Item = NonNull<Link>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.at)?;
        // SAFETY: The link is valid (I1).
        // INVARIANT: I1: the list loses its first link.
        self.at = unsafe { link.as_ref() }.next();
        Some(link)
    }
}

/// A list with one owner, first in, first out.
///
/// # Invariants
///
/// - I1: `tail` is the last link of `chain`, or the chain is empty.
pub(crate) struct Queue<T: Linked> {
    chain: Chain<T>,
    tail: *mut Link,
}

// SAFETY: The queue owns its objects.
unsafe impl<T: Linked + Send> Send for Queue<T> {}

impl<T: Linked> Queue<T> {
    /// Creates an empty queue.
    pub(crate) const fn new() -> Self {
        Self {
            chain: Chain::new(),
            tail: ptr::null_mut(),
        }
    }

    /// Returns whether the queue is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Adds an object as the last.
    #[inline]
    pub(crate) fn push(&mut self, object: T) {
        let mut last = Chain::new();
        last.push(object);
        let link = last.head;
        if self.chain.is_empty() {
            self.chain = last;
        } else {
            mem::forget(last);
            // SAFETY: `tail` is a link of the chain (I1), which is not empty.
            // INVARIANT: I1 of the chain: a list of one link follows its last.
            unsafe { &*self.tail }.set_next(link);
        }
        // INVARIANT: I1: the link follows the old tail, or is the only one.
        self.tail = link;
    }

    /// Removes the first object.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.chain.pop()
    }

    /// Iterates over the links of the objects, in order.
    #[inline]
    pub(super) fn links(&self) -> Links<'_> {
        self.chain.links()
    }
}
