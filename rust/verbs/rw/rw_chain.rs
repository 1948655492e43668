// SPDX-License-Identifier: GPL-2.0

//! The RDMA Reads or Writes of one message, as the front of a chain of work requests.
//!
//! C: svc_rdma_rw.c, svc_rdma_cc_init(), svc_rdma_cc_link_wrs(), svc_rdma_cc_release()
//! C: svc_rdma_rw.c, svc_rdma_next_ctxt(), svc_rdma_put_rw_ctxt()
//! C: svc_rdma.h, struct svc_rdma_chunk_ctxt
//!
//! This file posts nothing, and owns none of the memory that the transfers move: a
//! [`CallRead`](crate::verbs::CallRead) and a [`SendCtxt`](crate::verbs::SendCtxt) own their pages,
//! and the memory of a [`ReplyReads`](crate::verbs::ReplyReads) belongs to the RPC.

use core::mem;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        bvec::{
            BVecs,
            PAGE, //
        },
        gfp::Gfp,
        llist::Chain,
        llist_box::LlistBox,
        pages::{
            PageArray,
            Span, //
        },
    },
    trace::trace,
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            completion::Done,
            ep::Endpoint,
            ops::EndpointOps, //
        }, //
    }, //
};

use super::{
    remote::Remote,
    rw_ctxt::{
        DoneArg,
        RwCost,
        RwCtxt,
        RwCtxtPool, //
    }, //
};

/// Transfers that are prepared for one QP, in the order of their execution.
///
/// # Invariants
///
/// - I1: Each transfer in `chain`, the last one first, is prepared for `direction` and the QP of
///   the domain with the number `pd_id`. The number is 0 if there is no transfer. An address would
///   not identify the QP: a later QP may have the same address.
/// - I2: `entries` is the number of Send Queue entries of the transfers, and `bytes` the number of
///   bytes that they move.
pub(in crate::verbs) struct RwChain {
    chain: Chain<LlistBox<RwCtxt>>,
    pd_id: u64,
    entries: u32,
    bytes: u32,
    direction: Direction,
}

impl RwChain {
    /// Creates an empty chain.
    #[inline]
    pub(in crate::verbs) const fn new(direction: Direction) -> Self {
        Self {
            chain: Chain::new(),
            pd_id: 0,
            entries: 0,
            bytes: 0,
            direction,
        }
    }

    /// The number of Send Queue entries of the transfers.
    #[inline]
    pub(in crate::verbs) fn entries(&self) -> u32 {
        self.entries
    }

