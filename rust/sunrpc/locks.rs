// SPDX-License-Identifier: GPL-2.0

//! SUNRPC's locks of a transport, as guards.

use kernel::sync::{
    lock::{
        spinlock::SpinLockBackend,
        Lock, //
    },
    SpinLockGuard, //
};

use crate::bindings;

/// Takes `queue_lock`, which guards the requests that wait to be sent, and those that wait for a
/// Reply.
///
/// # Safety
///
/// The memory of the transport is there for `'a`.
#[inline]
pub(super) unsafe fn queue<'a>(raw: *mut bindings::rpc_xprt) -> SpinLockGuard<'a, ()> {
    // SAFETY: By this function's contract; SUNRPC has initialised the lock.
    unsafe { Lock::<(), SpinLockBackend>::from_raw(&raw mut (*raw).queue_lock) }.lock()
}

/// A transport whose `transport_lock` is held, which guards its congestion window and its timeouts.
///
/// # Invariants
///
/// The memory of the transport is there for `'a`.
pub(super) struct LockedTransport<'a> {
    raw: *mut bindings::rpc_xprt,
    _guard: SpinLockGuard<'a, ()>,
}

/// Takes `transport_lock`.
///
/// # Safety
///
/// The memory of the transport is there for `'a`.
#[inline]
pub(super) unsafe fn transport<'a>(raw: *mut bindings::rpc_xprt) -> LockedTransport<'a> {
    // SAFETY: By this function's contract; SUNRPC has initialised the lock.
    let lock = unsafe { Lock::<(), SpinLockBackend>::from_raw(&raw mut (*raw).transport_lock) };
    // INVARIANT: By this function's contract.
    LockedTransport {
        raw,
        _guard: lock.lock(),
    }
}

impl LockedTransport<'_> {
    /// Lets `calls` Calls be outstanding.
    #[inline]
    pub(super) fn set_window(&self, calls: u32) {
        // SAFETY: The memory is there, by the type's invariants, and the lock is held.
        unsafe { (*self.raw).cwnd = (calls as usize) << bindings::RPC_CWNDSHIFT };
    }
}
