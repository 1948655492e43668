// SPDX-License-Identifier: GPL-2.0

//! Idle objects, from which one at a time can be had.

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

/// Idle objects: put back by anybody without a lock, taken under one. What was put back last is
/// taken first, since it may still be in a cache.
///
/// Whoever looks for an object looks at all of them. One that was put back before the caller's full
/// barrier is either found or somebody else's by then.
#[pin_data]
pub(crate) struct Pool<T: Linked> {
    /// Those that were put back since somebody looked.
    idle: Stack<T>,
    /// Those before them. Only who has the lock takes anything out of either.
    #[pin]
    taken: SpinLock<Chain<T>>,
}

impl<T: Linked> Pool<T> {
    /// An empty pool.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            idle: Stack::new(),
            taken <- new_spinlock!(Chain::new(), "Pool::taken"),
        })
    }

    /// Takes an idle object.
    #[inline]
    pub(crate) fn get(&self) -> Option<T> {
        let mut taken = self.taken.lock();
        taken.prepend(self.idle.take_all());
        taken.pop()
    }

    /// Takes up to `count` idle objects.
    #[inline]
    pub(crate) fn get_many(&self, count: usize) -> Chain<T> {
        let mut many = Chain::new();
        let mut taken = self.taken.lock();
        taken.prepend(self.idle.take_all());
        for _ in 0..count {
            match taken.pop() {
                Some(object) => many.push(object),
                None => break,
            }
        }
        many
    }

    /// Puts an object back. A full barrier, on which callers rely: see [`Stack::push`].
    #[inline]
    pub(crate) fn put(&self, object: T) {
        self.idle.push(object);
    }

    /// Puts all of `chain` back at one stroke.
    #[inline]
    pub(crate) fn put_all(&self, chain: Chain<T>) {
        self.idle.push_all(chain);
    }

    /// Drops all idle objects, without the lock: the end of one may sleep.
    pub(crate) fn clear(&self) {
        let (idle, taken) = {
            let mut taken = self.taken.lock();
            (
                self.idle.take_all(),
                mem::replace(&mut *taken, Chain::new()),
            )
        };
        drop(idle);
        drop(taken);
    }
}
