// SPDX-License-Identifier: GPL-2.0

//! The memory of Receive buffers, which may outlive its mapping.
//!
//! C: verbs.c, rpcrdma_regbuf_alloc_node(), __rpcrdma_regbuf_dma_map()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

use super::{
    dma_buf::zeroes,
    dma_map::DmaMapper,
    mappings::{
        Mappings,
        DIRECTION, //
    },
    pd::Pd, //
};

/// The memory of a Receive buffer, mapped for as long as its protection domain exists.
///
/// Its owner keeps it until the Receive has completed; [`RecvBuf`](crate::verbs::RecvBuf) does.
///
/// # Invariants
///
/// - I1: `entry` of `mappings` is this buffer's, and holds the mapping of `memory` at `addr`,
///   until the domain has ended.
/// - I2: `lkey` is the domain's.
pub(in crate::verbs) struct RecvBuffer {
    memory: KVec<u8>,
    addr: u64,
    lkey: u32,
    entry: usize,
    mappings: Arc<Mappings>,
}

impl RecvBuffer {
    /// Allocates and maps `size` bytes of zeroes. Logs no warning if that fails: a connection is
    /// then tried with smaller buffers.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EIO` if the memory cannot be mapped.
    pub(in crate::verbs) fn new(pd: &Pd, size: usize, flags: Flags) -> Result<Self> {
        let mut memory = zeroes(pd, size, flags)?;
        let mappings = pd.recv_mappings().clone();
        let entry = mappings.reserve(flags)?;
        let addr = DmaMapper::new(pd)
            .map_buffer(&mut memory, DIRECTION)
            // SAFETY: The entry was just reserved, and is not used after an error.
            .inspect_err(|_| unsafe { mappings.unmap(entry) })?;
        // SAFETY: `pd` is borrowed, so it is alive. The memory was just mapped, and `Self::drop`
        // unmaps the entry first.
        unsafe { mappings.set(entry, addr, size) };
        // INVARIANT: I1: just recorded. I2: the key is that of `pd`.
        Ok(Self {
            memory,
            addr,
            lkey: pd.lkey(),
            entry,
            mappings,
        })
    }

    /// The size, in bytes.
    #[inline]
    pub(in crate::verbs) fn len(&self) -> usize {
        self.memory.len()
    }

    /// The memory, as the CPU sees it.
    #[inline]
    pub(in crate::verbs) fn as_slice(&self) -> &[u8] {
        &self.memory
    }

    /// The start of the memory. A write needs that no reference to the memory exists.
    #[inline]
    pub(in crate::verbs) fn as_mut_ptr(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut()
    }

    /// Returns whether the buffer is mapped for `pd`.
    #[inline]
    fn is_for(&self, pd: &Pd) -> bool {
        Arc::ptr_eq(&self.mappings, pd.recv_mappings())
    }

    /// The [`Pd::id`] of the domain that the buffer is, or was, mapped for.
    #[inline]
    pub(in crate::verbs) fn pd_id(&self) -> u64 {
        self.mappings.id()
    }

    /// A scatter/gather element for the whole buffer.
    #[inline]
    pub(in crate::verbs) fn sge(&self) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: self.addr,
            // CAST: No buffer of this module comes near 4 GiB.
            length: self.memory.len() as u32,
            lkey: self.lkey,
        }
    }

    /// Hands the buffer to the device.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is mapped for another domain than `pd`.
    #[inline]
    pub(in crate::verbs) fn sync_for_device(&self, pd: &Pd) -> Result {
        if !self.is_for(pd) {
            return Err(EINVAL);
        }
        // SAFETY: The domain is borrowed, so the mapping is alive (I1), and the device.
        unsafe {
            bindings::rpcrdma_dma_sync_for_device(
                self.mappings.device(),
                self.addr,
                self.memory.len(),
                DIRECTION,
            );
        }
        Ok(())
    }

    /// Takes the first `len` bytes back from the device.
    ///
    /// # Safety
    ///
    /// The domain is alive.
    #[inline]
    pub(in crate::verbs) unsafe fn sync_for_cpu(&self, len: usize) {
        // SAFETY: The domain is alive, so the mapping is (I1), and the device. The length is
        // bounded by the buffer's.
        unsafe {
            bindings::rpcrdma_dma_sync_for_cpu(
                self.mappings.device(),
                self.addr,
                len.min(self.memory.len()),
                DIRECTION,
            );
        }
    }
}

impl Drop for RecvBuffer {
    fn drop(&mut self) {
        self.mappings.uncount(self.memory.len());
        // SAFETY: The entry is this buffer's (I1), and is not used again. The buffer is not posted:
        // its owner has dropped it.
        unsafe { self.mappings.unmap(self.entry) };
    }
}
