// SPDX-License-Identifier: GPL-2.0

//! The messages that a server sends: header, payload from pages that the message owns, and RDMA
//! Writes in front.
//!
//! A message moves: [`SendCtxt`], where it is built -> the device, by [`SendCtxt::post`] ->
//! [`Sent`], from the completion -> `SendCtxt` again, emptied. It owns its pages all the way, so
//! that they stay until the device no longer accesses them.
//!
//! C: svc_rdma_sendto.c, svc_rdma_send_ctxt_alloc(), svc_rdma_send_ctxt_unmap()
//! C: svc_rdma.h, struct svc_rdma_send_ctxt

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::{
        bvec::BVecs,
        llist::{
            ByList,
            Wrapper, //
        },
        llist_box::LlistBox,
        pages::{
            PageArray,
            PageSink,
            Span, //
        }, //
    },
    trace::{
        trace,
        Cid, //
    },
    verbs::{
        device::{
            attrs::MessageSizes,
            dma_buf::{
                Direction,
                DmaBuffer, //
            },
            dma_map::DmaMapper,
            pd::Pd, //
        },
        endpoint::{
            ep::Endpoint,
            ops::EndpointOps, //
        },
        rw::{
            remote::Remote,
            rw_chain::RwChain,
            rw_ctxt::RwOps, //
        }, //
    }, //
};

/// The content of a message.
///
/// # Invariants
///
/// - I1: The first of `sges` is that of `buffer`. Each other one is mapped for the device of the
///   buffer's domain, and names bytes of `pages`.
/// - I2: `rw_chain` refers to `pages` only.
/// - I3: `pages` keeps its pages while `rw_chain` is not empty, or they are gathered.
pub(crate) struct Inner {
    pub(super) cqe: bindings::ib_cqe,
    /// That of the Writes, which are not signalled: they complete by it if they fail.
    pub(super) write_cqe: bindings::ib_cqe,
    pub(super) wr: bindings::ib_send_wr,
    /// Send Queue entries of the post.
    pub(super) entries: u32,
    /// The number in traces.
    pub(super) serial: i32,
    /// Set if the message was posted with MRs that expose its pages.
    pub(super) exposing: Option<Exposing>,
    pub(super) sges: KVec<bindings::ib_sge>,
    pub(super) buffer: DmaBuffer,
    pub(super) rw_chain: RwChain,
    pages: PageArray,
}

/// How a message exposes its pages.
#[derive(Clone, Copy)]
pub(super) struct Exposing {
    /// Identifies this exposure of the pages.
    pub(super) id: u64,
    /// The context's number of the Reply.
    pub(super) slot: usize,
}

impl Inner {
    /// Unmaps the gathered bytes.
    #[inline]
    fn unmap(&mut self) {
        // Most messages have their payload copied to the buffer.
        if self.sges.len() > 1 {
            self.unmap_gathered();
        }
    }

    #[inline(never)]
    fn unmap_gathered(&mut self) {
        let dma = DmaMapper::new(self.buffer.pd());
        for sge in self.sges.get(1..).unwrap_or(&[]) {
            // SAFETY: Mapped for this domain (I1). The page is in `pages` (I3), and the message is
            // not posted.
            unsafe { dma.unmap_bvec(sge.addr, sge.length, Direction::ToDevice.as_raw()) };
        }
        // INVARIANT: I1: only the buffer's is left.
        self.sges.truncate(1);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Before the pages are released.
        self.unmap();
    }
}

// SAFETY: The pointers in `wr` refer to parts of the same allocation, and those in `sges` are bus
// addresses. All else is `Send`.
unsafe impl Send for Inner {}

/// A message that is being built.
pub(crate) struct SendCtxt(pub(super) LlistBox<Inner>);

// SAFETY: Uses no `ByList`.
unsafe impl Wrapper for SendCtxt {
    type Entry = LlistBox<Inner>;

    #[inline]
    fn into_entry(self, _: ByList) -> Self::Entry {
        self.0
    }

    #[inline]
    fn from_entry(inner: Self::Entry, _: ByList) -> Self {
        Self(inner)
    }
}

impl SendCtxt {
    pub(super) fn new(pd: &Arc<Pd>, sizes: &MessageSizes) -> Result<Self> {
        let buffer = DmaBuffer::new(pd, sizes.buffer, Direction::ToDevice, GFP_KERNEL)?;
        let mut sges = KVec::with_capacity(sizes.sges.max(1) as usize, GFP_KERNEL)?;
        sges.push_within_capacity(buffer.sge(0))
            .map_err(|_| ENOMEM)?;
        // INVARIANT: I1: the buffer's is the only SGE. I2, I3: there is nothing else.
        Ok(Self(LlistBox::new_uninit(GFP_KERNEL)?.write(Inner {
            cqe: bindings::ib_cqe { done: None },
            write_cqe: bindings::ib_cqe { done: None },
            wr: pin_init::zeroed(),
            entries: 0,
            serial: Cid::serial(),
            exposing: None,
            sges,
            buffer,
            rw_chain: RwChain::new(Direction::ToDevice),
            pages: PageArray::new(),
        })))
    }

