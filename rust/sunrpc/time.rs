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

/// `get_jiffies_64()`.
#[inline]
pub(super) fn jiffies64() -> u64 {
    // SAFETY: Reads the counter, on a 32 bit kernel under its seqlock.
    unsafe { bindings::rpcrdma_jiffies64() }
}
