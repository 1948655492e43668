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
        Progress, //
    },
    sunrpc::svc::Alarm,
    verbs::SendQueue, //
};

/// What is seen of the Send Queue.
#[pin_data]
pub(super) struct Watch {
    /// There will be another look.
    on: Atomic<bool>,
    #[pin]
    progress: SpinLock<Progress>,
}

/// The Send Queue has come to a halt: only the end of the connection gives back what is on it.
pub(super) struct Halted;

impl Watch {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            on: Atomic::new(false),
            progress <- new_spinlock!(Progress::default(), "Watch::progress"),
        })
    }

    /// To be called when entries of `queue` were reserved: has `alarm` go off if nobody looks yet.
    #[inline]
    pub(super) fn watch(&self, queue: &SendQueue, alarm: &Alarm) {
        // Follows the reservation, which is fully ordered. Pairs with `look`.
        if !self.on.load(Relaxed) {
            self.begin(queue, alarm);
        }
    }

    #[cold]
    fn begin(&self, queue: &SendQueue, alarm: &Alarm) {
        let next = {
            let mut progress = self.progress.lock();
            *progress = Progress::new(queue.completed(), Alarm::now(), patience());
            self.on.store(true, Relaxed);
            progress.next()
        };
        alarm.set(next);
    }

    /// Looks at `queue`; returns when to look again, if anything is under way.
    ///
    /// # Errors
    ///
    /// [`Halted`].
    pub(super) fn look(&self, queue: &SendQueue) -> Result<Option<u64>, Halted> {
        let mut progress = self.progress.lock();
        if !self.on.load(Relaxed) {
            return Ok(None);
        }
        self.on.store(false, Relaxed);
        // Either who reserves from now on sees this, or it is seen here that entries are taken.
        smp_mb();
        let (completed, under_way) = (queue.completed(), queue.is_used());
        match progress.look(completed, under_way, Alarm::now(), patience()) {
            Found::Idle => Ok(None),
            Found::Busy(next) => {
                self.on.store(true, Relaxed);
                Ok(Some(next))
            }
            Found::Halted => Err(Halted),
        }
    }
}

/// How long a queue may be at a halt, as the alarm counts it.
fn patience() -> u64 {
    Alarm::ticks(tunables::STALL_SECONDS.get())
}
