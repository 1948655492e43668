// SPDX-License-Identifier: GPL-2.0

//! The Call that an rkey was last given out for.
//!
//! A server may invalidate an rkey of a Call that no task waits for any more: its Reply was on the
//! way when the RPC was abandoned. That is harmless, as the rkey is invalid or about to be. A
//! server that invalidates an rkey that was not given out for that Call may have taken the memory
//! of another RPC.

use kernel::sync::atomic::ordering::Relaxed;

use crate::lib::sync::Atomic;

/// The XID of the Call that an MR was last registered for, and the rkey that the MR had then.
///
/// The receive worker reads this while the sender may be mapping the MR anew.
pub(super) struct RkeyOwner(Atomic<u64>);

impl RkeyOwner {
    /// For no Call: no rkey is zero.
    pub(super) fn none() -> Self {
        Self(Atomic::new(0))
    }

    /// Notes that `handle` is given out for the Call `xid`.
    #[inline]
    pub(super) fn note(&self, xid: u32, handle: u32) {
        self.0.store(pair(xid, handle), Relaxed);
    }

    pub(super) fn is(&self, xid: u32, handle: u32) -> bool {
        self.0.load(Relaxed) == pair(xid, handle)
    }
}

#[inline]
fn pair(xid: u32, handle: u32) -> u64 {
    u64::from(xid) << 32 | u64::from(handle)
}
