// SPDX-License-Identifier: GPL-2.0

//! The last reference to a client's transport, where it may not be given back.
//!
//! Whoever puts the last one waits for the send lock. Whoever has that may be ending the
//! connection, and waits for the thread that takes its Receives. That thread leaves the last one to
//! another.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

use crate::bindings;

use super::{
    handle::XprtHandle,
    transport::Transport, //
};

/// Puts the last reference in a thread of its own.
#[pin_data]
pub(super) struct LastPut<T: Transport> {
    xprt: XprtHandle<T>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl{T: Transport} HasWork<LastPut<T>> for LastPut<T> { self.work }
}

impl<T: Transport> LastPut<T> {
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(xprt: XprtHandle<T>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                work <- new_work!("LastPut::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Puts a reference to the transport, without waiting.
    ///
    /// # Safety
    ///
    /// The caller has a reference, and gives it up.
    pub(super) unsafe fn put(self: &Arc<Self>) {
        // SAFETY: By this function's contract.
        if unsafe { bindings::refcount_dec_not_one(&raw mut (*self.xprt.raw()).kref.refcount) } {
            return;
        }
        // The work item has the last reference: nobody comes here again before it is put.
        let _ = workqueue::system_long().enqueue(self.clone());
    }
}

impl<T: Transport> WorkItem for LastPut<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // SAFETY: `put` has left it.
        unsafe { bindings::xprt_put(this.xprt.raw()) };
    }
}
