// SPDX-License-Identifier: GPL-2.0

//! A connection's protection domain: what one peer may reach, no other can (RFC 8166 section
//! 8.1.1).

use core::ptr::NonNull;

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

use crate::{
    admin::counter::Gauge,
    bindings, //
};

use super::device::Lease;

/// A protection domain and the lease on its device.
///
/// Every object that the device can reach holds one, so that the domain ends after the last of them
/// and the device's removal waits for it.
///
/// # Invariants
///
/// `pd` is a protection domain on the leased device.
pub(crate) struct Domain {
    pd: NonNull<bindings::ib_pd>,
    /// Octets of the buffers that are mapped for this domain and its like.
    buffers: &'static Gauge,
    lease: Lease,
}

// SAFETY: Protection domains may be used and freed from any thread.
unsafe impl Send for Domain {}
// SAFETY: As above.
unsafe impl Sync for Domain {}

impl Domain {
    pub(super) fn new(lease: Lease, buffers: &'static Gauge) -> Result<Arc<Self>> {
        // SAFETY: The lease keeps the device.
        let pd = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(lease.device(), 0, c"rpcrdma".as_char_ptr())
        })?;
        let pd = NonNull::new(pd).ok_or(ENOMEM)?;
        // INVARIANT: Just made on the leased device. On failure, `Self` is dropped and frees it.
        Ok(Arc::new(Self { pd, buffers, lease }, GFP_KERNEL)?)
    }

    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn buffers(&self) -> &'static Gauge {
        self.buffers
    }

    pub(super) fn device(&self) -> *mut bindings::ib_device {
        self.lease.device()
    }

    /// A number that no other domain has while this one is there. Never zero.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The local key for memory that is mapped for this domain.
    #[inline]
    pub(super) fn lkey(&self) -> u32 {
        // SAFETY: Valid by the type's invariants; the key is constant.
        unsafe { (*self.pd.as_ptr()).local_dma_lkey }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: Nothing that uses the domain is left, for it would hold a reference.
        unsafe { bindings::ib_dealloc_pd_user(self.pd.as_ptr(), core::ptr::null_mut()) };
    }
}

/// What a device can do, as far as this module asks. Counts are the device's own, unsigned.
#[derive(Clone, Copy)]
pub(crate) struct DeviceAttrs {
    /// Work requests per queue.
    pub(crate) max_qp_wr: u32,
    /// Completions per completion queue.
    pub(crate) max_cqe: u32,
    /// Scatter/gather elements per Send.
    pub(crate) max_send_sge: u32,
    /// Scatter/gather elements per RDMA Read.
    pub(crate) max_sge_rd: u32,
    /// Pages that one fast registration can cover.
    pub(crate) max_fast_reg_pages: u32,
    /// RDMA Reads that it answers at a time, per queue pair.
    pub(crate) max_qp_rd_atom: u32,
    /// RDMA Reads that it starts at a time, per queue pair.
    pub(crate) max_qp_init_rd_atom: u32,
    /// Fast registration, local and remote invalidation.
    pub(crate) mem_mgt_extensions: bool,
    /// Registrations may have gaps.
    pub(crate) sg_gaps: bool,
    /// Memory that an RDMA Read goes to has to be registered: iWARP.
    pub(crate) registers_to_read: bool,
    /// A link that this module can serve: InfiniBand, RoCE or iWARP.
    pub(crate) supported: bool,
}

impl DeviceAttrs {
    /// # Safety
    ///
    /// `device` must be valid for the call.
    pub(super) unsafe fn query(device: *mut bindings::ib_device, port: u32) -> Self {
        // SAFETY: By this function's contract; attributes do not change while a device is
        // registered.
        let a = unsafe { &(*device).attrs };
        // SAFETY: As above.
        let iwarp = unsafe { bindings::rpcrdma_protocol_iwarp(device, port) };
        // SAFETY: As above.
        let ib_or_roce = unsafe { bindings::rpcrdma_ib_or_roce(device, port) };
        // A count that is negative here was larger than the field can hold.
        let count = |v: c_int| u32::try_from(v).unwrap_or(i32::MAX.unsigned_abs());
        let has = |cap: u64| a.device_cap_flags & cap != 0;
        Self {
            max_qp_wr: count(a.max_qp_wr),
            max_cqe: count(a.max_cqe),
            max_send_sge: count(a.max_send_sge),
            max_sge_rd: count(a.max_sge_rd),
            max_fast_reg_pages: a.max_fast_reg_page_list_len,
            max_qp_rd_atom: count(a.max_qp_rd_atom),
            max_qp_init_rd_atom: count(a.max_qp_init_rd_atom),
            mem_mgt_extensions: has(
                bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64
            ),
            sg_gaps: a.kernel_cap_flags & u64::from(bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG)
                != 0,
            registers_to_read: iwarp,
            supported: iwarp || ib_or_roce,
        }
    }
}
