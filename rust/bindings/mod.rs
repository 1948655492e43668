// SPDX-License-Identifier: GPL-2.0

//! The C side: SUNRPC, RDMA verbs, and helpers for macros and inline functions.
//!
//! `generated.rs` is bindgen's output, made by `Kbuild` from `include/bindings.h`. It is layered
//! over `kernel::bindings`: a type that the kernel crate binds is that crate's type here too, so
//! its abstractions (locks, work items, lists) apply to members of SUNRPC's structures. A name that
//! both bind resolves to ours: ours is complete, the kernel crate only needed a name.
//!
//! Only `lib`, `trace`, `sysctl`, `verbs` and `sunrpc` may use this room, and `main.rs`, which
//! checks the layout.
//!
//! | file          | what                                                 |
//! |---------------|------------------------------------------------------|
//! | `layout`      | sizes and offsets on which both compilers must agree |
//! | `helpers.c`   | macros and inline functions of the kernel            |

pub(crate) mod layout;

#[allow(
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks
)]
mod generated {
    pub use kernel::bindings::*;
    use kernel::ffi;
    use pin_init::MaybeZeroable;
    use pin_init::Zeroable;

    type __kernel_ssize_t = isize;
    type __kernel_size_t = usize;

    // SAFETY: The type is a newtype around `S`, so all zeroes are valid for it if they are for `S`.
    unsafe impl<S: Zeroable> Zeroable for __BindgenBitfieldUnit<S> {}

    // SAFETY: The type only marks where a union's member would be.
    unsafe impl<T> Zeroable for __BindgenUnionField<T> {}

    include!("generated.rs");
}

pub(crate) use generated::*;
