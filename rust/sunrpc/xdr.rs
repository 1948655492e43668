// SPDX-License-Identifier: GPL-2.0

//! `struct xdr_buf`: a message in a head, pages and a tail.
//!
//! The bytes belong to SUNRPC and its consumers. This file copies them, or describes where they are
//! ([`BVec`]) for a device.
//!
//! C: xprt_rdma.h, struct rpcrdma_xdr_cursor
//! C: rpc_rdma.c, rpcrdma_alloc_sparse_pages(), rpcrdma_xdr_cursor_init()
//! C: rpc_rdma.c, rpcrdma_xdr_cursor_done()
//!
//! C header: [`include/linux/sunrpc/xdr.h`](srctree/include/linux/sunrpc/xdr.h)

use core::{
    marker::PhantomData,
    ops::Deref, //
};

use crate::{
    bindings::{
        self,
        kvec, //
    },
    lib::bvec::{
        BVec,
        BVecs,
        WholePage,
        PAGE, //
    }, //
};

/// A message.
///
/// # Invariants
///
/// While a reference exists:
///
/// - I1: The structure does not change.
/// - I2: Head and tail have as many bytes as they say, in memory of the linear mapping.
/// - I3: `pages` has an entry for each page that `page_base` and `page_len` cover. An entry may be
///   NULL before [`ReplyRoom::fill_sparse_pages`].
#[repr(transparent)]
pub(crate) struct XdrBuf(bindings::xdr_buf);

