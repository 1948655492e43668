// SPDX-License-Identifier: GPL-2.0

//! Owned pages, which SUNRPC hands over and a device accesses.
//!
//! C headers: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/highmem.h`](srctree/include/linux/highmem.h)
//!
//! `kernel::page::Page` does not fit: it owns a page that it frees by `__free_pages()`, while the
//! pages here are shared, and owned by reference. Nor does `BorrowedPage`, because its
//! `write_raw()` does not flush the data cache as `memcpy_to_page()` does.

use core::ptr::NonNull;

use kernel::prelude::*;

use super::bvec::{
    BVec,
    PAGE, //
};
use crate::bindings::{
    self,
    page, //
};

/// A run of bytes in a [`PageArray`], counted as if its pages were one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The offset of its first byte.
    pub(crate) start: u32,
    /// Its length in bytes.
    pub(crate) len: u32,
}

impl Span {
    /// The part of at most `len` bytes that starts `skip` bytes into the run.
    #[inline]
    pub(crate) fn part(self, skip: u32, len: u32) -> Self {
        let skip = skip.min(self.len);
        Self {
            start: self.start.saturating_add(skip),
            len: len.min(self.len - skip),
        }
    }

    /// The number of pages that the run touches.
    #[inline]
    pub(crate) fn pages(self) -> u32 {
        match self.len {
            0 => 0,
            len => (self.start % PAGE).saturating_add(len).div_ceil(PAGE),
        }
    }
}

/// An array of owned pages with a fixed capacity.
///
/// # Invariants
///
/// - I1: The array owns one reference to each of its pages.
/// - I2: The capacity of `pages` never changes.
pub(crate) struct PageArray {
    pages: KVec<NonNull<page>>,
}

// SAFETY: A reference to a page may be used and put on any thread.
unsafe impl Send for PageArray {}
// SAFETY: A shared reference only allows to read the pointers and the pages' content.
unsafe impl Sync for PageArray {}

