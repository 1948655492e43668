// SPDX-License-Identifier: GPL-2.0

//! Compiles on every kernel: the control of the other probes.

#![allow(missing_docs, unreachable_pub)]

pub use kernel::{
    prelude::Result,
    sync::atomic::Atomic, //
};
