// SPDX-License-Identifier: GPL-2.0

//! Completions.

use loom::sync::Notify;
use pinned_init::pin_init_from_closure;
use pinned_init::PinInit;

/// Something that a task waits for.
pub struct Completion(Notify);

impl Completion {
    /// Not yet complete.
    pub fn new() -> impl PinInit<Self> {
        let init = move |slot: *mut Self| {
            // SAFETY: The slot is valid for writes.
            unsafe { slot.write(Self(Notify::new())) };
            Ok(())
        };
        // SAFETY: The closure initializes the slot, and does not fail.
        unsafe { pin_init_from_closure(init) }
    }

    /// Waits.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Waits. No time passes in a model.
    pub fn wait_ms(&self, _ms: u32) -> bool {
        self.0.wait();
        true
    }

    /// Wakes the task that waits.
    pub fn complete_all(&self) {
        self.0.notify();
    }
}
