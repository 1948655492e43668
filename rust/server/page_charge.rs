// SPDX-License-Identifier: GPL-2.0

//! Charges against limits on the pages that all connections together may use for one purpose.
//!
//! No connection takes more than a quarter of the pages that the others leave free, so that some
//! are left for each further connection, without a list of connections.

use crate::lib::counter::Gauge;

/// The part of the free pages that one connection may take is 1 in this many.
const SHARE: usize = 4;

/// A number of charged pages; dropping it uncharges them.
pub(super) struct PageCharge {
    used: &'static Gauge,
    pages: usize,
}

/// The outcome of [`PageCharge::take`]. The pages are charged in either case.
pub(super) enum Charged {
    Within(PageCharge),
    OverLimit(PageCharge),
}

impl PageCharge {
    /// Charges `pages` to `used`, which may be `limit`, for a connection that has charged `own`
    /// pages already.
    #[inline]
    pub(super) fn take(used: &'static Gauge, pages: usize, own: usize, limit: usize) -> Charged {
        let others = used.add(pages).saturating_sub(own);
        let charge = Self { used, pages };
        if own.saturating_add(pages) > limit.saturating_sub(others) / SHARE {
            Charged::OverLimit(charge)
        } else {
            Charged::Within(charge)
        }
    }

    /// The number of pages.
    #[inline]
    pub(super) fn pages(&self) -> usize {
        self.pages
    }
}

impl Drop for PageCharge {
    #[inline]
    fn drop(&mut self) {
        self.used.sub(self.pages);
    }
}
