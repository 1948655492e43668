// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads or Writes for one queue pair, which become the front of a chain of work requests.
//!
//! Nothing here is posted by itself, and nothing here owns the memory: `call_pull` and `message`
//! own pages, and what waits for a `reply_pull` keeps its own.

use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        gfp::Gfp,
        llist::Chain,
        llist_box::LlistBox,
        pages::{
            PageArray,
            Span, //
        },
        pool::Pool, //
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

use super::rw_ctxt::{
    Armed,
    Remote,
    RwCost, //
    RwCtxt,
};

/// Transfers that are prepared for one queue pair, in the order that they will run.
///
/// # Invariants
///
/// Every transfer in `chain`, the last one first, is prepared for `qp` and `direction`; `qp` is
/// null if there is none. `entries` is how many entries of the Send Queue they take, and `bytes`
/// how many bytes they move.
pub(in crate::verbs) struct RwChain {
    chain: Chain<LlistBox<RwCtxt>>,
    qp: *mut bindings::ib_qp,
    entries: u32,
    bytes: u32,
    direction: Direction,
}

// SAFETY: Queue pairs may be used from any thread, and transfers are `Send`.
unsafe impl Send for RwChain {}

impl RwChain {
    #[inline]
    pub(in crate::verbs) const fn new(direction: Direction) -> Self {
        Self {
            chain: Chain::new(),
            qp: ptr::null_mut(),
            entries: 0,
            bytes: 0,
            direction,
        }
    }

    #[inline]
    pub(in crate::verbs) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Entries of the Send Queue that the transfers take.
    #[inline]
    pub(in crate::verbs) fn entries(&self) -> u32 {
        self.entries
    }

    /// Bytes that the transfers move.
    #[inline]
    pub(in crate::verbs) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether there is nothing in the way of using the transfers on `qp`.
    #[inline]
    fn is_for(&self, qp: *mut bindings::ib_qp) -> bool {
        self.qp.is_null() || self.qp == qp
    }

    /// Whether the transfers, if there are any, were prepared for this endpoint.
    #[inline]
    pub(in crate::verbs) fn are_of<C: EndpointOps>(&self, ep: &Endpoint<C>) -> bool {
        self.chain.is_empty() || ep.qp().map(NonNull::as_ptr) == Some(self.qp)
    }

    /// Prepares the transfer of `span` to or from `remote`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the span is empty or not within the pages, or for another endpoint than before;
    /// `ENOMEM`, `EIO` if the device cannot map the pages.
    ///
    /// # Safety
    ///
    /// The pages must stay in the array until the transfers are released.
    #[inline]
    pub(in crate::verbs) unsafe fn add<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LlistBox<RwCtxt>>,
        pages: &PageArray,
        span: Span,
        remote: Remote,
    ) -> Result {
        let bvecs = pages.bvecs(span).ok_or(EINVAL)?;
        // SAFETY: By this function's contract.
        let bytes = unsafe {
            let count = span.pages() as usize;
            self.add_bvecs(ep, pool, count, bvecs, remote, Gfp::Sleep)?
        };
        if bytes > 0 && bytes == span.len {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Prepares the transfer of `bvecs`, about `count` of them, to or from `remote`; returns how
    /// many bytes they are. If there is no piece, nothing is added.
    ///
    /// Each piece [adjoins](BVec::adjoins) the one before it: the core may map them to a single
    /// run of addresses of an IOMMU, and takes it for an error if that cannot be.
    ///
    /// # Errors
    ///
    /// `EINVAL` if for another endpoint than before; `ENOMEM`, or what the core reports, if the
    /// device cannot map the memory.
    ///
    /// # Safety
    ///
    /// The memory must stay until the transfers are released.
    #[inline]
    pub(in crate::verbs) unsafe fn add_bvecs<'p, C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LlistBox<RwCtxt>>,
        count: usize,
        bvecs: impl Iterator<Item = BVec<'p>>,
        remote: Remote,
        gfp: Gfp,
    ) -> Result<u32> {
        let qp = ep.qp().ok_or(EINVAL)?.as_ptr();
        if !self.is_for(qp) {
            return Err(EINVAL);
        }
        let mut rw_ctxt = match pool.get() {
            Some(rw_ctxt) => rw_ctxt,
            None => RwCtxt::new(gfp.flags())?,
        };
        // SAFETY: It is new, or was idle. The memory stays, by this function's contract.
        let prepared = unsafe { rw_ctxt.prepare(ep, self.direction, count, bvecs, remote, gfp) };
        match prepared {
            Ok(RwCost { bytes: 0, .. }) => {
                pool.put(rw_ctxt);
                Ok(0)
            }
            Ok(RwCost { bytes, entries }) => {
                // INVARIANT: Prepared just now, for this queue pair.
                self.qp = qp;
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
                pool.put(rw_ctxt);
                Err(error)
            }
        }
    }

    /// Links all work requests in front of `then`, which may be null; returns the first.
    ///
    /// If `then` is null, the last transfer is signalled, by its own `cqe`. Returns `then` if there
    /// are no transfers, and `None` if they were prepared for another endpoint.
    ///
    /// # Safety
    ///
    /// `then` stays until the chain has completed.
    #[inline]
    pub(in crate::verbs) unsafe fn link<C: EndpointOps>(
        &self,
        ep: &Endpoint<C>,
        then: *mut bindings::ib_send_wr,
    ) -> Option<*mut bindings::ib_send_wr> {
        if self.chain.is_empty() {
            return Some(then);
        }
        if !self.are_of(ep) {
            return None;
        }
        let port = ep.port();
        let mut first = then;
        for link in self.chain.links() {
            // SAFETY: The link is of a transfer in the chain, which is prepared for `qp`, that of
            // the endpoint. `then` stays, by this function's contract.
            first = unsafe { RwCtxt::link(LlistBox::entry(link), self.qp, port, first) };
        }
        Some(first)
    }

    /// Has the end of the transfers, which are posted with nothing behind them, reported to `done`,
    /// for which `armed` is left there: see [`RwCtxt::completed`].
    #[inline]
    pub(in crate::verbs) fn arm(&mut self, done: Done, armed: Armed) {
        if let Some(link) = self.chain.links().next() {
            // SAFETY: The link is of the transfer that runs last. It is in the chain, hence ours.
            let last = unsafe { LlistBox::<RwCtxt>::entry(link).as_mut() };
            last.arm(done, armed);
        }
    }

    /// Unmaps all pages and puts the transfers back.
    ///
    /// Does nothing if the endpoint is not the one that they were prepared for.
    #[inline]
    pub(in crate::verbs) fn release<C: EndpointOps>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LlistBox<RwCtxt>>,
    ) {
        if self.chain.is_empty() || !self.are_of(ep) {
            return;
        }
        for link in self.chain.links() {
            // SAFETY: The link is of a transfer in the chain, which is prepared for `qp`; that is
            // alive, since the endpoint is. What is posted is in nobody's hands.
            unsafe { RwCtxt::unmap(LlistBox::entry(link), self.qp, ep.port(), self.direction) };
        }
        // INVARIANT: What is put back is prepared no longer; nothing is left.
        pool.put_all(mem::replace(&mut self.chain, Chain::new()));
        self.qp = ptr::null_mut();
        self.entries = 0;
        self.bytes = 0;
    }
}

impl Drop for RwChain {
    /// Transfers must be released while their queue pair is alive, which is not known here.
    fn drop(&mut self) {
        if !self.chain.is_empty() {
            pr_err!("transfers were not released: their mappings are lost\n");
            mem::forget(mem::replace(&mut self.chain, Chain::new()));
        }
    }
}
