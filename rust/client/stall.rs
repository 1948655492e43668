// SPDX-License-Identifier: GPL-2.0

//! Detects a server that stalls the RDMA Reads of pulled Replies.
//!
//! The server controls how long an RDMA Read takes: each response packet restarts the device's
//! timer, so a Read of 1 MiB may take hours. Until the Reads of a Reply complete, the RPC is
//! pinned, and its task cannot end even if killed. A connection is therefore closed if no Reply's
//! Reads complete for [`STALL_SECONDS`](tunables::STALL_SECONDS).
//!
//! The timer is armed only while Replies are being read.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    time::msecs_to_jiffies, //
};

use crate::{
    engine::stall::{
        SqState,
        StallState, //
    },
    lib::{
        clock::jiffies,
        close_reason::CloseReason,
        poll_timer::{
            Poll,
            PollTimer, //
        }, //
    },
    sunrpc::xprt::{
        Types,
        XprtHandle, //
    }, //
};

use super::tunables;

/// Counts of the Replies that are being read.
#[derive(Default)]
struct Reads {
    outstanding: u32,
    /// This number wraps.
    completed: u32,
    /// `Some` while the timer is armed.
    stall: Option<StallState>,
}

/// Polls whether the Reads of Replies complete.
#[pin_data]
pub(super) struct StallDetector<T: Types> {
    xprt: XprtHandle<T>,
    #[pin]
    reads: SpinLock<Reads>,
}

/// A detector with its timer.
pub(super) type StallTimer<T> = PollTimer<StallDetector<T>>;

/// A Reply that is being read. Dropped when its Reads have ended.
pub(super) struct WatchedRead<T: Types>(Arc<StallTimer<T>>);

impl<T: Types> StallDetector<T> {
    /// A detector for the connections of a transport.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(xprt: XprtHandle<T>) -> Result<Arc<StallTimer<T>>> {
        let detector = pin_init!(Self {
            xprt,
            reads <- new_spinlock!(Reads::default(), "StallDetector::reads"),
        });
        Arc::pin_init(PollTimer::new(detector), GFP_KERNEL)
    }
}

impl<T: Types> WatchedRead<T> {
    /// Starts to watch the Reads of a Reply.
    pub(super) fn begin(timer: &Arc<StallTimer<T>>) -> Self {
        let mut reads = timer.target().reads.lock();
        reads.outstanding += 1;
        if reads.stall.is_none() {
            let now = jiffies();
            let stall = StallState::new(reads.completed, now, timeout());
            reads.stall = Some(stall);
            // With the lock held, so that a poll cannot disarm the detector in between.
            timer.arm(delay(stall.next_poll(), now));
        }
        drop(reads);
        Self(timer.clone())
    }
}

impl<T: Types> Drop for WatchedRead<T> {
    fn drop(&mut self) {
        let mut reads = self.0.target().reads.lock();
        reads.outstanding -= 1;
        reads.completed = reads.completed.wrapping_add(1);
    }
}

impl<T: Types> Poll for StallDetector<T> {
    fn poll(&self) -> Option<c_ulong> {
        let now = jiffies();
        let mut reads = self.reads.lock();
        let (completed, outstanding) = (reads.completed, reads.outstanding != 0);
        match reads
            .stall
            .as_mut()?
            .poll(completed, outstanding, now, timeout())
        {
            SqState::Busy(next) => return Some(delay(next, now)),
            SqState::Idle => reads.stall = None,
            SqState::Stalled => {
                reads.stall = None;
                drop(reads);
                self.xprt.disconnect_for(CloseReason::Stalled);
            }
        }
        None
    }
}

/// The jiffies from `now` to `then`.
fn delay(then: u64, now: u64) -> c_ulong {
    // CAST: An hour at most.
    then.saturating_sub(now) as c_ulong
}

/// How long Reads may stall, in jiffies.
fn timeout() -> u64 {
    msecs_to_jiffies(tunables::STALL_SECONDS.get().saturating_mul(1000)) as u64
}
