// SPDX-License-Identifier: GPL-2.0

//! Objects whose work requests a driver may have posted, or not.
//!
//! If a driver fails a post without naming the first work request that it has not posted, siw has
//! posted the chain, and rdmavt has posted nothing. In the first case the completion gives the
//! object back, in the second nothing does before the QP is drained. An object that were lost would
//! keep its mapping, and the device's removal would wait for that.

use core::ptr::NonNull;

use kernel::{
    alloc::flags::__GFP_NOWARN,
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

/// A pointer to an object that was given to a device.
struct Doubted<T>(NonNull<T>);

// SAFETY: The pointer is only moved. To make an object of it again takes unsafe code.
unsafe impl<T> Send for Doubted<T> {}

/// The objects of one kind and one connection.
#[pin_data]
pub(in crate::verbs) struct InDoubt<T> {
    #[pin]
    list: SpinLock<KVec<Doubted<T>>>,
}

impl<T> InDoubt<T> {
    /// Creates an empty list.
    pub(in crate::verbs) fn new() -> impl PinInit<Self> {
        pin_init!(Self { list <- new_spinlock!(KVec::new(), "InDoubt::list") })
    }

    /// Adds an object, which may have completed already. If there is no memory, one that does not
    /// complete is leaked.
    #[cold]
    pub(in crate::verbs) fn add(&self, object: NonNull<T>) {
        let pushed = self
            .list
            .lock()
            .push(Doubted(object), GFP_ATOMIC | __GFP_NOWARN);
        if pushed.is_err() {
            pr_err!("out of memory: a message that may not have been sent may be leaked\n");
        }
    }

    /// The number of objects.
    pub(in crate::verbs) fn len(&self) -> usize {
        self.list.lock().len()
    }

    /// Removes an object.
    pub(in crate::verbs) fn take(&self) -> Option<NonNull<T>> {
        self.list.lock().pop().map(|doubted| doubted.0)
    }
}
