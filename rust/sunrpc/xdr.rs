// SPDX-License-Identifier: GPL-2.0

//! `struct xdr_buf`: a message as SUNRPC keeps it, in a head, pages and a tail.
//!
//! The bytes belong to SUNRPC and its consumers. What is here copies them, or names where they lie
//! ([`BVec`]) for a device.

use core::{
    marker::PhantomData,
    ops::Deref, //
};

use kernel::types::Opaque;

use crate::{
    bindings::{
        self,
        kvec, //
    },
    lib::bvec::{
        BVec,
        PAGE, //
    }, //
};

/// A message in SUNRPC's hands.
///
/// # Invariants
///
/// For as long as a reference exists, head and tail name as many bytes as they say, in memory of
/// the linear mapping, and `pages` has an entry for every page that `page_base` and `page_len`
/// touch; an entry may be null until [`ReplyRoom::fill_sparse_pages`].
#[repr(transparent)]
pub(crate) struct XdrBuf(Opaque<bindings::xdr_buf>);

/// One of the two linear parts.
#[derive(Clone, Copy)]
enum Part {
    Head,
    Tail,
}

impl XdrBuf {
    /// Looks at a message.
    ///
    /// # Safety
    ///
    /// `buf` points to an `xdr_buf` that satisfies the type's invariants for `'a`, and that nobody
    /// changes concurrently.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(buf: *mut bindings::xdr_buf) -> &'a Self {
        // SAFETY: `repr(transparent)`, and by this function's contract.
        unsafe { &*buf.cast() }
    }

    /// The C structure.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::xdr_buf {
        self.0.get()
    }

    /// Bytes of the message.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        // SAFETY: The structure is valid and at rest, by the type's invariants. So it is below.
        unsafe { (*self.as_ptr()).len }
    }

    /// Bytes in the pages.
    #[inline]
    pub(crate) fn page_len(&self) -> u32 {
        // SAFETY: See `len`.
        unsafe { (*self.as_ptr()).page_len }
    }

    /// Bytes before the first of the message in the first page.
    #[inline]
    pub(crate) fn page_base(&self) -> u32 {
        // SAFETY: See `len`.
        unsafe { (*self.as_ptr()).page_base }
    }

    /// Bytes in the head.
    #[inline]
    pub(crate) fn head_len(&self) -> u32 {
        // CAST: No part of a message is 4 GiB long: its length is an `unsigned int` as well. So it
        // is below.
        self.part(Part::Head).iov_len as u32
    }

    /// Bytes in the tail.
    #[inline]
    pub(crate) fn tail_len(&self) -> u32 {
        self.part(Part::Tail).iov_len as u32
    }

    /// Whether the pages are to receive an item that may be placed directly (RFC 8166 Section 6.1).
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.flags() & bindings::XDRBUF_READ != 0
    }

    /// Whether the pages hold an argument that may be moved separately.
    #[inline]
    pub(crate) fn is_write(&self) -> bool {
        self.flags() & bindings::XDRBUF_WRITE != 0
    }

    /// Whether entries of the page list may be missing.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.flags() & bindings::XDRBUF_SPARSE_PAGES != 0
    }

    #[inline]
    fn flags(&self) -> u32 {
        // SAFETY: See `len`.
        unsafe { (*self.as_ptr()).flags }
    }

    /// Where a linear part lies.
    #[inline]
    fn part(&self, part: Part) -> kvec {
        // SAFETY: See `len`. Arrays of one element.
        unsafe {
            match part {
                Part::Head => (*self.as_ptr()).head[0],
                Part::Tail => (*self.as_ptr()).tail[0],
            }
        }
    }

    /// The head, page by page.
    #[inline]
    pub(crate) fn head(&self) -> LinearBVecs<'_> {
        LinearBVecs::new(self.part(Part::Head))
    }

    /// The tail, page by page.
    #[inline]
    pub(crate) fn tail(&self) -> LinearBVecs<'_> {
        LinearBVecs::new(self.part(Part::Tail))
    }

    /// The pages.
    #[inline]
    pub(crate) fn pages(&self) -> PageBVecs<'_> {
        // SAFETY: See `len`.
        let pages = unsafe { (*self.as_ptr()).pages };
        let base = self.page_base();
        PageBVecs {
            next: pages.wrapping_add((base / PAGE) as usize),
            offset: base % PAGE,
            left: self.page_len(),
            _buf: PhantomData,
        }
    }

    /// How many pages the page list touches.
    #[inline]
    pub(crate) fn page_count(&self) -> u32 {
        match self.page_len() {
            0 => 0,
            len => (self.page_base() % PAGE + (len - 1)) / PAGE + 1,
        }
    }

    /// Copies the head to the start of `to`; `None` if it does not fit. Returns the bytes copied.
    #[inline]
    pub(crate) fn copy_head(&self, to: &mut [u8]) -> Option<usize> {
        copy_linear(self.part(Part::Head), to)
    }

    /// Copies the tail, from its `skip`-th byte on.
    #[inline]
    pub(crate) fn copy_tail(&self, skip: u32, to: &mut [u8]) -> Option<usize> {
        let mut tail = self.part(Part::Tail);
        let skip = tail.iov_len.min(skip as usize);
        tail.iov_base = tail.iov_base.wrapping_byte_add(skip);
        tail.iov_len -= skip;
        copy_linear(tail, to)
    }

    /// Copies the content of the pages.
    #[inline]
    pub(crate) fn copy_pages(&self, to: &mut [u8]) -> Option<usize> {
        let len = self.page_len() as usize;
        let mut to = to.get_mut(..len)?;
        for bvec in self.pages() {
            let (part, rest) = to.split_at_mut_checked(bvec.len() as usize)?;
            // SAFETY: The piece lies within its page, which SUNRPC keeps.
            unsafe {
                bindings::rpcrdma_memcpy_from_page(
                    part.as_mut_ptr().cast(),
                    bvec.page(),
                    bvec.offset() as usize,
                    part.len(),
                )
            };
            to = rest;
        }
        Some(len)
    }
}

