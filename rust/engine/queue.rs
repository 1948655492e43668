// SPDX-License-Identifier: GPL-2.0

//! Arithmetic of the Send Queue and the Receive Queue.
//!
//! The ledger itself, with its atomics and its waiters, belongs to who posts; these are the numbers
//! it is made of, so that an overrun or a lost entry can be found by a test instead of by a device.

/// Free entries of a Send Queue.
///
/// A value, not a lock: keep it under one, or keep its [`Self::free`] in an atomic and use
/// [`take`] and [`give`] in a compare-and-exchange loop.
///
/// # Invariants
///
/// `free <= depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendQueue {
    depth: u32,
    free: u32,
}

impl SendQueue {
    /// An empty queue of `depth` entries.
    #[inline]
    pub const fn new(depth: u32) -> Self {
        // INVARIANT: all are free.
        Self { depth, free: depth }
    }

    /// Entries in all.
    #[inline]
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// Entries that nobody has reserved.
    #[inline]
    pub const fn free(&self) -> u32 {
        self.free
    }

    /// Whether a chain of `entries` could ever be posted, were the queue empty.
    #[inline]
    pub const fn can_ever_hold(&self, entries: u32) -> bool {
        entries <= self.depth
    }

    /// Reserves `entries` for a chain of work requests, or changes nothing.
    #[inline]
    pub fn reserve(&mut self, entries: u32) -> bool {
        match take(self.free, entries) {
            // INVARIANT: it has become less.
            Some(free) => {
                self.free = free;
                true
            }
            None => false,
        }
    }

    /// Returns entries whose chain has completed, or was never posted.
    ///
    /// `false` tells that more was returned than had been reserved: a defect in the caller.
    #[inline]
    pub fn release(&mut self, entries: u32) -> bool {
        match give(self.free, entries, self.depth) {
            // INVARIANT: `give` checks against the depth.
            Some(free) => {
                self.free = free;
                true
            }
            None => false,
        }
    }
}

/// `free` less `entries`; `None` if there are not enough.
#[inline]
pub const fn take(free: u32, entries: u32) -> Option<u32> {
    free.checked_sub(entries)
}

/// `free` and `entries`; `None` if that is more than `depth`.
#[inline]
pub const fn give(free: u32, entries: u32, depth: u32) -> Option<u32> {
    match free.checked_add(entries) {
        Some(sum) if sum <= depth => Some(sum),
        _ => None,
    }
}

/// How many Receives to post now, so that doorbells are rung in batches.
///
/// `posted` stand, `needed` must stand, and up to `batch` more are posted each time that the number
/// falls below. The Receive Queue therefore needs `needed + batch` entries.
#[inline]
pub const fn refill(posted: u32, needed: u32, batch: u32) -> u32 {
    match needed.checked_sub(posted) {
        None | Some(0) => 0,
        Some(missing) => missing.saturating_add(batch),
    }
}
