// SPDX-License-Identifier: GPL-2.0

//! The server's `struct svc_rqst`: what nfsd threads receive into and reply from.
//!
//! C header: [`include/linux/sunrpc/svc.h`](srctree/include/linux/sunrpc/svc.h)

use core::slice;

use crate::{
    bindings,
    lib::pages::PageSlot,
    sunrpc::c_ref::{
        read_once,
        CRef, //
    }, //
};

use super::xprt_ref::SvcXprtRef;

/// A request that belongs to this thread.
///
/// # Invariants
///
/// - I1: No other thread accesses the request within `'a`, but for its atomic flags. The request
///   has a reference to its transport.
/// - I2: `rq_pages` and `rq_respages` are two arrays of `rq_maxpages` slots each, which satisfy the
///   invariant of [`PageSlot`].
pub(super) struct SvcRqst<'a>(CRef<'a, bindings::svc_rqst>);

impl SvcRqst<'_> {
    /// # Safety
    ///
    /// I1 and I2 hold for the lifetime.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::svc_rqst) -> Self {
        // SAFETY: By this function's contract.
        // INVARIANT: I1 and I2: by this function's contract.
        Self(unsafe { CRef::new(raw) })
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_rqst {
        self.0.raw()
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> SvcXprtRef<'_> {
        let xprt = read_once!(self.0, rq_xprt);
        // SAFETY: By I1 the request has a reference to the transport.
        unsafe { SvcXprtRef::new(xprt) }
    }

    /// The pseudoflavor of the Call's credential.
    #[inline]
    pub(super) fn flavor(&self) -> u32 {
        read_once!(self.0, rq_cred.cr_flavor)
    }

    /// Whether the Call was deferred, and received again.
    #[inline]
    pub(super) fn was_deferred(&self) -> bool {
        !read_once!(self.0, rq_deferred).is_null()
    }

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

    /// The message of the Reply.
    #[inline]
    pub(super) fn reply(&self) -> &bindings::xdr_buf {
        // SAFETY: By I1 the request is this thread's, which does not change the message meanwhile.
        unsafe { &(*self.raw()).rq_res }
    }

    /// The index of `rq_next_page` in the slots for Reply pages.
    #[inline]
    pub(super) fn next_page(&self) -> usize {
        let next = read_once!(self.0, rq_next_page);
        let bytes = next.addr().wrapping_sub(self.respages().as_ptr().addr());
        bytes / size_of::<PageSlot>()
    }

    /// Sets `rq_next_page`. SUNRPC releases the Reply pages before it, and fills those slots again.
    #[inline]
    pub(super) fn set_next_page(&mut self, index: usize) {
        let index = index.min(self.max_pages());
        // SAFETY: By I1 the request is this thread's. By I2 the address is in the slots, or behind
        // the last one.
        unsafe { (*self.raw()).rq_next_page = (*self.raw()).rq_respages.add(index) };
    }
}
