// SPDX-License-Identifier: GPL-2.0

//! What older kernels lack.
//!
//! Each item is the kernel's if the kernel has it, and a replacement otherwise. `Kbuild` probes the
//! kernel: a flag `rpcrdma_has_*` says that an item exists. This room uses the flags, and so does
//! the choice between variants of a file; `Documentation/kernels.rst` lists both.
//!
//! | file       | what                                                  | missing in |
//! |------------|-------------------------------------------------------|------------|
//! | `atomic`   | atomics of flags and pointers, `fetch_sub()`          | 6.18, 6.19 |
//! | `init`     | an initializer that is built when it runs             | 6.18       |
//! | `sunrpc`   | functions of SUNRPC                                   | 6.18, 6.19 |

#[cfg(not(rpcrdma_has_atomic))]
#[cfg_attr(
    all(CONFIG_X86_64, not(any(CONFIG_KASAN, CONFIG_KCSAN))),
    allow(dead_code, reason = "`lib::atomic_x86` has most of the operations")
)]
mod atomic;
mod init;
pub(crate) mod sunrpc;

/// The workqueue for long work items, unbound if the kernel has an unbound one.
#[inline]
pub(crate) fn long_queue() -> *mut crate::bindings::workqueue_struct {
    #[cfg(rpcrdma_has_system_dfl_long_wq)]
    // SAFETY: The kernel sets this variable at boot and never changes it.
    let queue = unsafe { crate::bindings::system_dfl_long_wq };
    #[cfg(not(rpcrdma_has_system_dfl_long_wq))]
    // SAFETY: As above.
    let queue = unsafe { crate::bindings::system_long_wq };
    queue
}

pub(crate) mod sync {
    //! Atomic variables.

    #[cfg(not(rpcrdma_has_atomic))]
    pub(crate) use super::atomic::Atomic;
    #[cfg(all(CONFIG_64BIT, not(rpcrdma_has_atomic)))]
    pub(crate) use super::atomic::Value as AtomicType;
    #[cfg(rpcrdma_has_atomic)]
    pub(crate) use kernel::sync::atomic::Atomic;
    #[cfg(all(CONFIG_64BIT, rpcrdma_has_atomic))]
    pub(crate) use kernel::sync::atomic::AtomicType;
}

pub(crate) use init::{
    pin_init_scope,
    write_pin_init, //
};
