// SPDX-License-Identifier: GPL-2.0

//! An alarm: has a service thread look at a transport after a while, though nothing has come.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        SetOnce,
        SpinLock, //
    },
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::delayed_work::RawDelayedWork, //
};

use super::handle::SvcHandle;

/// See the [module's](self) description.
#[pin_data(PinnedDrop)]
pub(crate) struct XprtTimer {
    #[pin]
    work: RawDelayedWork,
    xprt: SetOnce<SvcHandle>,
    /// What it is set to, until it goes off.
    #[pin]
    at: SpinLock<Option<u64>>,
    /// It has gone off, and nobody has looked yet.
    due: Atomic<bool>,
}

impl XprtTimer {
    /// An alarm that is not set.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            work <- RawDelayedWork::new(go_off, kernel::static_lock_class!()),
            xprt: SetOnce::new(),
            at <- new_spinlock!(None, "Alarm::at"),
            due: Atomic::new(false),
        })
    }

    /// Names the transport, once, before the alarm is set.
    pub(crate) fn attach(&self, xprt: SvcHandle) {
        self.xprt.populate(xprt);
    }

    /// The time, as the alarm counts it.
    pub(crate) fn now() -> u64 {
        // SAFETY: Has no preconditions.
        unsafe { bindings::rpcrdma_jiffies64() }
    }

    /// How long so many seconds are.
    pub(crate) fn ticks(seconds: u32) -> u64 {
        msecs_to_jiffies(seconds.saturating_mul(1000)) as u64
    }

    /// The time in so many seconds.
    pub(crate) fn in_seconds(seconds: u32) -> u64 {
        Self::now().saturating_add(Self::ticks(seconds))
    }

    /// Sets the alarm to `when`, unless it is set to an earlier time.
    ///
    /// Publish the work first. If the alarm goes off before `when`, this time is lost; the thread
    /// that it wakes must set it again.
    pub(crate) fn set(&self, when: u64) {
        let mut at = self.at.lock();
        if at.is_some_and(|at| at <= when) {
            return;
        }
        *at = Some(when);
        let delay = when.saturating_sub(Self::now());
        // Under the lock, so that the earliest time of several threads' is what is set.
        // CAST: An hour at most.
        // SAFETY: Cancelled before it ends.
        unsafe { self.work.modify(delay as c_ulong) };
    }

    /// Whether it has gone off since this was asked last. To be asked by a thread that looks at a
    /// transport, after finding that there is nothing else to be done.
    #[inline]
    pub(crate) fn take_due(&self) -> bool {
        self.due.load(Relaxed) && self.due.xchg(false, Full)
    }

    /// Takes the alarm back. Sleeps; nobody may set it afterwards.
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

/// # Safety
///
/// Called by the workqueue for the `work` of an alarm, which waits for this before it ends.
unsafe extern "C" fn go_off(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let timer =
        unsafe { &*kernel::container_of!(RawDelayedWork::from_work(work), XprtTimer, work) };
    *timer.at.lock() = None;
    // Before the transport's flag, which a thread clears before it asks.
    timer.due.xchg(true, Full);
    if let Some(xprt) = timer.xprt.as_ref() {
        xprt.set_data();
        xprt.enqueue();
    }
}
