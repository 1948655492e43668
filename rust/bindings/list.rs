// SPDX-License-Identifier: GPL-2.0

//! Lists that link the objects themselves: nothing is allocated to keep or to queue one.
//!
//! * [`Stack`]: anybody may push, without a lock; whoever wants what is there takes all of it.
//! * [`Pool`]: a stack from which one object at a time can be had, under a lock of its own.
//! * [`Queue`]: first in, first out, for use under somebody's lock.
//!
//! The kernel's own do not fit: `kernel::list` takes only what is counted, and an `llist` does not
//! own what is in it.

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        SpinLock, //
    }, //
};

/// What an object needs to be in a list.
pub(crate) struct Link {
    next: Atomic<*mut Link>,
}

impl Link {
    /// A link that is in no list.
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
    #[inline]
    pub(crate) fn push(&self, object: T) -> bool {
        let link = object.into_link();
        self.push_chain(link, link)
    }

    /// Adds the chain from `first` to `last`, both given up by their owners.
    #[inline]
    fn push_chain(&self, first: NonNull<Link>, last: NonNull<Link>) -> bool {
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

    /// Takes the object pushed last.
    ///
    /// # Safety
    ///
    /// No other call of `pop` or `take_all` may run at the same time: the object that this one
    /// looks at could be taken and pushed again in between, with another successor.
    #[inline]
    unsafe fn pop(&self) -> Option<T> {
        let mut head = self.head.load(Acquire);
        loop {
            let link = NonNull::new(head)?;
            // SAFETY: In the stack, where it stays, since nobody else takes anything.
            let next = unsafe { link.as_ref() }.next();
            // INVARIANT: The rest of a chain is a chain.
            match self.head.cmpxchg(head, next, Full) {
                // SAFETY: Given up by `push`; it is in the stack no longer.
                Ok(_) => return Some(unsafe { T::from_link(link) }),
                Err(other) => head = other,
            }
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

/// Idle objects: put back by anybody without a lock, taken one by one under one.
#[pin_data]
pub(crate) struct Pool<T: Linked> {
    idle: Stack<T>,
    #[pin]
    taking: SpinLock<()>,
}

impl<T: Linked> Pool<T> {
    /// An empty pool.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            idle: Stack::new(),
            taking <- new_spinlock!((), "Pool::taking"),
        })
    }

    /// Takes an idle object.
    #[inline]
    pub(crate) fn get(&self) -> Option<T> {
        let _taking = self.taking.lock();
        // SAFETY: Every pop and every `take_all` of a pool is under this lock.
        unsafe { self.idle.pop() }
    }

    /// Puts an object back.
    #[inline]
    pub(crate) fn put(&self, object: T) {
        self.idle.push(object);
    }

    /// Takes up to `count` idle objects and gives each to `each`.
    #[inline]
    pub(crate) fn get_many(&self, count: usize, mut each: impl FnMut(T)) {
        let _taking = self.taking.lock();
        for _ in 0..count {
            // SAFETY: As in `get`.
            match unsafe { self.idle.pop() } {
                Some(object) => each(object),
                None => return,
            }
        }
    }

    /// Puts all of `chain` back at one stroke.
    #[inline]
    pub(crate) fn put_all(&self, chain: Chain<T>) {
        let Some(first) = NonNull::new(chain.head) else {
            return;
        };
        let mut last = first;
        for link in chain.links() {
            last = link;
        }
        // The links are the stack's now.
        mem::forget(chain);
        self.idle.push_chain(first, last);
    }

    /// Takes all idle objects.
    pub(crate) fn take_all(&self) -> Chain<T> {
        let _taking = self.taking.lock();
        self.idle.take_all()
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
