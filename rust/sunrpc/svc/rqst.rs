// SPDX-License-Identifier: GPL-2.0

//! A `struct svc_rqst` while a Call is received into it. See [`reply`](super::reply) for the Reply.
//!
//! [`Arriving`] is a request that has the transport to itself. [`Receiving`] is a request beside
//! which other threads may receive. [`Received`] is the proof that the request was filled, or left
//! empty.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_build_arg_xdr(), svc_rdma_read_complete_one()
//! C: svc_rdma_recvfrom.c, svc_rdma_read_complete_multiple(), svc_rdma_read_complete_pzrc()
//! C: svc_rdma_rw.c, svc_rdma_clear_rqst_pages()

use core::{
    marker::PhantomData,
    ops::Range,
    ptr, //
};

use kernel::{
    prelude::*,
    types::ForeignOwnable, //
};

use crate::{
    bindings::{
        self,
        kvec, //
    },
    lib::{
        bvec::PAGE,
        displaced_pages::CtxtPages,
        foreign_buf::ForeignBuf,
        pages::{
            sort_neighbours,
            PageArray,
            PageSink,
            PageSlot, //
        }, //
    }, //
};

use super::{
    rqst_pages,
    spare_pages::SparePages,
    svc_rqst::SvcRqst,
    types::Types,
    xprt_ref::SvcXprtRef, //
};

/// A request to be filled, by the only thread that receives on its transport.
///
/// # Invariants
///
/// - I1: The transport is a connection `C`, and busy (`XPT_BUSY`) on behalf of this thread.
pub(crate) struct Arriving<'a, C: Types> {
    rqst: SvcRqst<'a>,
    _connection: PhantomData<C>,
}

/// A request to be filled, by one of several threads that receive on its transport.
///
/// # Invariants
///
/// - I1: The transport is a connection `C`.
pub(crate) struct Receiving<'a, C: Types> {
    rqst: SvcRqst<'a>,
    _connection: PhantomData<C>,
}

/// A head or tail without bytes.
const EMPTY: kvec = kvec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

/// The length of the Call in a filled request; zero for an empty one.
pub(crate) struct Received(c_int);

impl Received {
    /// What `xpo_recvfrom` returns.
    pub(super) fn into_raw(self) -> c_int {
        self.0
    }
}

/// The number of pages that `bytes` bytes need.
#[inline]
fn pages(bytes: usize) -> usize {
    bytes.div_ceil(PAGE as usize)
}

impl<'a, C: Types> Arriving<'a, C> {
    /// # Safety
    ///
    /// I1 holds, and the request satisfies the invariants of `SvcRqst` for `'a`. It holds no Call.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::svc_rqst) -> Self {
        // SAFETY: By this function's contract the request is this thread's, and holds no Call.
        let rqst = unsafe {
            rqst_pages::begin_call(raw);
            (*raw).rq_xprt_ctxt = ptr::null_mut();
            SvcRqst::new(raw)
        };
        // INVARIANT: I1: by this function's contract.
        Self {
            rqst,
            _connection: PhantomData,
        }
    }

    /// Notes that nothing is left to receive. The caller must hold the lock that guards the work
    /// that [`XprtHandle::set_data`] announces.
    ///
    /// [`XprtHandle::set_data`]: super::XprtHandle::set_data
    #[inline]
    pub(crate) fn clear_data(&mut self) {
        self.rqst.xprt().flags().clear::<{ bindings::XPT_DATA }>();
    }

    /// Lets other threads receive on the transport (`svc_xprt_received()`).
    #[inline]
    pub(crate) fn clear_busy(self) -> Receiving<'a, C> {
        // SAFETY: By I1 the transport is busy on behalf of this thread. The request has a reference
        // to it.
        unsafe { bindings::svc_xprt_received(self.rqst.xprt().raw()) };
        // INVARIANT: I1: by I1 of `self`.
        Receiving {
            rqst: self.rqst,
            _connection: PhantomData,
        }
    }
}

