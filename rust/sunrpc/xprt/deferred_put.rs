// SPDX-License-Identifier: GPL-2.0

//! The last reference to a client's transport, where it may not be given back.
//!
//! The last `xprt_put()` ends in `xprt_destroy()`, which waits for `XPRT_LOCKED`. Its holder may be
//! in `->close()`, waiting for our receive worker, and for callbacks. So whoever frees the slot of
//! a callback, which keeps a reference, hands the last one to a workqueue.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};

use crate::bindings;

use super::{
    handle::XprtHandle,
    types::Types, //
};

/// A thread of its own for the last reference.
#[pin_data]
pub(super) struct DeferredPut<T: Types> {
    xprt: XprtHandle<T>,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl{T: Types} HasWork<DeferredPut<T>> for DeferredPut<T> { self.work }
}

impl<T: Types> DeferredPut<T> {
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

    /// Puts the last reference to the transport, without waiting.
    ///
    /// # Safety
    ///
    /// The caller has it, and gives it up.
    pub(super) unsafe fn start(self: Arc<Self>) {
        // SAFETY: The kernel's, and always there.
        let queue = unsafe { Queue::from_raw(bindings::system_dfl_long_wq) };
        // The work item has the last reference: nobody comes here again before it is put.
        let _ = queue.enqueue(self);
    }
}

impl<T: Types> WorkItem for DeferredPut<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let raw = this.xprt.raw();
        // Before the transport goes, and with it, maybe, the module: the reference keeps both.
        drop(this);
        // SAFETY: `start` has left it.
        unsafe { bindings::xprt_put(raw) };
    }
}
