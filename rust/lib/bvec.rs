// SPDX-License-Identifier: GPL-2.0

//! Where bytes lie in memory, as SUNRPC names it and a device is told it.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::page::PAGE_SIZE;

use crate::bindings::{
    self,
    page, //
};

/// Bytes of a page, as messages count them.
pub(crate) const PAGE: u32 = PAGE_SIZE as u32;

/// A run of bytes within one page.
///
/// The lifetime is that of the description, not of the memory: whoever maps a piece for a device
/// sees to it that the memory stays until it is unmapped. For the client that is the proof of
/// fencing that an RPC's completion asks for; for the server, owning the pages.
///
/// # Invariants
///
/// `page` is allocated for as long as the owner of the description says (`'a`; beyond that, promise
/// P1 of `Documentation/architecture.rst`). `offset + len <= PAGE`, and `len > 0`.
#[derive(Clone, Copy)]
pub(crate) struct BVec<'a> {
    page: NonNull<page>,
    offset: u32,
    len: u32,
    _description: PhantomData<&'a page>,
}

impl<'a> BVec<'a> {
    /// Names up to `len` bytes from `offset` of a page; `None` where there is no byte or no page.
    ///
    /// # Safety
    ///
    /// `page` is null or a page that stays allocated as long as its owner's description (`'a`)
    /// says.
    #[inline]
    pub(crate) unsafe fn new(page: *mut page, offset: u32, len: u32) -> Option<Self> {
        let len = len.min(PAGE.checked_sub(offset)?);
        if len == 0 {
            return None;
        }
        // INVARIANT: The page, by this function's contract; `len` was just cut to what the page has
        // after `offset`.
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
    pub(crate) unsafe fn kept<'b>(self) -> BVec<'b> {
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

    /// Whether the page has a reference count, by which it can be held. Slab pages have none.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        // SAFETY: The page is allocated, by the type's invariants.
        unsafe { bindings::rpcrdma_page_is_counted(self.page()) }
    }

    /// Where in the page the run starts.
    #[inline]
    pub(crate) fn offset(&self) -> u32 {
        self.offset
    }

    /// Bytes of the run.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a piece is never empty")]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The first `bytes` of the run, and what follows them.
    #[inline]
    pub(crate) fn split(self, bytes: u32) -> (Self, Option<Self>) {
        let len = bytes.clamp(1, self.len);
        // INVARIANT: Parts of the run; the second only if there is anything left of it.
        let later = (len < self.len).then_some(Self {
            offset: self.offset + len,
            len: self.len - len,
            ..self
        });
        (Self { len, ..self }, later)
    }

    /// Whether `next` can follow without a gap where a device sees memory page by page: this run
    /// reaches the end of its page, and `next` starts with one.
    #[inline]
    pub(crate) fn adjoins(&self, next: &Self) -> bool {
        self.offset + self.len == PAGE && next.offset == 0
    }
}
