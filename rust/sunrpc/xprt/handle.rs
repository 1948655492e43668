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

use kernel::sync::{
    aref::{
        ARef,
        AlwaysRefCounted, //
    },
    Refcount, //
};

use crate::{
    bindings,
    lib::{
        barrier::smp_mb,
        close_reason::{
            CloseReason,
            Closed, //
        },
        sockaddr::{
            Net,
            SockAddr, //
        }, //
    },
    sunrpc::{
        addr::AddressStrings,
        c_ref::read_once,
        credits::CreditXprt,
        xprt_base::{
            self,
            XprtBase, //
        },
        xprt_ref::XprtRef, //
    }, //
};

use super::{
    last_answer::LastAnswer,
    reclaim::ReclaimScope,
    types::Types, //
};

/// The start of a client's transport, whatever its type.
#[repr(C)]
pub(super) struct Header {
    base: XprtBase,
    /// The handles, and one more until `destroy` has run.
    handles: Refcount,
    last_answer: LastAnswer,
    /// Why this end has SUNRPC close the connection.
    closed: Closed,
}

impl Header {
    /// Counts the reference that `destroy` puts, by [`AlwaysRefCounted::dec_ref`].
    ///
    /// # Safety
    ///
    /// `this` may be written, and no other thread accesses it.
    pub(super) unsafe fn init(this: *mut Self) {
        // SAFETY: By this function's contract.
        unsafe {
            (&raw mut (*this).handles).write(Refcount::new(1));
            (&raw mut (*this).last_answer).write(LastAnswer::new());
            (&raw mut (*this).closed).write(Closed::new());
        }
    }

    /// The Call that the peer has answered last.
    ///
    /// # Safety
    ///
    /// `xprt` is a client's transport of this module.
    #[inline]
    pub(super) unsafe fn last_answer(xprt: XprtRef<'_>) -> &LastAnswer {
        // SAFETY: By this function's contract the structure is the first member of a header, which
        // stays as long as the transport.
        unsafe { &(*xprt.raw().cast::<Self>()).last_answer }
    }

    /// Why this end makes SUNRPC close the connection. The end of the connection takes the reason.
    ///
    /// # Safety
    ///
    /// As for [`Self::last_answer`].
    pub(super) unsafe fn closed(xprt: XprtRef<'_>) -> &Closed {
        // SAFETY: As in `last_answer`.
        unsafe { &(*xprt.raw().cast::<Self>()).closed }
    }
}

// SAFETY: The reference count is atomic. Any thread may use the `rpc_xprt` and free the memory.
unsafe impl Send for Header {}
// SAFETY: As for `Send`. Shared references give no access to anything else in the base.
unsafe impl Sync for Header {}

// SAFETY: A header is part of memory from `xprt_alloc()`, and is not freed while `handles` is not
// zero. `Xprt::init` is the only function that initialises one, and counts a reference first.
unsafe impl AlwaysRefCounted for Header {
    fn inc_ref(&self) {
        self.handles.inc();
    }

    unsafe fn dec_ref(header: NonNull<Self>) {
        // SAFETY: The caller's reference keeps `handles` above zero.
        if unsafe { header.as_ref() }.handles.dec_and_test() {
            let raw = header.as_ptr().cast();
            // SAFETY: That was the last reference, so this is the last access. `setup` has left a
            // module reference to the transport, and an address text of its own, before it called
            // `init`.
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
/// - I1: The header is that of an `Xprt<T>`.
pub(crate) struct XprtHandle<T: Types>(ARef<Header>, PhantomData<T>);

impl<T: Types> Clone for XprtHandle<T> {
    fn clone(&self) -> Self {
        // INVARIANT: I1: by I1 of `self`.
        Self(self.0.clone(), PhantomData)
    }
}

impl<T: Types> XprtHandle<T> {
    /// # Safety
    ///
    /// `raw` is in an `Xprt<T>` whose `handles` is not zero.
    pub(super) unsafe fn new(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: By this function's contract `raw` is the first member of a header.
        let header = unsafe { &*raw.cast::<Header>() };
        // INVARIANT: I1: by this function's contract.
        Self(header.into(), PhantomData)
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> XprtRef<'_> {
        // SAFETY: By I1 the structure is initialised, and stays as long as this handle.
        unsafe { XprtRef::new(self.0.base.raw()) }
    }

    /// The network namespace of the connections.
    pub(crate) fn net(&self) -> Option<Net> {
        let net = read_once!(self.xprt(), xprt_net);
        // SAFETY: This handle keeps the memory, which has a reference to the namespace.
        unsafe { Net::from_raw(net) }
    }

    /// The address to connect to. The read may tear unless the caller holds the send lock.
    pub(crate) fn peer(&self) -> Option<SockAddr> {
        self.xprt().peer()
    }

    /// The largest number of outstanding RPCs.
    pub(crate) fn slots(&self) -> u32 {
        read_once!(self.xprt(), max_reqs)
    }

    /// The allocation scope for a thread that works for the transport.
    pub(crate) fn reclaim_scope(&self) -> ReclaimScope {
        ReclaimScope::new(self.xprt())
    }

    /// Whether there is still a reference to the transport. Once the last one is put, SUNRPC waits
    /// for the send lock to destroy the transport.
    pub(crate) fn is_referenced(&self) -> bool {
        // Once zero, the count never changes again.
        read_once!(self.xprt(), kref.refcount.refs.counter) != 0
    }

    /// Makes SUNRPC close the connection. SUNRPC connects again for the next RPC.
    pub(crate) fn force_disconnect(&self) {
        self.xprt().force_disconnect();
    }

    /// Makes SUNRPC close the connection, for this reason.
    pub(crate) fn disconnect_for(&self, reason: CloseReason) {
        self.0.closed.note(reason);
        self.force_disconnect();
    }

    /// Makes the task that holds the send lock, which must be the caller's, wait for
    /// [`Self::write_space`].
    ///
    /// The caller must look for space again afterwards, and call `write_space` if it finds some:
    /// space that was returned before this call woke no task.
    #[cold]
    pub(crate) fn wait_for_space(&self) {
        // The barrier pairs with the one in `write_space`.
        // SAFETY: This handle keeps the memory. The function sets a bit of `state`.
        unsafe {
            bindings::xprt_wait_for_buffer_space(self.xprt().raw());
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

    /// Whether Calls are outstanding, which hold credits.
    pub(crate) fn has_outstanding_calls(&self) -> bool {
        self.xprt().lock().outstanding() != 0
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
        if read_once!(self.xprt(), reestablish_timeout) != 0 {
            let raw = self.xprt().raw();
            // SAFETY: This handle keeps the memory. SUNRPC accesses the word without a lock, and
            // single accesses do not tear.
            unsafe { (&raw mut (*raw).reestablish_timeout).write_volatile(0) };
        }
    }

    /// Whether a callback service is registered, which takes backchannel Calls.
    #[inline]
    pub(crate) fn has_callback_service(&self) -> bool {
        // The pointer is not followed: this is a hint, which `xprt_enqueue_bc_request()` checks
        // again under its lock.
        !read_once!(self.xprt(), bc_serv).is_null()
    }
}

impl<T: Types> CreditXprt for XprtHandle<T> {
    fn xprt(&self) -> XprtRef<'_> {
        Self::xprt(self)
    }

    fn disconnect(&self) {
        self.disconnect_for(CloseReason::CreditsOverdue);
    }
}
