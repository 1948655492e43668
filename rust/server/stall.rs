// SPDX-License-Identifier: GPL-2.0

//! Watches that a Send Queue does not come to a halt.
//!
//! How long the device waits for the answer to an RDMA Read, and how often it sends again for want
//! of a Receive, is what the client has asked for: hours, or for ever. Until then it has the pages
//! that the Call is pulled to, or those of the Reply. A client that keeps nothing moving for
//! [`STALL_SECONDS`](tunables::STALL_SECONDS) loses its connection instead.
//!
//! Nothing is looked at while nothing is under way, so that a connection without traffic costs
//! nothing.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        barrier::smp_mb,
        SpinLock, //
    }, //
};

use super::tunables;
use crate::{
    engine::responder::stall::{
        Found,
        StallState, //
    },
    sunrpc::svc::XprtTimer,
    verbs::SendQueue, //
};

/// What is seen of the Send Queue.
#[pin_data]
pub(super) struct StallDetector {
    /// There will be another look.
    on: Atomic<bool>,
    #[pin]
    progress: SpinLock<StallState>,
}

/// The Send Queue has come to a halt: only the end of the connection gives back what is on it.
pub(super) struct Stalled;

impl StallDetector {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            on: Atomic::new(false),
            progress <- new_spinlock!(StallState::default(), "Watch::progress"),
        })
    }

    /// To be called when entries of `queue` were reserved: has `timer` go off if nobody looks yet.
    #[inline]
    pub(super) fn stall_detector(&self, queue: &SendQueue, timer: &XprtTimer) {
        // Follows the reservation, which is fully ordered. Pairs with `poll`.
        if !self.on.load(Relaxed) {
            self.begin(queue, timer);
        }
    }

    #[cold]
    fn begin(&self, queue: &SendQueue, timer: &XprtTimer) {
        let next = {
            let mut progress = self.progress.lock();
            *progress = StallState::new(queue.completed(), XprtTimer::now(), timeout());
            self.on.store(true, Relaxed);
            progress.next_poll()
        };
        timer.set(next);
    }

    /// Looks at `queue`; returns when to look again, if anything is under way.
    ///
    /// # Errors
    ///
    /// [`Stalled`].
    pub(super) fn poll(&self, queue: &SendQueue) -> Result<Option<u64>, Stalled> {
        let mut progress = self.progress.lock();
        if !self.on.load(Relaxed) {
            return Ok(None);
        }
        self.on.store(false, Relaxed);
        // Either who reserves from now on sees this, or it is seen here that entries are taken.
        smp_mb();
        let (completed, under_way) = (queue.completed(), queue.is_used());
        match progress.poll(completed, under_way, XprtTimer::now(), timeout()) {
            Found::Idle => Ok(None),
            Found::Busy(next) => {
                self.on.store(true, Relaxed);
                Ok(Some(next))
            }
            Found::Stalled => Err(Stalled),
        }
    }
}

/// How long a queue may be at a halt, as the alarm counts it.
fn timeout() -> u64 {
    XprtTimer::ticks(tunables::STALL_SECONDS.get())
}