impl<C: Types> Receiving<'_, C> {
    /// The transport, a connection `C`, to which the request has a reference.
    #[inline]
    pub(super) fn xprt(&self) -> SvcXprtRef<'_> {
        self.rqst.xprt()
    }

    /// Leaves the request empty.
    #[inline]
    pub(crate) fn leave_empty(self) -> Received {
        Received(0)
    }

    /// Drops a Call that cannot be delivered, and has SUNRPC close the connection. The credit
    /// of the Call is lost; the client sends the Call again on another connection.
    ///
    /// No caller passes ranges or pages that cause this.
    #[cold]
    fn close(self, call: C::Call) -> Received {
        drop(call);
        // SAFETY: The request has a reference to the transport.
        unsafe { bindings::svc_xprt_deferred_close(self.xprt().raw()) };
        self.leave_empty()
    }

    /// Notes in `pages` the first `count` Reply pages after the first one. See
    /// [`Located::move_rest_into`](super::reply::Located).
    #[inline]
    pub(crate) fn note_reply_pages(&self, count: usize, pages: &mut CtxtPages) {
        let slots = self.rqst.respages();
        let end = count.saturating_add(1).min(slots.len());
        pages.note(slots.get(1..end).unwrap_or(&[]));
    }

    /// Moves the first `count` Call pages to `pages`, or as many as there are and as `pages` has
    /// room for, and fills the empty slots from `spare`. Returns how many were moved.
    pub(crate) fn take_pages(
        &mut self,
        count: usize,
        mut pages: PageSink<'_>,
        spare: &SparePages,
    ) -> usize {
        let slots = self.rqst.pages_mut();
        let count = count.min(slots.len());
        let slots = slots.get_mut(..count).unwrap_or_default();
        // No message is in the pages. They keep this order while they are in use: the pages of one
        // Call replace those of another.
        sort_neighbours(slots);
        let taken = pages.take(slots);
        let empty = spare.fill(slots.get_mut(..taken).unwrap_or_default());
        self.rqst.note_empty(empty);
        taken
    }

    /// Replaces the first Call pages by `pages`, and moves those that were there to `spare`.
    /// `false` if there are more pages than slots.
    pub(crate) fn put_pages(&mut self, pages: &mut PageArray, spare: &SparePages) -> bool {
        let put = pages.exchange(self.rqst.pages_mut());
        if put {
            spare.store(pages);
        }
        put
    }

    /// Delivers a Call that is the `range` of its buffer, and no longer than the service's
    /// messages.
    ///
    /// SUNRPC assumes that the head of a message is no longer than a page, because it copies heads
    /// to a page. A longer Call is copied to the request's pages.
    #[inline]
    pub(crate) fn deliver(self, call: C::Call, range: Range<usize>) -> Received {
        let Some(bytes) = call.bytes().get(range.clone()) else {
            return self.close(call);
        };
        if bytes.len() > PAGE as usize {
            return self.deliver_copied(call, range);
        }
        let head = call.kvec_of(bytes);
        // SAFETY: `head` is memory of `call`.
        unsafe { self.fill(head, EMPTY, 1, 0, 0, call) }
    }

    #[cold]
    fn deliver_copied(mut self, call: C::Call, range: Range<usize>) -> Received {
        match call.bytes().get(range) {
            Some(bytes) if self.write_pages(0, bytes) => {
                // CAST: No longer than a Receive buffer.
                let length = bytes.len() as u32;
                self.deliver_pages(call, length)
            }
            _ => self.close(call),
        }
    }

    /// Delivers a Call with `head` and `tail` in its buffer and `data` bytes between them in the
    /// request's pages, which must have room for the tail as well. Head and tail together must not
    /// be longer than a page, see [`Self::deliver`].
    ///
    /// Parts of nfsd (SETXATTR, SYMLINK) assume that an argument which begins in the pages ends
    /// there. The bytes that they find behind the data must be those of this Call rather than those
    /// of an earlier use of the page.
    pub(crate) fn deliver_with_item(
        mut self,
        call: C::Call,
        head: Range<usize>,
        data: u32,
        tail: Range<usize>,
    ) -> Received {
        let bytes = call.bytes();
        let (Some(head), Some(tail)) = (bytes.get(head), bytes.get(tail)) else {
            return self.close(call);
        };
        if !self.write_pages(data, tail) {
            return self.close(call);
        }
        let head = call.kvec_of(head);
        let count = pages((data as usize).saturating_add(tail.len()));
        let tail = call.kvec_of(tail);
        // SAFETY: `head` and `tail` are memory of `call`.
        unsafe { self.fill(head, tail, 0, data, count, call) }
    }

    /// Copies `source` to the request's pages behind their first `start` bytes; `false` if it does
    /// not fit.
    #[inline]
    fn write_pages(&mut self, start: u32, mut source: &[u8]) -> bool {
        let mut at = start as usize;
        while !source.is_empty() {
            let (index, offset) = (at / PAGE as usize, at % PAGE as usize);
            let Some(page) = self.rqst.pages().get(index).and_then(PageSlot::address) else {
                return false;
            };
            let count = source.len().min(PAGE as usize - offset);
            // SAFETY: `count` bytes are left in the page behind `offset`. Only the request has the
            // page, and no RDMA Read into it is outstanding.
            unsafe {
                let target = page.cast::<u8>().add(offset);
                ptr::copy_nonoverlapping(source.as_ptr(), target, count);
            }
            source = source.get(count..).unwrap_or(&[]);
            at += count;
        }
        true
    }

    /// Delivers a Call of `length` bytes in the request's pages.
    pub(crate) fn deliver_pages(self, call: C::Call, length: u32) -> Received {
        let Some(first) = self.rqst.pages().first().and_then(PageSlot::address) else {
            return self.close(call);
        };
        let len = length.min(PAGE);
        let head = kvec {
            iov_base: first,
            iov_len: len as usize,
        };
        // SAFETY: `head` is memory of the request.
        unsafe { self.fill(head, EMPTY, 1, length - len, pages(length as usize), call) }
    }

    /// Sets the message of the request: `head`, `page_len` bytes in the pages from slot `first` on,
    /// and `tail`. The Call has the first `count` pages. Leaves `call` to the request.
    ///
    /// # Safety
    ///
    /// `head` and `tail` are memory of the request, or of `call`, which C may write while it is
    /// foreign-owned.
    // Out of line, it gets its arguments in memory.
    #[inline(always)]
    unsafe fn fill(
        mut self,
        head: kvec,
        tail: kvec,
        first: usize,
        page_len: u32,
        count: usize,
        call: C::Call,
    ) -> Received {
        let Some(slots) = self.rqst.pages_mut().get_mut(first..) else {
            return self.close(call);
        };
        if pages(page_len as usize) > slots.len() {
            return self.close(call);
        }
        let first_page = slots.as_mut_ptr().cast();
        if !self.rqst.end_call(count) {
            return self.close(call);
        }
        // CAST: Messages are shorter than 2 GiB.
        let len = (head.iov_len + tail.iov_len) as u32 + page_len;
        let raw = self.rqst.raw();
        // SAFETY: The request is this thread's.
        let arg = unsafe { &mut (*raw).rq_arg };
        arg.head[0] = head;
        arg.tail[0] = tail;
        arg.pages = first_page;
        arg.page_base = 0;
        arg.page_len = page_len;
        arg.buflen = len;
        arg.len = len;
        // SAFETY: The request is this thread's. `release_ctxt` takes the Call back; until then, by
        // this function's contract, head and tail stay. The request has a reference to the
        // transport, whose addresses never change.
        unsafe {
            (*raw).rq_xprt_ctxt = call.into_foreign();
            (*raw).rq_prot = bindings::IPPROTO_MAX;
            bindings::svc_xprt_copy_addrs(raw, self.rqst.xprt().raw());
        }
        let flags = self.rqst.flags();
        flags.set::<{ bindings::RQ_SECURE }>();
        // The previous Call of this thread, perhaps over TCP, has left its own value. It is the
        // same as a rule, and then the test saves an atomic operation.
        let is_local = self.rqst.xprt().peer_is_local();
        if is_local != flags.test(1 << bindings::RQ_LOCAL) {
            if is_local {
                flags.set::<{ bindings::RQ_LOCAL }>();
            } else {
                flags.clear::<{ bindings::RQ_LOCAL }>();
            }
        }
        Received(len as c_int)
    }
}
