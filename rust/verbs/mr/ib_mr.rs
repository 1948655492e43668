// SPDX-License-Identifier: GPL-2.0

//! The `struct ib_mr` of an MR.
//!
//! C: frwr_ops.c, frwr_mr_release()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::bvec::PAGE,
    trace::{
        self,
        trace, //
    },
    verbs::device::pd::Pd, //
};

/// An MR as a chunk segment describes it to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    /// The rkey.
    pub(crate) handle: u32,
    /// Length in bytes.
    pub(crate) length: u32,
    /// Address of the first byte, relative to the handle.
    pub(crate) offset: u64,
}

/// The bits of an address that are the offset within a page.
const IN_PAGE: u64 = PAGE as u64 - 1;

/// The bits of an MR's address that the driver of `pd`'s device uses when it registers the MR.
fn used_bits(pd: &Pd) -> u64 {
    // SAFETY: The domain keeps the device, whose operations are constant.
    match unsafe { (*pd.device()).ops.driver_id } {
        // ocrdma_build_reg() subtracts the bus address of the first page from it, and passes the
        // difference to the device. As in the C module, its low half is right.
        bindings::rdma_driver_id_RDMA_DRIVER_OCRDMA => u32::MAX.into(),
        _ => IN_PAGE,
    }
}

/// An owned `struct ib_mr`, and a reference to its domain.
///
/// # Invariants
///
/// - I1: `raw` is valid and is an MR of `pd`. This owns it. While the device does not know it as
///   valid, only calls with an exclusive reference to this access its key, address and length.
pub(super) struct IbMr {
    raw: NonNull<bindings::ib_mr>,
    /// The bits of the address that [`Self::set_key`] leaves alone.
    used: u64,
    /// Dropped after the MR.
    _pd: Arc<Pd>,
}

impl IbMr {
    /// Allocates an MR that can cover `depth` pages, and returns it with the number that
    /// `rdma resource` shows, and with its rkey. With `gaps`, the pages need not adjoin each other.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the device's error.
    pub(super) fn alloc(pd: &Arc<Pd>, depth: u32, gaps: bool) -> Result<(Self, u32, u32)> {
        let kind = if gaps {
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS
        } else {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG
        };
        // SAFETY: The domain is borrowed.
        let raw = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, depth) })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: I1: just allocated.
        let this = Self {
            raw,
            used: used_bits(pd),
            _pd: pd.clone(),
        };
        // SAFETY: Valid (I1), and not in use.
        let (id, rkey) = unsafe { ((*raw.as_ptr()).res.id, (*raw.as_ptr()).rkey) };
        Ok((this, id, rkey))
    }

    /// The MR, valid while `self` is.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_mr {
        self.raw.as_ptr()
    }

    /// Gives the MR, to which memory was just mapped, an rkey that ends with `key` and the address
    /// `offset`. The bits that the device needs stay: those of the offset within the page, or more.
    ///
    /// # Safety
    ///
    /// The device does not know the MR as valid.
    #[inline]
    pub(super) unsafe fn set_key(&mut self, key: u8, offset: u64) -> Exposed {
        let raw = self.raw.as_ptr();
        // SAFETY: Valid (I1). No other code accesses these members, by this function's contract.
        unsafe {
            let exposed = Exposed {
                handle: ((*raw).rkey & !0xff) | u32::from(key),
                // CAST: At most `depth` pages.
                length: (*raw).length as u32,
                offset: (offset & !self.used) | ((*raw).iova & self.used),
            };
            (*raw).iova = exposed.offset;
            (*raw).lkey = ((*raw).lkey & !0xff) | u32::from(key);
            (*raw).rkey = exposed.handle;
            exposed
        }
    }

    /// The MR as traces show it, with the segment that it exposed last and no memory mapped.
    #[cold]
    fn traced(&self) -> trace::Mr {
        let raw = self.raw.as_ptr();
        // SAFETY: Valid (I1). Only the owner of this accesses these members.
        let (mr_id, handle, length, offset) =
            unsafe { ((*raw).res.id, (*raw).rkey, (*raw).length, (*raw).iova) };
        trace::Mr {
            mr_id,
            nents: 0,
            handle,
            // CAST: At most `depth` pages.
            length: length as u32,
            offset,
            dir: bindings::dma_data_direction_DMA_NONE,
        }
    }
}

impl Drop for IbMr {
    fn drop(&mut self) {
        // Nothing is mapped: a list of mapped MRs keeps the pool, and registered ones were unmapped
        // by `MrPool::queues_ended`.
        let traced = self.traced();
        // SAFETY: This owns the MR (I1), whose domain is dropped after it.
        let rc = unsafe { bindings::ib_dereg_mr_user(self.raw.as_ptr(), ptr::null_mut()) };
        if rc != 0 {
            trace!(xprtrdma_frwr_dereg(&traced, rc));
        }
    }
}
