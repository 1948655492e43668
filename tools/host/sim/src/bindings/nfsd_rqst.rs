// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the server: the request of an nfsd thread, whose pages a Call and its Reply are in.

use core::cell::Cell;

use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::svc::Answer;
use super::*;

thread_local! {
    static FILLED: Cell<usize> = const { Cell::new(0) };
    static DESCENDING: Cell<bool> = const { Cell::new(false) };
}

/// Has `svc_alloc_arg()` fill slots with pages in descending order, as the kernel often does.
pub(crate) fn set_descending(descending: bool) {
    DESCENDING.set(descending);
}

/// The number of empty slots that `svc_alloc_arg()` has filled.
pub(crate) fn filled() -> usize {
    FILLED.get()
}

/// A request of an nfsd thread, with its pages.
pub(super) struct Rqst {
    pub(super) raw: svc_rqst,
    pages: Vec<*mut page>,
    respages: Vec<*mut page>,
}

impl Rqst {
    pub(super) fn new(count: usize) -> Box<Self> {
        let mut this = Box::new(Self {
            raw: svc_rqst::default(),
            pages: vec![core::ptr::null_mut(); count],
            respages: vec![core::ptr::null_mut(); count],
        });
        this.raw.rq_maxpages = count;
        this.raw.rq_pages_nfree = count;
        this.raw.rq_pages = this.pages.as_mut_ptr();
        this.raw.rq_respages = this.respages.as_mut_ptr();
        this.raw.rq_next_page = unsafe { this.raw.rq_respages.add(count) };
        this
    }

    /// `svc_alloc_arg()`: fills the slots that are known to be empty.
    pub(super) fn fill(&mut self) {
        // The first Reply pages up to `rq_next_page` may be empty; others must not be.
        let next = unsafe { self.raw.rq_next_page.offset_from(self.raw.rq_respages) } as usize;
        let nfree = self.raw.rq_pages_nfree;
        let mut empty: Vec<_> = self.pages[..nfree]
            .iter_mut()
            .chain(&mut self.respages[..next])
            .filter(|slot| slot.is_null())
            .collect();
        if DESCENDING.get() {
            empty.reverse();
        }
        FILLED.set(FILLED.get() + empty.len());
        for slot in empty {
            *slot = new_page();
        }
        self.raw.rq_pages_nfree = 0;
        self.raw.rq_next_page = self.raw.rq_respages;
        if self
            .pages
            .iter()
            .chain(&self.respages)
            .any(|slot| slot.is_null())
        {
            sched::fail("a request has an empty slot that SUNRPC does not know of");
        }
    }

    /// `svc_rqst_release_pages()`.
    pub(super) fn release(&mut self) {
        let next = unsafe { self.raw.rq_next_page.offset_from(self.raw.rq_respages) } as usize;
        for slot in &mut self.respages[..next] {
            if !slot.is_null() {
                unsafe { rpcrdma_put_page(*slot) };
                *slot = core::ptr::null_mut();
            }
        }
    }

    pub(super) fn free(mut self) {
        for slot in self.pages.drain(..).chain(self.respages.drain(..)) {
            if !slot.is_null() {
                unsafe { rpcrdma_put_page(slot) };
            }
        }
    }

    /// The bytes of the Call.
    pub(super) fn call(&self) -> Vec<u8> {
        let arg = &self.raw.rq_arg;
        let mut bytes = Vec::new();
        let linear = |bytes: &mut Vec<u8>, part: &kvec| {
            let len = bytes.len();
            bytes.resize(len + part.iov_len, 0);
            if part.iov_len > 0 {
                let to = bytes[len..].as_mut_ptr();
                unsafe { part.iov_base.cast::<u8>().copy_to(to, part.iov_len) };
            }
        };
        linear(&mut bytes, &arg.head[0]);
        let mut at = arg.page_base as usize;
        let end = at + arg.page_len as usize;
        while at < end {
            let count = (end - at).min(PAGE_SIZE - at % PAGE_SIZE);
            let page = unsafe { *arg.pages.add(at / PAGE_SIZE) }.cast::<u8>();
            let part = unsafe { core::slice::from_raw_parts(page.add(at % PAGE_SIZE), count) };
            bytes.extend_from_slice(part);
            at += count;
        }
        linear(&mut bytes, &arg.tail[0]);
        bytes
    }

    /// Encodes a Reply, as nfsd does: the head in the first page, the data from the second one on,
    /// and the tail behind the head.
    pub(super) fn encode(&mut self, answer: &Answer) {
        let first = self.respages[0].cast::<u8>();
        let tail_at = answer.head.len().next_multiple_of(4);
        assert!(tail_at + answer.tail.len() <= PAGE_SIZE);
        unsafe {
            first.copy_from(answer.head.as_ptr(), answer.head.len());
            first
                .add(tail_at)
                .copy_from(answer.tail.as_ptr(), answer.tail.len());
        }
        let mut used = 1;
        for part in answer.data.chunks(PAGE_SIZE) {
            if answer.from_file {
                unsafe { rpcrdma_put_page(self.respages[used]) };
                self.respages[used] = new_page();
            }
            unsafe {
                self.respages[used]
                    .cast::<u8>()
                    .copy_from(part.as_ptr(), part.len())
            };
            used += 1;
        }
        let raw = &mut self.raw;
        raw.rq_cred.cr_flavor = answer.flavor;
        raw.rq_next_page = unsafe { raw.rq_respages.add(used) };
        let res = &mut raw.rq_res;
        *res = xdr_buf::default();
        res.head[0].iov_base = first.cast();
        res.head[0].iov_len = answer.head.len();
        res.pages = unsafe { raw.rq_respages.add(1) };
        res.page_len = answer.data.len() as u32;
        res.tail[0].iov_base = unsafe { first.add(tail_at) }.cast();
        res.tail[0].iov_len = answer.tail.len();
        res.len = (answer.head.len() + answer.data.len() + answer.tail.len()) as u32;
        res.buflen = res.len;
    }
}
