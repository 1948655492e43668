// SPDX-License-Identifier: GPL-2.0

//! Since 6.19: `pin_init_scope()`.

#![allow(missing_docs, unreachable_pub)]

pub use pin_init::pin_init_scope;
