// SPDX-License-Identifier: GPL-2.0

//! Pages that are about to be needed again.
//!
//! A Call that is pulled takes pages of one request, and brings them to another, in place of
//! others. A file that is read has its pages take the place of those of a Reply. SUNRPC would have
//! to find new ones each time, and the kernel clears what it finds: for 1 MiB that costs more than
//! all that this module does. What was displaced goes to the next request that lacks pages.
//!
//! Recycled pages are not cleared. A Call's pages go to Calls only; a Reply's displaced pages were
//! never written, but for data that was taken back. That is no more exposure than `svc_rqst`
//! reusing its own pages.

use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    bindings::page,
    lib::pages::PageArray, //
};

/// Pages that are kept at most, for all connections of a listener: 4 MiB, a few of the longest
/// Calls.
const MOST: usize = (4 << 20) / PAGE_SIZE;

/// Pages that no request has.
///
/// Nobody waits for anybody here: who comes while another is at it does without.
#[pin_data]
pub(crate) struct SparePages {
    #[pin]
    pages: SpinLock<PageArray>,
}

impl SparePages {
    /// None so far.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let pages = PageArray::with_capacity(MOST)?;
        Arc::pin_init(
            pin_init!(Self {
                pages <- new_spinlock!(pages, "SparePages::pages"),
            }),
            GFP_KERNEL,
        )
    }

    /// Keeps `pages`, or as many as there is room for, and releases the rest.
    #[inline]
    pub(super) fn keep(&self, pages: &mut PageArray) {
        if pages.len() == 0 {
            return;
        }
        if let Some(mut spare) = self.pages.try_lock() {
            pages.move_to(&mut spare);
        }
        pages.release();
    }

    /// Puts a page into each of `count` slots, the last one first, as long as there are any;
    /// returns how many of the first slots are still empty.
    ///
    /// # Safety
    ///
    /// There are as many slots, writable, and all of them null.
    #[inline]
    pub(super) unsafe fn fill(&self, slots: *mut *mut page, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        match self.pages.try_lock() {
            // SAFETY: By this function's contract.
            Some(mut spare) => unsafe { spare.fill_from_end(slots, count) },
            None => count,
        }
    }

    /// Lets go of all, if there is memory to note them down without the lock.
    pub(crate) fn release(&self) {
        if let Ok(mut pages) = PageArray::with_capacity(MOST) {
            self.pages.lock().move_to(&mut pages);
        }
    }
}
