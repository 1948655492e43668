// SPDX-License-Identifier: GPL-2.0

//! A run of contiguous memory, as the RDMA core takes a list of them: an entry of a scatterlist.
//!
//! The variant of `run.rs` for kernels that have no `rdma_rw_ctx_init_bvec()`.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use kernel::prelude::*;

use crate::{
    bindings,
    lib::bvec::BVec, //
};

use super::remote::Remote;

/// Marks the last entry of a list, in `page_link`.
const END: c_ulong = 2;

/// A run of contiguous memory.
///
/// # Invariants
///
/// - I1: The run is within neighbouring pages, and `page_link` is the address of the first one's
///   `struct page`. In the last entry of an initialized list, it also has [`END`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Run(bindings::scatterlist);

impl Run {
    /// The memory of `bvec`.
    #[inline]
    pub(super) fn new(bvec: &BVec<'_>) -> Self {
        // INVARIANT: I1.
        Self(bindings::scatterlist {
            page_link: bvec.page().expose_provenance() as c_ulong,
            offset: bvec.offset(),
            length: bvec.len(),
            ..Default::default()
        })
    }

    /// The length of the run in bytes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.0.length
    }

    /// Sets the length in bytes, within contiguous memory.
    #[inline]
    pub(super) fn set_len(&mut self, len: u32) {
        self.0.length = len;
    }
}

/// Initializes `ctx` for the transfer of `runs`. Returns the number of Send Queue entries, or a
/// negative errno.
///
/// # Safety
///
/// There are runs. `qp` is valid, and `port` is that of the QP. The memory stays, and the runs do
/// not change, until [`destroy`].
#[inline]
pub(super) unsafe fn init(
    runs: &mut [Run],
    ctx: &mut bindings::rdma_rw_ctx,
    qp: *mut bindings::ib_qp,
    port: u32,
    _bytes: u32,
    remote: Remote,
    direction: bindings::dma_data_direction,
) -> c_int {
    // INVARIANT: I1: the core gets the list next.
    if let Some(last) = runs.last_mut() {
        last.0.page_link |= END;
    }
    // SAFETY: `Run` is transparent, and by I1 the entries are a list. All else by this function's
    // contract.
    unsafe {
        bindings::rdma_rw_ctx_init(
            ctx,
            qp,
            port,
            runs.as_mut_ptr().cast(),
            // CAST: At most the number of pages of a message.
            runs.len() as u32,
            0,
            remote.offset,
            remote.handle,
            direction,
        )
    }
}

/// Unmaps the memory of `runs`.
///
/// # Safety
///
/// `ctx` is initialized with `runs` by [`init`], for the same `qp`, `port` and `direction`. `qp` is
/// valid.
#[inline]
pub(super) unsafe fn destroy(
    runs: &mut [Run],
    ctx: &mut bindings::rdma_rw_ctx,
    qp: *mut bindings::ib_qp,
    port: u32,
    direction: bindings::dma_data_direction,
) {
    // SAFETY: By this function's contract.
    unsafe {
        bindings::rdma_rw_ctx_destroy(
            ctx,
            qp,
            port,
            runs.as_mut_ptr().cast(),
            runs.len() as u32,
            direction,
        );
    }
}
