// SPDX-License-Identifier: GPL-2.0

//! Lists that link the objects themselves: nothing is allocated to keep or to queue one.
//!
//! * [`Stack`]: anybody may push, without a lock; whoever wants what is there takes all of it.
//! * [`Chain`]: what was taken, or is to be put somewhere.
//! * [`Queue`]: first in, first out, for use under somebody's lock.
//!
//! The kernel's own do not fit: `kernel::list` takes only what is counted, and an `llist` does not
//! own what is in it.

use core::{
    cell::Cell,
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::sync::atomic::{
    ordering::{
        Acquire,
        Full,
        Relaxed, //
    },
    Atomic, //
};

/// What an object needs to be in a list.
pub(crate) struct Link {
    next: Cell<*mut Link>,
}

// SAFETY: `next` is only touched in this file: written by whoever has the object to himself, and
// read by whoever has the list that it is in, or has found it behind the head of a stack, which is
// exchanged after it was written.
unsafe impl Sync for Link {}

impl Link {
    /// A link that is in no list.
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn next(&self) -> *mut Link {
        self.next.get()
    }

    #[inline]
    fn set_next(&self, next: *mut Link) {
        self.next.set(next);
    }
}

/// An owning pointer to an object with a [`Link`] in it.
///
/// # Safety
///
/// `into_link` gives up the ownership and returns a pointer to a `Link` inside of the object; that
/// link stays valid and in place, and nobody else uses it, until `from_link` takes the ownership
/// back.
pub(crate) unsafe trait Linked: Sized {
    /// Gives up the object.
    fn into_link(self) -> NonNull<Link>;

    /// Takes the object back.
    ///
    /// # Safety
    ///
    /// `link` comes from [`Self::into_link`], and is given back once.
    unsafe fn from_link(link: NonNull<Link>) -> Self;
}

/// A lock-free stack: pushed to by anybody, emptied at one stroke.
///
/// # Invariants
///
/// `head` starts a chain of links that were given up to this stack; null ends it.
pub(crate) struct Stack<T: Linked> {
    head: Atomic<*mut Link>,
    _owns: PhantomData<T>,
}

// SAFETY: A stack owns its objects and hands each to one thread.
unsafe impl<T: Linked + Send> Send for Stack<T> {}
// SAFETY: As above; `head` is atomic.
unsafe impl<T: Linked + Send> Sync for Stack<T> {}

impl<T: Linked> Stack<T> {
    /// An empty stack.
    pub(crate) const fn new() -> Self {
        Self {
            head: Atomic::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// Adds an object; returns whether the stack was empty before.
    ///
    /// This is a full barrier, on which callers rely: they ask afterwards whether anybody waits for
    /// the object, and who waits has a full barrier of his own between saying so and looking here.
    /// One of the two sees the other.
    #[inline]
    pub(crate) fn push(&self, object: T) -> bool {
        let link = object.into_link();
        self.push_links(link, link)
    }

    /// Adds all of `chain`, in its order.
    #[inline]
    pub(crate) fn push_all(&self, chain: Chain<T>) {
        if let Some((first, last)) = chain.into_ends() {
            self.push_links(first, last);
        }
    }

    /// Adds what is linked from `first` to `last`, all given up by their owners.
    #[inline]
    fn push_links(&self, first: NonNull<Link>, last: NonNull<Link>) -> bool {
        let mut head = self.head.load(Relaxed);
        loop {
            // SAFETY: Given up to us, and not in the stack yet.
            unsafe { last.as_ref() }.set_next(head);
            // INVARIANT: `first` to `last` are chained to what was the head.
            match self.head.cmpxchg(head, first.as_ptr(), Full) {
                Ok(old) => return old.is_null(),
                Err(other) => head = other,
            }
        }
    }

    /// Whether nothing is in the stack at this moment.
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
        // INVARIANT: Null is an empty chain; what was there is the caller's.
        let head = self.head.xchg(ptr::null_mut(), Full);
        Chain {
            head,
            _owns: PhantomData,
        }
    }

    /// The links of what is in the stack now.
    ///
    /// # Safety
    ///
    /// Nothing may be taken out while the result is used.
    pub(crate) unsafe fn links(&self) -> Links<'_> {
        // Pairs with the cmpxchg of a push.
        Links {
            at: self.head.load(Acquire),
            _chain: PhantomData,
        }
    }
}

impl<T: Linked> Drop for Stack<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// Objects that belong to whoever holds the chain, in the order they are popped.
///
/// # Invariants
///
/// `head` starts a chain of links that were given up; null ends it.
pub(crate) struct Chain<T: Linked> {
    head: *mut Link,
    _owns: PhantomData<T>,
}

// SAFETY: A chain owns its objects.
unsafe impl<T: Linked + Send> Send for Chain<T> {}

// The objects stay in place when the chain is moved.
impl<T: Linked> Unpin for Chain<T> {}

impl<T: Linked> Chain<T> {
    /// An empty chain.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            head: ptr::null_mut(),
            _owns: PhantomData,
        }
    }

    /// Whether nothing is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Adds an object, which becomes the first.
    #[inline]
    pub(crate) fn push(&mut self, object: T) {
        let link = object.into_link();
        // SAFETY: Given up to us just now.
        unsafe { link.as_ref() }.set_next(self.head);
        // INVARIANT: One link more, in front.
        self.head = link.as_ptr();
    }

    /// Takes the first object out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let link = NonNull::new(self.head)?;
        // SAFETY: In the chain, by the type's invariants.
        // INVARIANT: The rest of a chain is a chain.
        self.head = unsafe { link.as_ref() }.next();
        // SAFETY: Given up by its owner, and in the chain no longer.
        Some(unsafe { T::from_link(link) })
    }

    /// Adds all of `front`, which comes first, in its order.
    #[inline]
    pub(crate) fn prepend(&mut self, front: Self) {
        let Some((first, last)) = front.into_ends() else {
            return;
        };
        // SAFETY: Given up to us just now.
        unsafe { last.as_ref() }.set_next(self.head);
        // INVARIANT: `first` to `last` are chained to what was the head.
        self.head = first.as_ptr();
    }

    /// Gives up the objects: the first link and the last, if there are any.
    #[inline]
    fn into_ends(self) -> Option<(NonNull<Link>, NonNull<Link>)> {
        let first = NonNull::new(mem::ManuallyDrop::new(self).head)?;
        let mut last = first;
        // SAFETY: In the chain, by the type's invariants.
        while let Some(next) = NonNull::new(unsafe { last.as_ref() }.next()) {
            last = next;
        }
        Some((first, last))
    }

    /// The links in order, for whoever builds upon the chain.
    #[inline]
    pub(crate) fn links(&self) -> Links<'_> {
        Links {
            at: self.head,
            _chain: PhantomData,
        }
    }
}