    /// The buffer for the header, and for payload that is copied.
    #[inline]
    pub(crate) fn buffer_mut(&mut self) -> &mut [u8] {
        self.0.buffer.as_mut_slice()
    }

    /// Adds pages, `count` in all.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn page_sink(&mut self, count: usize) -> Result<PageSink<'_>> {
        self.0.pages.make_room(count)?;
        Ok(self.0.pages.sink())
    }

    /// Adds a Write of `from` to `to`, in front of the Send.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is empty or not within the pages, or other Writes are another
    /// endpoint's; `ENOMEM` or `EIO` if the pages cannot be mapped.
    #[inline]
    pub(crate) fn write<C: RwOps>(&mut self, ep: &Endpoint<C>, from: Span, to: Remote) -> Result {
        let inner = &mut *self.0;
        let pool = C::rw_ctxts(ep);
        // SAFETY: The pages stay while the chain is not empty (I3). If the message is dropped with
        // its Writes, they stay mapped for good, and are not posted.
        unsafe { inner.rw_chain.add(ep, pool, &inner.pages, from, to) }
    }

    /// Appends `span` to the message, without copying it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is not within the pages, `EMSGSIZE` if there are no SGEs left, `EIO` if
    /// the device cannot map the pages.
    #[inline]
    pub(crate) fn gather<C: RwOps>(&mut self, ep: &Endpoint<C>, span: Span) -> Result {
        let inner = &mut *self.0;
        let dma = DmaMapper::new(inner.buffer.pd());
        for bvec in inner.pages.bvecs(span).ok_or(EINVAL)? {
            if inner.sges.len() == inner.sges.capacity() {
                return Err(no_sge());
            }
            let mapped = dma.map_bvec(&bvec, Direction::ToDevice.as_raw());
            let sge = mapped.map_err(|addr| {
                trace!(svcrdma_dma_map_err(
                    ep.send_cid(inner.serial),
                    addr,
                    bvec.len()
                ));
                EIO
            })?;
            // INVARIANT: I1: just mapped. I3: the page stays in `pages` until it is unmapped.
            inner.sges.push_within_capacity(sge).map_err(|_| no_sge())?;
        }
        Ok(())
    }

    /// The number of SGEs that [`Self::gather`] can still use.
    #[inline]
    pub(crate) fn sges_left(&self) -> usize {
        let sges = &self.0.sges;
        sges.capacity() - sges.len()
    }

    /// The number of Send Queue entries that [`Self::post`] needs.
    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.0.rw_chain.entries() + 1
    }

    /// The number of the message in traces.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial
    }

    /// The bytes of the pages that make up `spans`; none of a span that is not within the pages.
    #[inline]
    pub(super) fn bvecs<'s>(&'s self, spans: impl Iterator<Item = Span> + 's) -> impl BVecs<'s> {
        spans.flat_map(|span| self.0.pages.bvecs(span).into_iter().flatten())
    }

    /// The number of pages.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.0.pages.len()
    }

    /// The bytes of the message, once it is posted.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        let lengths = self.0.sges.iter().map(|sge| u64::from(sge.length));
        lengths.fold(0, u64::saturating_add)
    }

    /// Whether the message was allocated for this endpoint.
    #[inline]
    pub(super) fn is_of<C: EndpointOps>(&self, ep: &Endpoint<C>) -> bool {
        ep.owns(self.0.buffer.pd())
    }

    /// Drops the Writes and the gathered bytes, but keeps the pages. Writes for another endpoint
    /// stay; the result is then `false`.
    #[inline]
    pub(crate) fn unmap<C: RwOps>(&mut self, ep: &Endpoint<C>) -> bool {
        let inner = &mut *self.0;
        inner.unmap();
        inner.rw_chain.release(ep, C::rw_ctxts(ep))
    }

    /// Empties the message: unmaps everything, and releases the pages. `false` if it has Writes for
    /// another endpoint, which keep the pages.
    #[inline(always)]
    pub(super) fn clear<C: RwOps>(&mut self, ep: &Endpoint<C>) -> bool {
        let unmapped = self.unmap(ep);
        if unmapped {
            self.0.pages.release_and_trim();
        }
        unmapped
    }
}

/// A message whose Send has completed. Its pages are still mapped.
pub(crate) struct Sent(pub(super) SendCtxt);

impl Sent {
    /// The number of pages.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.0.pages()
    }

    /// The bytes that were written by RDMA Write.
    #[inline]
    pub(crate) fn written(&self) -> u32 {
        self.0 .0.rw_chain.bytes()
    }

    /// The bytes of the message.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }
}

// SAFETY: Uses no `ByList`.
unsafe impl Wrapper for Sent {
    type Entry = SendCtxt;

    #[inline]
    fn into_entry(self, _: ByList) -> Self::Entry {
        self.0
    }

    #[inline]
    fn from_entry(ctxt: Self::Entry, _: ByList) -> Self {
        Self(ctxt)
    }
}

/// `EMSGSIZE`: a message has no SGEs left.
#[cold]
fn no_sge() -> Error {
    Error::from_errno(-(bindings::EMSGSIZE as c_int))
}
