// SPDX-License-Identifier: GPL-2.0

//! Detects a stalled Send Queue by polling its completion count.
//!
//! WRs of a QP complete in order on most devices. If the count does not change between two polls,
//! and WRs are outstanding at both, then the oldest WR has not completed in between.
//!
//! iWARP orders RDMA Reads among each other only. siw completes a Send when it is transmitted, even
//! if an older RDMA Read has no response yet. For such devices, [`SqStallState`] polls a second
//! count: that of the RDMA Reads.
//!
//! A queue counts as stalled only after several such polls, not by elapsed time alone: after
//! a suspend the clock jumps, while completions from before the suspend are still to be handled.

/// Polls with an unchanged count after which a queue is stalled.
const POLLS: u32 = 3;

/// The state of a detector.
#[derive(Clone, Copy, Debug, Default)]
pub struct StallState {
    /// The completion count at the last poll.
    completed: u32,
    /// Number of polls at which the count had not changed.
    unchanged: u32,
    /// Time of the next poll.
    next: u64,
}

/// The state of a Send Queue at a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqState {
    /// No WR is outstanding.
    Idle,
    /// WRs are outstanding. Poll again at this time.
    Busy(u64),
    /// The oldest WR, or the oldest RDMA Read, has not completed for the timeout.
    Stalled,
}

impl StallState {
    /// Starts when a WR has been posted to an idle queue with the count `completed`. The caller
    /// polls at [`Self::next_poll`].
    pub fn new(completed: u32, now: u64, timeout: u64) -> Self {
        Self {
            completed,
            unchanged: 0,
            next: poll_after(now, timeout),
        }
    }

    /// Number of polls, one after the other, at which nothing had completed.
    pub fn unchanged(&self) -> u32 {
        self.unchanged
    }

    /// Time of the next poll.
    pub fn next_poll(&self) -> u64 {
        self.next
    }

    /// Polls a queue with the count `completed`. `outstanding`: whether WRs are outstanding.
    ///
    /// An early poll does not count towards a stall.
    pub fn poll(&mut self, completed: u32, outstanding: bool, now: u64, timeout: u64) -> SqState {
        if !outstanding {
            return SqState::Idle;
        }
        if completed != self.completed {
            *self = Self::new(completed, now, timeout);
        } else if now >= self.next {
            self.unchanged += 1;
            if self.unchanged >= POLLS {
                return SqState::Stalled;
            }
            self.next = poll_after(now, timeout);
        }
        SqState::Busy(self.next)
    }
}

/// A count at a poll.
#[derive(Clone, Copy, Debug, Default)]
pub struct Polled {
    /// How many have completed. This number wraps.
    pub completed: u32,
    /// Some are outstanding.
    pub outstanding: bool,
}

/// The state of a detector for a Send Queue on which RDMA Reads may complete behind later WRs.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqStallState {
    wrs: StallState,
    /// `Some` if RDMA Reads were outstanding at the last poll.
    reads: Option<StallState>,
}

impl SqStallState {
    /// Starts as [`StallState::new`]. The next poll starts to watch RDMA Reads.
    pub fn new(completed: u32, now: u64, timeout: u64) -> Self {
        Self {
            wrs: StallState::new(completed, now, timeout),
            reads: None,
        }
    }

    /// Number of polls, one after the other, at which no WR, or no RDMA Read, had completed.
    pub fn unchanged(&self) -> u32 {
        let reads = self.reads.map_or(0, |reads| reads.unchanged());
        reads.max(self.wrs.unchanged())
    }

    /// Time of the next poll.
    pub fn next_poll(&self) -> u64 {
        let next = self.wrs.next_poll();
        self.reads.map_or(next, |reads| next.min(reads.next_poll()))
    }

    /// Polls a queue. `wrs`: all WRs; `reads`: RDMA Reads, none of which is outstanding if the
    /// device completes all WRs in order.
    ///
    /// An early poll does not count towards a stall.
    pub fn poll(&mut self, wrs: Polled, reads: Polled, now: u64, timeout: u64) -> SqState {
        let polled = self.wrs.poll(wrs.completed, wrs.outstanding, now, timeout);
        let SqState::Busy(_) = polled else {
            return polled;
        };
        self.reads = match self.reads {
            _ if !reads.outstanding => None,
            None => Some(StallState::new(reads.completed, now, timeout)),
            Some(mut state) => {
                if state.poll(reads.completed, true, now, timeout) == SqState::Stalled {
                    return SqState::Stalled;
                }
                Some(state)
            }
        };
        SqState::Busy(self.next_poll())
    }
}

/// Time of the next poll, for detection of a stall within `timeout`.
fn poll_after(now: u64, timeout: u64) -> u64 {
    now.saturating_add((timeout / u64::from(POLLS)).max(1))
}
