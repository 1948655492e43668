// SPDX-License-Identifier: GPL-2.0

//! Accounting of a Send Queue's entries: reserved before a post, released by the completion.
//!
//! The only way to post a chain is a [`Permit`]. Dropping a permit releases its entries; after a
//! post, the completion releases them. No function waits for entries, because the peer controls
//! their release: a peer that posts no Receives can stop all completions. A chain that finds too
//! few free entries goes to its owner's queue, and the completion that releases enough entries
//! posts it.
//!
//! C: svc_rdma_sendto.c, svc_rdma_sq_wait()

use core::{
    mem,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::atomic::ordering::{
        Full,
        Relaxed, //
    }, //
};

use crate::{
    bindings,
    lib::sync::Atomic, //
};

use super::{
    bad_wr::BadWr,
    ep::Endpoint,
    ops::EndpointOps, //
};

/// The entries of a Send Queue.
pub(crate) struct SendQueue {
    depth: Atomic<u32>,
    /// The number of entries that may be reserved now.
    share: Atomic<u32>,
    /// The number of free entries of the share. Negative while a chain longer than the share is
    /// posted, and too low while [`SendQueue::try_reserve`] reverts a failed reservation. Before
    /// [`SendQueue::open`] it is negative, so that each reservation fails.
    free: Atomic<i32>,
    /// The number of completed chains, which wraps. Written by the worker of the send CQ.
    completed: Atomic<u32>,
    /// Entries of chains that were posted in part. No completion releases them.
    stranded: Atomic<u32>,
    /// Entries of chains that may have been posted.
    in_doubt: Atomic<u32>,
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
}

impl Permit<'_> {
    /// The number of entries.
    #[inline]
    pub(in crate::verbs) fn entries(&self) -> u32 {
        self.entries
    }

    /// Posts a chain with at most as many work requests as entries. The handler of its completion
    /// calls [`SendQueue::complete`].
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
    pub(crate) const fn new() -> Self {
        Self {
            depth: Atomic::new(0),
            share: Atomic::new(0),
            free: Atomic::new(-1),
            completed: Atomic::new(0),
            stranded: Atomic::new(0),
            in_doubt: Atomic::new(0),
        }
    }

    /// Sets the number of entries, of which only `share` may be reserved before
    /// [`Self::share_all`]. Does nothing if the queue is open.
    pub(crate) fn open(&self, depth: u32, share: u32) {
        let depth = depth.min(i32::MAX as u32);
        let share = share.min(depth);
        // What is reserved stays reserved: see `none_in_doubt_was_posted`.
        if self.depth.cmpxchg(0, depth, Relaxed).is_err() {
            return;
        }
        self.share.store(share, Relaxed);
        // CAST: At most `i32::MAX`.
        self.free.store(share as i32, Relaxed);
    }

    /// Allows all entries to be reserved. The caller must then retry the chains that wait.
    #[cold]
    pub(crate) fn share_all(&self) {
        let depth = self.depth();
        let share = self.share.xchg(depth, Full);
        // CAST: At most `i32::MAX`.
        self.free.fetch_add((depth - share) as i32, Full);
    }

    /// Returns whether some entries may not be reserved yet.
    pub(crate) fn is_shared(&self) -> bool {
        self.share.load(Relaxed) < self.depth()
    }

    /// Reserves `entries` if they are free. A chain longer than the share needs the whole share
    /// free. A chain longer than the queue always fails.
    ///
    /// A failing reservation briefly hides free entries from concurrent ones, which may then fail
    /// as well. So after each failure the caller must retry the chains that wait.
    ///
    /// Success and any other failure are full barriers, as is the release of entries. If a caller
    /// announces that it waits, and then fails here, the completion that releases entries sees that
    /// it waits.
    #[inline]
    pub(crate) fn try_reserve(&self, entries: u32) -> Option<Permit<'_>> {
        let wanted = i32::try_from(entries).ok()?;
        let share = self.share.load(Relaxed);
        if entries > share && entries > self.depth() {
            return None;
        }
        // CAST: At most `i32::MAX`.
        let needed = entries.min(share) as i32;
        if self.free.fetch_sub(wanted, Full) < needed {
            self.free.fetch_add(wanted, Full);
            return None;
        }
        Some(Permit {
            queue: self,
            entries,
        })
    }

    /// The number of entries, free or not.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.load(Relaxed)
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
    }

    /// Returns whether there are chains in doubt, none of which was posted. `false` if some were.
    ///
    /// Called when the QP is drained. A chain that was posted has completed, and has released its
    /// entries; all others that are reserved were counted by [`Permit::refused`].
    pub(in crate::verbs) fn none_in_doubt_was_posted(&self) -> bool {
        let share = i64::from(self.share.load(Relaxed));
        let reserved = share - i64::from(self.free.load(Relaxed));
        let in_doubt = self.in_doubt.load(Relaxed);
        in_doubt > 0 && reserved == i64::from(in_doubt + self.stranded.load(Relaxed))
    }

    /// The number of completed chains, which wraps.
    pub(crate) fn completed(&self) -> u32 {
        self.completed.load(Relaxed)
    }

    /// Returns whether any entries are reserved.
    pub(crate) fn is_used(&self) -> bool {
        // Before `open` there are no entries, and `free` is negative.
        // CAST: At most `i32::MAX`.
        self.depth() > 0 && self.free.load(Relaxed) < self.share.load(Relaxed) as i32
    }

    /// The number of free entries and of all entries, for trace events. The former is -1 before
    /// [`Self::open`].
    pub(crate) fn state(&self) -> (i32, i32) {
        // CAST: `open` limits the depth to `i32::MAX`.
        (self.free.load(Relaxed), self.depth.load(Relaxed) as i32)
    }
}
