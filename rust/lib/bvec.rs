// SPDX-License-Identifier: GPL-2.0

//! A run of bytes within a page.
//!
//! C header: [`include/linux/bvec.h`](srctree/include/linux/bvec.h)
//!
//! This is a `struct bio_vec` that never crosses a page, and cannot outlive the description of the
//! memory. The kernel crate has no counterpart.

use core::{
    cell::Cell,
    marker::PhantomData,
    ptr::NonNull,
    slice, //
};

use kernel::page::PAGE_SIZE;

use crate::bindings::{
    self,
    page, //
};

/// `PAGE_SIZE` as a `u32`, the type of lengths in messages.
pub(crate) const PAGE: u32 = PAGE_SIZE as u32;

/// Returns whether `next` is the page right behind `page` in memory.
#[inline]
pub(crate) fn is_next_page(page: *const page, next: *const page) -> bool {
    // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP) && page.wrapping_add(1) == next
}

/// A run of bytes within one page.
///
/// The lifetime is that of the owner's description of the memory. Code that maps the run for a
/// device keeps the owner until it is unmapped; [`fence`](super::fence) has the types for that.
///
/// # Invariants
///
/// - I1: `page` is allocated during `'a`, and beyond that as long as the value that `'a` is a
///   borrow of exists and does not change, wherever it is moved.
/// - I2: `len > 0`, and `offset + len <= PAGE`.
#[derive(Clone, Copy)]
pub(crate) struct BVec<'a> {
    page: NonNull<page>,
    offset: u32,
    len: u32,
    _description: PhantomData<&'a page>,
}

impl<'a> BVec<'a> {
    /// Describes up to `len` bytes from `offset` of a page. Returns `None` if there are none.
    ///
    /// # Safety
    ///
    /// `page` is null, or a page that stays allocated as the type's invariants say (I1).
    #[inline]
    pub(crate) unsafe fn new(page: *mut page, offset: u32, len: u32) -> Option<Self> {
        let len = len.min(PAGE.checked_sub(offset)?);
        if len == 0 {
            return None;
        }
        // INVARIANT: I1: by this function's contract. I2: `len` is bounded by the rest of the page.
        Some(Self {
            page: NonNull::new(page)?,
            offset,
            len,
            _description: PhantomData,
        })
    }

    /// The same run, with another lifetime.
    ///
    /// # Safety
    ///
    /// As for [`Self::new`], for `'b`.
    #[inline]
    pub(crate) unsafe fn with_lifetime<'b>(self) -> BVec<'b> {
        BVec {
            page: self.page,
            offset: self.offset,
            len: self.len,
            _description: PhantomData,
        }
    }

    /// The page.
    #[inline]
    pub(crate) fn page(&self) -> *mut page {
        self.page.as_ptr()
    }

    /// Returns whether the page has a reference count. Slab pages have none.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        // SAFETY: The page is allocated (I1).
        unsafe { bindings::rpcrdma_page_is_counted(self.page()) }
    }

    /// The offset of the run in its page.
    #[inline]
    pub(crate) fn offset(&self) -> u32 {
        self.offset
    }

    /// The length of the run in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a run is never empty")]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Splits the run after `len` bytes, at least one. The second part is `None` if it has no
    /// bytes.
    #[inline]
    pub(crate) fn split(self, len: u32) -> (Self, Option<Self>) {
        let len = len.clamp(1, self.len);
        // INVARIANT: I2: both parts are within the run, and have at least one byte.
        let rest = (len < self.len).then_some(Self {
            offset: self.offset + len,
            len: self.len - len,
            ..self
        });
        (Self { len, ..self }, rest)
    }

    /// Returns whether the run ends with its page.
    #[inline]
    pub(crate) fn ends_page(&self) -> bool {
        self.offset + self.len == PAGE
    }

    /// Returns whether a device that sees memory page by page has no gap between this run and
    /// `next`: this run ends with its page, and `next` starts with one.
    #[inline]
    pub(crate) fn adjoins(&self, next: &Self) -> bool {
        self.ends_page() && next.offset == 0
    }
}

/// Memory, page by page.
pub(crate) trait BVecs<'a>: Iterator<Item = BVec<'a>> {
    /// Takes up to `most` whole pages off the front. A loop over whole pages is shorter than one
    /// over runs of any offset and length. An implementation may return none.
    #[inline]
    fn whole_pages(&mut self, most: usize) -> &[WholePage<'a>] {
        let _ = most;
        &[]
    }
}

// Parts of a message. Few are long.
impl<'a, A, B> BVecs<'a> for core::iter::Chain<A, B> where Self: Iterator<Item = BVec<'a>> {}
impl<'a, F: FnMut() -> Option<BVec<'a>>> BVecs<'a> for core::iter::FromFn<F> {}
impl<'a, I, U: IntoIterator, F> BVecs<'a> for core::iter::FlatMap<I, U, F> where
    Self: Iterator<Item = BVec<'a>>
{
}

/// An entry of an array of C, for a whole page. A `Cell`, because the thread that reads it may also
/// write to the array.
///
/// # Invariants
///
/// - I1: The entry is null, or a page as I1 of [`BVec`] says, for `'a`.
#[repr(transparent)]
pub(crate) struct WholePage<'a>(Cell<*mut page>, PhantomData<BVec<'a>>);

impl<'a> WholePage<'a> {
    /// The pages of `count` entries.
    ///
    /// # Safety
    ///
    /// `entries` is not null. There are so many of them, to which no other thread writes during
    /// `'s`. Each is null, or a page that stays allocated as I1 of [`BVec`] says, for `'a`.
    #[inline]
    pub(crate) unsafe fn slice<'s>(entries: *const *mut page, count: usize) -> &'s [Self] {
        // INVARIANT: I1: by this function's contract.
        // SAFETY: By this function's contract. `WholePage` is transparent.
        unsafe { slice::from_raw_parts(entries.cast(), count) }
    }

    /// The same pages, with another lifetime.
    ///
    /// # Safety
    ///
    /// As for [`Self::slice`], for `'b`.
    #[inline]
    pub(crate) unsafe fn with_lifetime<'s, 'b>(pages: &'s [Self]) -> &'s [WholePage<'b>] {
        // INVARIANT: I1: by this function's contract.
        // SAFETY: The lifetime does not change the layout.
        unsafe { slice::from_raw_parts(pages.as_ptr().cast(), pages.len()) }
    }

    /// The page; `None` if the entry has none.
    #[inline]
    pub(crate) fn bvec(&self) -> Option<BVec<'a>> {
        // INVARIANT: I1: that of this type. I2: a whole page.
        Some(BVec {
            page: NonNull::new(self.0.get())?,
            offset: 0,
            len: PAGE,
            _description: PhantomData,
        })
    }
}
