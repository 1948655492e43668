// SPDX-License-Identifier: GPL-2.0

//! Counters and gauges, for different numbers of writers. Readers need no order among several.

use kernel::{
    cpu::CpuId,
    sync::atomic::Relaxed, //
};

use super::sync::Atomic;

/// Shards of a [`Counter`]. On machines with more CPUs, CPUs share shards: this costs time, but
/// loses no count.
const SHARDS: usize = 16;

/// One shard, on a cache line of its own.
#[repr(align(64))]
struct Shard(Atomic<u64>);

/// A counter that many CPUs increment and few readers sum up.
///
/// Unlike a `percpu_counter` it is a constant and needs no teardown: a failed module load that left
/// a `percpu_counter` on the kernel's list would crash the kernel later.
pub(crate) struct Counter {
    shards: [Shard; SHARDS],
}

impl Counter {
    /// A counter at zero.
    pub(crate) const fn new() -> Self {
        Self {
            shards: [const { Shard(Atomic::new(0)) }; SHARDS],
        }
    }

    /// Adds 1.
    #[inline]
    pub(crate) fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`. The thread may migrate to another CPU meanwhile.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let cpu = CpuId::current().as_u32() as usize;
        // PANIC: `SHARDS` is the length of `shards`.
        self.shards[cpu % SHARDS].0.add(n, Relaxed);
    }

    /// The sum, with or without concurrent additions.
    pub(crate) fn sum(&self) -> u64 {
        self.shards
            .iter()
            .fold(0, |sum, shard| sum.wrapping_add(shard.0.load(Relaxed)))
    }

    /// Starts again from zero. Concurrent additions may be lost.
    pub(crate) fn reset(&self) {
        for shard in &self.shards {
            shard.0.store(0, Relaxed);
        }
    }
}

/// A counter for few writers: one atomic variable.
pub(crate) struct AtomicCounter(Atomic<u64>);

impl AtomicCounter {
    /// A counter at zero.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.add(n, Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A counter for one writer at a time, which the caller guarantees. An addition is a load and a
/// store, not an atomic read-modify-write.
pub(crate) struct SingleWriterCounter(Atomic<u64>);

impl Default for SingleWriterCounter {
    /// A counter at zero.
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

impl SingleWriterCounter {
    /// Adds `n`. Of two concurrent additions one is lost.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that rises and falls.
pub(crate) struct Gauge(Atomic<usize>);

impl Gauge {
    /// A gauge at zero.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`; returns the value before that.
    #[inline]
    pub(crate) fn add(&self, n: usize) -> usize {
        self.0.fetch_add(n, Relaxed)
    }

    /// Subtracts `n`, which was added before.
    #[inline]
    pub(crate) fn sub(&self, n: usize) {
        self.0.add(n.wrapping_neg(), Relaxed);
    }

    /// The value.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}
