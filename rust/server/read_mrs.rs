// SPDX-License-Identifier: GPL-2.0

//! How many regions the Reads of a Call take.
//!
//! Some devices (iWARP) read into registered regions only. A connection has a fixed number of
//! those, and each segment of a Read chunk takes one, however short it is.

use core::num::NonZeroU32;

use kernel::page::PAGE_SIZE;

use crate::wire::ReadList;

/// Pages that the RDMA core makes such a region for, if the device can.
const MAX_PAGES: u32 = 256;

const PAGE: u32 = PAGE_SIZE as u32;

/// How Reads use regions, on one connection.
#[derive(Clone, Copy)]
pub(super) struct ReadMrBudget {
    /// Regions that there are; 0 if Reads do without.
    total: u32,
    pages: NonZeroU32,
}

impl ReadMrBudget {
    /// For a device that has `total` regions of up to `pages` pages.
    pub(super) fn new(total: u32, pages: u32) -> Self {
        Self {
            total,
            pages: NonZeroU32::new(pages.min(MAX_PAGES)).unwrap_or(NonZeroU32::MIN),
        }
    }

    /// Regions that there are; 0 if Reads do without.
    #[inline]
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// Regions that it takes to pull all of `reads`, of a Long Call or not: there a chunk splits
    /// the segment that it goes into.
    pub(super) fn of(&self, reads: ReadList<'_>, long: bool) -> u32 {
        let each = reads.segments().map(|read| match read.segment.length {
            0 => 0,
            // Wherever in a page it starts. Fewer than 2^21 pages.
            length => {
                let splits = u32::from(long && read.position != 0);
                (length.div_ceil(PAGE) + self.pages.get()) / self.pages + splits
            }
        });
        each.fold(0, u32::saturating_add)
    }
}
