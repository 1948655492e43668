// SPDX-License-Identifier: GPL-2.0

//! Owned pages, which SUNRPC hands over and a device accesses.
//!
//! C headers: [`include/linux/mm.h`](srctree/include/linux/mm.h),
//! [`include/linux/highmem.h`](srctree/include/linux/highmem.h)
//!
//! `kernel::page::Page` does not fit: it owns a page that it frees by `__free_pages()`, while the
//! pages here are shared, and owned by reference. Nor does `BorrowedPage`, because its
//! `write_raw()` does not flush the data cache as `memcpy_to_page()` does.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};

use kernel::prelude::*;

use super::bvec::{
    is_next_page,
    BVec,
    BVecs,
    WholePage,
    PAGE, //
};
use crate::bindings::{
    self,
    page, //
};

/// The pages of a READ or WRITE of 128 KiB. An array that was longer is allocated again: that costs
/// little beside its pages, and each buffer of each connection has an array.
const KEPT: usize = 32;

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

/// An entry of an array of C: null, or a page to which the entry has a reference.
///
/// # Invariants
///
/// - I1: The pointer is null, or the entry owns a reference to the page.
#[repr(transparent)]
pub(crate) struct PageSlot(*mut page);

impl PageSlot {
    /// The page; `None` if the slot is empty.
    #[inline]
    pub(crate) fn page(&self) -> Option<NonNull<page>> {
        NonNull::new(self.0)
    }

    /// The address of the page in the linear mapping; `None` if the slot is empty.
    #[inline]
    pub(crate) fn address(&self) -> Option<*mut c_void> {
        let page = self.page()?;
        // SAFETY: The slot has a reference to the page (I1).
        Some(unsafe { bindings::rpcrdma_page_address(page.as_ptr()) })
    }

    /// Takes the page with the slot's reference.
    #[inline]
    fn take(&mut self) -> Option<NonNull<page>> {
        // INVARIANT: I1: the reference moves to the caller.
        NonNull::new(core::mem::replace(&mut self.0, core::ptr::null_mut()))
    }

    /// Puts the reference to the page, if there is one, and empties the slot.
    #[cfg(not(rpcrdma_has_rq_pages_nfree))]
    pub(crate) fn release(&mut self) {
        if let Some(page) = self.take() {
            // SAFETY: The slot had this reference.
            unsafe { bindings::rpcrdma_put_page(page.as_ptr()) };
        }
    }

    /// Moves a page with a reference that the caller owns to the slot. Returns the old page, with
    /// the slot's reference.
    #[inline]
    fn replace(&mut self, page: NonNull<page>) -> Option<NonNull<page>> {
        // INVARIANT: I1: the slot gets the caller's reference.
        NonNull::new(core::mem::replace(&mut self.0, page.as_ptr()))
    }
}

/// Puts neighbouring pages in ascending order, in which a device accesses them as one range.
///
/// The kernel often allocates neighbouring pages in descending order: it takes the pages of a CPU's
/// free list last in, first out.
#[inline]
pub(crate) fn sort_neighbours(slots: &mut [PageSlot]) {
    let descends = |four: &[PageSlot]| matches!(four, [a, b, ..] if is_next_page(b.0, a.0));
    // Seven or more neighbours in descending order contain such a pair. Fewer are not worth more
    // comparisons.
    if slots.chunks_exact(4).any(descends) {
        reverse_descending(slots);
    }
}

/// Reverses each run of neighbouring pages in descending order.
#[cold]
fn reverse_descending(slots: &mut [PageSlot]) {
    for run in slots.chunk_by_mut(|a, b| is_next_page(b.0, a.0)) {
        run.reverse();
    }
}

