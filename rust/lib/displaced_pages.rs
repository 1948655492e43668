// SPDX-License-Identifier: GPL-2.0

//! Pages that NFSD displaces from a request, kept for later requests.
//!
//! In a splice read NFSD replaces pages in the slots of a `struct svc_rqst` by pages of the file.
//! `svc_rqst_replace_page()` moves the slot's reference to a displaced page to `rq_fbatch`. SUNRPC
//! puts that reference when the batch is full, or at another time, and uses it for nothing else. A
//! second reference, taken before, keeps the page from being freed. The second reference gives no
//! access to a page that is still in its slot.

use core::mem;

use super::pages::{
    PageArray,
    PageSlot, //
};

/// The pages of a Call: either its own, or second references to pages in the slots for its Reply.
/// One array serves both.
///
/// # Invariants
///
/// - I1: If `noted`, each page had one reference, that of its slot, when [`Self::note`] took the
///   second one.
pub(crate) struct CtxtPages {
    pages: PageArray,
    noted: bool,
}

impl CtxtPages {
    /// No pages, and no memory for them.
    pub(crate) const fn new() -> Self {
        // INVARIANT: I1: not noted.
        Self {
            pages: PageArray::new(),
            noted: false,
        }
    }

    /// The Call's own pages. Puts the references to the pages of the Reply.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut PageArray {
        if self.noted {
            self.release();
        }
        &mut self.pages
    }

    /// Takes references to the pages in `slots`: up to the first slot that is empty or whose page
    /// has other references, and as many as there is memory for. Releases all pages that were here
    /// before.
    #[inline]
    pub(crate) fn note(&mut self, slots: &[PageSlot]) {
        self.release();
        // Without memory, no page is noted, and nfsd frees those that it displaces.
        let _ = self.pages.make_room(slots.len());
        // INVARIANT: I1: `add_unshared` takes no others, and there were none.
        self.pages.add_unshared(slots);
        self.noted = true;
    }

    /// Returns the pages that have left `slots` since [`Self::note`], if that was called. They
    /// become the Call's own pages. Releases all others.
    ///
    /// # Safety
    ///
    /// If [`Self::note`] was called, `slots` are the slots that were noted, or the first of them.
    /// Code that has displaced a page from them does not access the page again, and puts the slot's
    /// reference, sooner or later.
    #[inline]
    pub(crate) unsafe fn displaced(&mut self, slots: &[PageSlot]) -> &mut PageArray {
        // A displaced page had no reference but that of its slot (I1). By this function's contract
        // the page is not accessed by that one any more, and this array has the other one.
        if mem::take(&mut self.noted) {
            self.pages.retain_displaced(slots);
        } else {
            self.pages.release();
        }
        &mut self.pages
    }

    /// Releases all pages.
    #[inline]
    pub(crate) fn release(&mut self) {
        // INVARIANT: I1: there are no pages.
        self.noted = false;
        self.pages.release_and_trim();
    }
}
