// SPDX-License-Identifier: GPL-2.0

//! Since 7.1: `SetOnce` that threads share. That of 6.19 is not `Sync`.

#![allow(missing_docs, unreachable_pub)]

use kernel::sync::SetOnce;

pub static SHARED: SetOnce<u32> = SetOnce::new();
