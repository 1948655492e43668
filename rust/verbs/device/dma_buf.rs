// SPDX-License-Identifier: GPL-2.0

//! Memory that stays mapped for the device as long as it lives.

use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        Flags, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

use super::pd::Pd;

/// Which way the device moves the data.
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

/// A contiguous buffer, mapped once and unmapped when dropped.
///
/// Whoever posts it must hold on to it until the completion; the types built upon it see to that.
///
/// # Invariants
///
/// `addr` is the mapping of `memory`, in `direction`, on the domain's device. `lkey` is the
/// domain's.
pub(crate) struct DmaBuffer {
    memory: KVec<u8>,
    addr: u64,
    lkey: u32,
    direction: Direction,
    pd: Arc<Pd>,
}

impl DmaBuffer {
    /// Allocates and maps `size` bytes, all zero. Large sizes may fail; no warning is logged:
    /// whoever makes a connection retries smaller.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the memory.
    pub(crate) fn new(
        pd: &Arc<Pd>,
        size: usize,
        direction: Direction,
        flags: Flags,
    ) -> Result<Self> {
        let mut memory = KVec::from_elem(0u8, size, flags | __GFP_NOWARN)?;
        // SAFETY: `KVec` is physically contiguous; the domain keeps the device.
        let addr = unsafe {
            bindings::rpcrdma_dma_map_single(
                pd.device(),
                memory.as_mut_ptr().cast(),
                size,
                direction.as_raw(),
            )
        };
        // SAFETY: The domain keeps the device.
        if unsafe { bindings::rpcrdma_dma_mapping_error(pd.device(), addr) } != 0 {
            return Err(EIO);
        }
        pd.buffers().add(size);
        // INVARIANT: Mapped above.
        Ok(Self {
            memory,
            addr,
            lkey: pd.lkey(),
            direction,
            pd: pd.clone(),
        })
    }

    /// The size, in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// What the processor may write; [`Self::sync_for_device`] before it is posted.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// The protection domain that the buffer is mapped for.
    #[inline]
    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// A scatter/gather element for the first `len` bytes, at most the whole.
    #[inline]
    pub(in crate::verbs) fn sge(&self, len: usize) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: self.addr,
            length: self.length(len),
            lkey: self.lkey,
        }
    }

    /// The length of such an element.
    #[inline]
    pub(in crate::verbs) fn length(&self, len: usize) -> u32 {
        // CAST: No buffer of this module comes near 4 GiB.
        len.min(self.memory.len()) as u32
    }

    /// Hands the first `len` bytes to the device.
    #[inline]
    pub(crate) fn sync_for_device(&self, len: usize) {
        // SAFETY: Mapped, by the type's invariants; `len` is limited to the buffer.
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
        // SAFETY: Mapped, by the type's invariants; not posted, since whoever posts holds it.
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
