// SPDX-License-Identifier: GPL-2.0

//! `rust/engine` and `rust/wire` of the module, compiled on the build host.

#![no_std]

#[path = "../../../../rust/engine/mod.rs"]
pub mod engine;
#[path = "../../../../rust/wire/mod.rs"]
pub mod wire;

#[cfg(test)]
extern crate std;
