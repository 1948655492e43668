// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! Each connection has a domain of its own: memory exposed to one peer is out of reach for all
//! others (RFC 8166 Section 8.1.1).

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::ordering::{
            Acquire,
            Release, //
        },
        Arc, //
    }, //
};

use crate::{
    bindings,
    lib::{
        counter::Gauge,
        sync::Atomic, //
    }, //
};

use super::{
    ib_client::DeviceRef,
    mappings::Mappings, //
};

/// A protection domain, and a reference to its device.
///
/// Every object that the device can access holds a reference to its domain, so the domain is freed
/// after the last of them. Receive buffers hold none: the endpoint keeps the posted ones, and the
/// reader of a message may keep its buffer for longer (see [`Mappings`]).
///
/// # Invariants
///
/// - I1: `pd` is a protection domain of `device_ref`'s device.
pub(crate) struct Pd {
    pd: NonNull<bindings::ib_pd>,
    /// Bytes of the buffers that are mapped for domains of this end.
    buffers: &'static Gauge,
    recv_mappings: Arc<Mappings>,
    fenced: Atomic<bool>,
    device_ref: DeviceRef,
}

// SAFETY: The RDMA core lets any thread use and free a domain, and I1 does not depend on the
// thread. All other fields are `Send`.
unsafe impl Send for Pd {}
// SAFETY: As above; a shared reference reads constants.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a protection domain.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the device's error.
    pub(in crate::verbs) fn new(
        device_ref: DeviceRef,
        buffers: &'static Gauge,
    ) -> Result<Arc<Self>> {
        let device = NonNull::new(device_ref.device()).ok_or(ENODEV)?;
        // SAFETY: `Self` keeps the device, and calls `end` when dropped. If there is no `Self`,
        // nothing gets mapped.
        let recv_mappings = unsafe { Mappings::new(device, buffers)? };
        // SAFETY: `device_ref` keeps the device.
        let pd = from_err_ptr(unsafe {
            bindings::__ib_alloc_pd(
                device_ref.device(),
                0,
                c"rpcrdma".to_bytes_with_nul().as_ptr(),
            )
        })?;
        let pd = NonNull::new(pd).ok_or(ENOMEM)?;
        // INVARIANT: I1: just allocated. If the `Arc` cannot be, `Self` is dropped and frees it.
        Ok(Arc::new(
            Self {
                pd,
                buffers,
                recv_mappings,
                fenced: Atomic::new(false),
                device_ref,
            },
            GFP_KERNEL,
        )?)
    }

    /// The domain, valid while `self` is.
    pub(in crate::verbs) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }

    /// The reference to the device.
    pub(in crate::verbs) fn device_ref(&self) -> &DeviceRef {
        &self.device_ref
    }

    /// Counts the bytes of mapped buffers.
    pub(in crate::verbs) fn buffers(&self) -> &'static Gauge {
        self.buffers
    }

    /// The device, valid while `self` is.
    pub(in crate::verbs) fn device(&self) -> *mut bindings::ib_device {
        self.device_ref.device()
    }

    /// The mappings of Receive buffers.
    #[inline]
    pub(super) fn recv_mappings(&self) -> &Arc<Mappings> {
        &self.recv_mappings
    }

    /// The number of the domain. No other domain ever has it, and it is never zero.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.recv_mappings.id()
    }

    /// Notes that the peer cannot reach memory of this domain, and never will.
    ///
    /// # Safety
    ///
    /// The QP of the domain is destroyed, and all MRs that were registered on it are unmapped.
    pub(in crate::verbs) unsafe fn set_fenced(&self) {
        // Pairs with the load below: what was unmapped was so before.
        self.fenced.store(true, Release);
    }

    /// Whether the endpoint has been dropped, with everything that was exposed there.
    pub(in crate::verbs) fn is_fenced(&self) -> bool {
        self.fenced.load(Acquire)
    }

    /// The local key for memory that is mapped for this domain.
    #[inline]
    pub(in crate::verbs) fn lkey(&self) -> u32 {
        // SAFETY: Valid by I1. The key is constant.
        unsafe { (*self.pd.as_ptr()).local_dma_lkey }
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: No object of the domain is left, and so no QP: each holds a reference to `self`.
        // `device_ref` still keeps the device. The domain is valid by I1.
        unsafe {
            self.recv_mappings.end();
            bindings::ib_dealloc_pd_user(self.pd.as_ptr(), ptr::null_mut());
        }
    }
}
