// SPDX-License-Identifier: GPL-2.0

//! Messages that a responder sends: a header, content from pages it owns, and Writes in front.
//!
//! A message moves: [`SendCtxt`], where it is put together -> the device, by [`SendCtxt::post`] ->
//! [`Sent`], given back by the completion -> `SendCtxt` again, emptied. It owns its pages all the
//! way, so that they stay until the device has let go of them.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        llist::{
            Link,
            Linked, //
        },
        llist_box::LlistBox,
        pages::{
            PageArray,
            PageSink,
            Span, //
        }, //
    },
    trace::Cid,
    verbs::{
        device::{
            attrs::MessageSizes,
            dma_buf::{
                Direction,
                DmaBuffer, //
            },
            pd::Pd, //
        },
        endpoint::{
            ep::Endpoint,
            ops::EndpointOps, //
        },
        rw::{
            rw_chain::RwChain,
            rw_ctxt::Remote, //
        }, //
    }, //
};

use super::sender::Responder;

/// # Invariants
///
/// `sges` has at least one element, the buffer's; every other one is mapped, and names bytes of
/// `pages`.
pub(in crate::verbs) struct Inner {
    pub(in crate::verbs) cqe: bindings::ib_cqe,
    pub(in crate::verbs) wr: bindings::ib_send_wr,
    /// Entries of the Send Queue that the message took.
    pub(in crate::verbs) entries: u32,
    /// For traces.
    pub(in crate::verbs) serial: i32,
    /// Where it goes once it was sent, if its pages are exposed.
    slot: Option<usize>,
    pub(in crate::verbs) sges: KVec<bindings::ib_sge>,
    pub(in crate::verbs) buffer: DmaBuffer,
    pub(in crate::verbs) rw_chain: RwChain,
    pages: PageArray,
}

impl Inner {
    /// Unmaps what was gathered.
    #[inline]
    fn unmap(&mut self) {
        let device = self.buffer.pd().device();
        for sge in self.sges.get(1..).unwrap_or(&[]) {
            // SAFETY: Mapped, by the type's invariants; the domain keeps the device.
            unsafe {
                bindings::rpcrdma_dma_unmap_page(
                    device,
                    sge.addr,
                    sge.length as usize,
                    Direction::ToDevice.as_raw(),
                );
            }
        }
        // INVARIANT: Only the buffer's is left.
        self.sges.truncate(1);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Before the pages are let go.
        self.unmap();
    }
}

// SAFETY: It owns all that it points to.
unsafe impl Send for Inner {}

/// A message that is being put together.
pub(crate) struct SendCtxt(pub(in crate::verbs) LlistBox<Inner>);

// SAFETY: As for the box inside.
unsafe impl Linked for SendCtxt {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        self.0.into_link()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { LlistBox::from_link(link) })
    }
}

impl SendCtxt {
    pub(in crate::verbs) fn new(pd: &Arc<Pd>, sizes: &MessageSizes) -> Result<Self> {
        let buffer = DmaBuffer::new(pd, sizes.buffer, Direction::ToDevice, GFP_KERNEL)?;
        let mut sges = KVec::with_capacity(sizes.sges.max(1) as usize, GFP_KERNEL)?;
        sges.push_within_capacity(buffer.sge(0))
            .map_err(|_| ENOMEM)?;
        Ok(Self(LlistBox::new_uninit(GFP_KERNEL)?.write(Inner {
            cqe: bindings::ib_cqe { done: None },
            wr: pin_init::zeroed(),
            entries: 0,
            serial: Cid::serial(),
            slot: None,
            sges,
            buffer,
            rw_chain: RwChain::new(Direction::ToDevice),
            pages: PageArray::with_capacity(sizes.pages)?,
        })))
    }

    /// Where the header goes, and whatever else is copied.
    #[inline]
    pub(crate) fn buffer_mut(&mut self) -> &mut [u8] {
        self.0.buffer.as_mut_slice()
    }

