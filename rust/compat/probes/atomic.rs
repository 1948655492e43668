// SPDX-License-Identifier: GPL-2.0

//! Since 7.1: atomics of all types that the module uses, and `fetch_sub()`.

#![allow(missing_docs, unreachable_pub)]

use kernel::sync::atomic::{
    ordering::Full,
    Atomic, //
};

pub fn probe(flag: &Atomic<bool>, pointer: &Atomic<*mut u8>, number: &Atomic<u32>) -> bool {
    number.fetch_sub(1, Full);
    pointer.xchg(core::ptr::null_mut(), Full);
    flag.xchg(false, Full)
}
