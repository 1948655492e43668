// SPDX-License-Identifier: GPL-2.0

//! Contiguous buffers that stay mapped for DMA.
//!
//! C: verbs.c, rpcrdma_regbuf_alloc_node(), rpcrdma_regbuf_dma_unmap(), rpcrdma_regbuf_free()
//! C: verbs.c, __rpcrdma_regbuf_dma_map()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! `kernel::dma` does not fit: it needs a device that is bound to a driver and has DMA operations.
//! `ib_dma_*()` also serve the virtual devices (rxe, siw), which have none.

use core::alloc::Layout;

use kernel::{
    alloc::{
        allocator::Kmalloc,
        flags::{
            __GFP_NOWARN,
            __GFP_ZERO, //
        },
        AllocError,
        Allocator,
        Flags,
        NumaNode, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

use super::{
    dma_map::DmaMapper,
    pd::Pd, //
};

/// The direction of a DMA mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The device reads the memory.
    ToDevice,
    /// The device writes the memory.
    FromDevice,
}

impl Direction {
    pub(in crate::verbs) fn as_raw(self) -> bindings::dma_data_direction {
        match self {
            Self::ToDevice => bindings::dma_data_direction_DMA_TO_DEVICE,
            Self::FromDevice => bindings::dma_data_direction_DMA_FROM_DEVICE,
        }
    }
}

/// Allocates `size` bytes of zeroes, if possible on the NUMA node of the domain's device. Logs no
/// warning if that fails. `__GFP_ZERO` costs nothing where `init_on_alloc` is set;
/// `KVec::from_elem()` would clear the memory a second time.
pub(super) fn zeroes(pd: &Pd, size: usize, flags: Flags) -> Result<KVec<u8>, AllocError> {
    let layout = Layout::array::<u8>(size).map_err(|_| AllocError)?;
    // SAFETY: The device is valid, since its domain is borrowed.
    let node = unsafe { bindings::rpcrdma_ibdev_to_node(pd.device()) };
    // A virtual device has no node.
    let node = NumaNode::new(node).unwrap_or(NumaNode::NO_NODE);
    let memory = Kmalloc::alloc(layout, flags | __GFP_NOWARN | __GFP_ZERO, node)?;
    // SAFETY: `KVec` frees with `Kmalloc`. The memory has at least `size` bytes, which `__GFP_ZERO`
    // has initialized.
    Ok(unsafe { KVec::from_raw_parts(memory.as_ptr().cast(), size, size) })
}

/// A contiguous buffer, mapped when it is created and unmapped when it is dropped.
///
/// Its owner keeps it until the work requests that refer to it have completed.
///
/// # Invariants
///
/// - I1: `addr` is the mapping of `memory` for the device of `pd`, in `direction`.
/// - I2: `lkey` is that of `pd`.
pub(crate) struct DmaBuffer {
    memory: KVec<u8>,
    addr: u64,
    lkey: u32,
    direction: Direction,
    pd: Arc<Pd>,
}

impl DmaBuffer {
    /// Allocates and maps `size` bytes of zeroes. Logs no warning if that fails: a connection is
    /// then tried with smaller buffers.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EIO` if the memory cannot be mapped.
    pub(crate) fn new(
        pd: &Arc<Pd>,
        size: usize,
        direction: Direction,
        flags: Flags,
    ) -> Result<Self> {
        let mut memory = zeroes(pd, size, flags)?;
        let addr = DmaMapper::new(pd).map_buffer(&mut memory, direction.as_raw())?;
        pd.buffers().add(size);
        // INVARIANT: I1: just mapped. I2: the key is that of `pd`.
        Ok(Self {
            memory,
            addr,
            lkey: pd.lkey(),
            direction,
            pd: pd.clone(),
        })
    }

    /// The size in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// The memory, to be written by the CPU. Call [`Self::sync_for_device`] before it is posted.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// The protection domain that the buffer is mapped for.
    #[inline]
    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// A scatter/gather element for the first `len` bytes, or for all if `len` exceeds the size.
    #[inline]
    pub(in crate::verbs) fn sge(&self, len: usize) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: self.addr,
            length: self.length(len),
            lkey: self.lkey,
        }
    }

    /// The length of that element.
    #[inline]
    pub(in crate::verbs) fn length(&self, len: usize) -> u32 {
        // CAST: No buffer of this module comes near 4 GiB.
        len.min(self.memory.len()) as u32
    }

    /// Hands the first `len` bytes to the device.
    #[inline]
    pub(crate) fn sync_for_device(&self, len: usize) {
        // SAFETY: The buffer is mapped (I1), and the length is bounded by its size.
        unsafe {
            bindings::rpcrdma_dma_sync_for_device(
                self.pd.device(),
                self.addr,
                len.min(self.memory.len()),
                self.direction.as_raw(),
            );
        }
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        self.pd.buffers().sub(self.memory.len());
        // SAFETY: The buffer is mapped (I1). No work request refers to it: its owner has dropped
        // it.
        unsafe {
            bindings::rpcrdma_dma_unmap_single(
                self.pd.device(),
                self.addr,
                self.memory.len(),
                self.direction.as_raw(),
            );
        }
    }
}
