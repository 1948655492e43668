// SPDX-License-Identifier: GPL-2.0

//! Handles of an `rpc_xprt`, for what outlives the calls of SUNRPC.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        barrier::smp_mb,
        Refcount, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    lib::sockaddr::{
        Net,
        SockAddr, //
    },
    sunrpc::{
        addr::AddressStrings,
        credits::Windowed,
        locks,
        module_ref::ModuleRef, //
    }, //
};

use super::{
    reclaim::Scope,
    types::Types, //
};

/// What the memory of a client's transport begins with, whatever the transport's type.
///
/// `xprt_alloc` allocates it, and the drop of the last handle frees it.
#[repr(C)]
pub(super) struct Header {
    raw: Opaque<bindings::rpc_xprt>,
    /// Handles, and one until `destroy` has run.
    pub(super) handles: Refcount,
    pub(super) strings: UnsafeCell<AddressStrings>,
    pub(super) timeout: Opaque<bindings::rpc_timeout>,
}

impl Header {
    /// The header of a transport.
    ///
    /// # Safety
    ///
    /// `raw` is the start of a `Header` whose `handles` is initialised and not zero within `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: The C structure is the first member; the rest by this function's contract.
        unsafe { &*raw.cast() }
    }
}

/// A counted reference to the memory of an `rpc_xprt`, for what outlives the calls of SUNRPC: the
/// handlers of a connection, and work that was queued.
///
/// What it offers is good at any time, also after SUNRPC has destroyed the transport.
///
/// # Invariants
///
/// Points to the `rpc_xprt` in the [`Header`] of an `Xprt<T>`, one of whose `handles` this is.
pub(crate) struct XprtHandle<T: Types>(NonNull<bindings::rpc_xprt>, PhantomData<T>);

// SAFETY: What a handle offers may be called from any thread.
unsafe impl<T: Types> Send for XprtHandle<T> {}
// SAFETY: As above.
unsafe impl<T: Types> Sync for XprtHandle<T> {}

impl<T: Types> Clone for XprtHandle<T> {
    fn clone(&self) -> Self {
        // SAFETY: The memory is there while a handle is.
        unsafe { Header::from_raw(self.0.as_ptr()) }.handles.inc();
        // INVARIANT: Counted above.
        Self(self.0, PhantomData)
    }
}

impl<T: Types> Drop for XprtHandle<T> {
    fn drop(&mut self) {
        // SAFETY: This is one of the handles.
        unsafe { put_handle(self.0.as_ptr()) };
    }
}

/// # Safety
///
/// The caller gives up one of the transport's handles, or `destroy`'s share.
pub(super) unsafe fn put_handle(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    if unsafe { Header::from_raw(raw) }.handles.dec_and_test() {
        // SAFETY: Nobody refers to the memory any more. `setup` left the module's reference to it.
        unsafe {
            AddressStrings::free_address(raw);
            bindings::xprt_free(raw);
            drop(ModuleRef::of_transport());
        }
    }
}

/// The address that a transport connects to.
///
/// # Safety
///
/// The transport's memory is there.
pub(super) unsafe fn peer_of(raw: *mut bindings::rpc_xprt) -> Option<SockAddr> {
    // SAFETY: By this function's contract; there is room for any address. An administrator may put
    // another address there, through sysfs, and SUNRPC another port, with the send lock or not.
    // Whoever has the send lock sees a whole address; others, as traces, may see a part of each.
    // The copy stays within the member in any case.
    unsafe { SockAddr::from_raw((&raw const (*raw).addr).cast(), size_of::<SockAddr>()) }
}

