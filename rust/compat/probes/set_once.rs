// SPDX-License-Identifier: GPL-2.0

//! Since 6.19: `SetOnce`.

#![allow(missing_docs, unreachable_pub)]

pub use kernel::sync::SetOnce;
