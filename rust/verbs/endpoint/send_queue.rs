// SPDX-License-Identifier: GPL-2.0

//! Accounting of a Send Queue's entries: reserved before a post, released by the completion.
//!
//! C: svc_rdma_sendto.c, svc_rdma_sq_wait(), svc_rdma_wake_send_waiters()
//!
//! Many threads of a server post on one queue. A thread that finds too few free entries takes a
//! ticket and waits until its ticket is served, so that short chains do not starve a long one. The
//! only way to post is a [`Permit`]: a permit that is dropped releases its entries, and the entries
//! of one that was posted are released by the completion. The end of the connection ends all waits.
//! Each wait has a timeout, because the peer decides how often a Send is repeated after an RNR NAK:
//! a peer that posts no Receives could stop all completions.

use core::{
    mem,
    ptr, //
};

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

/// The reason why entries were not reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveError {
    /// The chain needs more entries than the queue has.
    TooLong,
    /// The connection has ended.
    Closed,
    /// The wait timed out. The caller must end the connection.
    Stalled,
}

/// The timeout of a wait. An nfsd thread that waits here serves no other connection.
const WAIT_TIMEOUT_MS: u32 = 30_000;

/// The free entries of a Send Queue, and the threads that wait for some.
#[pin_data]
pub(crate) struct SendQueue {
    depth: Atomic<u32>,
    /// The number of free entries. Temporarily too low while [`SendQueue::take`] reverts a failed
    /// reservation.
    free: Atomic<i32>,
    /// The number of completed chains, which wraps. Written by the worker of the send CQ.
    completed: Atomic<u32>,
    /// Entries of chains that were posted in part. No completion releases them.
    stranded: Atomic<u32>,
    /// Entries of chains that may have been posted.
    in_doubt: Atomic<u32>,
    closed: Atomic<bool>,
    /// The number of threads that have a ticket.
    waiters: Atomic<u32>,
    #[pin]
    tickets: SpinLock<Tickets>,
    /// Signalled when another ticket is served.
    #[pin]
    ticket_served: CondVar,
    /// Signalled when entries are released, for the thread whose ticket is served.
    #[pin]
    entries_freed: CondVar,
}

struct Tickets {
    next: u32,
    served: u32,
}

/// The outcome of a failed post of a chain that belongs to a `T`.
pub(crate) enum PostError<T> {
    /// Nothing was posted.
    NotPosted(T),
    /// A part was posted. The `T` comes back with its completion, or after the drain.
    PartlyPosted,
}

/// A reservation of Send Queue entries: the right to post a chain of so many work requests.
#[must_use]
pub(crate) struct Permit<'a> {
    queue: &'a SendQueue,
    entries: u32,
    waited: bool,
}

impl Permit<'_> {
    /// Returns whether the reservation had to wait.
    #[inline]
    pub(crate) fn waited(&self) -> bool {
        self.waited
    }

    /// The number of entries.
    #[inline]
    pub(in crate::verbs) fn entries(&self) -> u32 {
        self.entries
    }

    /// Posts a chain of at most that many work requests. The handler of its completion calls
    /// [`SendQueue::complete`].
    ///
    /// # Errors
    ///
    /// `EINVAL` if the entries are not those of `queue`, the endpoint's; or the device's error.
    /// With it comes the part of the chain that was not posted. Unless that is the whole chain, the
    /// entries stay reserved: some work requests complete only when the QP is drained.
    ///
    /// # Safety
    ///
    /// As for [`Endpoint::post_send_raw`].
    #[inline]
    pub(in crate::verbs) unsafe fn post<C: EndpointOps>(
        self,
        ep: &Endpoint<C>,
        queue: &SendQueue,
        first: *const bindings::ib_send_wr,
    ) -> Result<(), (Error, BadWr)> {
        if !ptr::eq(self.queue, queue) {
            return Err((EINVAL, BadWr::First));
        }
        // SAFETY: By this function's contract.
        let posted = unsafe { ep.post_send_raw(first) };
        if let Err((_, left)) = posted {
            self.refused(left);
        } else {
            mem::forget(self);
        }
        posted
    }

    /// Releases the entries of a chain that was not posted, and counts those of any other.
    #[cold]
    fn refused(self, left: BadWr) {
        let kept = match left {
            BadWr::First => return,
            BadWr::Last => &self.queue.stranded,
            BadWr::Unknown => &self.queue.in_doubt,
        };
        kept.fetch_add(self.entries, Relaxed);
        mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.queue.release(self.entries);
    }
}

