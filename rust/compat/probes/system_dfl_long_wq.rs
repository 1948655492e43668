// SPDX-License-Identifier: GPL-2.0

//! Since 7.1: an unbound workqueue for long work.

#![allow(missing_docs, unreachable_pub)]

pub use kernel::bindings::system_dfl_long_wq;
