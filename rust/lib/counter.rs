// SPDX-License-Identifier: GPL-2.0

//! Counters that many CPUs increment and hardly anybody reads, and gauges.

use kernel::{
    cpu::CpuId,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// Shards of a counter. Machines with more CPUs share some, which costs time but loses no count.
const SHARDS: usize = 16;

/// One shard on a cache line of its own.
#[repr(align(64))]
struct Shard(Atomic<u64>);

/// A counter for hot paths.
///
/// It exists from the start and needs no teardown, unlike a `percpu_counter`: one that a failed
/// module load leaves on that list of the kernel is a fault later.
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

    /// Counts one.
    #[inline]
    pub(crate) fn inc(&self) {
        self.add(1);
    }

    /// Counts `n`. It does not matter if the thread moves to another CPU meanwhile.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let cpu = CpuId::current().as_u32() as usize;
        // PANIC: `SHARDS` is the length of `shards`.
        self.shards[cpu % SHARDS].0.add(n, Relaxed);
    }

    /// The sum; what is counted meanwhile may or may not be in it.
    pub(crate) fn sum(&self) -> u64 {
        self.shards
            .iter()
            .fold(0, |sum, shard| sum.wrapping_add(shard.0.load(Relaxed)))
    }

    /// Starts again from zero; what is counted meanwhile may or may not be lost.
    pub(crate) fn reset(&self) {
        for shard in &self.shards {
            shard.0.store(0, Relaxed);
        }
    }
}

/// A number that rises and falls.
pub(crate) struct Gauge(Atomic<usize>);

impl Gauge {
    /// A gauge at zero.
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Raises it; returns where it stood.
    #[inline]
    pub(crate) fn add(&self, n: usize) -> usize {
        self.0.fetch_add(n, Relaxed)
    }

    /// Lowers it by what it was raised by.
    #[inline]
    pub(crate) fn sub(&self, n: usize) {
        self.0.add(n.wrapping_neg(), Relaxed);
    }

    /// Where it stands.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}
