// SPDX-License-Identifier: GPL-2.0

//! RDMA Read and Write: work requests that the RDMA core prepares for whatever the device demands.
//!
//! A [`Transfer`] moves octets between one segment of a peer's memory and a run of a page array, or
//! of pieces of an `xdr_buf`. Transfers are collected in [`Transfers`], which become the front of a
//! chain of work requests. Nothing here is posted by itself, and nothing here owns the memory:
//! `pull` and `message` own pages, and what `puller` pulls for keeps its own.

use core::{
    ffi::c_void,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::Flags,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use crate::{
    admin::trace::trace,
    bindings::{
        self,
        list::{
            Chain,
            Pool, //
        },
        pages::{
            PageArray,
            Span, //
        },
        piece::{
            Piece,
            PAGE, //
        }, //
    }, //
};

use super::{
    context::Context,
    dma::Direction,
    endpoint::Endpoint,
    linked_box::LinkedBox,
    patience::Patience, //
};

/// A place in a peer's memory.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// The handle that the peer exposed it under.
    pub(crate) handle: u32,
    /// The address, in the terms of the handle.
    pub(crate) offset: u64,
}

/// Neighbouring pages are handed to the device as one run up to this length: more would not fit the
/// bounce buffers that some machines put between memory and device.
const MAX_RUN: u32 = 16 * PAGE;

/// Where the device reads into regions, the core has room in them for as many pages as there are
/// runs.
const RUN_IN_REGION: u32 = PAGE;

/// Memory to prepare a transfer in.
pub(super) struct Transfer {
    /// For the last transfer of a chain that is posted by itself.
    pub(super) cqe: bindings::ib_cqe,
    /// What travels with such a chain.
    pub(super) companion: *mut c_void,
    /// Entries of the Send Queue that such a chain took.
    pub(super) entries: u32,
    /// When such a chain was posted, if somebody wants to know.
    pub(super) posted: Option<Instant<Monotonic>>,
    context: bindings::rdma_rw_ctx,
    vecs: KVec<bindings::bio_vec>,
}

// SAFETY: A transfer owns all that it points to, but for its companion, which is left there for a
// completion handler, on whatever processor that runs.
unsafe impl Send for Transfer {}

impl Transfer {
    fn new(flags: Flags) -> Result<LinkedBox<Self>> {
        Ok(LinkedBox::room(flags)?.fill(Self {
            cqe: bindings::ib_cqe { done: None },
            companion: ptr::null_mut(),
            entries: 0,
            posted: None,
            context: pin_init::zeroed(),
            vecs: KVec::new(),
        }))
    }

    /// Names the memory of `pieces`, neighbours together in runs of up to `most` octets; returns
    /// how many octets that is, or `EINVAL` if they cannot be counted.
    #[inline]
    fn fill<'p>(
        &mut self,
        pieces: impl Iterator<Item = Piece<'p>>,
        most: u32,
        flags: Flags,
    ) -> Result<u32> {
        let mut octets = 0_u32;
        for piece in pieces {
            octets = octets.checked_add(piece.len()).ok_or(EINVAL)?;
            match self.vecs.last_mut() {
                Some(last) if last.bv_len + piece.len() <= most && follows(last, &piece) => {
                    last.bv_len += piece.len();
                }
                _ => {
                    let vec = bindings::bio_vec {
                        bv_page: piece.page(),
                        bv_len: piece.len(),
                        bv_offset: piece.offset(),
                    };
                    // There is room for about as many. Unlike `push`, this becomes inline code.
                    if self.vecs.push_within_capacity(vec).is_err() {
                        self.vecs.push(vec, flags)?;
                    }
                }
            }
        }
        Ok(octets)
    }
}

/// Whether `piece` is the memory right behind `run`.
#[inline]
fn follows(run: &bindings::bio_vec, piece: &Piece<'_>) -> bool {
    let end = run.bv_offset + run.bv_len;
    // With a virtual memory map, the descriptors of neighbouring pages are neighbours.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP)
        && piece.offset() == 0
        && end % PAGE == 0
        && run.bv_page.wrapping_add((end / PAGE) as usize) == piece.page()
}

/// Transfers that are prepared for one queue pair, in the order that they will run.
///
/// # Invariants
///
/// Every transfer in `chain`, the last one first, is initialised for `qp` and `direction`; `qp` is
/// null if there is none. `entries` is how many entries of the Send Queue they take, and `octets`
/// how many octets they move.
pub(super) struct Transfers {
    chain: Chain<LinkedBox<Transfer>>,
    qp: *mut bindings::ib_qp,
    entries: u32,
    octets: u32,
    direction: Direction,
}

// SAFETY: Queue pairs may be used from any thread, and transfers are `Send`.
unsafe impl Send for Transfers {}

