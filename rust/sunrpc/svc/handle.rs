// SPDX-License-Identifier: GPL-2.0

//! Handles of an `svc_xprt`, for what outlives the calls of SUNRPC.
//!
//! SUNRPC's own count of references keeps a transport in use; a [`SvcHandle`] counts for the memory
//! alone: handlers that our part waits for when it is dropped can use one until the end. It leads
//! to SUNRPC's count by [`SvcHandle::get`].

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    sync::Refcount,
    types::Opaque, //
};

use crate::bindings;

/// What a transport's memory begins with, whatever its type.
#[repr(C)]
pub(super) struct Header {
    xprt: Opaque<bindings::svc_xprt>,
    /// Handles, and one for the transport itself.
    memory: Refcount,
}

impl Header {
    /// Counts once, for the transport. The C structure is still to be initialised.
    pub(super) fn new() -> Self {
        Self {
            xprt: Opaque::uninit(),
            memory: Refcount::new(1),
        }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        self.xprt.get()
    }
}

/// # Safety
///
/// The caller gives up a counted reference to a header at the start of an allocation from `KBox`.
/// If it is the transport's own, what was behind the header has been dropped.
pub(super) unsafe fn put_memory(header: NonNull<Header>) {
    // SAFETY: Valid, since it is counted.
    if unsafe { header.as_ref() }.memory.dec_and_test() {
        // SAFETY: From `KBox`, and nobody refers to it. The transport's own reference is gone, and
        // what was behind the header with it; this, like the C structure, needs no dropping.
        unsafe { bindings::kfree(header.as_ptr().cast()) };
    }
}

/// A counted reference to a transport's memory, for handlers and for our own part.
///
/// Once SUNRPC has dropped the transport its methods do nothing of consequence.
///
/// # Invariants
///
/// Points to a header at the start of an allocation from `KBox`, whose count includes this handle.
pub(crate) struct SvcHandle(NonNull<Header>);

// SAFETY: What the handle offers may be called from any thread.
unsafe impl Send for SvcHandle {}
// SAFETY: As above.
unsafe impl Sync for SvcHandle {}

impl Clone for SvcHandle {
    fn clone(&self) -> Self {
        // SAFETY: Valid by the type's invariants.
        unsafe { Self::new(self.0) }
    }
}

impl Drop for SvcHandle {
    fn drop(&mut self) {
        // SAFETY: The reference is this handle's, and not the transport's own.
        unsafe { put_memory(self.0) };
    }
}

impl SvcHandle {
    /// # Safety
    ///
    /// `header` is at the start of an allocation from `KBox`, which stays during the call, and its
    /// `memory` is not zero.
    pub(super) unsafe fn new(header: NonNull<Header>) -> Self {
        // SAFETY: By this function's contract.
        unsafe { header.as_ref() }.memory.inc();
        // INVARIANT: Counted.
        Self(header)
    }

    /// Another handle of a transport of this module.
    ///
    /// # Safety
    ///
    /// `xprt` comes from [`SvcXprt::into_raw`](super::SvcXprt::into_raw), and its memory stays
    /// during the call.
    pub(super) unsafe fn of(xprt: *mut bindings::svc_xprt) -> Self {
        // SAFETY: The C structure is at the start of the header, which is valid.
        unsafe { Self::new(NonNull::new_unchecked(xprt.cast())) }
    }

    /// The C structure.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut bindings::svc_xprt {
        // SAFETY: Valid by the type's invariants.
        unsafe { self.0.as_ref() }.raw()
    }

    #[inline]
    fn set(&self, flag: u32) {
        // SAFETY: Flags are atomic.
        unsafe { bindings::set_bit(flag as usize, &raw mut (*self.as_ptr()).xpt_flags) };
    }

    #[inline]
    fn test(&self, flags: usize) -> bool {
        // SAFETY: Flags are atomic.
        unsafe { (&raw const (*self.as_ptr()).xpt_flags).read_volatile() & flags != 0 }
    }

    /// Tells that there is something to receive. [`Self::enqueue`] must follow.
    #[inline]
    pub(crate) fn set_data(&self) {
        // SUNRPC asks next whether there is room to send. A thread that has just made room looks at
        // the flags after that, with a full barrier in between, which pairs with the one here.
        // SAFETY: Flags are atomic.
        unsafe {
            bindings::rpcrdma_set_bit_mb(
                bindings::XPT_DATA as usize,
                &raw mut (*self.as_ptr()).xpt_flags,
            )
        };
    }

    /// Tells that there is a connection to accept. [`Self::enqueue`] must follow.
    #[inline]
    pub(crate) fn set_connection(&self) {
        self.set(bindings::XPT_CONN);
    }

    /// Withdraws [`Self::set_connection`], before one is accepted.
    #[inline]
    pub(crate) fn clear_connection(&self) {
        // SAFETY: Flags are atomic.
        unsafe {
            bindings::clear_bit(
                bindings::XPT_CONN as usize,
                &raw mut (*self.as_ptr()).xpt_flags,
            )
        };
    }

    /// Has a thread look at the transport, if there is something to do. Who closes it does that by
    /// itself: a transport that is closing is left alone. SUNRPC gives up its network namespace
    /// before our part, and its trace events would look at that.
    #[inline]
    pub(crate) fn enqueue(&self) {
        if !self.is_closing() {
            // SAFETY: Initialised. A transport without references is busy for good.
            unsafe { bindings::svc_xprt_enqueue(self.as_ptr()) };
        }
    }

    /// Has a thread close the transport, if nobody does yet.
    pub(crate) fn deferred_close(&self) {
        if !self.is_closing() {
            // SAFETY: As in `enqueue`.
            unsafe { bindings::svc_xprt_deferred_close(self.as_ptr()) };
        }
    }

    /// Whether the transport is about to be closed.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.test(1 << bindings::XPT_CLOSE | 1 << bindings::XPT_DEAD)
    }

    /// Whether an export has admitted the client.
    #[inline]
    pub(crate) fn is_admitted(&self) -> bool {
        self.test(1 << bindings::XPT_PEER_VALID)
    }

    /// Keeps the transport itself for a while, unless SUNRPC has dropped it.
    pub(super) fn get(&self) -> Option<SvcRef<'_>> {
        // SAFETY: The count is part of the memory, and stays zero once it is.
        let got = unsafe { bindings::rpcrdma_svc_xprt_get_unless_zero(self.as_ptr()) };
        // INVARIANT: Counted just now.
        got.then_some(SvcRef(self))
    }
}

/// A counted reference to a transport. Dropping it may free the transport, which sleeps.
///
/// # Invariants
///
/// The transport's own count includes this reference.
pub(super) struct SvcRef<'a>(&'a SvcHandle);

impl Deref for SvcRef<'_> {
    type Target = SvcHandle;

    #[inline]
    fn deref(&self) -> &SvcHandle {
        self.0
    }
}

impl Drop for SvcRef<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants.
        unsafe { bindings::svc_xprt_put(self.as_ptr()) };
    }
}
