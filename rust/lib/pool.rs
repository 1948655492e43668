// SPDX-License-Identifier: GPL-2.0

//! A pool of idle objects.
//!
//! The kernel crate has no counterpart: a `mempool_t` allocates its elements and frees the surplus,
//! while the objects here are allocated by their users and kept until the pool ends.

use core::mem;

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use super::llist::{
    Chain,
    Linked,
    Stack, //
};

/// A pool of idle objects. [`Self::put`] takes no lock, [`Self::get`] takes one. The object that
/// was put last is got first, because it may still be in a cache.
///
/// A `get` that fails has seen all objects: an object that was put before the caller's last full
/// barrier was got by another thread.
#[pin_data]
pub(crate) struct Pool<T: Linked> {
    /// Objects that were put since the last `get`. Only the holder of the lock takes them.
    returned: Stack<T>,
    /// All others.
    #[pin]
    free: SpinLock<Chain<T>>,
}

impl<T: Linked> Pool<T> {
    /// Creates an empty pool.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            returned: Stack::new(),
            free <- new_spinlock!(Chain::new(), "Pool::free"),
        })
    }

    /// Gets an object.
    #[inline]
    pub(crate) fn get(&self) -> Option<T> {
        let mut free = self.free.lock();
        free.prepend(self.returned.take_all());
        free.pop()
    }

    /// Gets up to `count` objects.
    #[inline]
    pub(crate) fn get_many(&self, count: usize) -> Chain<T> {
        let mut many = Chain::new();
        let mut free = self.free.lock();
        free.prepend(self.returned.take_all());
        for _ in 0..count {
            match free.pop() {
                Some(object) => many.push(object),
                None => break,
            }
        }
        many
    }

    /// Puts an object. Like [`Stack::push`], this is a full barrier.
    #[inline]
    pub(crate) fn put(&self, object: T) {
        self.returned.push(object);
    }

    /// Puts all objects of `chain`.
    #[inline]
    pub(crate) fn put_all(&self, chain: Chain<T>) {
        self.returned.push_all(chain);
    }

    /// Drops all objects. They are dropped without the lock, since that may sleep.
    pub(crate) fn clear(&self) {
        let (returned, free) = {
            let mut free = self.free.lock();
            (
                self.returned.take_all(),
                mem::replace(&mut *free, Chain::new()),
            )
        };
        drop(returned);
        drop(free);
    }
}
