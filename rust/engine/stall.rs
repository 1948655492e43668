// SPDX-License-Identifier: GPL-2.0

//! Detects a stalled Send Queue by polling its completion count.
//!
//! WRs of a QP complete in order. If the count does not change between two polls, and WRs are
//! outstanding at both, then the oldest WR has not completed in between.
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
    /// The oldest WR has not completed for the timeout.
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

/// Time of the next poll, for detection of a stall within `timeout`.
fn poll_after(now: u64, timeout: u64) -> u64 {
    now.saturating_add((timeout / u64::from(POLLS)).max(1))
}
