// SPDX-License-Identifier: GPL-2.0

//! Synchronization.

pub mod atomic;
mod lock;

pub use lock::Guard;
pub use lock::SpinLock;