impl Transfers {
    #[inline]
    pub(super) const fn new(direction: Direction) -> Self {
        Self {
            chain: Chain::new(),
            qp: ptr::null_mut(),
            entries: 0,
            octets: 0,
            direction,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Entries of the Send Queue that the transfers take.
    #[inline]
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// Octets that the transfers move.
    #[inline]
    pub(super) fn octets(&self) -> u32 {
        self.octets
    }

    /// Whether there is nothing in the way of using the transfers on `qp`.
    #[inline]
    fn is_for(&self, qp: *mut bindings::ib_qp) -> bool {
        self.qp.is_null() || self.qp == qp
    }

    /// Whether the transfers, if there are any, were prepared for this endpoint.
    #[inline]
    pub(super) fn are_of<C: Context>(&self, ep: &Endpoint<C>) -> bool {
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
    pub(super) unsafe fn add<C: Context>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LinkedBox<Transfer>>,
        pages: &PageArray,
        span: Span,
        remote: Remote,
    ) -> Result {
        let pieces = pages.pieces(span).ok_or(EINVAL)?;
        // SAFETY: By this function's contract.
        let octets = unsafe {
            let count = span.pages() as usize;
            self.add_pieces(ep, pool, count, pieces, remote, Patience::Waits)?
        };
        if octets > 0 && octets == span.len {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Prepares the transfer of `pieces`, about `count` of them, to or from `remote`; returns how
    /// many octets they are. If there is no piece, nothing is added.
    ///
    /// Each piece [adjoins](Piece::adjoins) the one before it: the core may map them to a single
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
    pub(super) unsafe fn add_pieces<'p, C: Context>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LinkedBox<Transfer>>,
        count: usize,
        pieces: impl Iterator<Item = Piece<'p>>,
        remote: Remote,
        patience: Patience,
    ) -> Result<u32> {
        let qp = ep.qp().ok_or(EINVAL)?.as_ptr();
        if !self.is_for(qp) {
            return Err(EINVAL);
        }
        let run = match self.direction {
            Direction::FromDevice if ep.registers_to_read() => RUN_IN_REGION,
            _ => MAX_RUN,
        };
        let mut transfer = match pool.get() {
            Some(transfer) => transfer,
            None => Transfer::new(patience.flags())?,
        };
        transfer.vecs.clear();
        let prepared = match transfer.vecs.reserve(count, patience.flags()) {
            Ok(()) => transfer.fill(pieces, run, patience.flags()),
            Err(error) => Err(error.into()),
        }
        .and_then(|octets| match octets {
            0 => Ok((0, 0)),
            _ => patience
                // SAFETY: By this function's contract; the queue pair is alive, since the endpoint
                // is.
                .scope(|| unsafe { self.prepare(qp, ep.port(), &mut transfer, octets, remote) })
                .map(|entries| (octets, entries)),
        });
        match prepared {
            Ok((0, _)) => {
                pool.put(transfer);
                Ok(0)
            }
            Ok((octets, entries)) => {
                // INVARIANT: Initialised just now, for this queue pair.
                self.qp = qp;
                self.entries += entries;
                self.octets = self.octets.saturating_add(octets);
                self.chain.push(transfer);
                Ok(octets)
            }
            Err(e) => {
                trace!(svcrdma_dma_map_rw_err(
                    ep.send_cq_id(),
                    remote.offset,
                    remote.handle,
                    count as u32,
                    e.to_errno()
                ));
                pool.put(transfer);
                Err(e)
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::add_pieces`]; `qp` is a live queue pair on `port`, and the vectors of
    /// `transfer` name `octets` of memory.
    #[inline]
    unsafe fn prepare(
        &self,
        qp: *mut bindings::ib_qp,
        port: u32,
        transfer: &mut Transfer,
        octets: u32,
        remote: Remote,
    ) -> Result<u32> {
        let iter = bindings::bvec_iter {
            bi_size: octets,
            ..Default::default()
        };
        // SAFETY: The vectors name as many octets of memory that stays, by this function's
        // contract.
        let ret = unsafe {
            bindings::rdma_rw_ctx_init_bvec(
                &mut transfer.context,
                qp,
                port,
                transfer.vecs.as_ptr(),
                // CAST: Fewer than the pages of a message.
                transfer.vecs.len() as u32,
                iter,
                remote.offset,
                remote.handle,
                self.direction.as_raw(),
            )
        };
        u32::try_from(ret).map_err(|_| Error::from_errno(ret))
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
    pub(super) unsafe fn link<C: Context>(
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
            // SAFETY: The link is of a transfer in the chain, which is initialised for `qp`.
            first = unsafe {
                let transfer = LinkedBox::<Transfer>::at(link).as_ptr();
                bindings::rdma_rw_ctx_wrs(
                    &raw mut (*transfer).context,
                    self.qp,
                    port,
                    &raw mut (*transfer).cqe,
                    first,
                )
            };
        }
        Some(first)
    }

    /// The transfer that runs last.
    #[inline]
    pub(super) fn last(&self) -> Option<NonNull<Transfer>> {
        let link = self.chain.links().next()?;
        // SAFETY: The link is of a transfer in the chain.
        Some(unsafe { LinkedBox::at(link) })
    }

    /// Unmaps all pages and puts the transfers back.
    ///
    /// Does nothing if the endpoint is not the one that they were prepared for.
    #[inline]
    pub(super) fn release<C: Context>(
        &mut self,
        ep: &Endpoint<C>,
        pool: &Pool<LinkedBox<Transfer>>,
    ) {
        if self.chain.is_empty() || !self.are_of(ep) {
            return;
        }
        for link in self.chain.links() {
            // SAFETY: The link is of a transfer in the chain, which is initialised for `qp`; that
            // is alive, since the endpoint is.
            unsafe {
                let transfer = LinkedBox::<Transfer>::at(link).as_ptr();
                bindings::rdma_rw_ctx_destroy_bvec(
                    &raw mut (*transfer).context,
                    self.qp,
                    ep.port(),
                    (*transfer).vecs.as_ptr(),
                    (*transfer).vecs.len() as u32,
                    self.direction.as_raw(),
                );
            }
        }
        // INVARIANT: What is put back is initialised no longer; nothing is left.
        pool.put_all(mem::replace(&mut self.chain, Chain::new()));
        self.qp = ptr::null_mut();
        self.entries = 0;
        self.octets = 0;
    }
}

impl Drop for Transfers {
    /// Transfers must be released while their queue pair is alive, which is not known here.
    fn drop(&mut self) {
        if !self.chain.is_empty() {
            pr_err!("transfers were not released: their mappings are lost\n");
            mem::forget(mem::replace(&mut self.chain, Chain::new()));
        }
    }
}
