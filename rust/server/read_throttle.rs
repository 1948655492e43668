// SPDX-License-Identifier: GPL-2.0

//! Limits on the pages that RDMA Reads may write to, and the Calls that wait because of them.
//!
//! A client controls how long the pages for its Read chunks stay pinned, possibly before any export
//! has admitted it. Admitted clients therefore share one page limit. All other clients share a
//! second one of half that size, so that they cannot starve the admitted ones. No connection takes
//! more than [a quarter](super::page_charge) of what the others leave free. Beyond its share or
//! the limit, a connection reads one Call at a time, and its other Calls wait for that one: every
//! connection makes progress, and none waits for another connection.
//!
//! On devices that [read into MRs only](super::read_mrs), a Call also waits while fewer MRs are
//! idle than it needs. It returns its page charge first: a waiting Call has no Reads outstanding.

use core::mem;

use kernel::sync::atomic::ordering::{
    Full,
    Relaxed, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    page_charge::{
        Charged,
        PageCharge, //
    },
    tunables, //
};
use crate::lib::{
    barrier::smp_mb,
    llist::Queue,
    sync::Atomic, //
};

/// Counts the pages of one connection that Read chunks are being read into.
///
/// No wakeup is lost: the waiter sets `deferred` and then reads `outstanding`; the finisher
/// reduces `outstanding` and then reads `deferred`, each with a full barrier between.
pub(super) struct ReadThrottle {
    /// Pages of Calls with a charge, and for an instant of those that fail to get one.
    outstanding: Atomic<usize>,
    /// A Call waits. Written under the lock of [`ReadBacklog`].
    deferred: Atomic<bool>,
    /// Calls that wait. Written under the same lock.
    queued: Atomic<u32>,
}

impl ReadThrottle {
    pub(super) const fn new() -> Self {
        Self {
            outstanding: Atomic::new(0),
            deferred: Atomic::new(false),
            queued: Atomic::new(0),
        }
    }

    /// Calls that wait to be read.
    pub(super) fn queued(&self) -> u32 {
        self.queued.load(Relaxed)
    }

    /// Notes how many Calls wait to be read.
    #[cold]
    pub(super) fn set_queued(&self, calls: u32) {
        self.queued.store(calls, Relaxed);
    }

    /// Pages that Read chunks are being read into.
    pub(super) fn pages(&self) -> usize {
        self.outstanding.load(Relaxed)
    }

    /// Charges `pages` for a Call, to the limit for clients that are `admitted` or not. Without a
    /// charge the caller must [defer](Self::defer) the Call.
    #[inline]
    pub(super) fn begin(&self, pages: usize, admitted: bool) -> Option<PageCharge> {
        // A Call of no pages is outstanding, too.
        let pages = pages.max(1);
        let own = self.outstanding.fetch_add(pages, Relaxed);
        let limit = tunables::MAX_READ_PAGES.get() as usize;
        let (used, limit) = if admitted {
            (&tunables::READ_PAGES, limit)
        } else {
            (&tunables::UNADMITTED_READ_PAGES, limit / 2)
        };
        match PageCharge::take(used, pages, own, limit) {
            Charged::Within(charge) => Some(charge),
            Charged::OverLimit(charge) if own == 0 => Some(charge),
            Charged::OverLimit(charge) => {
                // A concurrent `begin` may have failed because of this one. The caller wakes that
                // Call: its own `defer` follows.
                self.end(charge);
                None
            }
        }
    }

    /// Ends a Call whose Reads have completed, or will not be posted; `true` if other Calls wait.
    #[inline]
    pub(super) fn end(&self, charge: PageCharge) -> bool {
        let pages = charge.pages();
        drop(charge);
        self.outstanding.fetch_sub(pages, Full);
        self.deferred.load(Relaxed)
    }

    /// Notes that a Call waits; `false` if no Reads are outstanding any more, so that all waiting
    /// Calls have to be retried.
    #[cold]
    pub(super) fn defer(&self) -> bool {
        self.deferred.store(true, Relaxed);
        // Pairs with the full barrier in `end`.
        smp_mb();
        self.outstanding.load(Relaxed) != 0
    }

    /// Notes that no Call waits.
    #[cold]
    pub(super) fn none_deferred(&self) {
        self.deferred.store(false, Relaxed);
    }
}

/// The Calls of a connection that wait to be read, and the number of idle MRs.
///
/// # Invariants
///
/// While a Call waits, either Reads of other Calls are outstanding, or [`Self::retried`] is set and
/// a thread has been woken.
pub(super) struct ReadBacklog {
    idle_mrs: u32,
    waiting: Queue<Buffer>,
    /// The length of `waiting`.
    len: u32,
    /// All waiting Calls may try again: another Call has ended, and no Call has been deferred
    /// since.
    retried: bool,
}

impl ReadBacklog {
    pub(super) const fn new() -> Self {
        Self {
            idle_mrs: 0,
            waiting: Queue::new(),
            len: 0,
            retried: false,
        }
    }

    /// Sets the number of MRs, before the first Call.
    pub(super) fn open(&mut self, mrs: u32) {
        self.idle_mrs = mrs;
    }

    /// Takes `count` MRs for `call`, at most the total number; `false` if fewer are idle. Then
    /// other Calls use them, and the caller must let this Call [wait](Self::wait).
    pub(super) fn take_mrs(&mut self, call: &mut Call, count: u32) -> bool {
        match self.idle_mrs.checked_sub(count) {
            Some(rest) => {
                self.idle_mrs = rest;
                call.mrs = count;
                true
            }
            None => false,
        }
    }

    /// Takes back the MRs of `call`.
    pub(super) fn put_mrs(&mut self, call: &mut Call) {
        self.idle_mrs += mem::take(&mut call.mrs);
    }

    /// Queues a Call, which has neither charge nor MRs, until [`Self::retry`].
    pub(super) fn wait(&mut self, buffer: Buffer) {
        // INVARIANT: Reads of other Calls are outstanding, or else the caller calls `retry`.
        self.waiting.push(buffer);
        self.len += 1;
        self.retried = false;
    }

    /// Lets all waiting Calls try again; `true` if there are any, for which the caller must wake a
    /// thread.
    pub(super) fn retry(&mut self) -> bool {
        self.retried = true;
        !self.waiting.is_empty()
    }

    /// The number of Calls that wait.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Removes a Call that may try again.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Buffer> {
        if !self.retried {
            return None;
        }
        let next = self.waiting.pop();
        self.retried = next.is_some();
        self.len -= u32::from(next.is_some());
        next
    }
}
