// SPDX-License-Identifier: GPL-2.0

//! Counted references to the memory of a client's transport.
//!
//! SUNRPC counts references to the transport itself. A connection's handlers and queued work items
//! may run after the last of those is gone, and use an [`XprtHandle`].
//!
//! The C module flushes its work items before it frees a `struct rpcrdma_xprt` instead.
//!
//! C: rpc_rdma.c, rpcrdma_update_cwnd(), rpcrdma_reset_cwnd()

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::sync::Refcount;

use crate::{
    bindings,
    lib::{
        barrier::smp_mb,
        sockaddr::{
            Net,
            SockAddr, //
        }, //
    },
    sunrpc::{
        addr::AddressStrings,
        credits::CreditXprt,
        xprt_base::{
            self,
            XprtBase, //
        },
        xprt_ref::XprtRef, //
    }, //
};

use super::{
    reclaim::ReclaimScope,
    types::Types, //
};

/// The start of a client's transport, whatever its type.
#[repr(C)]
pub(super) struct Header {
    base: XprtBase,
    /// The handles, and one more until `destroy` has run.
    handles: Refcount,
}

impl Header {
    /// Counts the reference that `destroy` puts.
    ///
    /// # Safety
    ///
    /// `this` may be written, and no other thread accesses it.
    pub(super) unsafe fn init(this: *mut Self) {
        // SAFETY: By this function's contract.
        unsafe { (&raw mut (*this).handles).write(Refcount::new(1)) };
    }

    /// The header of a transport.
    ///
    /// # Safety
    ///
    /// `raw` is in a `Header` that [`Self::init`] has initialised, and `handles` is not zero within
    /// `'a`.
    #[inline]
    unsafe fn from_raw<'a>(raw: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: `raw` is the first member. Its memory stays while `handles` is not zero.
        unsafe { &*raw.cast() }
    }

    /// Puts a reference, and frees the memory if it was the last one.
    ///
    /// # Safety
    ///
    /// The caller owns the reference: that of a handle, or that of `destroy`. `setup` has left a
    /// module reference to the transport, and an address text of its own.
    pub(super) unsafe fn put(raw: *mut bindings::rpc_xprt) {
        // SAFETY: The caller's reference keeps `handles` above zero.
        if unsafe { Self::from_raw(raw) }.handles.dec_and_test() {
            // SAFETY: That was the last reference, so this is the last access. The rest by this
            // function's contract.
            unsafe {
                AddressStrings::free_address(raw);
                xprt_base::free(raw);
            }
        }
    }
}

/// A counted reference to the memory of a client's transport. Its methods may be called at any
/// time, even after SUNRPC has destroyed the transport.
///
/// # Invariants
///
/// - I1: Points to the `rpc_xprt` in the [`Header`] of an `Xprt<T>`. `handles` counts this handle,
///   so the memory is not freed before this handle is dropped.
pub(crate) struct XprtHandle<T: Types>(NonNull<bindings::rpc_xprt>, PhantomData<T>);

// SAFETY: The reference count is atomic, and all methods may be called in any thread.
unsafe impl<T: Types> Send for XprtHandle<T> {}
// SAFETY: As for `Send`: all methods may be called in any thread, and at the same time.
unsafe impl<T: Types> Sync for XprtHandle<T> {}

impl<T: Types> Clone for XprtHandle<T> {
    fn clone(&self) -> Self {
        // SAFETY: By I1 it points to a transport of `T`, which this handle keeps.
        unsafe { Self::new(self.0.as_ptr()) }
    }
}

impl<T: Types> Drop for XprtHandle<T> {
    fn drop(&mut self) {
        // SAFETY: By I1 one reference belongs to this handle.
        unsafe { Header::put(self.0.as_ptr()) };
    }
}

impl<T: Types> XprtHandle<T> {
    /// # Safety
    ///
    /// `raw` is in an `Xprt<T>` whose `handles` is not zero.
    pub(super) unsafe fn new(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: By this function's contract.
        unsafe { Header::from_raw(raw) }.handles.inc();
        // SAFETY: By this function's contract `raw` is not NULL.
        // INVARIANT: I1: `handles` was incremented for this handle.
        Self(unsafe { NonNull::new_unchecked(raw) }, PhantomData)
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> XprtRef<'_> {
        // SAFETY: By I1 the structure is initialised, and stays as long as this handle.
        unsafe { XprtRef::new(self.0.as_ptr()) }
    }

