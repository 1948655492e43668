// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer, as the RDMA core takes it: an array of `struct bio_vec`.
//!
//! `runs_sg.rs` is the variant for kernels older than 7.1, which take a scatterlist.
//!
//! C header: [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::{
    bindings,
    lib::bvec::{
        BVec,
        PAGE, //
    }, //
};

use super::remote::Remote;

/// Runs of contiguous memory.
pub(super) struct Runs(KVec<bindings::bio_vec>);

impl Runs {
    /// No runs. It allocates nothing.
    pub(super) const fn new() -> Self {
        Self(KVec::new())
    }

    /// Removes all runs, and provides memory for `count`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn restart(&mut self, count: usize, flags: Flags) -> Result {
        self.0.clear();
        self.0.reserve(count, flags)?;
        Ok(())
    }

    /// Returns whether `bvec` is the memory right behind the last run, and both together are no
    /// longer than `max_run` bytes.
    #[inline]
    pub(super) fn ends_before(&self, bvec: &BVec<'_>, max_run: u32) -> bool {
        let Some(last) = self.0.last() else {
            return false;
        };
        let end = last.bv_offset + last.bv_len;
        // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
        cfg!(CONFIG_SPARSEMEM_VMEMMAP)
            && last.bv_len + bvec.len() <= max_run
            && bvec.offset() == 0
            && end % PAGE == 0
            && last.bv_page.wrapping_add((end / PAGE) as usize) == bvec.page()
    }

    /// Adds `len` bytes to the last run.
    #[inline]
    pub(super) fn extend_last(&mut self, len: u32) {
        if let Some(last) = self.0.last_mut() {
            last.bv_len += len;
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn push(&mut self, bvec: &BVec<'_>, flags: Flags) -> Result {
        let vec = bindings::bio_vec {
            bv_page: bvec.page(),
            bv_len: bvec.len(),
            bv_offset: bvec.offset(),
        };
        if self.0.push_within_capacity(vec).is_err() {
            return self.grow(vec, flags);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, vec: bindings::bio_vec, flags: Flags) -> Result {
        self.0.push(vec, flags)?;
        Ok(())
    }

    /// Initializes `ctx` for the transfer of these runs, which are `bytes` bytes. Returns the
    /// number of Send Queue entries, or a negative errno.
    ///
    /// # Safety
    ///
    /// There are runs. `qp` is valid, and `port` is that of the QP. The memory stays, and the runs
    /// do not change, until [`Self::destroy`].
    #[inline]
    pub(super) unsafe fn init(
        &mut self,
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
        // SAFETY: The runs describe `bytes` bytes of memory. All else by this function's contract.
        unsafe {
            bindings::rdma_rw_ctx_init_bvec(
                ctx,
                qp,
                port,
                self.0.as_ptr(),
                // CAST: At most the number of pages of a message.
                self.0.len() as u32,
                iter,
                remote.offset,
                remote.handle,
                direction,
            )
        }
    }

    /// Unmaps the memory.
    ///
    /// # Safety
    ///
    /// `ctx` is initialized with these runs by [`Self::init`], for the same `qp`, `port` and
    /// `direction`. `qp` is valid.
    #[inline]
    pub(super) unsafe fn destroy(
        &mut self,
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
                self.0.as_ptr(),
                self.0.len() as u32,
                direction,
            );
        }
    }
}
