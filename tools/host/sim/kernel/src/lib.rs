// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the kernel crate: what the module takes of it, over one deterministic scheduler.
//!
//! | file          | what                                                   |
//! |---------------|--------------------------------------------------------|
//! | `chance`      | the choices of a run: by a seed, or by a list          |
//! | `world`       | the contexts, sources, timers and time of a run        |
//! | `contexts`    | what contexts of execution do                          |
//! | `scopes`      | what a context must not do for a while                 |
//! | `story`       | the story of a run                                     |
//! | `module_code` | which contexts execute code of the module              |
//! | `sched`       | which step is next                                     |
//! | `lockdep`     | the order of locks, and what may not sleep             |
//! | `alloc_flags` | how to allocate, and how that fails                    |
//! | `error`       | error codes                                            |
//! | `heap`        | memory whose addresses depend on the run alone         |
//! | `memory`      | allocations: their failure, their end, their number    |
//! | `numa`        | allocations on a NUMA node                             |
//! | `kbox`        | `KBox`                                                 |
//! | `kvec`        | `KVec`                                                 |
//! | `arc`         | `Arc`, `ARef`, `Refcount`                              |
//! | `locks`       | spinlocks, mutexes                                     |
//! | `rwsem`       | reader/writer semaphores                               |
//! | `sync`        | condition variables, completions, values set once, RCU |
//! | `atomic`      | atomic variables                                       |
//! | `work`        | work items                                             |
//! | `work_c`      | work items, as C has them                              |
//! | `types`       | `Opaque`, `ForeignOwnable`                             |
//! | `misc`        | time, text, pages, print                               |
//!
//! Each context (an nfsd thread, an rpciod task, a work item, a completion handler) is a coroutine.
//! One runs at a time, and changes only where a context waits, and by chance where it takes or
//! releases a lock or accesses an atomic variable. So the run follows from the seed alone. All
//! accesses are in one order: memory order is what the models in `tools/host/loom` are for.

#![feature(coerce_unsized, unsize, dispatch_from_dyn)]
#![allow(
    clippy::missing_safety_doc,
    clippy::new_without_default,
    clippy::mut_from_ref,
    clippy::len_without_is_empty,
    clippy::should_implement_trait,
    clippy::missing_errors_doc,
    reason = "the interface is the kernel's"
)]

extern crate self as kernel;

mod alloc_flags;
mod arc;
pub mod atomic;
pub mod chance;
pub mod error;
mod heap;
mod kbox;
mod kvec;
pub mod lockdep;
mod locks;
mod macros_impl;
pub mod memory;
mod misc;
mod numa;
pub mod rwsem;
pub mod sched;
pub mod sync;
pub mod types;
#[allow(unreachable_pub, reason = "as the modules of the kernel crate")]
mod work;

pub use misc::{cpu, ffi, fmt, page, print, seq_file, str, time};
pub use work::{abandon_work_items, busy_work_items, workqueue};

/// Macros of macros.
pub mod macros {
    pub use paste::paste;
}

/// Static branches.
pub mod jump_label {
    pub use crate::static_branch_unlikely;
}

/// Allocation.
pub mod alloc {
    pub use crate::alloc_flags::{flags, AllocError, Flags};
    pub use crate::kbox::KBox;
    pub use crate::kvec::{KVVec, KVec};
    pub use crate::numa::{allocator, Allocator, NumaNode};
}

/// The C interface of work items and locks.
pub mod bindings {
    pub use crate::misc::module;
    pub use crate::sync::completions::*;
    pub use crate::sync::spinlock;
    pub use crate::work::c::*;
}

/// The module, as its registrations refer to it.
pub struct ThisModule(());

impl ThisModule {
    /// The only one.
    pub const THIS: &'static Self = &Self(());

    /// The references to it.
    pub fn refs(&self) -> usize {
        // SAFETY: The structure is a static.
        unsafe { (*misc::this_module()).refs.get() }
    }

    /// `try_stop_module()`: whether it can be unloaded now. It has no references then, and gets
    /// none.
    pub fn try_stop(&self) -> bool {
        // SAFETY: The structure is a static.
        let module = unsafe { &*misc::this_module() };
        module.refs.get() == 0 && !module.going.replace(true)
    }

    /// Whether it is being unloaded, or gone.
    pub fn is_going(&self) -> bool {
        // SAFETY: The structure is a static.
        unsafe { (*misc::this_module()).going.get() }
    }

    /// The C structure.
    pub fn as_ptr(&self) -> *mut bindings::module {
        misc::this_module()
    }
}

/// What the module's files import.
pub mod prelude {
    pub use crate::alloc_flags::flags::*;
    pub use crate::error::code::*;
    pub use crate::error::{Error, Result};
    pub use crate::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_ushort, c_void};
    pub use crate::kbox::KBox;
    pub use crate::kvec::{KVVec, KVec};
    pub use crate::misc::CStrExt;
    pub use crate::{pin_init, try_pin_init, ThisModule};
    pub use crate::{pr_debug, pr_err, pr_info, pr_notice, pr_warn};
    pub use core::mem::{align_of, align_of_val, size_of, size_of_val};
    pub use core::pin::Pin;
    pub use pin_init::{pin_data, pinned_drop, Init, PinInit, PinnedDrop, Zeroable};
}
