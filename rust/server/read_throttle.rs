// SPDX-License-Identifier: GPL-2.0

//! How much is pulled at a time, and the Calls that wait for their turn.
//!
//! The pages that a Call is pulled to are the client's to hold until it has answered, and perhaps
//! nobody has asked yet who that is. So there is a total for the clients that an export has
//! admitted, and another one, half as large, for strangers: what those do is nothing to the others.
//! Beyond that each connection pulls one Call at a time, and the others of its Calls wait for that
//! one: every connection goes on, and none waits for another.
//!
//! On devices that [read into regions only](super::regions) a Call also waits if it wants more of
//! them than are free. It gives its share back first: who waits is not under way.

use core::mem;

use kernel::sync::{
    atomic::{
        ordering::{
            Full,
            Relaxed, //
        },
        Atomic, //
    },
    barrier::smp_mb, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    ep::{
        Incoming, //
        ServerEp,
    },
    page_charge::PageCharge,
    tunables, //
};
use crate::{
    lib::llist::Queue,
    sunrpc::svc::SvcHandle, //
};

/// What one connection pulls.
///
/// A Call that is held back is woken when another one ends. Neither misses the other: who holds
/// back says so and then looks whether any is under way, who ends says so and then looks whether
/// any is held back.
pub(super) struct ReadThrottle {
    /// Calls that have a share, and for an instant those that do not get one.
    under_way: Atomic<u32>,
    /// Changed under the lock of [`ReadBacklog`].
    held_back: Atomic<bool>,
}

impl ReadThrottle {
    pub(super) const fn new() -> Self {
        Self {
            under_way: Atomic::new(0),
            held_back: Atomic::new(false),
        }
    }

    /// A share for a Call that takes so many pages, of a client that is `admitted` or not. If there
    /// is none, the caller [holds the Call back](Self::hold_back).
    #[inline]
    pub(super) fn begin(&self, pages: usize, admitted: bool) -> Option<PageCharge> {
        let others = self.under_way.fetch_add(1, Relaxed);
        let most = tunables::MAX_PULLED_PAGES.get() as usize;
        let (taken, most) = if admitted {
            (&tunables::PULLED_PAGES, most)
        } else {
            (&tunables::STRANGERS_PAGES, most / 2)
        };
        match PageCharge::take(taken, pages, most) {
            Ok(share) => Some(share),
            Err(share) if others == 0 => Some(share),
            Err(share) => {
                // Whoever this has kept from having a share is told by the caller, who looks next.
                self.end(share);
                None
            }
        }
    }

    /// A Call is no longer under way; whether another one is held back.
    #[inline]
    pub(super) fn end(&self, share: PageCharge) -> bool {
        drop(share);
        self.under_way.fetch_sub(1, Full);
        self.held_back.load(Relaxed)
    }

    /// Says that a Call is held back; `false` if none is under way any more, and all may try again.
    #[cold]
    pub(super) fn hold_back(&self) -> bool {
        self.held_back.store(true, Relaxed);
        // Pairs with `end`.
        smp_mb();
        self.under_way.load(Relaxed) != 0
    }

    /// Says that no Call is held back.
    #[cold]
    pub(super) fn none_held_back(&self) {
        self.held_back.store(false, Relaxed);
    }
}

/// The Calls of a connection that wait to be pulled, and the regions that are free.
///
/// # Invariants
///
/// As long as a Call waits, others are under way, or [`Self::retried`] is set and a thread will
/// look.
pub(super) struct ReadBacklog {
    free_mrs: u32,
    waiting: Queue<Buffer>,
    /// All may try again: a Call has ended, and nobody has found that too few since.
    retried: bool,
}

impl ReadBacklog {
    pub(super) const fn none() -> Self {
        Self {
            free_mrs: 0,
            waiting: Queue::new(),
            retried: false,
        }
    }

