// SPDX-License-Identifier: GPL-2.0

//! DMA mapping of buffers and pages.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::marker::PhantomData;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::bvec::BVec, //
};

use super::pd::Pd;

/// Maps memory for the device of a domain. Mapping alone lets the device access nothing: a work
/// request has to refer to the memory.
///
/// # Invariants
///
/// - I1: `device` is that of the domain, which is borrowed for `'a`, and `lkey` the domain's.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct DmaMapper<'a> {
    device: *mut bindings::ib_device,
    lkey: u32,
    _pd: PhantomData<&'a Pd>,
}

impl<'a> DmaMapper<'a> {
    /// Maps memory for the device of `pd`.
    #[inline]
    pub(in crate::verbs) fn new(pd: &'a Pd) -> Self {
        // INVARIANT: I1: the domain's.
        Self {
            device: pd.device(),
            lkey: pd.lkey(),
            _pd: PhantomData,
        }
    }

    /// Maps a buffer. Returns its bus address.
    ///
    /// # Errors
    ///
    /// `EIO`.
    pub(super) fn map_buffer(
        self,
        memory: &mut KVec<u8>,
        direction: bindings::dma_data_direction,
    ) -> Result<u64> {
        let len = memory.len();
        // SAFETY: The memory of a `KVec` is physically contiguous, and the device is valid (I1).
        let addr = unsafe {
            bindings::rpcrdma_dma_map_single(
                self.device,
                memory.as_mut_ptr().cast(),
                len,
                direction,
            )
        };
        self.mapped(addr).map_err(|_| EIO)
    }

    /// Maps bytes of a page. Returns their scatter/gather element.
    ///
    /// # Errors
    ///
    /// The address that tells of the failure, for traces.
    #[inline]
    pub(in crate::verbs) fn map_bvec(
        self,
        bvec: &BVec<'_>,
        direction: bindings::dma_data_direction,
    ) -> Result<bindings::ib_sge, u64> {
        // SAFETY: The page is allocated, and the bytes are within it (I1 and I2 of `BVec`). The
        // device is valid (I1).
        let addr = unsafe {
            bindings::rpcrdma_dma_map_page(
                self.device,
                bvec.page(),
                bvec.offset() as usize,
                bvec.len() as usize,
                direction,
            )
        };
        Ok(bindings::ib_sge {
            addr: self.mapped(addr)?,
            length: bvec.len(),
            lkey: self.lkey,
        })
    }

    /// Unmaps bytes of a page.
    ///
    /// # Safety
    ///
    /// [`Self::map_bvec`] has mapped the bytes to `addr`, for the same domain and `direction`. They
    /// are not unmapped yet. The page is still allocated, and no work request refers to the bytes.
    #[inline]
    pub(in crate::verbs) unsafe fn unmap_bvec(
        self,
        addr: u64,
        len: u32,
        direction: bindings::dma_data_direction,
    ) {
        // SAFETY: The device is valid (I1). The rest by this function's contract.
        unsafe {
            bindings::rpcrdma_dma_unmap_page(self.device, addr, len as usize, direction);
        }
    }

    /// The bus address that a mapping function has returned, or an error if it tells of a failure.
    #[inline]
    fn mapped(self, addr: u64) -> Result<u64, u64> {
        // SAFETY: The device is valid (I1).
        match unsafe { bindings::rpcrdma_dma_mapping_error(self.device, addr) } {
            0 => Ok(addr),
            _ => Err(addr),
        }
    }
}
