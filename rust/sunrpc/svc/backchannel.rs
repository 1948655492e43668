// SPDX-License-Identifier: GPL-2.0

//! The transport of a connection's backchannel Calls (RFC 8167).
//!
//! SUNRPC sends backchannel Calls on an `rpc_xprt` beside the connection's `svc_xprt`. This
//! backchannel transport is created connected, when nfsd first calls its client, and never connects
//! again. Later nfsd clients on the same connection share it.
//!
//! The two may end in either order. The `svc_xprt` has a reference to the backchannel transport,
//! which it puts when it is freed. The backchannel transport keeps only the memory of the
//! `svc_xprt`, since mutual references would never be put. While it sends a Call, it holds a
//! reference to the `svc_xprt`, if SUNRPC has not freed that yet. SUNRPC disconnects the
//! backchannel transport when it closes the connection: that wakes the tasks that wait for a Reply,
//! and later Calls find the connection closing.
//!
//! C: svc_rdma_backchannel.c, xprt_rdma_bc_close()

use core::mem::MaybeUninit;

use kernel::sync::Arc;

use crate::{
    bindings,
    lib::{
        close_reason::CloseReason,
        sync::Atomic, //
    },
    sunrpc::{
        credits::{
            CreditXprt,
            Credits, //
        },
        xprt_base::{
            WithBase,
            XprtBase, //
        },
        xprt_ref::XprtRef, //
    }, //
};

use super::handle::XprtHandle;

/// The limits of a connection's backchannel Calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackchannelLimits {
    /// The largest number of outstanding Calls, if the client grants as many.
    pub(crate) calls: u32,
    /// The largest size of a Call, in bytes.
    pub(crate) bytes: u32,
}

/// `struct rpc_xprt` with the private part. C allocates it and counts references to it.
#[repr(C)]
pub(super) struct Backchannel {
    base: XprtBase,
    private: MaybeUninit<Private>,
}

/// The private part of a backchannel transport, from `setup` to `destroy`.
///
/// # Invariants
///
/// - I1: `connection` is of the type that the operations of the transport expect.
pub(super) struct Private {
    /// The connection.
    pub(super) connection: XprtHandle,
    /// The credits of Calls whose RPC ended before their Reply.
    pub(super) credits: Arc<Credits<BackchannelXprt>>,
    /// The number of the message that has set the window. Accessed with `transport_lock`.
    pub(super) granted_by: Atomic<u64>,
}

// SAFETY: A `Backchannel` is `repr(C)`, and starts with an `XprtBase`.
unsafe impl WithBase for Backchannel {}

impl Backchannel {
    /// Initialises the private part.
    ///
    /// # Safety
    ///
    /// `this` may be written, and no other thread accesses it. `private` satisfies I1.
    pub(super) unsafe fn init(this: *mut Self, private: Private) {
        // SAFETY: By this function's contract.
        unsafe { (&raw mut (*this).private).write(MaybeUninit::new(private)) };
    }

    /// Moves the private part out, for `destroy`.
    ///
    /// # Safety
    ///
    /// As for [`Private::from_raw`]; called once, and no other thread uses the transport.
    pub(super) unsafe fn take(raw: *mut bindings::rpc_xprt) -> Private {
        // SAFETY: By this function's contract it is initialised, and not used any more.
        unsafe { (*raw.cast::<Self>()).private.assume_init_read() }
    }
}

impl Private {
    /// The private part of an `rpc_xprt`.
    ///
    /// # Safety
    ///
    /// `raw` is in a [`Backchannel`] on which `init` was called, and `take` is not called within
    /// `'a`.
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: The C structure is at the start of the first member; the rest by this function's
        // contract.
        unsafe { (*raw.cast::<Backchannel>()).private.assume_init_ref() }
    }

    /// Closes the connection, and wakes the tasks that wait for a Reply.
    pub(super) fn close(&self) {
        self.connection
            .closed()
            .note(CloseReason::BackchannelClosed);
        self.credits.disconnect();
    }

    /// The pointer of the connection to its backchannel transport.
    pub(super) fn link(&self) -> &Atomic<*mut bindings::rpc_xprt> {
        self.connection.xprt().bc_xprt()
    }
}

/// A backchannel transport, for its [`Credits`].
///
/// # Invariants
///
/// - I1: Points to a [`Backchannel`]. `destroy` drops the credits that own this value before it
///   frees the memory.
pub(super) struct BackchannelXprt {
    raw: *mut bindings::rpc_xprt,
    connection: XprtHandle,
}

impl BackchannelXprt {
    /// # Safety
    ///
    /// I1 holds.
    pub(super) unsafe fn new(raw: *mut bindings::rpc_xprt, connection: XprtHandle) -> Self {
        // INVARIANT: I1: by this function's contract.
        Self { raw, connection }
    }
}

// SAFETY: The methods may be called in any thread.
unsafe impl Send for BackchannelXprt {}
// SAFETY: The methods may be called in any thread, and at the same time.
unsafe impl Sync for BackchannelXprt {}

impl CreditXprt for BackchannelXprt {
    fn xprt(&self) -> XprtRef<'_> {
        // SAFETY: By I1 the memory is not freed while this value exists.
        unsafe { XprtRef::new(self.raw) }
    }

    fn disconnect(&self) {
        self.connection.closed().note(CloseReason::CreditsOverdue);
        self.connection.deferred_close();
        self.xprt().disconnect_done();
    }
}

/// `close`: closes the connection, since SUNRPC has no more use for the transport or got no Reply.
/// For more backchannel Calls the client must connect again. No outstanding Call will be answered.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`.
pub(super) unsafe extern "C" fn close(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport is alive.
    unsafe { Private::from_raw(raw) }.close();
}

/// `inject_disconnect`: closes the connection.
///
/// # Safety
///
/// As for [`close`].
pub(super) unsafe extern "C" fn inject_disconnect(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport is alive.
    let private = unsafe { Private::from_raw(raw) };
    private.connection.closed().note(CloseReason::Injected);
    private.connection.deferred_close();
}
