// SPDX-License-Identifier: GPL-2.0

//! Number of MRs that a Call's RDMA Reads need.
//!
//! On iWARP the sink of an RDMA Read must be registered. A connection has a fixed number of MRs for
//! this. Each segment of a Read chunk needs at least one, no matter how short it is. On devices
//! that need MRs for long Reads only, short ones are counted, too.

use core::num::NonZeroU32;

use kernel::page::PAGE_SIZE;

use crate::wire::ReadList;

const PAGE: u32 = PAGE_SIZE as u32;

/// The MRs for RDMA Reads of one connection.
#[derive(Clone, Copy)]
pub(super) struct ReadMrBudget {
    /// Number of MRs; 0 if the device reads into unregistered memory.
    total: u32,
    /// Pages in each MR.
    pages: NonZeroU32,
}

impl ReadMrBudget {
    /// `total` MRs of `pages` pages each.
    pub(super) fn new(total: u32, pages: u32) -> Self {
        Self {
            total,
            pages: NonZeroU32::new(pages).unwrap_or(NonZeroU32::MIN),
        }
    }

    /// Number of MRs; 0 if the device reads into unregistered memory.
    #[inline]
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// MRs needed to read all of `reads`. In a `long` Call, each chunk at a position other than
    /// zero splits the segment of the Position Zero chunk into which it is inserted.
    pub(super) fn needed(&self, reads: ReadList<'_>, long: bool) -> u32 {
        let each = reads.segments().map(|read| match read.segment.length {
            0 => 0,
            // The sink may start anywhere in a page. `div_ceil` is below 2^21.
            length => {
                let splits = u32::from(long && read.position != 0);
                (length.div_ceil(PAGE) + self.pages.get()) / self.pages + splits
            }
        });
        each.fold(0, u32::saturating_add)
    }
}
