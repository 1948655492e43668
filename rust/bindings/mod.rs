// SPDX-License-Identifier: GPL-2.0

//! The C interface: SUNRPC, RDMA verbs, and helpers for macros and inline functions.
//!
//! `generated.rs` is the output of bindgen for `include/bindings.h`, made by `Kbuild`. It is
//! layered over `kernel::bindings`: a type that the kernel crate binds is that crate's type here
//! too, so that its abstractions (locks, work items, lists) apply to members of SUNRPC's
//! structures. A name that both bind is that of `generated.rs`, which has the whole type where the
//! kernel crate has only its name.
//!
//! | file          | what                                                  |
//! |---------------|-------------------------------------------------------|
//! | `layout`      | compares the layout of structures in C and in Rust    |
//! | `helpers.c`   | the kernel's macros and inline functions as functions |

pub(crate) mod layout;

#[allow(
    unknown_lints, // `unnecessary_transmutes` is younger than rustc 1.85.
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

    // SAFETY: The type is a newtype of `S`, for which all zeroes are valid.
    unsafe impl<S: Zeroable> Zeroable for __BindgenBitfieldUnit<S> {}

    // SAFETY: The type has no bytes. It marks a member of a union.
    unsafe impl<T> Zeroable for __BindgenUnionField<T> {}

    include!("generated.rs");
}

pub(crate) use generated::*;

/// The version of the module (`include/version.h`).
pub(crate) const VERSION: &str = match RPCRDMA_MODULE_VERSION.split_last() {
    Some((_nul, text)) => match core::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => panic!(),
    },
    None => panic!(),
};
