// SPDX-License-Identifier: GPL-2.0

//! Whether an endpoint is being closed, and whether a post may lie behind the marker of its drain.
//!
//! A completion handler may find the endpoint open, and post after the drain has posted its marker.
//! The drain does not wait for such a work request. But the handler has returned when the drain
//! ends, since one worker handles the completions of a CQ, the marker among them. So the handler
//! looks again after each post, and the drain is repeated if any handler found the endpoint
//! closing. This is rare, and a second drain would cost each connection what the first one does.
//!
//! A lock of the device orders the marker and a post that lies behind it: as a rule that of the
//! queue. siw takes no lock of a queue in the error state. It completes the work request at once,
//! and orders the completions by the lock of the CQ. A handler whose post lies behind the marker
//! has taken that lock after the closing thread, and so sees that closing has begun.

use kernel::sync::atomic::ordering::Relaxed;

use crate::lib::sync::Atomic;

/// See the [module documentation](self).
pub(super) struct Closing {
    begun: Atomic<bool>,
    overtaken: Atomic<bool>,
}

impl Closing {
    /// The endpoint is not being closed.
    pub(super) fn new() -> Self {
        Self {
            begun: Atomic::new(false),
            overtaken: Atomic::new(false),
        }
    }

    /// Begins to close the endpoint. Called before the drain.
    pub(super) fn begin(&self) {
        self.begun.store(true, Relaxed);
    }

    /// Returns whether the endpoint is being closed. If so, nothing may be posted.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Relaxed)
    }

    /// Called after each post, by the thread that has posted.
    #[inline]
    pub(super) fn posted(&self) {
        if self.has_begun() {
            self.overtaken.store(true, Relaxed);
        }
    }

    /// Returns whether a work request may be left in a queue that was drained. Called after both
    /// queues were.
    pub(super) fn has_overtaken(&self) -> bool {
        self.overtaken.load(Relaxed)
    }
}
