// SPDX-License-Identifier: GPL-2.0

//! Allocations on the memory reclaim path.
//!
//! Reclaim may wait for this transport: to write dirty pages, to return delegations, or to swap.
//! A thread that restores the transport must not wait for reclaim in turn.
//!
//! C: transport.c, xprt_rdma_enable_swap(), xprt_rdma_disable_swap()

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    bindings,
    lib::{
        memalloc::{
            NoIo,
            NoReclaim, //
        },
        sync::Atomic, //
    },
    sunrpc::xprt_ref::XprtRef, //
};

/// While it exists, allocations of this thread have `GFP_NOIO`, and `PF_MEMALLOC` if a swap file is
/// on the transport.
#[must_use = "the scope ends when this is dropped"]
pub(crate) struct ReclaimScope {
    // Dropped in this order, the reverse of their creation.
    _noreclaim: Option<NoReclaim>,
    _noio: NoIo,
}

impl ReclaimScope {
    /// Begins the scope, for a thread that works for `xprt`.
    pub(super) fn new(xprt: XprtRef<'_>) -> Self {
        let is_swapping = swap_files(xprt).load(Relaxed) != 0;
        let noio = NoIo::begin();
        Self {
            _noreclaim: is_swapping.then(NoReclaim::begin),
            _noio: noio,
        }
    }
}

/// The number of swap files on a transport. SUNRPC reads it, too.
fn swap_files(xprt: XprtRef<'_>) -> &Atomic<i32> {
    // SAFETY: An `XprtRef` keeps the memory of its transport. The word is an `atomic_t`, which C
    // accesses atomically.
    unsafe { Atomic::from_ptr(&raw mut (*xprt.raw()).swapper.counter) }
}

/// `enable_swap`: counts a swap file. SUNRPC and [`ReclaimScope`] read the count when they
/// allocate.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`.
pub(super) unsafe extern "C" fn enable_swap(raw: *mut bindings::rpc_xprt) -> c_int {
    // SAFETY: By this function's contract the transport stays for this call.
    swap_files(unsafe { XprtRef::new(raw) }).add(1, Relaxed);
    0
}

/// `disable_swap`: uncounts a swap file.
///
/// # Safety
///
/// As for [`enable_swap`].
pub(super) unsafe extern "C" fn disable_swap(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport stays for this call.
    let swap_files = swap_files(unsafe { XprtRef::new(raw) });
    let mut count = swap_files.load(Relaxed);
    // SUNRPC did not call `enable_swap` for a transport that was added after the first swap file.
    while count > 0 {
        match swap_files.cmpxchg(count, count - 1, Relaxed) {
            Ok(_) => return,
            Err(other) => count = other,
        }
    }
}