/// The room that a consumer has prepared for a Reply.
///
/// # Invariants
///
/// The consumer has provided pages, page list and tail to be written, and looks at none of them
/// before the RPC is completed.
#[repr(transparent)]
pub(crate) struct ReplyRoom(XdrBuf);

impl Deref for ReplyRoom {
    type Target = XdrBuf;

    #[inline]
    fn deref(&self) -> &XdrBuf {
        &self.0
    }
}

impl ReplyRoom {
    /// Looks at the room for a Reply.
    ///
    /// # Safety
    ///
    /// See [`XdrBuf::from_raw`]. `buf` is what a Reply is received into, and the invariants hold
    /// for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(buf: *mut bindings::xdr_buf) -> &'a Self {
        // SAFETY: `repr(transparent)`, as is `XdrBuf`, and by this function's contract.
        unsafe { &*buf.cast() }
    }

    /// Gives each missing entry of the page list a page; `false` if there is no memory at hand.
    ///
    /// What got a page keeps it: the consumer that left the entry empty frees it.
    #[cold]
    pub(crate) fn fill_sparse_pages(&self) -> bool {
        // SAFETY: See [`XdrBuf::len`].
        let pages = unsafe { (*self.as_ptr()).pages };
        let first = (self.page_base() / PAGE) as usize;
        (first..first + self.page_count() as usize).all(|i| {
            let entry = pages.wrapping_add(i);
            // SAFETY: The page list has an entry for each page that the message touches, which may
            // be written, by the type's invariants. A sender may be in the path of memory reclaim,
            // so the allocation must not wait.
            unsafe {
                if (*entry).is_null() {
                    *entry = bindings::alloc_pages(bindings::GFP_NOWAIT, 0);
                }
                !(*entry).is_null()
            }
        })
    }

    /// Copies from the start of `from` into the pages, as much as they hold. Returns that number.
    pub(crate) fn store_pages(&self, from: &[u8]) -> usize {
        let mut rest = from;
        for bvec in self.pages() {
            let (part, more) = rest.split_at(rest.len().min(bvec.len() as usize));
            if part.is_empty() {
                break;
            }
            // SAFETY: The piece lies within its page, which may be written, by the type's
            // invariants.
            unsafe {
                bindings::rpcrdma_memcpy_to_page(
                    bvec.page(),
                    bvec.offset() as usize,
                    part.as_ptr().cast(),
                    part.len(),
                )
            };
            rest = more;
        }
        from.len() - rest.len()
    }

    /// Copies from the start of `from` into the tail, as much as it holds.
    pub(crate) fn store_tail(&self, from: &[u8]) {
        let count = from.len().min(self.tail_len() as usize);
        if count > 0 {
            // SAFETY: The tail has so many bytes, which may be written, by the type's invariants.
            // They are not those of `from`, which is a buffer of ours.
            unsafe {
                let tail = (*self.as_ptr()).tail[0].iov_base.cast::<u8>();
                core::ptr::copy_nonoverlapping(from.as_ptr(), tail, count);
            }
        }
    }
}

#[inline]
fn copy_linear(from: kvec, to: &mut [u8]) -> Option<usize> {
    let len = from.iov_len;
    let to = to.get_mut(..len)?;
    if len > 0 {
        let base = from.iov_base.cast_const().cast();
        // SAFETY: By the invariants of `XdrBuf` the part has `len` bytes; `to` is memory of ours.
        unsafe { core::ptr::copy_nonoverlapping(base, to.as_mut_ptr(), len) };
    }
    Some(len)
}

/// The pieces of a linear part.
pub(crate) struct LinearBVecs<'a> {
    next: *const u8,
    left: u32,
    _buf: PhantomData<&'a XdrBuf>,
}

impl LinearBVecs<'_> {
    #[inline]
    fn new(part: kvec) -> Self {
        Self {
            next: part.iov_base.cast_const().cast(),
            // CAST: See `XdrBuf::head_len`.
            left: part.iov_len as u32,
            _buf: PhantomData,
        }
    }
}

impl<'a> Iterator for LinearBVecs<'a> {
    type Item = BVec<'a>;

    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        if self.left == 0 {
            return None;
        }
        // CAST: The offset within a page fits.
        let offset = (self.next.addr() % PAGE as usize) as u32;
        // SAFETY: The linear parts are in the linear mapping, by the invariants of `XdrBuf`, and
        // stay as long as it does.
        let bvec = unsafe {
            BVec::new(
                bindings::rpcrdma_virt_to_page(self.next.cast()),
                offset,
                self.left,
            )
        }?;
        self.next = self.next.wrapping_add(bvec.len() as usize);
        self.left -= bvec.len();
        Some(bvec)
    }
}

/// The pieces of the page list.
pub(crate) struct PageBVecs<'a> {
    next: *mut *mut bindings::page,
    offset: u32,
    left: u32,
    _buf: PhantomData<&'a XdrBuf>,
}

impl<'a> Iterator for PageBVecs<'a> {
    type Item = BVec<'a>;

    /// Ends early at a missing entry of a sparse list.
    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: `left` bytes more are in pages of the list, from this entry on; the page is the
        // message's own.
        let bvec = unsafe { BVec::new(*self.next, self.offset, self.left) }?;
        self.next = self.next.wrapping_add(1);
        self.offset = 0;
        self.left -= bvec.len();
        Some(bvec)
    }
}