impl PageArray {
    /// Creates an empty array with room for `capacity` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn with_capacity(capacity: usize) -> Result<Self> {
        // INVARIANT: I1: there are no pages.
        Ok(Self {
            pages: KVec::with_capacity(capacity, GFP_KERNEL)?,
        })
    }

    /// Creates an array without room for pages. It allocates nothing.
    #[inline]
    pub(crate) const fn none() -> Self {
        // INVARIANT: I1: there are no pages.
        Self { pages: KVec::new() }
    }

    /// The number of pages.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The array as one that can only grow.
    #[inline]
    pub(crate) fn sink(&mut self) -> PageSink<'_> {
        PageSink(self)
    }

    /// Moves pages from `slots` to the array, up to the first empty slot, and empties their slots.
    ///
    /// Returns the number of pages. It is less than `count` if a slot is empty or the array is
    /// full.
    ///
    /// # Safety
    ///
    /// `slots` points to `count` writable slots. Each is null, or a page to which the caller has a
    /// reference that it may give away.
    #[inline]
    pub(crate) unsafe fn take(&mut self, slots: *mut *mut page, count: usize) -> usize {
        let count = count.min(self.pages.capacity() - self.pages.len());
        let start = self.pages.len();
        for i in 0..count {
            // SAFETY: The slot is writable by this function's contract.
            let slot = unsafe { &mut *slots.add(i) };
            let Some(page) = NonNull::new(*slot) else {
                break;
            };
            // INVARIANT: I1: the reference moves from the slot to the array. I2: the vector does
            // not grow.
            if self.pages.push_within_capacity(page).is_err() {
                break;
            }
            *slot = core::ptr::null_mut();
        }
        self.pages.len() - start
    }

    /// Takes a second reference to each page in `slots`, up to the first slot that is empty, or
    /// whose page has more than one reference.
    ///
    /// # Safety
    ///
    /// `slots` points to `count` readable slots. Each is null, or a page to which the slot has a
    /// reference.
    #[inline]
    pub(crate) unsafe fn add_unshared(&mut self, slots: *const *mut page, count: usize) {
        let count = count.min(self.pages.capacity() - self.pages.len());
        for i in 0..count {
            // SAFETY: The slot is readable by this function's contract.
            let Some(page) = NonNull::new(unsafe { *slots.add(i) }) else {
                break;
            };
            // SAFETY: The slot has a reference to the page by this function's contract.
            if !unsafe { bindings::rpcrdma_get_sole_page(page.as_ptr()) } {
                break;
            }
            // INVARIANT: I1: the reference was just taken. `count` is bounded by the room.
            let _ = self.pages.push_within_capacity(page);
        }
    }

    /// Keeps the pages for which `f` returns true, given their index, and puts the references to
    /// the others.
    #[inline]
    pub(crate) fn retain(&mut self, mut f: impl FnMut(usize, *mut page) -> bool) {
        let mut index = 0;
        self.pages.retain(|page| {
            let keep = f(index, page.as_ptr());
            index += 1;
            if !keep {
                // SAFETY: The array owns the reference (I1).
                // INVARIANT: I1: the page is removed.
                unsafe { bindings::rpcrdma_put_page(page.as_ptr()) };
            }
            keep
        });
    }

    /// Exchanges the pages for those in the first slots, in order. Empty slots shorten the array.
    ///
    /// # Safety
    ///
    /// `slots` points to at least [`Self::len`] writable slots. Each is null, or a page to which
    /// the caller has a reference that it may give away.
    #[inline]
    pub(crate) unsafe fn exchange(&mut self, slots: *mut *mut page) {
        let len = self.pages.len();
        let mut exchanged = 0;
        for (i, page) in self.pages.as_mut_slice().iter_mut().enumerate() {
            // SAFETY: The slot is writable by this function's contract.
            let slot = unsafe { &mut *slots.add(i) };
            let old = core::mem::replace(slot, page.as_ptr());
            // INVARIANT: I1: the page of the slot replaces that of the array. If there is none,
            // `exchange_rest` removes the page.
            match NonNull::new(old) {
                Some(old) => *page = old,
                None => break,
            }
            exchanged += 1;
        }
        if exchanged < len {
            // SAFETY: The slots are those of this function, and the slot at `exchanged` has the
            // page.
            unsafe { self.exchange_rest(slots, exchanged) };
        }
    }

    /// Continues [`Self::exchange`] behind the first empty slot, and releases the pages of further
    /// slots.
    ///
    /// # Safety
    ///
    /// As for [`Self::exchange`]. `slots[empty]` owns the page of that index already.
    #[cold]
    unsafe fn exchange_rest(&mut self, slots: *mut *mut page, empty: usize) {
        for (i, page) in self.pages.iter().enumerate().skip(empty + 1) {
            // SAFETY: The slot is writable by this function's contract.
            let old = unsafe { core::mem::replace(&mut *slots.add(i), page.as_ptr()) };
            if !old.is_null() {
                // SAFETY: The slot had this reference.
                unsafe { bindings::rpcrdma_put_page(old) };
            }
        }
        // INVARIANT: I1: the slots own the pages that are removed.
        self.pages.truncate(empty);
    }

    /// Moves pages from the end of the array to `other`, until that is full.
    #[inline]
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        let count = self
            .pages
            .len()
            .min(other.pages.capacity() - other.pages.len());
        for _ in 0..count {
            let Some(page) = self.pages.pop() else {
                break;
            };
            // INVARIANT: I1: the reference moves to `other`. `count` is bounded by its room.
            let _ = other.pages.push_within_capacity(page);
        }
    }

    /// Moves pages from the end of the array to `slots`, from the last slot down. Returns the
    /// number of slots that are still empty.
    ///
    /// # Safety
    ///
    /// `slots` points to `count` writable slots, all null.
    #[inline]
    pub(crate) unsafe fn fill_from_end(&mut self, slots: *mut *mut page, count: usize) -> usize {
        let mut empty = count;
        while empty > 0 {
            let Some(page) = self.pages.pop() else {
                break;
            };
            empty -= 1;
            // SAFETY: The slot is writable by this function's contract.
            // INVARIANT: I1: the reference moves to the slot.
            unsafe { slots.add(empty).write(page.as_ptr()) };
        }
        empty
    }

    /// Puts the references to all pages.
    #[inline]
    pub(crate) fn release(&mut self) {
        let len = self.pages.len();
        if len == 0 {
            return;
        }
        // CAST: No array of this module comes near 2^31 entries.
        // SAFETY: The array has `len` pages, whose references it owns (I1). `NonNull<page>` has the
        // layout of a pointer.
        unsafe { bindings::rpcrdma_release_pages(self.pages.as_mut_ptr().cast(), len as c_int) };
        // INVARIANT: I1: there are no pages.
        self.pages.clear();
    }

    /// The runs of `span`, one for each page. Returns `None` if it exceeds the array.
    #[inline]
    pub(crate) fn bvecs(&self, span: Span) -> Option<BVecs<'_>> {
        let pages = self.pages.get((span.start / PAGE) as usize..)?;
        let offset = span.start % PAGE;
        // NO-OVERFLOW: The sum of two `u32`, in a `usize`.
        if offset as usize + span.len as usize > pages.len() * PAGE as usize {
            return None;
        }
        // INVARIANT: I1: checked above.
        Some(BVecs {
            pages,
            offset,
            len: span.len,
        })
    }

    /// Copies `source` to offset `start` of the array. Returns `false` if it does not fit.
    pub(crate) fn write(&mut self, start: u32, mut source: &[u8]) -> bool {
        let Ok(len) = u32::try_from(source.len()) else {
            return false;
        };
        let Some(bvecs) = self.bvecs(Span { start, len }) else {
            return false;
        };
        for bvec in bvecs {
            let Some((now, later)) = source.split_at_checked(bvec.len() as usize) else {
                return false;
            };
            // SAFETY: The array owns a reference to the page (I1). The run is within it.
            unsafe {
                bindings::rpcrdma_memcpy_to_page(
                    bvec.page(),
                    bvec.offset() as usize,
                    now.as_ptr().cast(),
                    now.len(),
                );
            }
            source = later;
        }
        true
    }

    /// Copies `span` to the start of `target`. Returns `false` if either is too short.
    #[inline]
    pub(crate) fn read(&self, span: Span, target: &mut [u8]) -> bool {
        // SAFETY: The array owns references to its pages (I1).
        unsafe { read(|index| self.pages.get(index).copied(), span, target) }
    }
}

