// SPDX-License-Identifier: GPL-2.0

//! Pages that were displaced from one request, for the next request that lacks some.
//!
//! A Call with Read chunks takes pages out of one request and replaces pages of another. nfsd
//! replaces the pages of a Reply by those of the file that it reads. SUNRPC would allocate the
//! missing pages each time. With `init_on_alloc`, the default of Debian's kernels, the kernel also
//! clears them: for 1 MiB that costs more than everything else that this module does.
//!
//! Recycled pages are not cleared. Pages of a Call are used for Calls only. The displaced pages of
//! a Reply were never written, except with data that nfsd took back. So the reuse exposes no more
//! than an `svc_rqst` that reuses its own pages.

use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLock, //
};

use crate::lib::pages::{
    PageArray,
    PageSlot, //
};

/// The largest number of pages, for all connections of a listener: 4 MiB, or a few of the longest
/// Calls.
const MAX_PAGES: usize = (4 << 20) / PAGE_SIZE;

/// Pages that belong to no request.
///
/// No thread waits for the lock, except in [`Self::release`]: a thread that finds the lock taken
/// continues without spare pages.
#[pin_data]
pub(crate) struct SparePages {
    #[pin]
    pages: SpinLock<PageArray>,
}

impl SparePages {
    /// No pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            pages <- new_spinlock!(PageArray::with_capacity(MAX_PAGES)?, "SparePages::pages"),
        })
    }

    /// Stores as many of `pages` as there is room for, and frees the rest.
    #[inline]
    pub(super) fn store(&self, pages: &mut PageArray) {
        if pages.len() > 0 {
            self.store_some(pages);
        }
    }

    #[inline(never)]
    fn store_some(&self, pages: &mut PageArray) {
        if let Some(mut spare) = self.pages.try_lock() {
            pages.move_to(&mut spare);
        }
        pages.release();
    }

    /// Fills empty slots from the last one backwards, as long as there are pages. Returns how many
    /// of the first slots stay empty.
    #[inline]
    pub(super) fn fill(&self, slots: &mut [PageSlot]) -> usize {
        if slots.is_empty() {
            return 0;
        }
        self.fill_some(slots)
    }

    #[inline(never)]
    fn fill_some(&self, slots: &mut [PageSlot]) -> usize {
        match self.pages.try_lock() {
            Some(mut spare) => spare.fill_from_end(slots),
            None => slots.len(),
        }
    }

    /// Frees all pages. Does nothing if there is no memory for an array of them.
    pub(crate) fn release(&self) {
        // Pages must not be freed with the lock held, so they move to an array of their own.
        let count = self.pages.lock().len();
        if let Ok(mut pages) = PageArray::with_capacity(count) {
            self.pages.lock().move_to(&mut pages);
        }
    }
}
