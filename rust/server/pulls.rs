// SPDX-License-Identifier: GPL-2.0

//! How much is pulled at a time.
//!
//! The pages that a Call is pulled to are the client's to hold until it has answered, and nobody
//! has asked yet who that is. So there is a total for all connections. Beyond that each of them
//! pulls one Call at a time, and the others of its Calls wait for that one: every connection goes
//! on, and none waits for another.

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

use crate::admin;

use super::share::Share;

/// What one connection pulls.
///
/// A Call that is held back is woken when another one ends. Neither misses the other: who holds
/// back says so and then looks whether any is under way, who ends says so and then looks whether
/// any is held back.
pub(super) struct Pulls {
    /// Calls that have a share, and for an instant those that do not get one.
    under_way: Atomic<u32>,
    /// Changed under the lock of what is held back.
    held_back: Atomic<bool>,
}

impl Pulls {
    pub(super) const fn new() -> Self {
        Self {
            under_way: Atomic::new(0),
            held_back: Atomic::new(false),
        }
    }

    /// A share for a Call that takes so many pages. If there is none, others are under way, and the
    /// Call is to be held back until one of them ends.
    #[inline]
    pub(super) fn begin(&self, pages: usize) -> Option<Share> {
        let others = self.under_way.fetch_add(1, Relaxed);
        let most = &admin::server::MAX_PULLED_PAGES;
        match Share::take(&admin::server::PULLED_PAGES, pages, most) {
            Ok(share) => Some(share),
            Err(share) if others == 0 => Some(share),
            Err(share) => {
                self.end(share);
                None
            }
        }
    }

    /// A Call is no longer under way; whether another one is held back.
    #[inline]
    pub(super) fn end(&self, share: Share) -> bool {
        drop(share);
        self.under_way.fetch_sub(1, Full);
        self.held_back.load(Relaxed)
    }

    /// Says that a Call is held back; `false` if none is under way any more, and it may try again.
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
