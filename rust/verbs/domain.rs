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
