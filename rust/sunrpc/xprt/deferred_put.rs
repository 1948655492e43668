// SPDX-License-Identifier: GPL-2.0

//! Puts the last reference to a client's transport from a workqueue.
//!
//! The last `xprt_put()` calls `xprt_destroy()`, which waits for the send lock. The holder of the
//! send lock may be in `close`, waiting for the receive worker and for backchannel Calls to end. So
//! a thread that frees the slot of a backchannel Call, which has references to the transport, must
//! not put the last one itself.
//!
//! In the C module, `xprt_rdma_bc_free_rqst()` calls `xprt_put()` itself.

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

use crate::{
    bindings,
    compat::long_queue, //
};

use super::{
    handle::XprtHandle,
    types::Types, //
};

/// A work item that puts a transport's last reference.
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
                work <- new_work!("DeferredPut::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Queues the work item. Does not sleep.
    ///
    /// # Safety
    ///
    /// The caller owns the last reference to the transport, and leaves it to the work item.
    pub(super) unsafe fn start(self: Arc<Self>) {
        // SAFETY: The kernel creates the workqueue at boot and never destroys it.
        let queue = unsafe { Queue::from_raw(long_queue()) };
        // Cannot fail: the work item is not queued, since there is one last reference.
        let _ = queue.enqueue(self);
    }
}

impl<T: Types> WorkItem for DeferredPut<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let raw = this.xprt.xprt().raw();
        // The handle must go first: the transport's reference keeps memory and module.
        drop(this);
        // SAFETY: `start` left the reference to this function.
        unsafe { bindings::xprt_put(raw) };
    }
}
