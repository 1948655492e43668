// SPDX-License-Identifier: GPL-2.0

//! Work that is done after a while.
//!
//! The kernel crate's own wants a counted owner, which it keeps while it is queued. What is here is
//! part of an object that ends when somebody else says so, and cancels it then.

use kernel::{
    prelude::*,
    sync::LockClassKey,
    types::Opaque, //
};

use crate::bindings;

/// A `struct delayed_work`. What queues it sees to it that its owner stays.
#[pin_data]
#[repr(transparent)]
pub(crate) struct RawDelayedWork {
    #[pin]
    raw: Opaque<bindings::delayed_work>,
}

// SAFETY: Work items may be queued and cancelled from any thread.
unsafe impl Send for RawDelayedWork {}
// SAFETY: As above.
unsafe impl Sync for RawDelayedWork {}

impl RawDelayedWork {
    /// A work item that is not queued, and has `function` called with its `work_struct`.
    pub(crate) fn new(
        function: unsafe extern "C" fn(*mut bindings::work_struct),
        class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is writable and pinned; who queues it answers for `function`.
                unsafe {
                    bindings::rpcrdma_init_delayed_work(slot, Some(function), class.as_ptr())
                };
            }),
        })
    }

    /// The work item that `work` is part of.
    ///
    /// # Safety
    ///
    /// `work` is what the function of a `RawDelayedWork` is called with.
    pub(crate) unsafe fn from_work(work: *mut bindings::work_struct) -> *const Self {
        // SAFETY: By this function's contract.
        unsafe { kernel::container_of!(work, bindings::delayed_work, work) }.cast()
    }

    /// Has the function called after `delay` jiffies, unless that is going to happen anyway.
    ///
    /// # Safety
    ///
    /// The item stays in place, and its function may be called with it, until that has returned, or
    /// [`Self::cancel_sync`] has, which is called after this.
    pub(crate) unsafe fn queue(&self, delay: c_ulong) {
        // SAFETY: Initialised by `new`, and by this function's contract.
        unsafe { bindings::queue_delayed_work_on(ANY_CPU, queue(), self.raw.get(), delay) };
    }

    /// Has the function called after `delay` jiffies, whatever was said before.
    ///
    /// # Safety
    ///
    /// As for [`Self::queue`].
    pub(crate) unsafe fn modify(&self, delay: c_ulong) {
        // SAFETY: Initialised by `new`, and by this function's contract.
        unsafe { bindings::mod_delayed_work_on(ANY_CPU, queue(), self.raw.get(), delay) };
    }

    /// Takes the work item out of the queue, and waits for its function, which must not call this.
    pub(crate) fn cancel_sync(&self) {
        // SAFETY: Initialised by `new`.
        unsafe { bindings::cancel_delayed_work_sync(self.raw.get()) };
    }
}

/// The CPU is the workqueue's choice.
const ANY_CPU: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// Connecting, for one, takes long.
fn queue() -> *mut bindings::workqueue_struct {
    // SAFETY: Made when the kernel starts, and never changed.
    unsafe { bindings::system_dfl_long_wq }
}
