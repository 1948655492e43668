// SPDX-License-Identifier: GPL-2.0

//! Since 7.1: `write_pin_init()` of memory that is never freed.

#![allow(missing_docs, unreachable_pub)]

use core::mem::MaybeUninit;

use pin_init::{
    InPlaceWrite,
    PinInit, //
};

pub fn probe(slot: &'static mut MaybeUninit<u32>, init: impl PinInit<u32>) -> bool {
    slot.write_pin_init(init).is_ok()
}
