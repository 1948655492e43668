// SPDX-License-Identifier: GPL-2.0

//! Whether a queue has come to a halt, as one sees who looks at it now and then.
//!
//! What is posted on a queue pair completes in order. As long as anything completes, the oldest
//! does; if nothing has from one look to the next, and something was under way each time, then it
//! is the same that still is.
//!
//! It takes several such looks, not time alone. The clock of a machine that was asleep jumps, and
//! what has completed is noted after that.

/// Looks at which nothing has changed, after which a queue has come to a halt.
const LOOKS: u32 = 3;

/// What was seen of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct StallState {
    completed: u32,
    /// At how many looks that was so.
    unchanged: u32,
    /// When to look next.
    next: u64,
}

/// What a look at a queue finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing is under way.
    Idle,
    /// Look again at that time.
    Busy(u64),
    /// Something is under way, and has been for as many looks as it takes.
    Stalled,
}

impl StallState {
    /// What is seen where something was just posted, and so many have `completed`, ever. Another
    /// look follows at [`Self::next_poll`].
    pub fn new(completed: u32, now: u64, timeout: u64) -> Self {
        Self {
            completed,
            unchanged: 0,
            next: after(now, timeout),
        }
    }

    /// When to look next.
    pub fn next_poll(&self) -> u64 {
        self.next
    }

    /// Looks at a queue where `completed` have completed and something is `under_way`, or not. Who
    /// looks too early learns when to.
    pub fn poll(&mut self, completed: u32, under_way: bool, now: u64, timeout: u64) -> Found {
        if !under_way {
            return Found::Idle;
        }
        if completed != self.completed {
            *self = Self::new(completed, now, timeout);
        } else if now >= self.next {
            self.unchanged += 1;
            if self.unchanged >= LOOKS {
                return Found::Stalled;
            }
            self.next = after(now, timeout);
        }
        Found::Busy(self.next)
    }
}

/// When to look next, where a queue may be at a halt for as long as `timeout`.
fn after(now: u64, timeout: u64) -> u64 {
    now.saturating_add((timeout / u64::from(LOOKS)).max(1))
}
