// SPDX-License-Identifier: GPL-2.0

//! The clock, in jiffies. The kernel crate has no function for it yet.

use kernel::prelude::*;

use crate::bindings;

/// `jiffies`, which wraps around.
#[inline]
pub(super) fn jiffies() -> c_ulong {
    // SAFETY: Reads one word.
    unsafe { bindings::rpcrdma_jiffies() }
}