    /// The number of bytes that the transfers move.
    #[inline]
    pub(in crate::verbs) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Prepares the transfer of `span` to or from `remote`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is empty or not within the pages, or if the chain is prepared for
    /// another endpoint; `ENOMEM` or `EIO` if the pages cannot be mapped. A part of the span may
    /// then be prepared.
    ///
    /// # Safety
    ///
    /// The pages stay in the array until the transfers are released.
    #[inline]
    pub(in crate::verbs) unsafe fn add<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
        pages: &PageArray,
        span: Span,
        remote: Remote,
    ) -> Result {
        // SAFETY: By this function's contract.
        unsafe {
            if span.pages() > ep.rw_ctx_pages() {
                self.add_parts(ep, pool, pages, span, remote)
            } else {
                self.add_whole(ep, pool, pages, span, remote)
            }
        }
    }

    /// Prepares the transfer of `span` in parts that have an MR each, as [`Self::add`] does. Each
    /// part but the last ends with a page, so that there are no more of them than MRs were counted
    /// for the span.
    ///
    /// # Safety
    ///
    /// As for [`Self::add`].
    #[cold]
    #[inline(never)]
    unsafe fn add_parts<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
        pages: &PageArray,
        span: Span,
        remote: Remote,
    ) -> Result {
        let most = ep.rw_ctx_pages().saturating_mul(PAGE);
        let mut done = 0;
        while done < span.len {
            let rest = span.part(done, span.len);
            let part = rest.part(0, most - rest.start % PAGE);
            let at = Remote {
                offset: remote.offset.wrapping_add(done.into()),
                ..remote
            };
            // SAFETY: By this function's contract.
            unsafe { self.add_whole(ep, pool, pages, part, at)? };
            done += part.len;
        }
        Ok(())
    }

    /// Prepares the transfer of `span` by one context, as [`Self::add`] does.
    ///
    /// # Safety
    ///
    /// As for [`Self::add`].
    #[inline]
    unsafe fn add_whole<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
        pages: &PageArray,
        span: Span,
        remote: Remote,
    ) -> Result {
        if span.len == 0 {
            return Err(EINVAL);
        }
        let bvecs = pages.bvecs(span).ok_or(EINVAL)?;
        // SAFETY: The array has a reference to the pages, which stay in it by this function's
        // contract.
        let bytes = unsafe {
            let count = span.pages() as usize;
            self.add_bvecs(ep, pool, count, bvecs, remote, Gfp::Sleep)?
        };
        if bytes == span.len {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Prepares the transfer of `bvecs`, at most `count`, to or from `remote`. Returns the number
    /// of bytes. If there are none, nothing is added.
    ///
    /// Each of the `bvecs` must [adjoin](BVec::adjoins) the one before: the core may map them to
    /// one range of an IOMMU, and fails if that is impossible.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more of them, or the chain is prepared for another endpoint; `ENOMEM`,
    /// or the error of the core, if the memory cannot be mapped.
    ///
    /// # Safety
    ///
    /// The memory stays until the transfers are released.
    #[inline]
    pub(in crate::verbs) unsafe fn add_bvecs<'p, C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
        count: usize,
        bvecs: impl BVecs<'p>,
        remote: Remote,
        gfp: Gfp,
    ) -> Result<u32> {
        let pd_id = ep.pd_id();
        if self.pd_id != 0 && self.pd_id != pd_id {
            return Err(EINVAL);
        }
        let mut rw_ctxt = match pool.idle.get() {
            Some(rw_ctxt) => rw_ctxt,
            None => RwCtxt::new(gfp.flags())?,
        };
        // SAFETY: The context is new, or comes from the pool, which has none that is prepared. The
        // memory stays by this function's contract.
        let prepared = unsafe { rw_ctxt.prepare(ep, self.direction, count, bvecs, remote, gfp) };
        match prepared {
            // The context is freed, here and below: its array of runs may be long.
            Ok(RwCost { bytes: 0, .. }) => Ok(0),
            Ok(RwCost { bytes, entries }) => {
                // INVARIANT: I1, I2: just prepared for the endpoint's QP.
                self.pd_id = pd_id;
                self.entries += entries;
                self.bytes = self.bytes.saturating_add(bytes);
                self.chain.push(rw_ctxt);
                Ok(bytes)
            }
            Err(error) => {
                trace!(svcrdma_dma_map_rw_err(
                    ep.send_cq_id(),
                    remote.offset,
                    remote.handle,
                    count as u32,
                    error.to_errno()
                ));
                Err(error)
            }
        }
    }

    /// Links the work requests of all transfers in front of `then`. Returns the first one, or
    /// `then` if there are no transfers.
    ///
    /// If `then` is null, the last transfer is signalled, with its own `cqe`. Returns `None` if the
    /// chain is prepared for another endpoint.
    ///
    /// # Safety
    ///
    /// `then` stays in place until the chain has completed.
    #[inline]
    pub(in crate::verbs) unsafe fn link<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        then: *mut bindings::ib_send_wr,
    ) -> Option<*mut bindings::ib_send_wr> {
        if self.chain.is_empty() {
            return Some(then);
        }
        let qp = ep.qp_of(self.pd_id)?.as_ptr();
        let port = ep.port();
        let mut first = then;
        for rw_ctxt in self.chain.iter_mut() {
            // SAFETY: The transfer is prepared for `qp` (I1). `then` stays in place by this
            // function's contract, and the other transfers do because they are in the chain.
            first = unsafe { rw_ctxt.link(qp, port, first) };
        }
        Some(first)
    }

    /// Sets the handler of the completion of the last transfer, which gets `arg` by
    /// [`RwCtxt::done_arg`]. For a chain with no work request behind the transfers.
    #[inline]
    pub(in crate::verbs) fn set_done(&mut self, done: Done, arg: DoneArg) {
        if let Some(last) = self.chain.iter_mut().next() {
            last.set_done(done, arg);
        }
    }

    /// Unmaps the memory and returns the contexts to the pool.
    ///
    /// Does nothing, and returns `false`, if the chain is prepared for another endpoint.
    #[inline]
    pub(in crate::verbs) fn release<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &RwCtxtPool,
    ) -> bool {
        if self.chain.is_empty() {
            return true;
        }
        let Some(qp) = ep.qp_of(self.pd_id) else {
            return false;
        };
        for rw_ctxt in self.chain.iter_mut() {
            // SAFETY: The transfer is prepared for `qp` (I1), the QP of the borrowed endpoint. It
            // is not posted: a chain that is posted belongs to the device.
            unsafe { rw_ctxt.unmap(qp.as_ptr(), ep.port(), self.direction) };
        }
        // INVARIANT: I1, I2: the chain is empty. The contexts in the pool are not prepared.
        pool.idle
            .put_all(mem::replace(&mut self.chain, Chain::new()));
        self.pd_id = 0;
        self.entries = 0;
        self.bytes = 0;
        true
    }
}

impl Drop for RwChain {
    /// Reports transfers that were not released. Their mappings cannot be undone here: the QP may
    /// not exist any more.
    fn drop(&mut self) {
        if !self.chain.is_empty() {
            pr_err!("RDMA transfers were not released, leaking their DMA mappings\n");
            mem::forget(mem::replace(&mut self.chain, Chain::new()));
        }
    }
}
