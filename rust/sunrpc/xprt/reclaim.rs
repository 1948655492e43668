// SPDX-License-Identifier: GPL-2.0

//! Memory for a transport that others need in order to free memory: dirty pages are written,
//! delegations returned and pages swapped over it. Whoever brings it back to life must not wait for
//! any of these.

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    }, //
};

use crate::{
    bindings,
    lib::memalloc::{
        NoIo,
        NoReclaim, //
    }, //
};

/// While it exists, this thread allocates as with `GFP_NOIO`, and with `PF_MEMALLOC` if pages are
/// swapped over the transport.
#[must_use = "it ends when it is dropped"]
pub(crate) struct Scope {
    // Dropped in this order.
    _noreclaim: Option<NoReclaim>,
    _noio: NoIo,
}

impl Scope {
    /// For a thread that works for this transport.
    ///
    /// # Safety
    ///
    /// The transport's memory is there.
    pub(super) unsafe fn of(raw: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: By this function's contract.
        let swapping = unsafe { swappers(raw) }.load(Relaxed) != 0;
        let noio = NoIo::begin();
        Self {
            _noreclaim: swapping.then(NoReclaim::begin),
            _noio: noio,
        }
    }
}

/// How many swap files are on this transport. SUNRPC looks at it, too.
///
/// # Safety
///
/// The transport's memory is there while the result is used.
unsafe fn swappers<'a>(raw: *mut bindings::rpc_xprt) -> &'a Atomic<i32> {
    // SAFETY: By this function's contract; C uses it as an `atomic_t`.
    unsafe { Atomic::from_ptr(&raw mut (*raw).swapper.counter) }
}

/// Counting is all: SUNRPC and [`Scope`] look at the number when they allocate.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, as is the following.
pub(super) unsafe extern "C" fn enable_swap(raw: *mut bindings::rpc_xprt) -> c_int {
    // SAFETY: By this function's contract.
    unsafe { swappers(raw) }.add(1, Relaxed);
    0
}

/// # Safety
///
/// See [`enable_swap`], of which this takes one back.
pub(super) unsafe extern "C" fn disable_swap(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    let swappers = unsafe { swappers(raw) };
    let mut now = swappers.load(Relaxed);
    // A transport that came after the first swap file has not been told of that one.
    while now > 0 {
        match swappers.cmpxchg(now, now - 1, Relaxed) {
            Ok(_) => return,
            Err(other) => now = other,
        }
    }
}
