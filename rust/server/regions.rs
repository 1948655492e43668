// SPDX-License-Identifier: GPL-2.0

//! Regions to read into, and the Calls that wait to be pulled.
//!
//! Some devices (iWARP) read into registered regions only. A connection has a fixed number of
//! those, and each segment of a Read chunk takes one, however short it is. A Call that wants more
//! than are free waits here until others have been pulled; so do those that are
//! [held back](super::pulls).

use core::{
    mem,
    num::NonZeroU32, //
};

use kernel::page::PAGE_SIZE;

use crate::{
    verbs::Queue,
    wire::ReadList, //
};

use super::call::{
    Buffer,
    Call, //
};

/// Pages that the RDMA core makes such a region for, if the device can.
const MAX_PAGES: u32 = 256;

const PAGE: u32 = PAGE_SIZE as u32;

/// How Reads use regions, on one connection.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    /// Regions that there are; 0 if Reads do without.
    total: u32,
    pages: NonZeroU32,
}

impl Demand {
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

/// The regions that are free, and the Calls that wait.
///
/// # Invariants
///
/// As long as a Call waits, others are being pulled, and [`Self::give`] or [`Self::retry`] follows.
pub(super) struct ReadRegions {
    free: u32,
    waiting: Queue<Buffer>,
    /// Another one was pulled, and nobody has found that too few since.
    returned: bool,
}

impl ReadRegions {
    pub(super) const fn none() -> Self {
        Self {
            free: 0,
            waiting: Queue::new(),
            returned: false,
        }
    }

    /// Sets their number, before the first Call.
    pub(super) fn open(&mut self, demand: &Demand) {
        self.free = demand.total;
    }

    /// Takes `wanted` regions, which is not more than there are, for the Call in `buffer`; if not
    /// as many are free it waits.
    pub(super) fn take(&mut self, mut buffer: Buffer, wanted: u32) -> Option<Buffer> {
        match self.free.checked_sub(wanted) {
            Some(rest) => {
                self.free = rest;
                buffer.user_mut().call.regions = wanted;
                Some(buffer)
            }
            None => {
                // INVARIANT: Those that are missing were taken.
                self.wait(buffer);
                None
            }
        }
    }

    /// Gives back what a Call has taken; `true` if others wait for it.
    pub(super) fn give(&mut self, call: &mut Call) -> bool {
        self.free += mem::take(&mut call.regions);
        self.retry()
    }

    /// Has a Call wait until another one has been pulled.
    pub(super) fn wait(&mut self, buffer: Buffer) {
        self.waiting.push(buffer);
        self.returned = false;
    }

    /// Has all Calls that wait try again; `true` if there are any.
    pub(super) fn retry(&mut self) -> bool {
        self.returned = true;
        !self.waiting.is_empty()
    }

    /// Whether no Call waits.
    pub(super) fn none_waits(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A Call that has waited, and may try again.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Buffer> {
        if !self.returned {
            return None;
        }
        let next = self.waiting.pop();
        self.returned = next.is_some();
        next
    }
}