/// Copies `span` of the pages in `slots` to the start of `target`. Returns `false` if a slot is
/// empty, or either is too short.
///
/// # Safety
///
/// Each slot is null, or a page that stays allocated during the call.
#[inline]
pub(crate) unsafe fn read_slots(slots: &[*mut page], span: Span, target: &mut [u8]) -> bool {
    let page = |index: usize| NonNull::new(*slots.get(index)?);
    // SAFETY: By this function's contract.
    unsafe { read(page, span, target) }
}

/// # Safety
///
/// `page` returns pages that stay allocated during the call.
#[inline]
unsafe fn read(
    page: impl Fn(usize) -> Option<NonNull<page>>,
    span: Span,
    target: &mut [u8],
) -> bool {
    let Some(mut target) = target.get_mut(..span.len as usize) else {
        return false;
    };
    let mut at = span.start as usize;
    while !target.is_empty() {
        let offset = at % PAGE as usize;
        let len = target.len().min(PAGE as usize - offset);
        let Some(page) = page(at / PAGE as usize) else {
            return false;
        };
        let Some((now, later)) = target.split_at_mut_checked(len) else {
            return false;
        };
        // SAFETY: The page is allocated by this function's contract. The range is within it.
        unsafe {
            bindings::rpcrdma_memcpy_from_page(
                now.as_mut_ptr().cast(),
                page.as_ptr(),
                offset,
                now.len(),
            );
        }
        // NO-OVERFLOW: The sum of two `u32`, in a `usize`.
        at += len;
        target = later;
    }
    true
}

impl Drop for PageArray {
    fn drop(&mut self) {
        self.release();
    }
}

/// A [`PageArray`] that can only grow. A device may access the pages in it.
pub(crate) struct PageSink<'a>(&'a mut PageArray);

impl PageSink<'_> {
    /// See [`PageArray::take`].
    ///
    /// # Safety
    ///
    /// As for [`PageArray::take`].
    #[inline]
    pub(crate) unsafe fn take(&mut self, slots: *mut *mut page, count: usize) -> usize {
        // SAFETY: By this function's contract.
        unsafe { self.0.take(slots, count) }
    }
}

/// An iterator over the runs of a [`Span`], one for each page.
///
/// # Invariants
///
/// - I1: `offset < PAGE`, and `pages` have at least `len` bytes from `offset` on.
pub(crate) struct BVecs<'a> {
    pages: &'a [NonNull<page>],
    offset: u32,
    len: u32,
}

impl<'a> Iterator for BVecs<'a> {
    type Item = BVec<'a>;

    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        if self.len == 0 {
            return None;
        }
        let (page, rest) = self.pages.split_first()?;
        // SAFETY: The array, which is borrowed, owns a reference to the page.
        let bvec = unsafe { BVec::new(page.as_ptr(), self.offset, self.len) }?;
        // INVARIANT: I1: without the first page, and the bytes that it has.
        self.pages = rest;
        self.offset = 0;
        self.len -= bvec.len();
        Some(bvec)
    }
}
