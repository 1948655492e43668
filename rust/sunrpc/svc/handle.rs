// SPDX-License-Identifier: GPL-2.0

//! Counted references to the memory of a server's transport.
//!
//! SUNRPC counts references to the transport itself (`xpt_ref`), and frees the private part with
//! the last of them. The handlers of a connection run until the drop of the private part has waited
//! for them, and use an [`XprtHandle`]. [`XprtHandle::get`] takes one of SUNRPC's references.
//!
//! In the C module, the handlers use the `svc_xprt` itself.
//!
//! C: svc_rdma_transport.c, svc_rdma_xprt_deferred_close()

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Refcount,
    types::Opaque, //
};

use crate::bindings;

/// The start of a server's transport, whatever its type.
#[repr(C)]
pub(super) struct Header {
    xprt: Opaque<bindings::svc_xprt>,
    /// The handles, and one more until `xpo_free` has run.
    handles: Refcount,
}

impl Header {
    /// A header that counts the reference that `xpo_free` puts. The C structure is not initialised.
    pub(super) fn new() -> Self {
        Self {
            xprt: Opaque::uninit(),
            handles: Refcount::new(1),
        }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        self.xprt.get()
    }

    /// Puts a reference, and frees the memory if it was the last one.
    ///
    /// # Safety
    ///
    /// `header` is at the start of a `KBox` allocation. The caller owns the reference: that of a
    /// handle, or that of `xpo_free`, which has dropped what is behind the header.
    pub(super) unsafe fn put(header: NonNull<Self>) {
        // SAFETY: The caller's reference keeps the memory.
        if unsafe { header.as_ref() }.handles.dec_and_test() {
            // SAFETY: That was the last reference, so `xpo_free` has put its own. The memory comes
            // from `KBox`, and what is left in it needs no drop.
            unsafe { bindings::kfree(header.as_ptr().cast()) };
        }
    }
}

/// A counted reference to the memory of a server's transport. Its methods may be called at any
/// time. They have no effect once SUNRPC has freed the transport.
///
/// # Invariants
///
/// - I1: Points to a [`Header`] at the start of a `KBox` allocation, whose C structure was
///   initialised by `svc_xprt_init()`. `handles` counts this handle, so the memory is not freed
///   before this handle is dropped.
pub(crate) struct XprtHandle(NonNull<Header>);

// SAFETY: The reference count is atomic, and all methods may be called in any thread.
unsafe impl Send for XprtHandle {}
// SAFETY: As for `Send`: all methods may be called in any thread, and at the same time.
unsafe impl Sync for XprtHandle {}

impl Clone for XprtHandle {
    fn clone(&self) -> Self {
        // SAFETY: By I1 it is the header of a transport, which this handle keeps.
        unsafe { Self::new(self.0) }
    }
}

impl Drop for XprtHandle {
    fn drop(&mut self) {
        // SAFETY: By I1 one reference belongs to this handle.
        unsafe { Header::put(self.0) };
    }
}

impl XprtHandle {
    /// # Safety
    ///
    /// `header` satisfies I1, but for the count, which is not zero during this call.
    pub(super) unsafe fn new(header: NonNull<Header>) -> Self {
        // SAFETY: By this function's contract the header is valid.
        unsafe { header.as_ref() }.handles.inc();
        // INVARIANT: I1: `handles` was incremented for this handle.
        Self(header)
    }

