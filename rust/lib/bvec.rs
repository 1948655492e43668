// SPDX-License-Identifier: GPL-2.0

//! A run of bytes within a page.
//!
//! C header: [`include/linux/bvec.h`](srctree/include/linux/bvec.h)
//!
//! This is a `struct bio_vec` that never crosses a page, and cannot outlive the description of the
//! memory. The kernel crate has no counterpart.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::page::PAGE_SIZE;

use crate::bindings::{
    self,
    page, //
};

/// `PAGE_SIZE` as a `u32`, the type of lengths in messages.
pub(crate) const PAGE: u32 = PAGE_SIZE as u32;

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

    /// Returns whether a device that sees memory page by page has no gap between this run and
    /// `next`: this run ends with its page, and `next` starts with one.
    #[inline]
    pub(crate) fn adjoins(&self, next: &Self) -> bool {
        self.offset + self.len == PAGE && next.offset == 0
    }
}
