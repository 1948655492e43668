// SPDX-License-Identifier: GPL-2.0

//! Pages that are only noted: they are somebody else's, and what is displaced from there is ours.

use core::mem;

use super::pages::PageArray;
use crate::bindings::page;

/// Second references to pages that lie in somebody's slots. There is no way to the pages before
/// they have left those.
///
/// # Invariants
///
/// When they were noted, each page had one reference, that of its slot.
pub(crate) struct DisplacedPages(PageArray);

impl DisplacedPages {
    /// Notes the pages in `slots`, up to the first slot that is empty, or whose page somebody else
    /// has, too, and as many as `memory` has room for. What is in that goes.
    ///
    /// # Safety
    ///
    /// `slots` must point to `count` readable slots, each of them null or a page to which the slot
    /// has a reference. Who displaces a page from there does nothing with it any more but put that.
    #[inline]
    unsafe fn note(mut memory: PageArray, slots: *const *mut page, count: usize) -> Self {
        memory.release();
        // SAFETY: By this function's contract.
        unsafe { memory.take_second(slots, count) };
        // INVARIANT: Others are not taken.
        Self(memory)
    }

    /// Those of the pages that are not in `slots` any more, in the same memory: nobody else uses
    /// them.
    ///
    /// # Safety
    ///
    /// `slots` must point to the slots that were noted, `count` of them at most; what is not there
    /// any more has been displaced, as [`Self::note`] says, and not been moved.
    #[inline]
    unsafe fn into_displaced(mut self, slots: *const *mut page, count: usize) -> PageArray {
        // What is left had no reference but the slot's, by the type's invariants, so that no other
        // array has one; and who displaced it does nothing but put that.
        self.0.retain(|index, page| {
            // SAFETY: Within the slots, by this function's contract.
            index < count && unsafe { *slots.add(index) } != page
        });
        self.0
    }

    /// Forgets the pages; only the memory is left.
    #[inline]
    fn forget(mut self) -> PageArray {
        self.0.release();
        self.0
    }
}

/// What travels with a Call: its own pages, or else what is noted of the pages that its Reply is to
/// lie in. There is memory for one of them.
pub(crate) struct CtxtPages {
    /// Without memory as long as something is noted.
    own: PageArray,
    noted: Option<DisplacedPages>,
}

impl From<PageArray> for CtxtPages {
    fn from(own: PageArray) -> Self {
        Self { own, noted: None }
    }
}

impl CtxtPages {
    /// The Call's own pages. What was noted is forgotten.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut PageArray {
        if let Some(noted) = self.noted.take() {
            self.own = noted.forget();
        }
        &mut self.own
    }

    /// Notes the pages in `slots`, as many as there is room for, up to the first slot that is
    /// empty, or whose page somebody else has, too. What was there before goes.
    ///
    /// # Safety
    ///
    /// `slots` must point to `count` readable slots, each of them null or a page to which the slot
    /// has a reference. Who displaces a page from there does nothing with it any more but put that.
    #[inline]
    pub(crate) unsafe fn note(&mut self, slots: *const *mut page, count: usize) {
        let memory = mem::replace(self.own(), PageArray::none());
        // SAFETY: By this function's contract.
        self.noted = Some(unsafe { DisplacedPages::note(memory, slots, count) });
    }

    /// What has left `slots` since they were [noted](Self::note), if they were: the Call's own from
    /// here on. All others go.
    ///
    /// # Safety
    ///
    /// If anything is noted, `slots` must point to the slots that were, `count` of them at most;
    /// what is not there any more has been displaced, as [`Self::note`] says, and not been moved.
    #[inline]
    pub(crate) unsafe fn displaced(
        &mut self,
        slots: *const *mut page,
        count: usize,
    ) -> &mut PageArray {
        match self.noted.take() {
            // SAFETY: By this function's contract.
            Some(noted) => self.own = unsafe { noted.into_displaced(slots, count) },
            None => self.own.release(),
        }
        &mut self.own
    }

    /// Lets go of all.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.own().release();
    }
}
