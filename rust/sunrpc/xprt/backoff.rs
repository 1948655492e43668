// SPDX-License-Identifier: GPL-2.0

//! The pause between attempts to connect, if the last one was good for nothing.
//!
//! Nobody has the send lock meanwhile: an administrator can give the transport another address, and
//! whoever unmounts can have it destroyed. Tasks wait where they wait for a connection, and are
//! woken to ask for one again.

use core::cell::UnsafeCell;

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::{
        delayed_work::RawDelayedWork,
        sockaddr::SockAddr, //
    }, //
};

use super::{
    handle::XprtHandle,
    types::Types, //
};

/// The first pause; each is twice as long as the last one.
pub(super) const FIRST_BACKOFF_MS: u32 = 5_000;

/// What the last attempt has led to.
struct Last {
    /// Whom it was for.
    peer: Option<SockAddr>,
    /// When it was over, in jiffies.
    since: c_ulong,
}

/// See the [module's](self) description.
///
/// # Invariants
///
/// `last` is the send lock's. `over` is queued with the send lock held, and neither queued nor
/// running while there is a connection.
#[pin_data]
pub(super) struct ReconnectBackoff<T: Types> {
    xprt: XprtHandle<T>,
    last: UnsafeCell<Last>,
    #[pin]
    over: RawDelayedWork,
}

impl<T: Types> ReconnectBackoff<T> {
    pub(super) fn new(xprt: XprtHandle<T>) -> impl PinInit<Self> {
        let last = Last {
            peer: None,
            since: 0,
        };
        pin_init!(Self {
            xprt,
            last: UnsafeCell::new(last),
            over <- RawDelayedWork::new(over::<T>, kernel::static_lock_class!()),
        })
    }

    /// An attempt is over; until a message of the peer's shows that it was good for something, the
    /// next one to the same peer has to wait.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock.
    pub(super) unsafe fn begin(&self) {
        let raw = self.xprt.raw();
        // SAFETY: By this function's contract, and the type's invariants.
        unsafe {
            bindings::xprt_reconnect_backoff(raw, msecs_to_jiffies(FIRST_BACKOFF_MS));
            (*self.last.get()).since = bindings::rpcrdma_jiffies();
        }
    }

    /// What is left of the pause, in jiffies. A peer that was not asked yet has none; the caller is
    /// about to ask it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock.
    pub(super) unsafe fn left(&self) -> c_ulong {
        let raw = self.xprt.raw();
        let peer = self.xprt.peer();
        // SAFETY: By this function's contract, and the type's invariants.
        unsafe {
            let last = &mut *self.last.get();
            if last.peer != peer {
                last.peer = peer;
                (*raw).reestablish_timeout = 0;
            }
            // If the clock has come round since, there is one pause more.
            let gone = bindings::rpcrdma_jiffies().wrapping_sub(last.since);
            (*raw).reestablish_timeout.saturating_sub(gone)
        }
    }

    /// Has those who wait for a connection ask for one again after that time.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, there is no connection, and the transport is not destroyed:
    /// `destroy` calls [`Self::stop`].
    pub(super) unsafe fn wait(&self, left: c_ulong) {
        // INVARIANT: By this function's contract.
        // SAFETY: By this function's contract, it stays until it has run or is cancelled. It may be
        // queued for the peer that was asked before: that pause is of no meaning any more.
        unsafe { self.over.modify(left) };
    }

    /// Has nobody woken until [`Self::wait`]. Whoever makes a connection calls this first, with the
    /// send lock: those who wait for a Reply would take being woken for its end.
    pub(super) fn stop(&self) {
        self.over.cancel_sync();
    }
}

/// # Safety
///
/// Called by the workqueue for the work item of a `ReconnectBackoff<T>`, which waits for this.
unsafe extern "C" fn over<T: Types>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let this = unsafe {
        &*kernel::container_of!(RawDelayedWork::from_work(work), ReconnectBackoff<T>, over)
    };
    // SAFETY: The memory is there while a handle is, and the transport is alive: `destroy` waits
    // for this. By the type's invariants nobody waits for a Reply.
    unsafe { bindings::xprt_wake_pending_tasks(this.xprt.raw(), -bindings::EAGAIN.cast_signed()) };
}