    /// A handle of a transport of this module.
    ///
    /// # Safety
    ///
    /// `xprt` comes from [`SvcXprt::into_raw`](super::SvcXprt::into_raw), and its memory is not
    /// freed during this call.
    pub(super) unsafe fn from_raw(xprt: *mut bindings::svc_xprt) -> Self {
        // SAFETY: By this function's contract the C structure is the first member of a header that
        // satisfies I1.
        unsafe { Self::new(NonNull::new_unchecked(xprt.cast())) }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::svc_xprt {
        // SAFETY: By I1 the header is valid.
        unsafe { self.0.as_ref() }.raw()
    }

    /// The word with the `XPT_*` flags, which all threads change atomically.
    #[inline]
    fn flags(&self) -> *mut c_ulong {
        // SAFETY: By I1 the C structure is there.
        unsafe { &raw mut (*self.raw()).xpt_flags }
    }

    /// Whether any of `flags` is set.
    #[inline]
    fn test(&self, flags: usize) -> bool {
        // SAFETY: By I1 the word is there.
        unsafe { self.flags().read_volatile() & flags != 0 }
    }

    /// Tells that there is something to receive. The caller must call [`Self::enqueue`] next.
    #[inline]
    pub(crate) fn set_data(&self) {
        // A full barrier follows, for SUNRPC asks next whether there is space to send. A thread
        // that has returned space reads the flags after that, with a barrier that pairs with this.
        // SAFETY: By I1 the word is there.
        unsafe { bindings::rpcrdma_set_bit_mb(bindings::XPT_DATA as usize, self.flags()) };
    }

    /// Tells that there is a connection to accept. The caller must call [`Self::enqueue`] next.
    #[inline]
    pub(crate) fn set_connection(&self) {
        // SAFETY: By I1 the word is there.
        unsafe { bindings::set_bit(bindings::XPT_CONN as usize, self.flags()) };
    }

    /// Undoes [`Self::set_connection`], before a connection is accepted.
    #[inline]
    pub(crate) fn clear_connection(&self) {
        // SAFETY: By I1 the word is there.
        unsafe { bindings::clear_bit(bindings::XPT_CONN as usize, self.flags()) };
    }

    /// Wakes an nfsd thread for the transport, if there is something to do.
    ///
    /// Does nothing for a closing transport, which the closing thread has enqueued. SUNRPC puts its
    /// network namespace before it frees the private part, and its trace events would read that.
    #[inline]
    pub(crate) fn enqueue(&self) {
        if !self.is_closing() {
            // SAFETY: By I1 the C structure is initialised. A transport without references stays
            // busy, so the function does not put it into a queue.
            unsafe { bindings::svc_xprt_enqueue(self.raw()) };
        }
    }

    /// Has an nfsd thread close the transport, unless one does already.
    pub(crate) fn deferred_close(&self) {
        if !self.is_closing() {
            // SAFETY: As in `enqueue`.
            unsafe { bindings::svc_xprt_deferred_close(self.raw()) };
        }
    }

    /// Whether the transport is closed, or about to be.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.test(1 << bindings::XPT_CLOSE | 1 << bindings::XPT_DEAD)
    }

    /// Whether an export has accepted the client (`XPT_PEER_VALID`).
    #[inline]
    pub(crate) fn is_peer_valid(&self) -> bool {
        self.test(1 << bindings::XPT_PEER_VALID)
    }

    /// Takes a reference to the transport itself; `None` if SUNRPC has freed the transport.
    pub(super) fn get(&self) -> Option<XprtRef<'_>> {
        // SAFETY: By I1 the count is there. It never leaves zero.
        let got = unsafe { bindings::rpcrdma_svc_xprt_get_unless_zero(self.raw()) };
        // INVARIANT: I1: counted above.
        got.then_some(XprtRef(self))
    }
}

/// A counted reference to a transport. Dropping the last one frees the transport, which sleeps.
///
/// # Invariants
///
/// - I1: `xpt_ref` counts this reference.
pub(super) struct XprtRef<'a>(&'a XprtHandle);

impl Deref for XprtRef<'_> {
    type Target = XprtHandle;

    #[inline]
    fn deref(&self) -> &XprtHandle {
        self.0
    }
}

impl Drop for XprtRef<'_> {
    fn drop(&mut self) {
        // SAFETY: By I1 one reference belongs to this value.
        unsafe { bindings::svc_xprt_put(self.raw()) };
    }
}
