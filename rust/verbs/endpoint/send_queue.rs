// SPDX-License-Identifier: GPL-2.0

//! A responder's Send Queue as a ledger: entries are reserved before a post and return with the
//! completion that frees them.
//!
//! Many threads post on one queue. Whoever finds it full takes a ticket and waits in line, so that
//! a chain that needs many entries is not starved by those that need few. A [`Permit`] is the only
//! way to post, and it cannot be lost: dropped, it returns its entries; posted, the completion
//! does. When the connection ends, so does every wait. No wait is for ever: how often a Send is
//! tried again for want of a Receive is the peer's choice, and as long as it posts none nothing
//! completes.

use core::mem;

use kernel::{
    new_condvar,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        CondVar,
        CondVarTimeoutResult,
        SpinLock, //
    },
    time::msecs_to_jiffies, //
};

use crate::bindings;

use super::{
    bad_wr::BadWr,
    ep::Endpoint,
    ops::EndpointOps, //
};

/// Why entries cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveError {
    /// The queue could not hold the chain even if it were empty.
    TooLong,
    /// The connection has ended.
    Closed,
    /// There was none for as long as anybody waits: the connection has to be ended.
    Stalled,
}

/// Milliseconds that a service thread waits. Other connections need the thread, too.
const WAIT_TIMEOUT_MS: u32 = 30_000;

/// The free entries of a Send Queue, and who waits for them.
#[pin_data]
pub(crate) struct SendQueue {
    depth: Atomic<u32>,
    /// Free entries; for an instant too few, while a failed reservation is taken back.
    free: Atomic<i32>,
    /// Chains that have completed, ever. Changed by the send queue's worker.
    completed: Atomic<u32>,
    closed: Atomic<bool>,
    /// How many stand in line.
    waiting: Atomic<u32>,
    #[pin]
    line: SpinLock<Line>,
    /// Somebody else's turn has come.
    #[pin]
    turn: CondVar,
    /// Entries have become free, for whose turn it is.
    #[pin]
    entries_freed: CondVar,
}

struct Line {
    next_ticket: u32,
    serving: u32,
}

/// Why a message or a pull is not under way.
pub(crate) enum NotPosted<T> {
    /// Nothing was posted.
    Refused(T),
    /// A part was posted: it comes back when the connection has been drained, or by its completion.
    Stranded,
}

/// The right to post a chain of that many work requests.
#[must_use]
pub(crate) struct Permit<'a> {
    queue: &'a SendQueue,
    entries: u32,
    waited: bool,
}

impl Permit<'_> {
    /// Whether the reservation had to wait for others to complete.
    #[inline]
    pub(crate) fn waited(&self) -> bool {
        self.waited
    }

    /// How many entries it is for.
    #[inline]
    pub(in crate::verbs) fn entries(&self) -> u32 {
        self.entries
    }

    /// Posts a chain of as many work requests at most. Its completion returns the entries.
    ///
    /// # Errors
    ///
    /// The device's, and what it has not taken. If a part was posted, nobody knows which part is
    /// still under way before the queues are drained, and the entries are spent.
    ///
    /// # Safety
    ///
    /// As for [`Endpoint::post_send_raw`].
    #[inline]
    pub(in crate::verbs) unsafe fn post<C: EndpointOps>(
        self,
        ep: &Endpoint<C>,
        first: *const bindings::ib_send_wr,
    ) -> Result<(), (Error, BadWr)> {
        // SAFETY: By this function's contract.
        let posted = unsafe { ep.post_send_raw(first) };
        if !matches!(posted, Err((_, BadWr::First))) {
            mem::forget(self);
        }
        posted
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.queue.release(self.entries);
    }
}