    /// Sets the number of regions, before the first Call.
    pub(super) fn open(&mut self, mrs: u32) {
        self.free_mrs = mrs;
    }

    /// Takes `wanted` regions, which is not more than there are, for a Call; `false` if not as many
    /// are free. Then others have them, and the caller has it [wait](Self::wait).
    pub(super) fn take_mrs(&mut self, call: &mut Call, wanted: u32) -> bool {
        match self.free_mrs.checked_sub(wanted) {
            Some(rest) => {
                self.free_mrs = rest;
                call.mrs = wanted;
                true
            }
            None => false,
        }
    }

    /// Gives back what a Call has taken.
    pub(super) fn give_mrs(&mut self, call: &mut Call) {
        self.free_mrs += mem::take(&mut call.mrs);
    }

    /// Has a Call wait until [`Self::retry`], without a share, and without regions.
    pub(super) fn wait(&mut self, buffer: Buffer) {
        // INVARIANT: Others are under way, or else the caller goes on to `retry`.
        self.waiting.push(buffer);
        self.retried = false;
    }

    /// Has all Calls that wait try again; `true` if there are any, for which a thread has to look.
    pub(super) fn retry(&mut self) -> bool {
        self.retried = true;
        !self.waiting.is_empty()
    }

    /// Whether no Call waits.
    pub(super) fn none_waits(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A Call that has waited, and may try again.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Buffer> {
        if !self.retried {
            return None;
        }
        let next = self.waiting.pop();
        self.retried = next.is_some();
        next
    }
}

impl ServerEp {
    /// Notes that a Call is being pulled, which takes so many pages; `false` if it is to be
    /// [held back](Self::hold_back).
    #[inline]
    pub(super) fn begin_read(&self, call: &mut Call, pages: usize) -> bool {
        let admitted = self.xprt().is_some_and(SvcHandle::is_admitted);
        call.share = self.read_throttle.begin(pages, admitted);
        call.share.is_some()
    }

    /// Has a Call wait until another one of this connection has been pulled.
    #[cold]
    pub(super) fn hold_back(&self, buffer: Buffer) {
        tunables::HELD_BACK.inc();
        let mut incoming = self.incoming().lock();
        incoming.read_backlog.wait(buffer);
        if !self.read_throttle.hold_back() {
            incoming.read_backlog.retry();
            self.wake_for(incoming);
        }
    }

    /// Takes `wanted` regions, which is not more than there are, for a Call that is to be pulled,
    /// or else has it wait.
    #[cold]
    pub(super) fn take_mrs(&self, mut buffer: Buffer, wanted: u32) -> Option<Buffer> {
        let mut incoming = self.incoming().lock();
        let call = &mut buffer.user_mut().call;
        if incoming.read_backlog.take_mrs(call, wanted) {
            return Some(buffer);
        }
        if let Some(share) = call.share.take() {
            // Whoever is held back is told by those that have the regions, when they end.
            self.read_throttle.end(share);
        }
        incoming.read_backlog.wait(buffer);
        None
    }

    /// A Call that has waited to be pulled, and may try again.
    #[inline]
    pub(super) fn next_read(&self, incoming: &mut Incoming) -> Option<Buffer> {
        let next = incoming.read_backlog.next()?;
        if incoming.read_backlog.none_waits() {
            self.read_throttle.none_held_back();
        }
        Some(next)
    }

    /// Gives back what a Call takes that has been pulled, or will not be.
    #[inline]
    pub(super) fn end_read(&self, call: &mut Call) {
        let held_back = match call.share.take() {
            Some(share) => self.read_throttle.end(share),
            None => false,
        };
        if held_back || call.mrs > 0 {
            self.release_backlog(call);
        }
    }

    #[cold]
    fn release_backlog(&self, call: &mut Call) {
        let mut incoming = self.incoming().lock();
        incoming.read_backlog.give_mrs(call);
        if incoming.read_backlog.retry() {
            self.wake_for(incoming);
        }
    }
}
