// SPDX-License-Identifier: GPL-2.0

//! The pages of a `struct svc_rqst` that has two arrays of them, for Call and Reply.
//!
//! `rqst_pages_joint.rs` is the variant for kernels older than 7.1, which have one array for both.
//!
//! C header: [`include/linux/sunrpc/svc.h`](srctree/include/linux/sunrpc/svc.h)
//!
//! By I2 of `SvcRqst`, `rq_pages` and `rq_respages` are arrays of `rq_maxpages` slots each, which
//! satisfy the invariant of [`PageSlot`]. SUNRPC fills the first `rq_pages_nfree` slots for Call
//! pages. It releases the Reply pages before `rq_next_page`, and fills those slots, too.

use core::slice;

use crate::{
    bindings,
    lib::pages::PageSlot,
    sunrpc::c_ref::read_once, //
};

use super::svc_rqst::SvcRqst;

/// The number of pages that a Call may have, of a request with `pages` pages.
#[inline]
pub(super) fn max_call_pages(pages: usize) -> usize {
    pages
}

/// Starts to receive a Call.
///
/// # Safety
///
/// The request is this thread's, and holds no Call.
#[inline]
pub(super) unsafe fn begin_call(raw: *mut bindings::svc_rqst) {
    // SAFETY: By this function's contract. No page has been used for a Reply.
    unsafe { (*raw).rq_next_page = (*raw).rq_respages };
}

impl SvcRqst<'_> {
    /// The number of slots for Call pages, and of those for Reply pages.
    #[inline]
    pub(super) fn max_pages(&self) -> usize {
        read_once!(self.0, rq_maxpages)
    }

    /// The slots for Call pages, and those for Reply pages.
    #[inline]
    fn slots(&self) -> (&[PageSlot], &[PageSlot]) {
        let (rqst, count) = (self.raw(), self.max_pages());
        // SAFETY: By I2 each array has `count` slots. By I1 no other thread changes them, and this
        // one does so through `slots_mut` only.
        unsafe {
            (
                slice::from_raw_parts((*rqst).rq_pages.cast(), count),
                slice::from_raw_parts((*rqst).rq_respages.cast(), count),
            )
        }
    }

    /// The slots for Call pages, and those for Reply pages.
    #[inline]
    fn slots_mut(&mut self) -> (&mut [PageSlot], &mut [PageSlot]) {
        let (rqst, count) = (self.raw(), self.max_pages());
        // SAFETY: By I2 each array has `count` slots, and they do not overlap. By I1 only this
        // thread accesses them, and `self` is borrowed mutably.
        unsafe {
            (
                slice::from_raw_parts_mut((*rqst).rq_pages.cast(), count),
                slice::from_raw_parts_mut((*rqst).rq_respages.cast(), count),
            )
        }
    }

    /// The slots for Call pages.
    #[inline]
    pub(super) fn pages_mut(&mut self) -> &mut [PageSlot] {
        self.slots_mut().0
    }

    /// The slots for Call pages.
    #[inline]
    pub(super) fn pages(&self) -> &[PageSlot] {
        self.slots().0
    }

    /// The slots for Reply pages.
    #[inline]
    pub(super) fn respages(&self) -> &[PageSlot] {
        self.slots().1
    }

    /// The slots for Reply pages.
    #[inline]
    pub(super) fn respages_mut(&mut self) -> &mut [PageSlot] {
        self.slots_mut().1
    }

    /// Notes that the first `count` slots for Call pages are empty.
    #[inline]
    pub(super) fn note_empty(&mut self, count: usize) {
        // An earlier call may have left more slots empty.
        // SAFETY: By I1 the request is this thread's.
        let nfree = unsafe { &mut (*self.raw()).rq_pages_nfree };
        *nfree = (*nfree).max(count);
    }

    /// Makes `count` pages those of the Call. Returns false if no page is left for a Reply.
    #[inline]
    pub(super) fn end_call(&mut self, _count: usize) -> bool {
        true
    }

    /// Returns whether the slots for Reply pages are others than before the Call was received.
    #[inline]
    pub(super) fn has_moved_reply(&self) -> bool {
        false
    }

    /// Sets `rq_next_page`. SUNRPC releases the Reply pages before it, and fills those slots again.
    #[inline]
    pub(super) fn set_next_page(&mut self, index: usize) {
        let index = index.min(self.max_pages());
        // SAFETY: By I1 the request is this thread's. By I2 the address is in the slots, or behind
        // the last one.
        unsafe { (*self.raw()).rq_next_page = (*self.raw()).rq_respages.add(index) };
    }

    /// Leaves the Reply pages from slot `kept` on to the request. The others were taken.
    #[inline]
    pub(super) fn keep_reply_from(&mut self, kept: usize) {
        self.set_next_page(kept);
    }

    /// Leaves no Reply page to the request. Those in the first `count` slots were taken.
    #[inline]
    pub(super) fn end_reply(&mut self, _count: usize) {}

    /// Releases the pages in the first `count` slots for Reply pages, of which some may be empty.
    #[inline]
    pub(super) fn release_reply(&mut self, _count: usize) {
        // SUNRPC does that.
    }
}
