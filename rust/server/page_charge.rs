// SPDX-License-Identifier: GPL-2.0

//! Charges against limits on the pages that all connections together may use for one purpose.

use crate::lib::counter::Gauge;

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
    /// Charges `pages` to `used`, which may be `limit`.
    #[inline]
    pub(super) fn take(used: &'static Gauge, pages: usize, limit: usize) -> Charged {
        let before = used.add(pages);
        let charge = Self { used, pages };
        if before.saturating_add(pages) > limit {
            Charged::OverLimit(charge)
        } else {
            Charged::Within(charge)
        }
    }
}

impl Drop for PageCharge {
    #[inline]
    fn drop(&mut self) {
        self.used.sub(self.pages);
    }
}
