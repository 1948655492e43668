// SPDX-License-Identifier: GPL-2.0

//! A timer that wakes an nfsd thread for a transport on which nothing was received.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        SpinLock, //
    },
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::{
        clock,
        delayed_work::RawDelayedWork,
        sync::{
            Atomic,
            SetOnce, //
        }, //
    }, //
};

use super::handle::XprtHandle;

/// A timer of a transport. Times are in jiffies.
#[pin_data(PinnedDrop)]
pub(crate) struct XprtTimer {
    #[pin]
    work: RawDelayedWork,
    xprt: SetOnce<XprtHandle>,
    /// When it fires; `None` if it is not armed.
    #[pin]
    deadline: SpinLock<Option<u64>>,
    /// It has fired, and no thread has called [`Self::take_fired`] since.
    fired: Atomic<bool>,
}

impl XprtTimer {
    /// A timer that is not armed.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            work <- RawDelayedWork::new(fire, kernel::static_lock_class!()),
            xprt: SetOnce::new(),
            deadline <- new_spinlock!(None, "XprtTimer::deadline"),
            fired: Atomic::new(false),
        })
    }

    /// Sets the transport, once, before the timer is armed.
    pub(crate) fn attach(&self, xprt: XprtHandle) {
        self.xprt.populate(xprt);
    }

    /// The current time.
    pub(crate) fn now() -> u64 {
        clock::jiffies()
    }

    /// The number of jiffies in `seconds`.
    pub(crate) fn jiffies(seconds: u32) -> u64 {
        msecs_to_jiffies(seconds.saturating_mul(1000)) as u64
    }

    /// The time in `seconds` from now.
    pub(crate) fn in_seconds(seconds: u32) -> u64 {
        Self::now().saturating_add(Self::jiffies(seconds))
    }

    /// Arms the timer for `when`, unless it is armed for an earlier time.
    ///
    /// The caller must publish the work before it arms the timer. If the timer fires before `when`,
    /// it does not fire again: the woken thread must arm it for the work that is left.
    pub(crate) fn arm(&self, when: u64) {
        let mut deadline = self.deadline.lock();
        if deadline.is_some_and(|deadline| deadline <= when) {
            return;
        }
        *deadline = Some(when);
        let delay = when.saturating_sub(Self::now());
        // With the lock held, so that the earliest of several threads' times is armed.
        // CAST: An hour at most.
        // SAFETY: The drop of this timer cancels the work.
        unsafe { self.work.modify(delay as c_ulong) };
    }

    /// Whether the timer has fired since the last call. A thread that receives on the transport
    /// calls this after it may have cleared `XPT_DATA`.
    #[inline]
    pub(crate) fn take_fired(&self) -> bool {
        self.fired.load(Relaxed) && self.fired.xchg(false, Full)
    }

    /// Whether the timer has fired since the last [`Self::take_fired`].
    #[inline]
    pub(crate) fn has_fired(&self) -> bool {
        self.fired.load(Relaxed)
    }

    /// Cancels the timer, which must not be armed afterwards. Sleeps.
    pub(crate) fn cancel(&self) {
        self.work.cancel_sync();
    }
}

#[pinned_drop]
impl PinnedDrop for XprtTimer {
    fn drop(self: Pin<&mut Self>) {
        self.cancel();
    }
}

/// The function of `work`.
///
/// # Safety
///
/// The workqueue calls this for the `work` of an `XprtTimer`, which is not freed meanwhile.
unsafe extern "C" fn fire(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let timer =
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), XprtTimer, work) };
    *timer.deadline.lock() = None;
    // Before `XPT_DATA` is set: a thread clears that flag before it calls `take_fired`.
    timer.fired.xchg(true, Full);
    if let Some(xprt) = timer.xprt.as_ref() {
        xprt.set_data();
        xprt.enqueue();
    }
}
