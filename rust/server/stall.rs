// SPDX-License-Identifier: GPL-2.0

//! Detects a stalled Send Queue by polling its completion count, and that of its RDMA Reads.
//!
//! The client controls how long the device waits for the response to an RDMA Read, and how often
//! the device retransmits when it finds no Receive: for hours, or forever. All that time the client
//! pins the pages that a Call is read into, or those of a Reply. A connection on which nothing
//! completes for [`STALL_SECONDS`](tunables::STALL_SECONDS) is therefore closed. So is an iWARP
//! connection on which no RDMA Read completes: Sends may complete before older RDMA Reads there.
//!
//! The timer runs only while WRs are outstanding. An idle connection costs nothing.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        SpinLock, //
    }, //
};

use super::tunables;
use crate::{
    engine::stall::{
        Polled,
        SqStallState,
        SqState, //
    },
    lib::{
        barrier::smp_mb,
        counter::SingleWriterCounter,
        sync::Atomic, //
    },
    sunrpc::svc::XprtTimer,
    verbs::SendQueue, //
};

/// Polls the Send Queue of one connection.
#[pin_data]
pub(super) struct StallDetector {
    /// Another poll is scheduled.
    polling: Atomic<bool>,
    /// Polls at which nothing had completed since the one before. Written with the lock.
    stalls: SingleWriterCounter,
    #[pin]
    state: SpinLock<SqStallState>,
}

/// The Send Queue has stalled: only the end of the connection completes its WRs.
pub(super) struct Stalled;

impl StallDetector {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            polling: Atomic::new(false),
            stalls: SingleWriterCounter::default(),
            state <- new_spinlock!(SqStallState::default(), "StallDetector::state"),
        })
    }

    /// Polls at which nothing had completed since the one before.
    pub(super) fn stalls(&self) -> u64 {
        self.stalls.get()
    }

    /// Schedules a poll of `queue` by `timer`, unless one is scheduled. Called after each
    /// reservation of `queue` entries.
    #[inline]
    pub(super) fn entries_reserved(&self, queue: &SendQueue, timer: &XprtTimer) {
        // The reservation before this is a full barrier, which pairs with the one in `poll`.
        if !self.polling.load(Relaxed) {
            self.start(queue, timer);
        }
    }

    #[cold]
    fn start(&self, queue: &SendQueue, timer: &XprtTimer) {
        let next = {
            let mut state = self.state.lock();
            *state = SqStallState::new(queue.completed(), XprtTimer::now(), timeout());
            self.polling.store(true, Relaxed);
            state.next_poll()
        };
        timer.arm(next);
    }

    /// Polls `queue`; returns the time of the next poll, if WRs are outstanding. `reads`: the RDMA
    /// Reads, none of which is outstanding if the device completes all WRs in order.
    ///
    /// # Errors
    ///
    /// [`Stalled`].
    pub(super) fn poll(&self, queue: &SendQueue, reads: Polled) -> Result<Option<u64>, Stalled> {
        let mut state = self.state.lock();
        if !self.polling.load(Relaxed) {
            return Ok(None);
        }
        self.polling.store(false, Relaxed);
        // Either a later reservation sees that `polling` is false, or `is_used` below sees the
        // entries that it has reserved.
        smp_mb();
        let wrs = Polled {
            completed: queue.completed(),
            outstanding: queue.is_used(),
        };
        let before = state.unchanged();
        let polled = state.poll(wrs, reads, XprtTimer::now(), timeout());
        if state.unchanged() > before {
            self.stalls.add(1);
        }
        match polled {
            SqState::Idle => Ok(None),
            SqState::Busy(next) => {
                self.polling.store(true, Relaxed);
                Ok(Some(next))
            }
            SqState::Stalled => Err(Stalled),
        }
    }
}

/// How long a queue may stall, in the timer's unit.
fn timeout() -> u64 {
    XprtTimer::jiffies(tunables::STALL_SECONDS.get())
}
