// SPDX-License-Identifier: GPL-2.0

//! The pages of a `struct svc_rqst` that has one array of them, for Call and Reply: the variant of
//! `rqst_pages.rs` for kernels older than 7.1.
//!
//! By I2 of `SvcRqst`, `rq_pages` is an array of `rq_maxpages` slots, which satisfy the invariant
//! of [`PageSlot`]. The slots for Reply pages are those from `rq_respages` on, behind the pages of
//! the Call. For the next Call, SUNRPC fills all empty slots. It releases the Reply pages before
//! `rq_next_page`; unlike newer kernels it cannot skip empty slots there.

use core::slice;

use crate::{
    bindings,
    lib::pages::PageSlot,
    sunrpc::c_ref::read_once, //
};

use super::svc_rqst::SvcRqst;

/// The number of pages that are left for a Reply. A service has three pages more than its longest
/// message needs.
const REPLY_PAGES: usize = 2;

/// The number of pages that a Call may have, of a request with `pages` pages.
#[inline]
pub(super) fn max_call_pages(pages: usize) -> usize {
    pages.saturating_sub(REPLY_PAGES)
}

/// Starts to receive a Call.
///
/// # Safety
///
/// The request is this thread's, and holds no Call.
#[inline]
pub(super) unsafe fn begin_call(raw: *mut bindings::svc_rqst) {
    // SAFETY: By this function's contract. No page has been used for a Reply.
    unsafe {
        (*raw).rq_respages = (*raw).rq_pages;
        (*raw).rq_next_page = (*raw).rq_respages;
    }
}

impl SvcRqst<'_> {
    /// The number of slots.
    #[inline]
    fn max_pages(&self) -> usize {
        read_once!(self.0, rq_maxpages)
    }

    /// The index of the first slot for Reply pages.
    #[inline]
    fn first_reply(&self) -> usize {
        let (first, slots) = (
            read_once!(self.0, rq_respages),
            read_once!(self.0, rq_pages),
        );
        let bytes = first.addr().wrapping_sub(slots.addr());
        (bytes / size_of::<PageSlot>()).min(self.max_pages())
    }

    /// The slots for Call pages.
    #[inline]
    pub(super) fn pages(&self) -> &[PageSlot] {
        // SAFETY: By I2 the array has that many slots. By I1 no other thread changes them, and this
        // one does so through mutable borrows of `self` only.
        unsafe { slice::from_raw_parts((*self.raw()).rq_pages.cast(), self.max_pages()) }
    }

    /// The slots for Call pages.
    #[inline]
    pub(super) fn pages_mut(&mut self) -> &mut [PageSlot] {
        // SAFETY: By I2 the array has that many slots. By I1 only this thread accesses them, and
        // `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut((*self.raw()).rq_pages.cast(), self.max_pages()) }
    }

    /// The slots for Reply pages.
    #[inline]
    pub(super) fn respages(&self) -> &[PageSlot] {
        self.pages().get(self.first_reply()..).unwrap_or(&[])
    }

    /// The slots for Reply pages.
    #[inline]
    pub(super) fn respages_mut(&mut self) -> &mut [PageSlot] {
        let first = self.first_reply();
        self.pages_mut().get_mut(first..).unwrap_or(&mut [])
    }

    /// Notes that the first `count` slots for Call pages are empty.
    #[inline]
    pub(super) fn note_empty(&mut self, _count: usize) {}

    /// Makes `count` pages those of the Call. Returns false if no page is left for a Reply.
    #[inline]
    pub(super) fn end_call(&mut self, count: usize) -> bool {
        if count >= self.max_pages() {
            return false;
        }
        // SAFETY: By I1 the request is this thread's. By I2 both addresses are in the slots.
        unsafe {
            (*self.raw()).rq_respages = (*self.raw()).rq_pages.add(count);
            (*self.raw()).rq_next_page = (*self.raw()).rq_respages;
        }
        true
    }

    /// Returns whether the slots for Reply pages are others than before the Call was received.
    #[inline]
    pub(super) fn has_moved_reply(&self) -> bool {
        self.first_reply() != 0
    }

    /// Sets `rq_next_page`. SUNRPC releases the Reply pages before it. None of these slots may be
    /// empty.
    #[inline]
    pub(super) fn set_next_page(&mut self, index: usize) {
        let index = self.first_reply() + index.min(self.respages().len());
        // SAFETY: By I1 the request is this thread's. By I2 the address is in the slots, or behind
        // the last one.
        unsafe { (*self.raw()).rq_next_page = (*self.raw()).rq_pages.add(index) };
    }

    /// Leaves the Reply pages from slot `kept` on to the request. The others were taken.
    #[inline]
    pub(super) fn keep_reply_from(&mut self, _kept: usize) {
        self.set_next_page(0);
    }

    /// Leaves no Reply page to the request. Those in the first `count` slots were taken.
    #[inline]
    pub(super) fn end_reply(&mut self, _count: usize) {
        self.set_next_page(0);
    }

    /// Releases the pages in the first `count` slots for Reply pages, of which some may be empty.
    #[cold]
    pub(super) fn release_reply(&mut self, count: usize) {
        for slot in self.respages_mut().iter_mut().take(count) {
            slot.release();
        }
        self.set_next_page(0);
    }
}
