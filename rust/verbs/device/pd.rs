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
    bindings,
    lib::counter::Gauge, //
};

use super::{
    ib_client::DeviceRef,
    recv_buf::{
        self,
        Mappings, //
    }, //
};

/// A protection domain and the lease on its device.
///
/// Every object that the device can reach holds one, so that the domain ends after the last of them
/// and the device's removal waits for it. Receive buffers do not: what is posted the endpoint
/// keeps, and who reads a message may take longer.
///
/// # Invariants
///
/// `pd` is a protection domain on the leased device.
pub(crate) struct Pd {
    pd: NonNull<bindings::ib_pd>,
    /// Bytes of the buffers that are mapped for this domain and its like.
    buffers: &'static Gauge,
    receives: Arc<Mappings>,
    device_ref: DeviceRef,
}

// SAFETY: Protection domains may be used and freed from any thread.
unsafe impl Send for Pd {}
// SAFETY: As above.
unsafe impl Sync for Pd {}

impl Pd {
    pub(in crate::verbs) fn new(
        device_ref: DeviceRef,
        buffers: &'static Gauge,
    ) -> Result<Arc<Self>> {
        let device = NonNull::new(device_ref.device()).ok_or(ENODEV)?;
        // SAFETY: `Self` keeps the lease, and ends what is mapped when it is dropped. Nothing is
        // mapped without one.
        let receives = unsafe { Mappings::new(device, buffers)? };
        // SAFETY: The lease keeps the device.
        let pd = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(device_ref.device(), 0, c"rpcrdma".as_char_ptr())
        })?;
        let pd = NonNull::new(pd).ok_or(ENOMEM)?;
        // INVARIANT: Just made on the leased device. On failure, `Self` is dropped and frees it.
        Ok(Arc::new(
            Self {
                pd,
                buffers,
                receives,
                device_ref,
            },
            GFP_KERNEL,
        )?)
    }

    pub(in crate::verbs) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }

    pub(in crate::verbs) fn device_ref(&self) -> &DeviceRef {
        &self.device_ref
    }

    pub(in crate::verbs) fn buffers(&self) -> &'static Gauge {
        self.buffers
    }

    pub(in crate::verbs) fn device(&self) -> *mut bindings::ib_device {
        self.device_ref.device()
    }

    /// What is mapped for Receives.
    #[inline]
    pub(in crate::verbs) fn receives(&self) -> &Arc<Mappings> {
        &self.receives
    }

    /// A number that no other domain has while this one, or a Receive buffer of it, is there. Never
    /// zero.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        recv_buf::id(&self.receives)
    }

    /// The local key for memory that is mapped for this domain.
    #[inline]
    pub(in crate::verbs) fn lkey(&self) -> u32 {
        // SAFETY: Valid by the type's invariants; the key is constant.
        unsafe { (*self.pd.as_ptr()).local_dma_lkey }
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        self.receives.end();
        // SAFETY: Nothing that uses the domain is left, for it would hold a reference.
        unsafe { bindings::ib_dealloc_pd_user(self.pd.as_ptr(), core::ptr::null_mut()) };
    }
}