    /// Where pages are added to the message.
    #[inline]
    pub(crate) fn page_sink(&mut self) -> PageSink<'_> {
        self.0.pages.sink()
    }

    /// Adds a Write of `from` to `to`, in front of the Send.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is empty or not within the pages; `ENOMEM`, `EIO` if the device cannot
    /// map the pages.
    #[inline]
    pub(crate) fn write<C: Responder>(
        &mut self,
        ep: &Endpoint<C>,
        from: Span,
        to: Remote,
    ) -> Result {
        let inner = &mut *self.0;
        let pool = ep.context().sender().rw_chain();
        // SAFETY: The pages stay in the message until `clear` has released the transfers, or for
        // good.
        unsafe { inner.rw_chain.add(ep, pool, &inner.pages, from, to) }
    }

    /// Appends `span` to what is sent, by reference.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is not within the pages, `EMSGSIZE` if there are no elements left,
    /// `EIO` if the device cannot map the pages.
    #[inline]
    pub(crate) fn gather(&mut self, span: Span) -> Result {
        let inner = &mut *self.0;
        let pd = inner.buffer.pd();
        let (device, lkey) = (pd.device(), pd.lkey());
        for bvec in inner.pages.bvecs(span).ok_or(EINVAL)? {
            if inner.sges.len() == inner.sges.capacity() {
                return Err(EMSGSIZE);
            }
            // SAFETY: The page stays in the message until it has been unmapped; the domain keeps
            // the device.
            let addr = unsafe {
                bindings::rpcrdma_dma_map_page(
                    device,
                    bvec.page(),
                    bvec.offset() as usize,
                    bvec.len() as usize,
                    Direction::ToDevice.as_raw(),
                )
            };
            // SAFETY: The domain keeps the device.
            if unsafe { bindings::rpcrdma_dma_mapping_error(device, addr) } != 0 {
                return Err(EIO);
            }
            let sge = bindings::ib_sge {
                addr,
                length: bvec.len(),
                lkey,
            };
            // INVARIANT: Mapped just now.
            inner.sges.push_within_capacity(sge).map_err(|_| EMSGSIZE)?;
        }
        Ok(())
    }

    /// Scatter/gather elements that [`Self::gather`] can still use.
    #[inline]
    pub(crate) fn elements_left(&self) -> usize {
        let sges = &self.0.sges;
        sges.capacity() - sges.len()
    }

    /// Entries of the Send Queue that posting takes.
    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.0.rw_chain.entries() + 1
    }

    /// What names the message in traces.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.0.serial
    }

    /// The pieces of the pages that make up `span`; none if it is not within them.
    #[inline]
    pub(in crate::verbs) fn bvecs(&self, span: Span) -> impl Iterator<Item = BVec<'_>> {
        self.0.pages.bvecs(span).into_iter().flatten()
    }

    /// Pages that the message keeps.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.0.pages.len()
    }

    /// Marks the message as one whose pages are exposed from this slot: [`Sent::slot`] says so,
    /// too.
    #[inline]
    pub(crate) fn set_slot(&mut self, slot: usize) {
        self.0.slot = Some(slot);
    }

    /// Drops the Writes and what was gathered, but keeps the pages.
    #[inline]
    pub(crate) fn unmap<C: Responder>(&mut self, ep: &Endpoint<C>) {
        let inner = &mut *self.0;
        inner.rw_chain.release(ep, ep.context().sender().rw_chain());
        inner.unmap();
    }

    /// Empties the message: unmaps everything and lets the pages go.
    #[inline]
    pub(in crate::verbs) fn clear<C: Responder>(&mut self, ep: &Endpoint<C>) {
        self.unmap(ep);
        let inner = &mut *self.0;
        inner.slot = None;
        if inner.rw_chain.is_empty() {
            inner.pages.release();
        }
    }
}

/// A message that was sent, or not. Its pages are still mapped.
pub(crate) struct Sent(pub(in crate::verbs) SendCtxt);

impl Sent {
    /// Pages that the message keeps.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.0.pages()
    }

    /// Where it goes, if its pages are exposed.
    #[inline]
    pub(crate) fn slot(&self) -> Option<usize> {
        self.0 .0.slot
    }

    /// Unmaps what was written and gathered, but keeps the pages: they may still be exposed.
    pub(crate) fn unmap<C: Responder>(&mut self, ep: &Endpoint<C>) {
        self.0.unmap(ep);
    }

    /// The message, for [`ReplySender::put`](super::Sending::put).
    #[inline]
    pub(crate) fn into_ctxt(self) -> SendCtxt {
        self.0
    }

    /// Whether it is a message of this endpoint.
    pub(in crate::verbs) fn is_of<C: EndpointOps>(&self, ep: &Endpoint<C>) -> bool {
        ep.owns(self.0 .0.buffer.pd())
    }
}

// SAFETY: As for the message inside.
unsafe impl Linked for Sent {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        self.0.into_link()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract.
        Self(unsafe { SendCtxt::from_link(link) })
    }
}
