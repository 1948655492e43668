// SPDX-License-Identifier: GPL-2.0

//! The kernel's `pin_init` crate, by the name that it had when it was published.

#![no_std]

pub use pinned_init::*;

use core::mem::MaybeUninit;

/// A value of all zeroes.
pub const fn zeroed<T: Zeroable>() -> T {
    // SAFETY: All zeroes are a valid value, by the contract of the trait.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