impl<T: Linked> Drop for Chain<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// Iterator over the links of a chain or of a queue.
pub(crate) struct Links<'a> {
    at: *mut Link,
    _chain: PhantomData<&'a Link>,
}

impl Iterator for Links<'_> {
    type Item = NonNull<Link>;

    #[inline]
    fn next(&mut self) -> Option<NonNull<Link>> {
        let link = NonNull::new(self.at)?;
        // SAFETY: In the list, which is borrowed.
        self.at = unsafe { link.as_ref() }.next();
        Some(link)
    }
}

/// First in, first out.
///
/// # Invariants
///
/// `head` starts a chain of links that were given up to this queue, and `tail` is its last one;
/// both are null if it is empty.
pub(crate) struct Queue<T: Linked> {
    head: *mut Link,
    tail: *mut Link,
    _owns: PhantomData<T>,
}

// SAFETY: A queue owns its objects.
unsafe impl<T: Linked + Send> Send for Queue<T> {}

impl<T: Linked> Queue<T> {
    /// An empty queue.
    pub(crate) const fn new() -> Self {
        Self {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            _owns: PhantomData,
        }
    }

    /// Whether nothing is in the queue.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Adds an object at the end.
    #[inline]
    pub(crate) fn push(&mut self, object: T) {
        let link = object.into_link();
        // SAFETY: Given up to us just now.
        unsafe { link.as_ref() }.set_next(ptr::null_mut());
        match NonNull::new(self.tail) {
            // SAFETY: In the queue, by the type's invariants.
            Some(tail) => unsafe { tail.as_ref() }.set_next(link.as_ptr()),
            None => self.head = link.as_ptr(),
        }
        // INVARIANT: It follows what was the last, or is the only one.
        self.tail = link.as_ptr();
    }

    /// Takes the first object out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let link = NonNull::new(self.head)?;
        // SAFETY: In the queue, by the type's invariants.
        // INVARIANT: The rest of a chain is a chain; without a head there is no tail.
        self.head = unsafe { link.as_ref() }.next();
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        // SAFETY: Given up by its owner, and in the queue no longer.
        Some(unsafe { T::from_link(link) })
    }

    /// The links in order, for whoever builds upon the queue.
    #[inline]
    pub(crate) fn links(&self) -> Links<'_> {
        Links {
            at: self.head,
            _chain: PhantomData,
        }
    }
}

impl<T: Linked> Drop for Queue<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