/// An array of owned pages. Only [`Self::make_room`] makes it longer.
///
/// # Invariants
///
/// - I1: The array owns one reference to each of its pages.
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

    /// Creates an empty array without room.
    pub(crate) const fn new() -> Self {
        // INVARIANT: I1: there are no pages.
        Self { pages: KVec::new() }
    }

    /// Makes room for `count` pages in all.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn make_room(&mut self, count: usize) -> Result {
        if count > self.pages.capacity() {
            self.grow(count)?;
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, count: usize) -> Result {
        let more = count.saturating_sub(self.pages.len());
        Ok(self.pages.reserve(more, GFP_KERNEL)?)
    }

    /// Puts the references to all pages, and frees the memory of an array longer than [`KEPT`].
    #[inline]
    pub(crate) fn release_and_trim(&mut self) {
        self.release();
        if self.pages.capacity() > KEPT {
            self.pages = KVec::new();
        }
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
    /// Returns the number of pages. It is less than that of the slots if one is empty or the array
    /// is full.
    #[inline]
    pub(crate) fn take(&mut self, slots: &mut [PageSlot]) -> usize {
        let mut taken = 0;
        for (entry, slot) in self.pages.spare_capacity_mut().iter_mut().zip(slots) {
            let Some(page) = slot.take() else {
                break;
            };
            entry.write(page);
            taken += 1;
        }
        // SAFETY: The loop has written so many entries of the spare capacity.
        // INVARIANT: I1: the references move from the slots to the array.
        unsafe { self.pages.inc_len(taken) };
        taken
    }

    /// Takes a second reference to each page in `slots`, up to the first slot that is empty, or
    /// whose page has more than one reference.
    #[inline]
    pub(crate) fn add_unshared(&mut self, slots: &[PageSlot]) {
        let room = self.pages.spare_capacity_mut();
        let most = slots.len().min(room.len());
        // SAFETY: Each slot is null, or has a reference to its page (I1 of `PageSlot`), and there
        // is room for as many pages. The function writes as many pages as it returns.
        // INVARIANT: I1: the references were just taken.
        unsafe {
            let pages = room.as_mut_ptr().cast();
            let count = bindings::rpcrdma_get_sole_pages(slots.as_ptr().cast(), most, pages);
            self.pages.inc_len(count);
        }
    }

    /// Keeps the pages that are not those of the slots with the same index, and puts the references
    /// to the others. Pages without a slot are not kept.
    #[inline]
    pub(crate) fn retain_displaced(&mut self, slots: &[PageSlot]) {
        let displaced = |(page, slot): &(&NonNull<page>, &PageSlot)| slot.page() != Some(**page);
        let first = self.pages.iter().zip(slots).take_while(displaced).count();
        // Of most Replies either all pages have been displaced, or none.
        if first == self.pages.len() {
            return;
        }
        if first == 0 && !self.pages.iter().zip(slots).any(|each| displaced(&each)) {
            self.release();
            return;
        }
        self.retain(|index, page| {
            let slot = slots.get(index);
            slot.is_some_and(|slot| slot.page() != Some(page))
        });
    }

    /// Keeps the pages for which `f` returns true, given their index, and puts the references to
    /// the others.
    #[cold]
    fn retain(&mut self, mut f: impl FnMut(usize, NonNull<page>) -> bool) {
        let mut index = 0;
        self.pages.retain(|page| {
            let keep = f(index, *page);
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
    /// Returns `false` if there are more pages than slots.
    #[inline]
    pub(crate) fn exchange(&mut self, slots: &mut [PageSlot]) -> bool {
        let Some(slots) = slots.get_mut(..self.pages.len()) else {
            return false;
        };
        let mut exchanged = 0;
        for (page, slot) in self.pages.iter_mut().zip(slots.iter_mut()) {
            // INVARIANT: I1: the page of the slot replaces that of the array. If there is none,
            // `exchange_rest` removes the page.
            match slot.replace(*page) {
                Some(old) => *page = old,
                None => break,
            }
            exchanged += 1;
        }
        if exchanged < slots.len() {
            self.exchange_rest(slots, exchanged);
        }
        true
    }

    /// Continues [`Self::exchange`] behind the first empty slot, which has the page of that index
    /// already, and releases the pages of further slots. There are as many slots as pages.
    #[cold]
    fn exchange_rest(&mut self, slots: &mut [PageSlot], empty: usize) {
        for (page, slot) in self.pages.iter().zip(slots).skip(empty + 1) {
            if let Some(old) = slot.replace(*page) {
                // SAFETY: The slot had this reference.
                unsafe { bindings::rpcrdma_put_page(old.as_ptr()) };
            }
        }
        // INVARIANT: I1: the slots own the pages that are removed.
        self.pages.truncate(empty);
    }

    /// Moves pages from the end of the array to `other`, until that is full.
    #[inline]
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        let room = other.pages.spare_capacity_mut();
        let stay = self.pages.len().saturating_sub(room.len());
        let moved = self.pages.get(stay..).unwrap_or_default();
        for (entry, page) in room.iter_mut().zip(moved) {
            entry.write(*page);
        }
        // SAFETY: The loop has written so many entries of the spare capacity: there is room for
        // all pages but the first `stay`.
        unsafe { other.pages.inc_len(moved.len()) };
        // INVARIANT: I1: the references have moved to `other`.
        self.pages.truncate(stay);
    }

    /// Moves pages from the end of the array to `slots`, from the last slot down, as long as there
    /// are pages. All slots must be empty. Returns how many still are.
    #[inline]
    pub(crate) fn fill_from_end(&mut self, slots: &mut [PageSlot]) -> usize {
        let stay = self.pages.len().saturating_sub(slots.len());
        let moved = self.pages.get(stay..).unwrap_or_default();
        let empty = slots.len().saturating_sub(moved.len());
        let filled = slots.get_mut(empty..).unwrap_or_default();
        for (slot, page) in filled.iter_mut().zip(moved) {
            // INVARIANT: I1: the reference moves to the slot, which was empty.
            let _ = slot.replace(*page);
        }
        // INVARIANT: I1: the slots own the pages that are removed.
        self.pages.truncate(stay);
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
    pub(crate) fn bvecs(&self, span: Span) -> Option<SpanBVecs<'_>> {
        let pages = self.pages.get((span.start / PAGE) as usize..)?;
        let offset = span.start % PAGE;
        // NO-OVERFLOW: The sum of two `u32`, in a `usize`.
        if offset as usize + span.len as usize > pages.len() * PAGE as usize {
            return None;
        }
        // INVARIANT: I1: checked above.
        Some(SpanBVecs {
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

    /// Fills all pages with zeroes.
    pub(crate) fn zero(&mut self) {
        for page in &self.pages {
            // SAFETY: The page is allocated, since the array owns a reference to it (I1). No Rust
            // reference to its bytes exists: they are accessed by copies.
            unsafe { bindings::rpcrdma_clear_page(page.as_ptr()) };
        }
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
#[inline]
pub(crate) fn read_slots(slots: &[PageSlot], span: Span, target: &mut [u8]) -> bool {
    let page = |index: usize| slots.get(index)?.page();
    // SAFETY: Each slot, which is borrowed, has a reference to its page (I1 of `PageSlot`).
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
    #[inline]
    pub(crate) fn take(&mut self, slots: &mut [PageSlot]) -> usize {
        self.0.take(slots)
    }
}

/// An iterator over the runs of a [`Span`], one for each page.
///
/// # Invariants
///
/// - I1: `offset < PAGE`, and `pages` have at least `len` bytes from `offset` on.
pub(crate) struct SpanBVecs<'a> {
    pages: &'a [NonNull<page>],
    offset: u32,
    len: u32,
}

impl<'a> Iterator for SpanBVecs<'a> {
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

impl<'a> BVecs<'a> for SpanBVecs<'a> {
    #[inline]
    fn whole_pages(&mut self, most: usize) -> &[WholePage<'a>] {
        if self.offset != 0 {
            return &[];
        }
        let whole = most.min((self.len / PAGE) as usize);
        let Some((now, rest)) = self.pages.split_at_checked(whole) else {
            return &[];
        };
        // INVARIANT: I1: without the pages that are taken, and their bytes.
        self.pages = rest;
        // NO-OVERFLOW: No more pages than `len` has.
        self.len -= whole as u32 * PAGE;
        // SAFETY: `NonNull<page>` has the layout of a pointer. The array, which is borrowed, owns a
        // reference to each page.
        unsafe { WholePage::slice(now.as_ptr().cast(), now.len()) }
    }
}
