// SPDX-License-Identifier: GPL-2.0

//! Whether an endpoint is being closed, and whether a post may lie behind the marker of its drain.
//!
//! A completion handler may find the endpoint open, and post a work request after the drain has
//! posted its marker. The drain does not wait for this work request. But the handler has returned
//! when the drain ends, since one worker handles all completions of a CQ, including the marker's.
//! So a handler checks again after each post, and the drain is repeated if any handler found the
//! endpoint closing. A second drain is rare, and costs as much as the first.
//!
//! A lock in the driver orders the marker and a later post: usually the lock of the queue. In the
//! error state, siw does not take this lock. It completes the work request at once, and orders the
//! completions by the lock of the CQ. A handler that posts behind the marker takes the CQ's lock
//! after the closing thread, and so sees that closing has begun.

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

    /// Returns whether a drained queue may hold a work request. Called after both queues were
    /// drained.
    pub(super) fn has_overtaken(&self) -> bool {
        self.overtaken.load(Relaxed)
    }
}
