// SPDX-License-Identifier: GPL-2.0

//! Delayed work that its owner cancels.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)
//!
//! `kernel::workqueue::DelayedWork` does not fit: it takes a reference to its owner while it is
//! queued, and cannot be cancelled. The work here is part of an object that C frees, which cancels
//! the work first.

use core::ptr;

use kernel::{
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

use crate::{
    bindings,
    compat::long_queue, //
};

/// A `struct delayed_work`, without a reference to its owner.
#[pin_data]
#[repr(transparent)]
pub(crate) struct RawDelayedWork {
    #[pin]
    raw: Opaque<bindings::delayed_work>,
}

// SAFETY: A work item may be queued and cancelled from any thread. The contract of `queue` keeps it
// in place while it is queued.
unsafe impl Send for RawDelayedWork {}
// SAFETY: As above. The workqueue code serialises concurrent calls.
unsafe impl Sync for RawDelayedWork {}

impl RawDelayedWork {
    /// Creates a work item that is not queued. `function` is called with its `work_struct`.
    pub(crate) fn new(
        function: unsafe extern "C" fn(*mut bindings::work_struct),
        class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and pinned. `function` is called only after
                // `queue` or `modify`, whose contracts cover it. A `LockClassKey` is a transparent
                // wrapper of the C type.
                unsafe {
                    bindings::rpcrdma_init_delayed_work(
                        slot,
                        Some(function),
                        ptr::from_ref(class.get_ref()).cast_mut().cast(),
                    )
                };
            }),
        })
    }

    /// The work item of which `work` is a part.
    ///
    /// # Safety
    ///
    /// `work` is the argument of the function of a `RawDelayedWork`.
    pub(crate) unsafe fn from_work(work: *mut bindings::work_struct) -> *const Self {
        // SAFETY: `work` is the member of a `delayed_work` by this function's contract.
        unsafe { kernel::container_of!(work, bindings::delayed_work, work) }.cast()
    }

    /// Queues the work item, to run after `delay` jiffies. Does nothing if it is queued already.
    ///
    /// # Safety
    ///
    /// The work item stays in place, and its function may be called, until the function or a later
    /// [`Self::cancel_sync`] has returned.
    pub(crate) unsafe fn queue(&self, delay: c_ulong) {
        // SAFETY: `new` has initialised the work item. All else by this function's contract.
        unsafe { bindings::queue_delayed_work_on(ANY_CPU, queue(), self.raw.get(), delay) };
    }

    /// Queues the work item, or changes its delay if it is queued already.
    ///
    /// # Safety
    ///
    /// As for [`Self::queue`].
    pub(crate) unsafe fn modify(&self, delay: c_ulong) {
        // SAFETY: `new` has initialised the work item. All else by this function's contract.
        unsafe { bindings::mod_delayed_work_on(ANY_CPU, queue(), self.raw.get(), delay) };
    }

    /// Cancels the work item and waits for its function, which must not call this.
    pub(crate) fn cancel_sync(&self) {
        // SAFETY: `new` has initialised the work item.
        unsafe { bindings::cancel_delayed_work_sync(self.raw.get()) };
    }
}

/// The workqueue chooses the CPU.
const ANY_CPU: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// The workqueue for long work: connecting may take seconds.
fn queue() -> *mut bindings::workqueue_struct {
    long_queue()
}
