// SPDX-License-Identifier: GPL-2.0

//! Objects whose work requests a driver may or may not have posted.
//!
//! A driver may fail a post without naming the first unposted work request: siw has then posted the
//! chain, and rdmavt nothing. In the first case the completion returns the object; in the second,
//! nothing returns it before the QP is drained. A lost object would stay mapped, and device removal
//! would wait for the mapping.

use core::ptr::NonNull;

use kernel::{
    alloc::flags::__GFP_NOWARN,
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// The number of objects that a list holds without an allocation. A failed post ends the
/// connection, so only threads that are already about to post add more.
const ROOM: usize = 8;

/// A pointer to an object that was given to a device.
struct Doubted<T>(NonNull<T>);

// SAFETY: The pointer is only moved. Turning it back into an object takes unsafe code.
unsafe impl<T> Send for Doubted<T> {}

/// The objects of a list.
struct Objects<T> {
    first: [Option<Doubted<T>>; ROOM],
    /// The objects for which `first` had no room.
    more: KVec<Doubted<T>>,
}

/// The objects of one kind and one connection.
#[pin_data]
pub(in crate::verbs) struct InDoubt<T> {
    #[pin]
    list: SpinLock<Objects<T>>,
}

impl<T> InDoubt<T> {
    /// Creates an empty list.
    pub(in crate::verbs) fn new() -> impl PinInit<Self> {
        let objects = Objects {
            first: [const { None }; ROOM],
            more: KVec::new(),
        };
        pin_init!(Self { list <- new_spinlock!(objects, "InDoubt::list") })
    }

    /// Adds an object, which may have completed already. If `first` is full and memory is short, an
    /// object that does not complete is leaked.
    #[cold]
    pub(in crate::verbs) fn add(&self, object: NonNull<T>) {
        let mut list = self.list.lock();
        if let Some(room) = list.first.iter_mut().find(|room| room.is_none()) {
            *room = Some(Doubted(object));
            return;
        }
        let pushed = list.more.push(Doubted(object), GFP_ATOMIC | __GFP_NOWARN);
        drop(list);
        if pushed.is_err() {
            pr_err!("out of memory: a message that may not have been sent may be leaked\n");
        }
    }

    /// The number of objects.
    pub(in crate::verbs) fn len(&self) -> usize {
        let list = self.list.lock();
        list.first.iter().flatten().count() + list.more.len()
    }

    /// Removes an object.
    pub(in crate::verbs) fn take(&self) -> Option<NonNull<T>> {
        let mut list = self.list.lock();
        let first = list.first.iter_mut().find_map(Option::take);
        first.or_else(|| list.more.pop()).map(|doubted| doubted.0)
    }
}
