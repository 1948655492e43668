// SPDX-License-Identifier: GPL-2.0

//! `struct svc_rqst`: what a service thread receives into, and replies from (see
//! [`reply`](super::reply)).
//!
//! [`Arriving`] is a request that has the transport to itself; [`Receiving`] one that others can
//! overtake; a [`Received`] is the proof that it was either filled or left alone.

use core::{
    marker::PhantomData,
    ops::Range,
    ptr, //
};

use kernel::prelude::*;

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
            PageArray,
            PageSink, //
        }, //
    }, //
};

use super::{
    spare_pages::SparePages,
    types::Types, //
};

/// A request about to be filled, by the only thread that receives on its transport.
///
/// # Invariants
///
/// The request is this thread's, its transport is busy on its behalf, and a connection `C`.
pub(crate) struct Arriving<'a, C: Types> {
    rqst: *mut bindings::svc_rqst,
    _rqst: PhantomData<(&'a mut bindings::svc_rqst, C)>,
}

/// A request about to be filled, by one thread of many that receive on its transport.
///
/// # Invariants
///
/// The request is this thread's, and its transport a connection `C`.
pub(crate) struct Receiving<'a, C: Types> {
    rqst: *mut bindings::svc_rqst,
    _rqst: PhantomData<(&'a mut bindings::svc_rqst, C)>,
}

/// No head or tail.
const NOTHING: kvec = kvec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

/// The bytes of a Call, or zero.
pub(crate) struct Received(c_int);

impl Received {
    pub(super) fn into_raw(self) -> c_int {
        self.0
    }
}

impl<'a, C: Types> Arriving<'a, C> {
    /// # Safety
    ///
    /// The type's invariants hold for `'a`.
    #[inline]
    pub(super) unsafe fn new(rqst: *mut bindings::svc_rqst) -> Self {
        // SAFETY: The request is ours. No page of it has been used for a Reply.
        unsafe {
            (*rqst).rq_next_page = (*rqst).rq_respages;
            (*rqst).rq_xprt_ctxt = ptr::null_mut();
        }
        // INVARIANT: By this function's contract.
        Self {
            rqst,
            _rqst: PhantomData,
        }
    }

    /// Tells that there is nothing more to receive.
    ///
    /// To be called under the lock that guards what [`SvcHandle::set_data`] tells about.
    ///
    /// [`SvcHandle::set_data`]: super::SvcHandle::set_data
    #[inline]
    pub(crate) fn clear_data(&mut self) {
        // SAFETY: Valid by the type's invariants; flags are atomic.
        unsafe {
            let flags = &raw mut (*(*self.rqst).rq_xprt).xpt_flags;
            bindings::clear_bit(bindings::XPT_DATA as usize, flags);
        }
    }

    /// Lets other threads receive on the transport.
    #[inline]
    pub(crate) fn let_others_in(self) -> Receiving<'a, C> {
        // SAFETY: The transport is busy on our behalf, by the type's invariants; the request keeps
        // a reference to it.
        unsafe { bindings::svc_xprt_received((*self.rqst).rq_xprt) };
        // INVARIANT: As for `self`.
        Receiving {
            rqst: self.rqst,
            _rqst: PhantomData,
        }
    }
}

