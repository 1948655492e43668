// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads that fetch the Read chunks of a Call into pages that travel with its Receive buffer.
//!
//! The buffer moves: [`RecvBuf`] -> [`CallRead`], where Reads are added -> the device, by
//! [`CallRead::post`] -> [`CallReadDone`], from the completion -> `RecvBuf` again, once the pages
//! are unmapped. The pages are accessible before and after, never in between.
//!
//! C: svc_rdma_rw.c, svc_rdma_build_read_segment(), svc_rdma_copy_inline_range()

use core::mem;

use kernel::prelude::*;

use crate::{
    lib::{
        displaced_pages::CtxtPages,
        llist::{
            ByList,
            Wrapper, //
        },
        pages::{
            PageArray,
            PageSink,
            Span, //
        }, //
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            ep::Endpoint,
            recv_ctxt::RecvBuf, //
        },
        rw::{
            remote::Remote,
            rw_chain::RwChain,
            rw_ctxt::RwOps, //
        }, //
    }, //
};

/// What travels with a server's Receive buffer: pages for the Read chunks, and the state of the
/// Call.
///
/// C: svc_rdma.h, struct svc_rdma_recv_ctxt
///
/// # Invariants
///
/// - I1: `rw_chain` is empty unless the buffer is in a [`CallRead`] or a [`CallReadDone`], or
///   posted by one. It refers to `pages` only.
pub(crate) struct RecvCtxt<S> {
    pages: CtxtPages,
    pub(super) rw_chain: RwChain,
    /// The state of the Call.
    pub(crate) call: S,
}

impl<S> RecvCtxt<S> {
    /// Creates a context without pages.
    pub(crate) const fn new(call: S) -> Self {
        // INVARIANT: I1: there are no transfers.
        Self {
            pages: CtxtPages::new(),
            rw_chain: RwChain::new(Direction::FromDevice),
            call,
        }
    }

    /// The pages.
    #[inline]
    pub(crate) fn pages_mut(&mut self) -> &mut CtxtPages {
        &mut self.pages
    }

    /// The state of the Call, and the pages.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut S, &mut CtxtPages) {
        (&mut self.call, &mut self.pages)
    }
}

/// A Receive buffer whose Call is being assembled.
pub(crate) struct CallRead<S>(pub(super) RecvBuf<RecvCtxt<S>>);

impl<S: Send + 'static> CallRead<S> {
    /// Starts with the pages that the context has.
    #[inline]
    pub(crate) fn new(recv: RecvBuf<RecvCtxt<S>>) -> Self {
        Self(recv)
    }

    /// The first `len` bytes of the Receive buffer, the state of the Call, and the Reads.
    #[inline]
    pub(crate) fn parts(&mut self, len: usize) -> (&[u8], &mut S, Reads<'_>) {
        let (bytes, ctxt) = self.0.split(len);
        let reads = Reads {
            pages: ctxt.pages.own(),
            rw_chain: &mut ctxt.rw_chain,
        };
        (bytes, &mut ctxt.call, reads)
    }

    /// The number of the Call in traces.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial()
    }

    /// The number of Send Queue entries that [`Self::post`] needs.
    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.0.user().rw_chain.entries()
    }

    /// Drops the Reads, and returns the buffer; see [`CallReadDone::finish`].
    #[inline]
    pub(crate) fn abandon<C: RwOps>(self, ep: &Endpoint<C>) -> Option<RecvBuf<RecvCtxt<S>>> {
        CallReadDone(self.0).finish(ep)
    }
}

/// The pages that a Call is read into, and the Reads.
pub(crate) struct Reads<'a> {
    pages: &'a mut PageArray,
    rw_chain: &'a mut RwChain,
}

impl Reads<'_> {
    /// Adds pages, `count` in all.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn page_sink(&mut self, count: usize) -> Result<PageSink<'_>> {
        self.pages.make_room(count)?;
        Ok(self.pages.sink())
    }

    /// Fills the pages with zeroes. Called before the first Read is added: a mapped page belongs to
    /// the device.
    #[cold]
    pub(crate) fn zero_pages(&mut self) {
        self.pages.zero();
    }

    /// Adds a Read of `sink.len` bytes at `from`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the sink is empty or not within the pages, or other Reads are another
    /// endpoint's; `ENOMEM` or `EIO` if the pages cannot be mapped.
    #[inline]
    pub(crate) fn add<C: RwOps>(&mut self, ep: &Endpoint<C>, sink: Span, from: Remote) -> Result {
        let pool = C::rw_ctxts(ep);
        // SAFETY: `pages` and `rw_chain` are those of one `RecvCtxt`. While that is in a `CallRead`
        // or a `CallReadDone`, or posted, pages are only added to the array. It leaves these when
        // `finish` has released the transfers. If it is dropped instead, they stay mapped for good,
        // and are not posted.
        unsafe { self.rw_chain.add(ep, pool, self.pages, sink, from) }
    }

    /// Copies `source` to offset `to` of the pages; `false` if it does not fit.
    pub(crate) fn write(&mut self, to: u32, source: &[u8]) -> bool {
        self.pages.write(to, source)
    }
}

/// A Receive buffer whose Reads have completed. Its pages are still mapped.
pub(crate) struct CallReadDone<S>(pub(super) RecvBuf<RecvCtxt<S>>);

impl<S: Send + 'static> CallReadDone<S> {
    /// The bytes that were read.
    #[inline]
    pub(crate) fn bytes(&self) -> u32 {
        self.0.user().rw_chain.bytes()
    }

    /// Unmaps the pages, and returns the buffer.
    ///
    /// `None` if the Reads are another endpoint's: pages that are mapped must not be released, so
    /// the buffer is leaked.
    #[inline]
    pub(crate) fn finish<C: RwOps>(mut self, ep: &Endpoint<C>) -> Option<RecvBuf<RecvCtxt<S>>> {
        let chain = &mut self.0.user_mut().rw_chain;
        // INVARIANT: I1 of `RecvCtxt`: the chain is empty, or the buffer stays in here.
        if chain.release(ep, C::rw_ctxts(ep)) {
            Some(self.0)
        } else {
            mem::forget(self);
            None
        }
    }
}

// SAFETY: Uses no `ByList`.
unsafe impl<S: Send + 'static> Wrapper for CallReadDone<S> {
    type Entry = RecvBuf<RecvCtxt<S>>;

    #[inline]
    fn into_entry(self, _: ByList) -> Self::Entry {
        self.0
    }

    #[inline]
    fn from_entry(recv: Self::Entry, _: ByList) -> Self {
        Self(recv)
    }
}