impl<T: Types> XprtHandle<T> {
    /// # Safety
    ///
    /// `raw` is in an `Xprt<T>` whose `handles` is not zero.
    pub(super) unsafe fn new(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: By this function's contract.
        unsafe { Header::from_raw(raw) }.handles.inc();
        // INVARIANT: Counted above.
        // SAFETY: Not null, by this function's contract.
        Self(unsafe { NonNull::new_unchecked(raw) }, PhantomData)
    }

    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0.as_ptr()
    }

    /// The namespace that connections are made in.
    pub(crate) fn net(&self) -> Option<Net> {
        // SAFETY: The transport has a reference to it until its memory is freed.
        unsafe { Net::from_raw((*self.raw()).xprt_net) }
    }

    /// The address to connect to: a whole one for the send lock's holder.
    pub(crate) fn peer(&self) -> Option<SockAddr> {
        // SAFETY: The memory is there while a handle is.
        unsafe { peer_of(self.raw()) }
    }

    /// How many RPCs may be outstanding at most.
    pub(crate) fn slots(&self) -> u32 {
        // SAFETY: Constant after setup.
        unsafe { (*self.raw()).max_reqs }
    }

    /// For a thread that works for the transport, while it asks for memory.
    pub(crate) fn reclaim_scope(&self) -> Scope {
        // SAFETY: The memory is there while a handle is.
        unsafe { Scope::of(self.raw()) }
    }

    /// Whether SUNRPC, or anybody, still has a reference to the transport. It waits for the send
    /// lock when it has put its last one.
    pub(crate) fn is_wanted(&self) -> bool {
        // SAFETY: The memory is there; a valid word, which never changes again once it is zero.
        unsafe { (&raw const (*self.raw()).kref.refcount.refs.counter).read_volatile() != 0 }
    }

    /// Has SUNRPC close the connection and make another when it needs one.
    pub(crate) fn force_disconnect(&self) {
        // SAFETY: The memory is there; good in any context.
        unsafe { bindings::xprt_force_disconnect(self.raw()) };
    }

    /// Has the send lock's holder, which must be the caller's task, wait for
    /// [`Self::write_space`]. Look again for space after this, and tell of it: it may have come in
    /// between.
    #[cold]
    pub(crate) fn wait_for_space(&self) {
        // SAFETY: The memory is there.
        unsafe {
            bindings::xprt_wait_for_buffer_space(self.raw());
            // Pairs with the barrier in `write_space`.
            bindings::rpcrdma_smp_mb_after_atomic();
        }
    }

    /// Tells the task that waits for it that there is space again.
    #[inline]
    pub(crate) fn write_space(&self) {
        // The space is there before SUNRPC is asked whether anybody waits, which it looks at
        // without a lock: a task that has begun to wait and is not seen here sees the space. Pairs
        // with the barrier in `wait_for_space`.
        smp_mb();
        // SAFETY: The memory is there; good in any context.
        unsafe { bindings::xprt_write_space(self.raw()) };
    }

    /// Lets `credits` Calls be outstanding.
    #[inline]
    pub(crate) fn set_window(&self, credits: u32) {
        // SAFETY: The memory is there.
        unsafe { locks::transport(self.raw()) }.set_window(credits);
    }

    /// The connection is good for something: if it is lost, the next attempt need not wait.
    #[inline]
    pub(crate) fn reset_backoff(&self) {
        let raw = self.raw();
        // SAFETY: The memory is there. SUNRPC reads and writes this word without a lock; one access
        // each way cannot tear.
        unsafe {
            let timeout = &raw mut (*raw).reestablish_timeout;
            if timeout.read_volatile() != 0 {
                timeout.write_volatile(0);
            }
        }
    }

    /// Whether SUNRPC has heard of a callback service to take reverse Calls.
    #[inline]
    pub(crate) fn has_callback_service(&self) -> bool {
        // SAFETY: The memory is there; a hint, which `xprt_enqueue_bc_request` checks under its
        // lock.
        unsafe { !(&raw const (*self.raw()).bc_serv).read_volatile().is_null() }
    }
}

// SAFETY: A handle keeps the memory of its transport.
unsafe impl<T: Types> Windowed for XprtHandle<T> {
    fn raw(&self) -> *mut bindings::rpc_xprt {
        Self::raw(self)
    }

    fn give_up(&self) {
        self.force_disconnect();
    }
}
