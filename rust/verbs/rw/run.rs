// SPDX-License-Identifier: GPL-2.0

//! A run of contiguous memory, as the RDMA core takes an array of them: a `struct bio_vec`.
//!
//! `run_sg.rs` is the variant for kernels older than 7.1, which take a scatterlist.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use kernel::prelude::*;

use crate::{
    bindings,
    lib::bvec::BVec, //
};

use super::remote::Remote;

/// A run of contiguous memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Run(bindings::bio_vec);

impl Run {
    /// The memory of `bvec`.
    #[inline]
    pub(super) fn new(bvec: &BVec<'_>) -> Self {
        Self(bindings::bio_vec {
            bv_page: bvec.page(),
            bv_len: bvec.len(),
            bv_offset: bvec.offset(),
        })
    }

    /// The length of the run in bytes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.0.bv_len
    }

    /// Sets the length in bytes, within contiguous memory.
    #[inline]
    pub(super) fn set_len(&mut self, len: u32) {
        self.0.bv_len = len;
    }
}

/// Initializes `ctx` for the transfer of `runs`, which are `bytes` bytes. Returns the number of
/// Send Queue entries, or a negative errno.
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
    bytes: u32,
    remote: Remote,
    direction: bindings::dma_data_direction,
) -> c_int {
    let iter = bindings::bvec_iter {
        bi_size: bytes,
        ..Default::default()
    };
    // SAFETY: `Run` is transparent, and the runs describe `bytes` bytes of memory. All else by this
    // function's contract.
    unsafe {
        bindings::rdma_rw_ctx_init_bvec(
            ctx,
            qp,
            port,
            runs.as_ptr().cast(),
            // CAST: At most the number of pages of a message.
            runs.len() as u32,
            iter,
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
        bindings::rdma_rw_ctx_destroy_bvec(
            ctx,
            qp,
            port,
            runs.as_ptr().cast(),
            runs.len() as u32,
            direction,
        );
    }
}
