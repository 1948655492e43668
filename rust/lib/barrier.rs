// SPDX-License-Identifier: GPL-2.0

//! Memory barriers between CPUs.
//!
//! C header: [`include/asm-generic/barrier.h`](srctree/include/asm-generic/barrier.h)
//!
//! `kernel::sync::barrier` has these under names that depend on the kernel: `smp_rmb()` is
//! `smp_mb(Read)` since 7.3.

use crate::bindings;

/// Orders all memory accesses before it before all after it.
#[inline(always)]
pub(crate) fn smp_mb() {
    // SAFETY: A barrier has no requirements.
    unsafe { bindings::smp_mb() }
}

/// Orders all reads before it before all reads after it.
#[inline(always)]
pub(crate) fn smp_rmb() {
    // SAFETY: A barrier has no requirements.
    unsafe { bindings::smp_rmb() }
}
