// SPDX-License-Identifier: GPL-2.0

//! Whole pages that somebody owns: what SUNRPC hands over and the device reads or writes.

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
    /// Where the run starts.
    pub(crate) start: u32,
    /// How long it is.
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

    /// How many pages the run touches.
    #[inline]
    pub(crate) fn pages(self) -> u32 {
        match self.len {
            0 => 0,
            len => (self.start % PAGE).saturating_add(len).div_ceil(PAGE),
        }
    }
}

/// Owned pages, in order, up to a fixed number.
///
/// # Invariants
///
/// `pages` holds one reference to each of its pages. Its capacity never changes.
pub(crate) struct PageArray {
    pages: KVec<NonNull<page>>,
}

// SAFETY: A page reference may be used and dropped on any thread.
unsafe impl Send for PageArray {}
// SAFETY: A shared reference only gives out page pointers and copies.
unsafe impl Sync for PageArray {}

impl PageArray {
    /// An empty array with room for `capacity` pages.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn with_capacity(capacity: usize) -> Result<Self> {
        // INVARIANT: There are no pages yet.
        Ok(Self {
            pages: KVec::with_capacity(capacity, GFP_KERNEL)?,
        })
    }

    /// An array with room for nothing, which takes no memory.
    #[inline]
    pub(crate) const fn none() -> Self {
        // INVARIANT: There are no pages.
        Self { pages: KVec::new() }
    }

    /// How many pages are in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The array, for adding to it.
    #[inline]
    pub(crate) fn sink(&mut self) -> PageSink<'_> {
        PageSink(self)
    }

    /// Takes pages out of `slots`, up to the first empty slot, and leaves the slots empty.
    ///
    /// Returns how many were taken: less than `count` if a slot was empty or the array is full.
    ///
    /// # Safety
    ///
    /// `slots` must point to `count` writable slots, each of them null or a page that the caller
    /// has a reference to, and may give away.
    #[inline]
    pub(crate) unsafe fn take(&mut self, slots: *mut *mut page, count: usize) -> usize {
        let count = count.min(self.pages.capacity() - self.pages.len());
        let start = self.pages.len();
        for i in 0..count {
            // SAFETY: Within the slots, by this function's contract.
            let slot = unsafe { &mut *slots.add(i) };
            let Some(page) = NonNull::new(*slot) else {
                break;
            };
            // INVARIANT: The reference moves from the slot into the array.
            if self.pages.push_within_capacity(page).is_err() {
                break;
            }
            *slot = core::ptr::null_mut();
        }
        self.pages.len() - start
    }

    /// Takes a second reference to each page in `slots`, up to the first slot that is empty, or
    /// whose page has others already.
    ///
    /// # Safety
    ///
    /// `slots` must point to `count` readable slots, each of them null or a page to which the slot
    /// has a reference.
    #[inline]
    pub(crate) unsafe fn take_second(&mut self, slots: *const *mut page, count: usize) {
        let count = count.min(self.pages.capacity() - self.pages.len());
        for i in 0..count {
            // SAFETY: Within the slots, by this function's contract.
            let Some(page) = NonNull::new(unsafe { *slots.add(i) }) else {
                break;
            };
            // SAFETY: A page, to which the slot has a reference.
            if !unsafe { bindings::rpcrdma_get_sole_page(page.as_ptr()) } {
                break;
            }
            // INVARIANT: The reference that was taken just now. There is room: see `count`.
            let _ = self.pages.push_within_capacity(page);
        }
    }

    /// Keeps those pages of which `keep` says so, by their place in the array, and drops the
    /// references to the others.
    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize, *mut page) -> bool) {
        let mut index = 0;
        self.pages.retain(|page| {
            let kept = keep(index, page.as_ptr());
            index += 1;
            if !kept {
                // SAFETY: The array's reference.
                // INVARIANT: It goes with the page.
                unsafe { bindings::rpcrdma_put_page(page.as_ptr()) };
            }
            kept
        });
    }

    /// Puts all pages into `slots`, in order; what was in the slots is in the array then.
    ///
    /// # Safety
    ///
    /// `slots` must point to at least [`Self::len`] writable slots, each of them null or a page
    /// that the caller has a reference to, and may give away.
    #[inline]
    pub(crate) unsafe fn exchange(&mut self, slots: *mut *mut page) {
        let len = self.pages.len();
        let mut exchanged = 0;
        for (i, page) in self.pages.as_mut_slice().iter_mut().enumerate() {
            // SAFETY: Within the slots, by this function's contract.
            let slot = unsafe { &mut *slots.add(i) };
            let old = core::mem::replace(slot, page.as_ptr());
            // INVARIANT: The slot's old page, if any, takes the place of the page given away.
            match NonNull::new(old) {
                Some(old) => *page = old,
                None => break,
            }
            exchanged += 1;
        }
        if exchanged < len {
            // SAFETY: The slots from `exchanged` on are in bounds; the page at `exchanged` has been
            // given away already.
            unsafe { self.exchange_rest(slots, exchanged) };
        }
    }

    /// The rest of [`Self::exchange`], from the first empty slot on.
    ///
    /// # Safety
    ///
    /// As for [`Self::exchange`]; moreover `slots[empty]` holds the page of that index already.
    #[cold]
    unsafe fn exchange_rest(&mut self, slots: *mut *mut page, empty: usize) {
        for (i, page) in self.pages.iter().enumerate().skip(empty + 1) {
            // SAFETY: Within the slots, by this function's contract.
            let old = unsafe { core::mem::replace(&mut *slots.add(i), page.as_ptr()) };
            if !old.is_null() {
                // SAFETY: The reference that the slot had.
                unsafe { bindings::rpcrdma_put_page(old) };
            }
        }
        // INVARIANT: What is cut off has been given away.
        self.pages.truncate(empty);
    }

    /// Moves pages to `other`, from the end, as many as there is room for.
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
            // INVARIANT: The reference moves along; there is room.
            let _ = other.pages.push_within_capacity(page);
        }
    }

    /// Moves pages from the end of the array to the last of `count` slots; returns how many of the
    /// first ones are still empty.
    ///
    /// # Safety
    ///
    /// `slots` must point to `count` writable slots, all of them null.
    #[inline]
    pub(crate) unsafe fn fill_from_end(&mut self, slots: *mut *mut page, count: usize) -> usize {
        let mut empty = count;
        while empty > 0 {
            let Some(page) = self.pages.pop() else {
                break;
            };
            empty -= 1;
            // SAFETY: Within the slots, by this function's contract.
            // INVARIANT: The reference is the slot's now.
            unsafe { slots.add(empty).write(page.as_ptr()) };
        }
        empty
    }

    /// Drops the references to all pages.
    #[inline]
    pub(crate) fn release(&mut self) {
        let len = self.pages.len();
        if len == 0 {
            return;
        }
        // SAFETY: `NonNull<page>` is a pointer; there are `len` of them, and a reference to each.
        // No array of this module comes near 2^31 entries.
        unsafe { bindings::rpcrdma_release_pages(self.pages.as_mut_ptr().cast(), len as c_int) };
        // INVARIANT: No pages, no references.
        self.pages.clear();
    }

    /// The parts of the pages that make up `span`, or `None` if it is not within the array.
    #[inline]
    pub(crate) fn bvecs(&self, span: Span) -> Option<BVecs<'_>> {
        let pages = self.pages.get((span.start / PAGE) as usize..)?;
        let offset = span.start % PAGE;
        // NO-OVERFLOW: Lengths of at most 32 bits, and an offset within a page.
        if offset as usize + span.len as usize > pages.len() * PAGE as usize {
            return None;
        }
        // INVARIANT: Checked above.
        Some(BVecs {
            pages,
            offset,
            left: span.len,
        })
    }

    /// Copies `source` to where `start` is in the array; `false` if it does not fit.
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
            // SAFETY: The page is ours, and the piece is within it.
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

    /// Copies `span` to the front of `target`; `false` if either is too short.
    #[inline]
    pub(crate) fn read(&self, span: Span, target: &mut [u8]) -> bool {
        // SAFETY: The array has a reference to each of its pages.
        unsafe { read(|index| self.pages.get(index).copied(), span, target) }
    }
}

