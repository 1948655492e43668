// SPDX-License-Identifier: GPL-2.0

//! Times of events, for an administrator to read.

use kernel::{
    sync::atomic::Relaxed,
    time::msecs_to_jiffies, //
};

use crate::bindings;

use super::sync::Atomic;

/// The time in jiffies, which does not wrap.
#[inline]
pub(crate) fn jiffies() -> u64 {
    // SAFETY: Reads the counter, on a 32 bit kernel under its seqlock.
    unsafe { bindings::rpcrdma_jiffies64() }
}

/// The milliseconds since `then`, which is in jiffies.
pub(crate) fn ms_since(then: u64) -> u64 {
    let second = (msecs_to_jiffies(1_000) as u64).max(1);
    jiffies().saturating_sub(then).saturating_mul(1_000) / second
}

/// The milliseconds since `then`, a `ktime_t`.
pub(crate) fn ms_since_ktime(then: i64) -> u64 {
    // SAFETY: May be called at any time.
    let now = unsafe { bindings::ktime_get() };
    u64::try_from(now.saturating_sub(then)).unwrap_or(0) / 1_000_000
}

/// When something happened last.
pub(crate) struct Since(Atomic<u64>);

impl Since {
    /// Now.
    pub(crate) fn now() -> Self {
        Self(Atomic::new(jiffies()))
    }

    /// It happens again.
    pub(crate) fn restart(&self) {
        self.0.store(jiffies(), Relaxed);
    }

    /// The milliseconds since then.
    pub(crate) fn ms(&self) -> u64 {
        ms_since(self.0.load(Relaxed))
    }
}
