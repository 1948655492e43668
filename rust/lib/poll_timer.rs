// SPDX-License-Identifier: GPL-2.0

//! A timer that calls its owner in a worker.
//!
//! `kernel::time::hrtimer` does not fit: it calls in hard interrupt context.

use kernel::prelude::*;

use crate::bindings;

use super::delayed_work::RawDelayedWork;

/// What a [`PollTimer`] calls.
pub(crate) trait Poll: Send + Sync + 'static {
    /// The time has come. Returns the jiffies until the next time, if there is one. May sleep.
    fn poll(&self) -> Option<c_ulong>;
}

/// A timer. Its drop cancels it, and sleeps.
#[pin_data(PinnedDrop)]
pub(crate) struct PollTimer<P: Poll> {
    #[pin]
    work: RawDelayedWork,
    #[pin]
    target: P,
}

impl<P: Poll> PollTimer<P> {
    /// A timer that is not armed.
    pub(crate) fn new(target: impl PinInit<P>) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- RawDelayedWork::new(fire::<P>, kernel::static_lock_class!()),
            target <- target,
        })
    }

    /// What the timer calls.
    pub(crate) fn target(&self) -> &P {
        &self.target
    }

    /// Has [`Poll::poll`] called in `delay` jiffies, whatever time was set before.
    pub(crate) fn arm(&self, delay: c_ulong) {
        // SAFETY: The drop of this timer cancels the work.
        unsafe { self.work.modify(delay) };
    }

    /// Cancels the timer, and waits for [`Poll::poll`], which must not call this. Sleeps.
    pub(crate) fn cancel(&self) {
        self.work.cancel_sync();
    }
}

#[pinned_drop]
impl<P: Poll> PinnedDrop for PollTimer<P> {
    fn drop(self: Pin<&mut Self>) {
        self.work.cancel_sync();
    }
}

/// The function of `work`.
///
/// # Safety
///
/// The workqueue calls this for the `work` of a `PollTimer<P>`, which is not freed meanwhile.
unsafe extern "C" fn fire<P: Poll>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let timer =
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), PollTimer<P>, work) };
    if let Some(delay) = timer.target.poll() {
        timer.arm(delay);
    }
}
