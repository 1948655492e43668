// SPDX-License-Identifier: GPL-2.0

//! Shares in the pages that all connections together may have for something.

use crate::lib::counter::Gauge;

/// So many pages, until it is dropped.
pub(super) struct PageCharge {
    taken: &'static Gauge,
    pages: usize,
}

impl PageCharge {
    /// Takes `pages` more of what is `taken`.
    ///
    /// # Errors
    ///
    /// If these are more than `most` then, the share comes as an error. It counts all the same.
    #[inline]
    pub(super) fn take(taken: &'static Gauge, pages: usize, most: usize) -> Result<Self, Self> {
        let before = taken.add(pages);
        let share = Self { taken, pages };
        if before.saturating_add(pages) > most {
            return Err(share);
        }
        Ok(share)
    }
}

impl Drop for PageCharge {
    #[inline]
    fn drop(&mut self) {
        self.taken.sub(self.pages);
    }
}