impl<C: Types> Receiving<'_, C> {
    /// The C structure.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut bindings::svc_rqst {
        self.rqst
    }

    /// Leaves the request empty.
    #[inline]
    pub(crate) fn nothing(self) -> Received {
        Received(0)
    }

    /// Notes in `pages` those that `count` pages of the Reply are to lie in, from the second page
    /// on. See [`Located::move_rest_into`](super::reply::Located).
    #[inline]
    pub(crate) fn note_reply_pages(&self, count: usize, pages: &mut CtxtPages) {
        // SAFETY: The request is ours; `rq_respages` has `rq_maxpages` slots, at least one. NFSD
        // replaces what is in them, and SUNRPC releases it.
        unsafe {
            let count = count.min((*self.rqst).rq_maxpages - 1);
            pages.note((*self.rqst).rq_respages.add(1), count);
        }
    }

    /// Moves the first `count` pages of the request into `pages`; fewer if there are not as many,
    /// or not as much room. Slots that are empty since an earlier call have none. What `spare` has
    /// takes the place of what is gone.
    pub(crate) fn take_pages(
        &mut self,
        count: usize,
        mut pages: PageSink<'_>,
        spare: &SparePages,
    ) -> usize {
        // SAFETY: The request is ours; `rq_pages` has `rq_maxpages` slots, and those that were
        // taken are empty. SUNRPC fills as many from the start again as `rq_pages_nfree` says.
        unsafe {
            let slots = (*self.rqst).rq_pages;
            let taken = pages.take(slots, count.min((*self.rqst).rq_maxpages));
            let empty = spare.fill(slots, taken);
            // Not fewer than an earlier call has left.
            (*self.rqst).rq_pages_nfree = (*self.rqst).rq_pages_nfree.max(empty);
            taken
        }
    }

    /// Puts `pages` at the start of the request's; what is there goes to `spare`. `false` if they
    /// are too many.
    pub(crate) fn put_pages(&mut self, pages: &mut PageArray, spare: &SparePages) -> bool {
        // SAFETY: The request is ours; `rq_pages` has `rq_maxpages` slots.
        unsafe {
            if pages.len() > (*self.rqst).rq_maxpages {
                return false;
            }
            pages.exchange((*self.rqst).rq_pages);
        }
        spare.keep(pages);
        true
    }

    /// Delivers a Call that lies in `range` of its buffer, and is not longer than the service's
    /// messages.
    ///
    /// SUNRPC takes it for granted that the head of a message is within a page: it copies what it
    /// finds there to a page. What is longer goes to the request's pages.
    #[inline]
    pub(crate) fn deliver(self, call: C::Call, range: Range<usize>) -> Received {
        let Some(bytes) = call.bytes().get(range.clone()) else {
            return Received(0);
        };
        if bytes.len() > PAGE as usize {
            return self.deliver_copied(call, range);
        }
        let head = call.place_of(bytes);
        // SAFETY: The bytes stay until the Call is released.
        unsafe { self.fill(head, NOTHING, 1, 0, call) }
    }

    #[cold]
    fn deliver_copied(mut self, call: C::Call, range: Range<usize>) -> Received {
        match call.bytes().get(range) {
            // CAST: No more than a Receive buffer.
            Some(bytes) if self.write_behind(0, bytes) => {
                let length = bytes.len() as u32;
                self.deliver_pages(call, length)
            }
            _ => Received(0),
        }
    }

    /// Delivers a Call of which `head` and `tail` lie in its buffer, and `data` bytes between them
    /// in the request's pages; these have room for the tail as well. Head and tail together are no
    /// longer than a page, see [`Self::deliver`].
    ///
    /// Some of nfsd (SETXATTR, SYMLINK) takes it for granted that an argument which begins in the
    /// pages ends there. What it then finds behind the data must be of this Call, and not what the
    /// page was used for before.
    pub(crate) fn deliver_with_item(
        mut self,
        call: C::Call,
        head: Range<usize>,
        data: u32,
        tail: Range<usize>,
    ) -> Received {
        let bytes = call.bytes();
        let (Some(head), Some(tail)) = (bytes.get(head), bytes.get(tail)) else {
            return Received(0);
        };
        if !self.write_behind(data, tail) {
            return Received(0);
        }
        let head = call.place_of(head);
        let tail = call.place_of(tail);
        // SAFETY: The bytes stay until the Call is released.
        unsafe { self.fill(head, tail, 0, data, call) }
    }

    /// Copies `source` to behind the first `data` bytes of the request's pages; `false` if it does
    /// not fit.
    #[inline]
    fn write_behind(&mut self, data: u32, mut source: &[u8]) -> bool {
        let mut at = data as usize;
        while !source.is_empty() {
            let (index, offset) = (at / PAGE as usize, at % PAGE as usize);
            // SAFETY: The request is ours; `rq_pages` has `rq_maxpages` slots.
            let page = unsafe {
                if index < (*self.rqst).rq_maxpages {
                    *(*self.rqst).rq_pages.add(index)
                } else {
                    return false;
                }
            };
            if page.is_null() {
                return false;
            }
            let count = source.len().min(PAGE as usize - offset);
            // SAFETY: `count` bytes are left in the page behind `offset`. The page is the
            // request's alone, and nothing is read into it any more.
            unsafe {
                let target = bindings::rpcrdma_page_address(page).cast::<u8>();
                ptr::copy_nonoverlapping(source.as_ptr(), target.add(offset), count);
            }
            source = source.get(count..).unwrap_or(&[]);
            at += count;
        }
        true
    }

    /// Delivers a Call of `length` bytes that lies in the request's pages.
    pub(crate) fn deliver_pages(self, call: C::Call, length: u32) -> Received {
        // SAFETY: The request is ours, and has at least one page.
        let first = unsafe { *(*self.rqst).rq_pages };
        if first.is_null() {
            return Received(0);
        }
        let len = length.min(PAGE);
        // SAFETY: The pages are the request's.
        unsafe {
            let head = kvec {
                iov_base: bindings::rpcrdma_page_address(first),
                iov_len: len as usize,
            };
            self.fill(head, NOTHING, 1, length - len, call)
        }
    }

    /// Has the request's pages from slot `first` on for what is between `head` and `tail`.
    ///
    /// # Safety
    ///
    /// `head` and `tail` are memory of `call`, where C may write while it is parked, or the
    /// request's own.
    #[inline]
    unsafe fn fill(
        self,
        head: kvec,
        tail: kvec,
        first: usize,
        page_len: u32,
        call: C::Call,
    ) -> Received {
        let rqst = self.rqst;
        // SAFETY: The request is ours. It has as many pages as `rq_maxpages` says.
        unsafe {
            let slots = (*rqst).rq_maxpages.saturating_sub(first);
            if page_len as usize > slots * PAGE as usize {
                return Received(0);
            }
            // CAST: Messages are far shorter than 2 GiB.
            let len = (head.iov_len + tail.iov_len) as u32 + page_len;
            let arg = &raw mut (*rqst).rq_arg;
            (*arg).head[0] = head;
            (*arg).tail[0] = tail;
            (*arg).pages = (*rqst).rq_pages.add(first);
            (*arg).page_base = 0;
            (*arg).page_len = page_len;
            (*arg).buflen = len;
            (*arg).len = len;
            (*rqst).rq_xprt_ctxt = call.park().as_ptr();
            (*rqst).rq_prot = bindings::IPPROTO_MAX;
            bindings::svc_xprt_copy_addrs(rqst, (*rqst).rq_xprt);
            bindings::set_bit(bindings::RQ_SECURE as usize, &raw mut (*rqst).rq_flags);
            Received(len as c_int)
        }
    }
}
