// SPDX-License-Identifier: GPL-2.0

//! Completions that a task may wait for with a timeout.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)
//!
//! `kernel::sync::Completion` does not fit: it has no timeout.

use kernel::{
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

use crate::bindings;

/// A `struct completion`.
#[pin_data]
pub(crate) struct Completion {
    #[pin]
    raw: Opaque<bindings::completion>,
}

// SAFETY: A completion may be used from any thread.
unsafe impl Send for Completion {}
// SAFETY: The functions of C take the lock of the completion.
unsafe impl Sync for Completion {}

impl Completion {
    /// Not complete.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and pinned.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Wakes all tasks that wait now or later.
    pub(crate) fn complete_all(&self) {
        // SAFETY: `new` has initialised the completion.
        unsafe { bindings::complete_all(self.raw.get()) };
    }

    /// Waits, uninterruptibly.
    pub(crate) fn wait(&self) {
        // SAFETY: As in `complete_all`.
        unsafe { bindings::wait_for_completion(self.raw.get()) };
    }

    /// Waits up to `ms` milliseconds, uninterruptibly. Returns whether it is complete.
    pub(crate) fn wait_ms(&self, ms: u32) -> bool {
        let timeout = msecs_to_jiffies(ms);
        // SAFETY: As in `complete_all`.
        unsafe { bindings::wait_for_completion_timeout(self.raw.get(), timeout) != 0 }
    }
}