impl XdrBuf {
    /// A message of SUNRPC.
    ///
    /// # Safety
    ///
    /// `buf` satisfies I1 to I3 for `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(buf: *mut bindings::xdr_buf) -> &'a Self {
        // SAFETY: `XdrBuf` is `repr(transparent)`. By this function's contract `buf` is valid, and
        // by I1 it does not change.
        unsafe { &*buf.cast() }
    }

    /// The C structure.
    #[inline]
    fn raw(&self) -> &bindings::xdr_buf {
        &self.0
    }

    /// The length of the message.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.raw().len
    }

    /// The number of bytes in the pages.
    #[inline]
    pub(crate) fn page_len(&self) -> u32 {
        self.raw().page_len
    }

    /// The offset of the first byte in the first page.
    #[inline]
    pub(crate) fn page_base(&self) -> u32 {
        self.raw().page_base
    }

    /// The length of the head.
    #[inline]
    pub(crate) fn head_len(&self) -> u32 {
        // CAST: A part is shorter than 4 GiB, because the length of a message is an `unsigned int`.
        self.raw().head[0].iov_len as u32
    }

    /// The length of the tail.
    #[inline]
    pub(crate) fn tail_len(&self) -> u32 {
        // CAST: As for the head.
        self.raw().tail[0].iov_len as u32
    }

    /// Whether the pages receive a DDP-eligible result (RFC 8166 Section 6.1).
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        self.raw().flags & bindings::XDRBUF_READ != 0
    }

    /// Whether the pages hold a DDP-eligible argument.
    #[inline]
    pub(crate) fn is_write(&self) -> bool {
        self.raw().flags & bindings::XDRBUF_WRITE != 0
    }

    /// Whether entries of the page list may be NULL.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.raw().flags & bindings::XDRBUF_SPARSE_PAGES != 0
    }

    /// The head, page by page.
    #[inline]
    pub(crate) fn head(&self) -> LinearBVecs<'_> {
        LinearBVecs::new(self.raw().head[0])
    }

    /// The tail, page by page.
    #[inline]
    pub(crate) fn tail(&self) -> LinearBVecs<'_> {
        LinearBVecs::new(self.raw().tail[0])
    }

    /// The pages.
    #[inline]
    pub(crate) fn pages(&self) -> PageBVecs<'_> {
        let base = self.page_base();
        PageBVecs {
            next: self.raw().pages.wrapping_add((base / PAGE) as usize),
            offset: base % PAGE,
            left: self.page_len(),
            _buf: PhantomData,
        }
    }

    /// The number of pages that the page list covers.
    #[inline]
    pub(crate) fn page_count(&self) -> u32 {
        match self.page_len() {
            0 => 0,
            len => (self.page_base() % PAGE + (len - 1)) / PAGE + 1,
        }
    }

    /// Copies the head to the start of `to`, and returns its length; `None` if it does not fit.
    #[inline]
    pub(crate) fn copy_head(&self, to: &mut [u8]) -> Option<usize> {
        self.copy_linear(self.raw().head[0], to)
    }

    /// Copies the tail without its first `skip` bytes to the start of `to`, and returns the length;
    /// `None` if it does not fit.
    #[inline]
    pub(crate) fn copy_tail(&self, skip: u32, to: &mut [u8]) -> Option<usize> {
        let mut tail = self.raw().tail[0];
        let skip = tail.iov_len.min(skip as usize);
        tail.iov_base = tail.iov_base.wrapping_byte_add(skip);
        tail.iov_len -= skip;
        self.copy_linear(tail, to)
    }

    /// `from` is a part of the head or of the tail.
    #[inline]
    fn copy_linear(&self, from: kvec, to: &mut [u8]) -> Option<usize> {
        let len = from.iov_len;
        let to = to.get_mut(..len)?;
        if len > 0 {
            let base = from.iov_base.cast_const().cast();
            // SAFETY: By I2 `from` has `len` bytes. `to` is memory of this module, so they do not
            // overlap.
            unsafe { core::ptr::copy_nonoverlapping(base, to.as_mut_ptr(), len) };
        }
        Some(len)
    }

    /// Copies the bytes in the pages to the start of `to`, and returns their number; `None` if they
    /// do not fit, or if an entry is missing.
    #[inline]
    pub(crate) fn copy_pages(&self, to: &mut [u8]) -> Option<usize> {
        let len = self.page_len() as usize;
        let mut to = to.get_mut(..len)?;
        for bvec in self.pages() {
            let (part, rest) = to.split_at_mut_checked(bvec.len() as usize)?;
            // SAFETY: By I3 the bytes are in the page, which SUNRPC keeps. `part` is as long.
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

/// The buffer for a Reply.
///
/// # Invariants
///
/// - I1: Pages, page list and tail may be written. The consumer accesses none of them before the
///   RPC is completed.
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
    /// The buffer for a Reply.
    ///
    /// # Safety
    ///
    /// `buf` satisfies I1, and those of [`XdrBuf`], for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(buf: *mut bindings::xdr_buf) -> &'a Self {
        // SAFETY: `ReplyRoom` is `repr(transparent)`, as `XdrBuf` is, and `buf` is valid by this
        // function's contract.
        unsafe { &*buf.cast() }
    }

    /// Allocates a page for each NULL entry of the page list; `false` if there is no memory.
    ///
    /// An entry keeps its page even then: the consumer, which left the entry empty, frees it.
    #[cold]
    pub(crate) fn fill_sparse_pages(&self) -> bool {
        let first = (self.page_base() / PAGE) as usize;
        (first..first + self.page_count() as usize).all(|i| {
            let entry = self.raw().pages.wrapping_add(i);
            // SAFETY: By I3 of `XdrBuf` there is such an entry, and by I1 it may be written. The
            // sender may be on the memory reclaim path, so the allocation must not wait.
            unsafe {
                if (*entry).is_null() {
                    *entry = bindings::alloc_pages(bindings::GFP_NOWAIT, 0);
                }
                !(*entry).is_null()
            }
        })
    }

    /// Copies as much of `from` to the pages as they hold, and returns the number of bytes.
    pub(crate) fn store_pages(&self, from: &[u8]) -> usize {
        let mut rest = from;
        for bvec in self.pages() {
            let (part, more) = rest.split_at(rest.len().min(bvec.len() as usize));
            if part.is_empty() {
                break;
            }
            // SAFETY: By I3 of `XdrBuf` the bytes are in the page, which by I1 may be written.
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

    /// Copies as much of `from` to the tail as it holds.
    pub(crate) fn store_tail(&self, from: &[u8]) {
        let tail = self.raw().tail[0];
        let count = from.len().min(tail.iov_len);
        if count > 0 {
            // SAFETY: By I2 of `XdrBuf` the tail has `count` bytes, which by I1 may be written.
            // `from` is memory of this module, so they do not overlap.
            unsafe {
                core::ptr::copy_nonoverlapping(from.as_ptr(), tail.iov_base.cast::<u8>(), count);
            }
        }
    }
}

/// The bytes of a head or tail, page by page.
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
        // SAFETY: By I2 of `XdrBuf` the part is in the linear mapping, and stays as long as the
        // message.
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

/// The bytes of the page list, page by page.
pub(crate) struct PageBVecs<'a> {
    next: *mut *mut bindings::page,
    offset: u32,
    left: u32,
    _buf: PhantomData<&'a XdrBuf>,
}

impl<'a> Iterator for PageBVecs<'a> {
    type Item = BVec<'a>;

    /// Ends at a NULL entry of a sparse list.
    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        if self.left == 0 {
            return None;
        }
        // SAFETY: By I3 of `XdrBuf` there is an entry, since bytes are left. The page stays as long
        // as the message.
        let bvec = unsafe { BVec::new(*self.next, self.offset, self.left) }?;
        self.next = self.next.wrapping_add(1);
        self.offset = 0;
        self.left -= bvec.len();
        Some(bvec)
    }
}

impl<'a> BVecs<'a> for LinearBVecs<'a> {}

impl<'a> BVecs<'a> for PageBVecs<'a> {
    #[inline]
    fn whole_pages(&mut self, most: usize) -> &[WholePage<'a>] {
        if self.offset != 0 {
            return &[];
        }
        let whole = most.min((self.left / PAGE) as usize);
        if whole == 0 {
            return &[];
        }
        let now = self.next;
        self.next = now.wrapping_add(whole);
        // NO-OVERFLOW: No more pages than `left` has.
        self.left -= whole as u32 * PAGE;
        // SAFETY: By I3 of `XdrBuf` there are so many entries, since their bytes are left, and so
        // the list is not null. Only the thread that has the message fills entries of the list. The
        // pages stay as long as the message.
        unsafe { WholePage::slice(now, whole) }
    }
}