impl SendQueue {
    /// Creates a queue without entries, for which nothing can be reserved before [`Self::open`].
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            depth: Atomic::new(0),
            free: Atomic::new(0),
            completed: Atomic::new(0),
            stranded: Atomic::new(0),
            in_doubt: Atomic::new(0),
            closed: Atomic::new(false),
            waiters: Atomic::new(0),
            tickets <- new_spinlock!(Tickets { next: 0, served: 0 }, "SendQueue::tickets"),
            ticket_served <- new_condvar!("SendQueue::ticket_served"),
            entries_freed <- new_condvar!("SendQueue::entries_freed"),
        })
    }

    /// Sets the number of entries. Called once, before the first reservation.
    pub(crate) fn open(&self, depth: u32) {
        let entries = i32::try_from(depth).unwrap_or(i32::MAX);
        self.free.store(entries, Relaxed);
        self.depth.store(entries.unsigned_abs(), Relaxed);
    }

    /// Reserves `entries`. If they are not free, calls `on_full` and waits for them.
    ///
    /// May sleep, so completion handlers must not call this.
    ///
    /// # Errors
    ///
    /// [`ReserveError`].
    #[inline]
    pub(crate) fn reserve(
        &self,
        entries: u32,
        on_full: impl FnOnce(),
    ) -> Result<Permit<'_>, ReserveError> {
        if entries > self.depth.load(Relaxed) {
            return Err(ReserveError::TooLong);
        }
        // Threads that wait already go first.
        if self.waiters.load(Relaxed) == 0 && self.take(entries) {
            return Ok(Permit {
                queue: self,
                entries,
                waited: false,
            });
        }
        on_full();
        self.wait(entries)
    }

    /// Reserves `entries` if they are free. Overtakes threads that wait, so it is for queues
    /// without waiters.
    #[inline]
    pub(in crate::verbs) fn try_reserve(&self, entries: u32) -> Option<Permit<'_>> {
        self.take(entries).then_some(Permit {
            queue: self,
            entries,
            waited: false,
        })
    }

    /// The number of entries, free or not.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.load(Relaxed)
    }

    /// Takes `entries` if they are free.
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

    /// Reverts a failed reservation, and wakes a waiter that may have seen too few entries because
    /// of it.
    #[cold]
    fn undo_take(&self, entries: i32) {
        self.free.fetch_add(entries, Full);
        self.wake();
    }

    /// Releases the entries of a completed chain. Called in the worker of the send CQ.
    #[inline]
    pub(in crate::verbs) fn complete(&self, entries: u32) {
        let completed = self.completed.load(Relaxed).wrapping_add(1);
        self.completed.store(completed, Relaxed);
        self.release(entries);
    }

    /// Releases entries.
    #[inline]
    fn release(&self, entries: u32) {
        // NO-OVERFLOW: At most `i32::MAX` entries were taken.
        self.free.fetch_add(entries as i32, Full);
        // Full barriers here and at the increment in `wait`: either that thread sees the entries,
        // or this one sees the waiter.
        if self.waiters.load(Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A waiter holds the lock from its check to its sleep, so it does not miss the signal.
        let _tickets = self.tickets.lock();
        self.entries_freed.notify_all();
    }

    #[cold]
    fn wait(&self, entries: u32) -> Result<Permit<'_>, ReserveError> {
        let mut tickets = self.tickets.lock();
        let ticket = tickets.next;
        tickets.next = ticket.wrapping_add(1);
        self.waiters.fetch_add(1, Full);
        let mut timeout = msecs_to_jiffies(WAIT_TIMEOUT_MS);
        let outcome = loop {
            if self.closed.load(Relaxed) {
                break Err(ReserveError::Closed);
            }
            let event = if tickets.served != ticket {
                &self.ticket_served
            } else if self.take_locked(entries) {
                break Ok(Permit {
                    queue: self,
                    entries,
                    waited: true,
                });
            } else {
                &self.entries_freed
            };
            if timeout == 0 {
                self.closed.store(true, Relaxed);
                self.entries_freed.notify_all();
                break Err(ReserveError::Stalled);
            }
            timeout = match event.wait_interruptible_timeout(&mut tickets, timeout) {
                CondVarTimeoutResult::Woken { jiffies } => jiffies,
                // nfsd threads are not sent signals.
                CondVarTimeoutResult::Timeout | CondVarTimeoutResult::Signal { .. } => 0,
            };
        };
        self.waiters.fetch_sub(1, Full);
        // After the queue was closed the waiters leave in any order, and tickets do not matter.
        tickets.served = ticket.wrapping_add(1);
        self.ticket_served.notify_all();
        outcome
    }

    /// [`Self::take`] for the thread whose ticket is served, which holds the lock of the tickets.
    ///
    /// A release after this check is not missed: [`Self::wake`] waits for the same lock.
    fn take_locked(&self, entries: u32) -> bool {
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

    /// Ends all waits, and makes later ones fail. Must not be called in interrupt context.
    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
        let _tickets = self.tickets.lock();
        self.ticket_served.notify_all();
        self.entries_freed.notify_all();
    }

    /// Returns whether there are chains in doubt, none of which was posted. `false` if some were.
    ///
    /// Called when the QP is drained. A chain that was posted has completed, and has released its
    /// entries; all others that are reserved were counted by [`Permit::refused`].
    pub(in crate::verbs) fn none_in_doubt_was_posted(&self) -> bool {
        let (free, depth) = self.state();
        let reserved = depth.abs_diff(free);
        let in_doubt = self.in_doubt.load(Relaxed);
        in_doubt > 0 && reserved == in_doubt + self.stranded.load(Relaxed)
    }

    /// The number of completed chains, which wraps.
    pub(crate) fn completed(&self) -> u32 {
        self.completed.load(Relaxed)
    }

    /// Returns whether any entries are reserved.
    pub(crate) fn is_used(&self) -> bool {
        let (free, depth) = self.state();
        free < depth
    }

    /// The number of free entries and of all entries, for trace events.
    pub(crate) fn state(&self) -> (i32, i32) {
        // CAST: `open` limits the depth to `i32::MAX`.
        (self.free.load(Relaxed), self.depth.load(Relaxed) as i32)
    }

    /// Returns whether a thread waits for entries. The server then accepts no more Calls.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Relaxed) != 0
    }
}
