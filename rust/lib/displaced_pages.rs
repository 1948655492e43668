// SPDX-License-Identifier: GPL-2.0

//! Pages that NFSD displaces from a request, kept for later requests.
//!
//! In a splice read NFSD replaces pages in the slots of a `struct svc_rqst` by pages of the file,
//! and puts the slot's reference to the page that it displaces. A second reference, taken before,
//! keeps that page from being freed. The second reference gives no access to a page that is still
//! in its slot.

use core::mem;

use super::pages::{
    PageArray,
    PageSlot, //
};

/// Second references to pages in the slots of a request.
///
/// # Invariants
///
/// - I1: When they were noted, each page had one reference, that of its slot.
pub(crate) struct DisplacedPages(PageArray);

impl DisplacedPages {
    /// Takes references to the pages in `slots`: up to the first slot that is empty or whose page
    /// has other references, and as many as `memory` has room for. Releases the pages in `memory`.
    #[inline]
    fn note(mut memory: PageArray, slots: &[PageSlot]) -> Self {
        memory.release();
        memory.add_unshared(slots);
        // INVARIANT: I1: `add_unshared` takes no others.
        Self(memory)
    }

    /// Converts the references to those pages that are no longer in their slots. They have no other
    /// user.
    ///
    /// # Safety
    ///
    /// `slots` are the slots that were noted, or the first of them. Code that has displaced a page
    /// from them has put the slot's reference, and has not moved the page to another slot.
    #[inline]
    unsafe fn into_displaced(mut self, slots: &[PageSlot]) -> PageArray {
        // A displaced page had no reference but that of its slot (I1), which was put, so this array
        // has the only one.
        self.0.retain_displaced(slots);
        self.0
    }

    /// Puts the references. Returns the memory.
    #[inline]
    fn forget(mut self) -> PageArray {
        self.0.release();
        self.0
    }
}

/// The pages of a Call: either its own, or references to the pages of its Reply. One allocation
/// serves both.
pub(crate) struct CtxtPages {
    /// The pages of the Call. Has no memory while `noted` has it.
    own: PageArray,
    noted: Option<DisplacedPages>,
}

impl From<PageArray> for CtxtPages {
    fn from(own: PageArray) -> Self {
        Self { own, noted: None }
    }
}

impl CtxtPages {
    /// The Call's own pages. Puts the references to the pages of the Reply.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut PageArray {
        if let Some(noted) = self.noted.take() {
            self.own = noted.forget();
        }
        &mut self.own
    }

    /// Takes references to the pages in `slots`: up to the first slot that is empty or whose page
    /// has other references, and as many as there is room for. Releases all pages that were here
    /// before.
    #[inline]
    pub(crate) fn note(&mut self, slots: &[PageSlot]) {
        let memory = mem::replace(self.own(), PageArray::none());
        self.noted = Some(DisplacedPages::note(memory, slots));
    }

    /// Returns the pages that have left `slots` since [`Self::note`], if that was called. They
    /// become the Call's own pages. Releases all others.
    ///
    /// # Safety
    ///
    /// If [`Self::note`] was called, `slots` are the slots that were noted, or the first of them.
    /// Code that has displaced a page from them has put the slot's reference, and has not moved the
    /// page to another slot.
    #[inline]
    pub(crate) unsafe fn displaced(&mut self, slots: &[PageSlot]) -> &mut PageArray {
        match self.noted.take() {
            // SAFETY: By this function's contract.
            Some(noted) => self.own = unsafe { noted.into_displaced(slots) },
            None => self.own.release(),
        }
        &mut self.own
    }

    /// Releases all pages.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.own().release();
    }
}