impl SendQueue {
    /// A queue without entries: nobody can post before [`Self::open`].
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            depth: Atomic::new(0),
            free: Atomic::new(0),
            completed: Atomic::new(0),
            closed: Atomic::new(false),
            waiting: Atomic::new(0),
            line <- new_spinlock!(Line { next_ticket: 0, serving: 0 }, "SendQueue::line"),
            turn <- new_condvar!("SendQueue::turn"),
            entries_freed <- new_condvar!("SendQueue::entries_freed"),
        })
    }

    /// Sets the number of entries, once, before the first reservation.
    pub(crate) fn open(&self, depth: u32) {
        // Devices have fewer than 2^31 entries; should one say otherwise, this many will do.
        let entries = i32::try_from(depth).unwrap_or(i32::MAX);
        self.free.store(entries, Relaxed);
        self.depth.store(entries.unsigned_abs(), Relaxed);
    }

    /// Reserves `entries`; waits for them if need be, and calls `full` before it does.
    ///
    /// Sleeps: not for completion handlers.
    ///
    /// # Errors
    ///
    /// [`ReserveError`].
    #[inline]
    pub(crate) fn reserve(
        &self,
        entries: u32,
        full: impl FnOnce(),
    ) -> Result<Permit<'_>, ReserveError> {
        if entries > self.depth.load(Relaxed) {
            return Err(ReserveError::TooLong);
        }
        // Whoever stands in line goes first.
        if self.waiting.load(Relaxed) == 0 && self.take(entries) {
            return Ok(Permit {
                queue: self,
                entries,
                waited: false,
            });
        }
        full();
        self.wait(entries)
    }

    /// Reserves `entries` if they are free now. Does not stand in line: not for a queue where
    /// others do.
    #[inline]
    pub(in crate::verbs) fn try_reserve(&self, entries: u32) -> Option<Permit<'_>> {
        self.take(entries).then_some(Permit {
            queue: self,
            entries,
            waited: false,
        })
    }

    /// How many entries there are in all.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.load(Relaxed)
    }

    /// Takes `entries` if they are there.
    #[inline]
    fn take(&self, entries: u32) -> bool {
        let Ok(entries) = i32::try_from(entries) else {
            return false;
        };
        if self.free.fetch_sub(entries, Full) >= entries {
            return true;
        }
        self.undo_take(entries);
        false
    }

    /// Undoes a failed reservation. Somebody in line may have seen too few in the meantime.
    #[cold]
    fn undo_take(&self, entries: i32) {
        self.free.fetch_add(entries, Full);
        self.wake();
    }

    /// Returns the entries of a chain that has completed. For the send queue's worker.
    #[inline]
    pub(in crate::verbs) fn complete(&self, entries: u32) {
        let completed = self.completed.load(Relaxed).wrapping_add(1);
        self.completed.store(completed, Relaxed);
        self.release(entries);
    }

    /// Returns the entries of a chain that has completed, or was not posted.
    #[inline]
    fn release(&self, entries: u32) {
        // NO-OVERFLOW: What was taken is at most `i32::MAX`.
        self.free.fetch_add(entries as i32, Full);
        // Pairs with the increment in `wait`: either that thread sees the entries, or we see it.
        if self.waiting.load(Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Under the lock, so that no thread is between looking and sleeping.
        let _line = self.line.lock();
        self.entries_freed.notify_all();
    }

    #[cold]
    fn wait(&self, entries: u32) -> Result<Permit<'_>, ReserveError> {
        let mut line = self.line.lock();
        let ticket = line.next_ticket;
        line.next_ticket = ticket.wrapping_add(1);
        self.waiting.fetch_add(1, Full);
        let mut left = msecs_to_jiffies(WAIT_TIMEOUT_MS);
        let outcome = loop {
            if self.closed.load(Relaxed) {
                break Err(ReserveError::Closed);
            }
            let event = if line.serving != ticket {
                &self.turn
            } else if self.take_in_line(entries) {
                break Ok(Permit {
                    queue: self,
                    entries,
                    waited: true,
                });
            } else {
                &self.entries_freed
            };
            if left == 0 {
                self.closed.store(true, Relaxed);
                self.entries_freed.notify_all();
                break Err(ReserveError::Stalled);
            }
            left = match event.wait_interruptible_timeout(&mut line, left) {
                CondVarTimeoutResult::Woken { jiffies } => jiffies,
                // Service threads are not sent signals.
                CondVarTimeoutResult::Timeout | CondVarTimeoutResult::Signal { .. } => 0,
            };
        };
        self.waiting.fetch_sub(1, Full);
        // When it is closed everybody leaves, in any order, and nobody looks at tickets any more.
        line.serving = ticket.wrapping_add(1);
        self.turn.notify_all();
        outcome
    }

    /// [`Self::take`] for whose turn it is, with the line locked.
    ///
    /// Entries that return from now on are announced only after that lock is let go.
    fn take_in_line(&self, entries: u32) -> bool {
        let Ok(entries) = i32::try_from(entries) else {
            return false;
        };
        if self.free.load(Relaxed) < entries {
            return false;
        }
        if self.free.fetch_sub(entries, Full) >= entries {
            return true;
        }
        self.free.fetch_add(entries, Full);
        false
    }

    /// Ends all waits, now and in future. Not for interrupts.
    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
        let _line = self.line.lock();
        self.turn.notify_all();
        self.entries_freed.notify_all();
    }

    /// How many chains have completed, ever; it wraps around.
    pub(crate) fn completed(&self) -> u32 {
        self.completed.load(Relaxed)
    }

    /// Whether any entries are reserved.
    pub(crate) fn is_used(&self) -> bool {
        let (free, depth) = self.state();
        free < depth
    }

    /// Free entries and all entries, for traces.
    pub(crate) fn state(&self) -> (i32, i32) {
        // CAST: At most `i32::MAX`, as `open` sees to.
        (self.free.load(Relaxed), self.depth.load(Relaxed) as i32)
    }

    /// Whether somebody waits: then no more work should be taken on.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }
}