    #[inline]
    fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0.as_ptr()
    }

    /// The network namespace of the connections.
    pub(crate) fn net(&self) -> Option<Net> {
        // SAFETY: By I1 the memory is there, and until it is freed it has a reference to the
        // namespace.
        unsafe { Net::from_raw((*self.raw()).xprt_net) }
    }

    /// The address to connect to. It is a whole one if the caller holds the send lock.
    pub(crate) fn peer(&self) -> Option<SockAddr> {
        self.xprt().peer()
    }

    /// The largest number of outstanding RPCs.
    pub(crate) fn slots(&self) -> u32 {
        // SAFETY: By I1 the memory is there. `max_reqs` is constant after `xprt_alloc()`.
        unsafe { (*self.raw()).max_reqs }
    }

    /// The allocation scope for a thread that works for the transport.
    pub(crate) fn reclaim_scope(&self) -> ReclaimScope {
        ReclaimScope::new(self.xprt())
    }

    /// Whether there is still a reference to the transport. Once the last one is put, SUNRPC waits
    /// for the send lock to destroy the transport.
    pub(crate) fn is_referenced(&self) -> bool {
        // SAFETY: By I1 the memory is there. The word is an `atomic_t`, which never changes again
        // after it is zero.
        unsafe { (&raw const (*self.raw()).kref.refcount.refs.counter).read_volatile() != 0 }
    }

    /// Has SUNRPC close the connection. It connects again for the next RPC.
    pub(crate) fn force_disconnect(&self) {
        self.xprt().force_disconnect();
    }

    /// Has the task that holds the send lock, which must be the caller's, wait for
    /// [`Self::write_space`].
    ///
    /// The caller must look for space again afterwards, and call `write_space` if it finds some:
    /// space that was returned before this call woke no task.
    #[cold]
    pub(crate) fn wait_for_space(&self) {
        // The barrier pairs with the one in `write_space`.
        // SAFETY: By I1 the memory is there. The function sets a bit of `state`.
        unsafe {
            bindings::xprt_wait_for_buffer_space(self.raw());
            bindings::rpcrdma_smp_mb_after_atomic();
        }
    }

    /// Wakes the task that waits for space.
    #[inline]
    pub(crate) fn write_space(&self) {
        // `xprt_write_space()` reads without a lock whether a task waits. The space must be visible
        // before that read: a task that the read misses then sees the space. Pairs with the barrier
        // in `wait_for_space`.
        smp_mb();
        self.xprt().write_space();
    }

    /// Sets the congestion window to `credits` outstanding Calls.
    #[inline]
    pub(crate) fn set_window(&self, credits: u32) {
        self.xprt().lock().set_window(credits);
    }

    /// Resets the reconnect delay: a message has arrived, so if this connection is lost the next
    /// attempt may start at once.
    #[inline]
    pub(crate) fn reset_backoff(&self) {
        // SAFETY: By I1 the memory is there. SUNRPC accesses the word without a lock, and single
        // accesses do not tear.
        unsafe {
            let timeout = &raw mut (*self.raw()).reestablish_timeout;
            if timeout.read_volatile() != 0 {
                timeout.write_volatile(0);
            }
        }
    }

    /// Whether a callback service is registered, which takes backchannel Calls.
    #[inline]
    pub(crate) fn has_callback_service(&self) -> bool {
        // SAFETY: By I1 the memory is there. The pointer is not followed: this is a hint, which
        // `xprt_enqueue_bc_request()` checks again under its lock.
        unsafe { !(&raw const (*self.raw()).bc_serv).read_volatile().is_null() }
    }
}

impl<T: Types> CreditXprt for XprtHandle<T> {
    fn xprt(&self) -> XprtRef<'_> {
        Self::xprt(self)
    }

    fn disconnect(&self) {
        self.force_disconnect();
    }
}
