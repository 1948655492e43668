// SPDX-License-Identifier: GPL-2.0

//! Devices that refuse every LOCAL_INV.
//!
//! hns reports `IB_DEVICE_MEM_MGT_EXTENSIONS`, but fails the post of a LOCAL_INV with `-EINVAL`
//! (Documentation/upstream/drivers.rst). No attribute of a device shows that.

use kernel::sync::atomic::Relaxed;

use crate::lib::sync::Atomic;

/// Connections that see their first LOCAL_INV refused before the device is taken for one that
/// refuses all. A device that is taken for one by mistake is of no use until the device is removed.
const REFUSALS: u32 = 2;

/// The LOCAL_INVs that a device has accepted and refused.
pub(super) struct DeviceInvs {
    accepted: Atomic<bool>,
    /// Connections on which the device has refused a LOCAL_INV, and had accepted none.
    refusals: Atomic<u32>,
}

impl DeviceInvs {
    /// None.
    pub(super) fn new() -> Self {
        Self {
            accepted: Atomic::new(false),
            refusals: Atomic::new(0),
        }
    }

    /// Returns whether the device refuses every LOCAL_INV, as far as is known.
    pub(super) fn refuses_all(&self) -> bool {
        !self.accepted.load(Relaxed) && self.refusals.load(Relaxed) >= REFUSALS
    }
}

/// The LOCAL_INVs of one connection.
pub(in crate::verbs) struct ConnectionInvs {
    accepted: Atomic<bool>,
    refused: Atomic<bool>,
}

impl ConnectionInvs {
    /// None.
    pub(in crate::verbs) fn new() -> Self {
        Self {
            accepted: Atomic::new(false),
            refused: Atomic::new(false),
        }
    }

    /// `device` has accepted LOCAL_INVs of this connection.
    #[inline]
    pub(super) fn accept(&self, device: &DeviceInvs) {
        if !self.accepted.load(Relaxed) {
            self.accepted.store(true, Relaxed);
            device.accepted.store(true, Relaxed);
        }
    }

    /// `device` has refused a LOCAL_INV of this connection, whose QP could send.
    #[cold]
    pub(super) fn refuse(&self, device: &DeviceInvs) {
        if !self.accepted.load(Relaxed) && !self.refused.xchg(true, Relaxed) {
            device.refusals.fetch_add(1, Relaxed);
        }
    }
}
