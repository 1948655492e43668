// SPDX-License-Identifier: GPL-2.0

//! The delay between attempts to connect, if the last one brought no message from the peer.
//!
//! If a peer accepts connections but sends no message on them, or if an attempt fails at this end,
//! the delay starts with five seconds and doubles. An attempt that finds the peer unreachable costs
//! neither end much, and the peer may return at any time. The delay is then a fixed fraction of the
//! time that the peer has been away: a client resumes soon after a short outage, and clients do not
//! flood a server that is away for long. In addition, SUNRPC makes each task wait three seconds
//! after such an error, which is the C module's only delay. If the peer's hardware address changes
//! during the attempt, the time away starts anew.
//!
//! No thread holds the send lock during the delay, so an administrator can set another address and
//! an unmount can destroy the transport. Tasks wait in SUNRPC's `pending` queue, and are woken with
//! `EAGAIN` after the delay to request a connection again.
//!
//! C: transport.c, xprt_rdma_connect()

use core::{
    cell::UnsafeCell,
    mem::replace, //
};

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::{
        delayed_work::RawDelayedWork,
        sockaddr::SockAddr, //
    },
    sunrpc::time::jiffies, //
};

use super::{
    connect_error::PeerState,
    handle::XprtHandle,
    types::Types, //
};

/// The first delay. Each later one is twice the one before.
pub(super) const FIRST_BACKOFF_MS: u32 = 5_000;

/// The least delay while the peer is away. Tasks that request a connection during the delay share
/// the next attempt.
const AWAY_MS: u32 = 1_000;

/// The delay is the time that the peer has been away, divided by this: it reaches SUNRPC's three
/// seconds after a minute and a half.
const AWAY_DIVISOR: c_ulong = 32;

/// The last attempt to connect.
struct LastAttempt {
    /// The address that was tried.
    peer: Option<SockAddr>,
    /// What the attempt has shown of the peer.
    shown: PeerState,
    /// When the attempt ended, in jiffies.
    ended: c_ulong,
    /// When the first attempt after the peer's last message ended, in jiffies.
    away_since: c_ulong,
}

/// The reconnect delay of a transport. See the [module documentation](self).
///
/// # Invariants
///
/// - I1: Only the holder of the send lock accesses `last`.
/// - I2: Only the holder of the send lock queues `wake`. While there is a connection, `wake` is
///   neither queued nor running.
#[pin_data]
pub(super) struct ReconnectBackoff<T: Types> {
    xprt: XprtHandle<T>,
    last: UnsafeCell<LastAttempt>,
    #[pin]
    wake: RawDelayedWork,
}

impl<T: Types> ReconnectBackoff<T> {
    /// No delay.
    pub(super) fn new(xprt: XprtHandle<T>) -> impl PinInit<Self> {
        let last = LastAttempt {
            peer: None,
            shown: PeerState::Unknown,
            ended: 0,
            away_since: 0,
        };
        pin_init!(Self {
            xprt,
            last: UnsafeCell::new(last),
            wake <- RawDelayedWork::new(wake_pending::<T>, kernel::static_lock_class!()),
        })
    }

    /// Begins the delay after an attempt, which has shown the state of the `peer`. A message from
    /// the peer [resets](XprtHandle::reset_backoff) it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock.
    pub(super) unsafe fn begin(&self, peer: PeerState) {
        let raw = self.xprt.xprt().raw();
        // SAFETY: The handle keeps the transport, and the send lock guards `last` (I1). SUNRPC
        // accesses the two words without a lock, as here. `XprtHandle::reset_backoff` may clear
        // `reestablish_timeout` meanwhile: single accesses do not tear.
        unsafe {
            let last = &mut *self.last.get();
            last.ended = jiffies();
            if (*raw).reestablish_timeout == 0 || peer == PeerState::Moved {
                last.away_since = last.ended;
            }
            let shown = replace(&mut last.shown, peer);
            if peer == PeerState::Unknown {
                // Only a delay that began with `FIRST_BACKOFF_MS` is doubled.
                if shown != PeerState::Unknown {
                    (*raw).reestablish_timeout = 0;
                }
                bindings::xprt_reconnect_backoff(raw, msecs_to_jiffies(FIRST_BACKOFF_MS));
            } else {
                let share = last.ended.wrapping_sub(last.away_since) / AWAY_DIVISOR;
                (*raw).reestablish_timeout = share
                    .max(msecs_to_jiffies(AWAY_MS))
                    .min((*raw).max_reconnect_timeout);
            }
        }
    }

    /// The rest of the delay, in jiffies; 0 if the caller is about to try another address than the
    /// last.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock.
    pub(super) unsafe fn remaining(&self) -> c_ulong {
        let raw = self.xprt.xprt().raw();
        let peer = self.xprt.peer();
        // SAFETY: As in `begin`.
        unsafe {
            let last = &mut *self.last.get();
            if last.peer != peer {
                last.peer = peer;
                (*raw).reestablish_timeout = 0;
            }
            // If jiffies have wrapped around since, there is one more delay.
            (*raw)
                .reestablish_timeout
                .saturating_sub(jiffies().wrapping_sub(last.ended))
        }
    }

    /// Wakes the tasks that wait for a connection after `delay` jiffies.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and there is no connection. `destroy` calls [`Self::stop`]
    /// before it frees the transport.
    pub(super) unsafe fn wake_after(&self, delay: c_ulong) {
        // The work may be queued for the address that was tried before, whose delay is over.
        // SAFETY: By this function's contract the work stays until it has run or is cancelled.
        // INVARIANT: I2: by this function's contract.
        unsafe { self.wake.modify(delay) };
    }

    /// Cancels [`Self::wake_after`]. The holder of the send lock must call this before it connects:
    /// a task that waits for a Reply would take the wakeup for the end of the connection.
    pub(super) fn stop(&self) {
        self.wake.cancel_sync();
    }
}

/// The function of `wake`.
///
/// # Safety
///
/// The workqueue calls this for the `wake` of a `ReconnectBackoff<T>`, which is not freed
/// meanwhile.
unsafe extern "C" fn wake_pending<T: Types>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract.
    let this = unsafe {
        &*kernel::container_of!(RawDelayedWork::from_work(work), ReconnectBackoff<T>, wake)
    };
    // By I2 there is no connection, so no task in `pending` waits for a Reply.
    this.xprt.xprt().wake_pending(EAGAIN.to_errno());
}