/// Copies `span` of the pages in `slots` to the front of `target`; `false` if a slot is empty or
/// either is too short.
///
/// # Safety
///
/// Each slot is null, or a page that stays.
#[inline]
pub(crate) unsafe fn read_slots(slots: &[*mut page], span: Span, target: &mut [u8]) -> bool {
    let page = |index: usize| NonNull::new(*slots.get(index)?);
    // SAFETY: By this function's contract.
    unsafe { read(page, span, target) }
}

/// # Safety
///
/// What `page` returns are pages that stay.
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
        // SAFETY: The page stays, by this function's contract; what is read is within it.
        unsafe {
            bindings::rpcrdma_memcpy_from_page(
                now.as_mut_ptr().cast(),
                page.as_ptr(),
                offset,
                now.len(),
            );
        }
        // NO-OVERFLOW: Two numbers of at most 32 bits each.
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

/// A [`PageArray`] that can only grow, because the device may have what is in it already.
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

/// Iterator over the pieces of a [`Span`], one page at a time.
///
/// # Invariants
///
/// `pages`, from `offset` on, hold at least `left` bytes; `offset` is within a page.
pub(crate) struct BVecs<'a> {
    pages: &'a [NonNull<page>],
    offset: u32,
    left: u32,
}

impl<'a> Iterator for BVecs<'a> {
    type Item = BVec<'a>;

    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        if self.left == 0 {
            return None;
        }
        let (page, rest) = self.pages.split_first()?;
        // SAFETY: The array, which is borrowed, has a reference to the page.
        let bvec = unsafe { BVec::new(page.as_ptr(), self.offset, self.left) }?;
        // INVARIANT: One page less, and what it held.
        self.pages = rest;
        self.offset = 0;
        self.left -= bvec.len();
        Some(bvec)
    }
}
