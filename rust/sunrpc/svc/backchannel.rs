// SPDX-License-Identifier: GPL-2.0

//! Reverse Calls (RFC 8167): the service calls its client back over the connection that the client
//! made.
//!
//! For that SUNRPC wants an `rpc_xprt` beside the `svc_xprt`, connected from the start. It is made
//! when a service has something to call, never connects again, and serves whoever calls over the
//! connection after that.
//!
//! The two may end in either order. The `svc_xprt` counts as a user of the reverse transport until
//! its own last user is gone. The reverse transport keeps no more than the memory of the
//! `svc_xprt`, or neither would ever end; to send a Call it takes a reference for as long as that
//! takes, if there is one to be had. SUNRPC closes the reverse transport when it closes the
//! connection: what waits for a Reply then is woken, and what is sent after that finds the
//! connection closing.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};

use kernel::{
    sync::Arc,
    types::Opaque, //
};

use crate::{
    bindings,
    sunrpc::{
        addr::AddressStrings,
        credits::{
            Credits,
            Windowed, //
        }, //
    }, //
};

use super::handle::SvcHandle;

/// What reverse Calls on a connection are limited to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackchannelLimits {
    /// How many may be outstanding, if the client grants as much.
    pub(crate) calls: u32,
    /// Bytes of a Call.
    pub(crate) bytes: u32,
}

/// `struct rpc_xprt` with what belongs to it; C allocates it and counts references to it.
///
/// # Invariants
///
/// From `setup` until `destroy`, `forward` and `credits` are initialised, and `forward` names the
/// connection that the ops of the transport expect.
#[repr(C)]
pub(super) struct Backchannel {
    raw: Opaque<bindings::rpc_xprt>,
    pub(super) strings: UnsafeCell<AddressStrings>,
    pub(super) timeout: Opaque<bindings::rpc_timeout>,
    pub(super) forward: MaybeUninit<SvcHandle>,
    pub(super) credits: MaybeUninit<Arc<Credits<BackchannelXprt>>>,
}

/// A reverse transport, as its credits know it.
///
/// # Invariants
///
/// The memory of the transport stays until `destroy` has dropped the `Credits` that this is in.
pub(super) struct BackchannelXprt(pub(super) *mut bindings::rpc_xprt);

// SAFETY: What is done with the pointer is possible from any thread, and by the invariants it is
// valid.
unsafe impl Send for BackchannelXprt {}
// SAFETY: As above.
unsafe impl Sync for BackchannelXprt {}

// SAFETY: By the type's invariants.
unsafe impl Windowed for BackchannelXprt {
    fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0
    }

    fn give_up(&self) {
        // SAFETY: A reverse transport, before `destroy` has stopped its credits.
        unsafe { close(self.0) };
    }
}

/// The connection that the transport belongs to.
///
/// # Safety
///
/// `raw` is a `Backchannel`, not destroyed within `'a`.
pub(super) unsafe fn forward<'a>(raw: *mut bindings::rpc_xprt) -> &'a SvcHandle {
    // SAFETY: By this function's contract and the type's invariants.
    unsafe { (*raw.cast::<Backchannel>()).forward.assume_init_ref() }
}

/// The credits of Calls that were given up.
///
/// # Safety
///
/// `raw` is a `Backchannel`, not destroyed within `'a`.
pub(super) unsafe fn credits<'a>(raw: *mut bindings::rpc_xprt) -> &'a Credits<BackchannelXprt> {
    // SAFETY: By this function's contract and the type's invariants.
    unsafe { (*raw.cast::<Backchannel>()).credits.assume_init_ref() }
}

/// Nothing outstanding will be answered: the connection is being closed, or SUNRPC has no use for
/// it any more. Then the client has to make another, for the sake of reverse Calls.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, or by the credits that `destroy` stops.
pub(super) unsafe extern "C" fn close(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe {
        inject_disconnect(raw);
        bindings::xprt_disconnect_done(raw);
    }
}

/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, or by the credits that `destroy` stops.
pub(super) unsafe extern "C" fn inject_disconnect(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe { forward(raw) }.deferred_close();
}
