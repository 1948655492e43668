// SPDX-License-Identifier: GPL-2.0

//! Synchronization.

mod arc;
pub mod atomic;
mod completion;
mod lock;

pub use arc::Arc;
pub use arc::UniqueArc;
pub use completion::Completion;
pub use lock::Guard;
pub use lock::SpinLock;
