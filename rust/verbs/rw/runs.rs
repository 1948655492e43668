// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer.
//!
//! C: svc_rdma_rw.c, svc_rdma_vec_to_bvec(), svc_rdma_pagelist_to_bvec()

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::lib::bvec::{
    BVec,
    PAGE, //
};

use super::run::Run;

/// Runs of contiguous memory.
pub(super) struct Runs(KVec<Run>);

impl Runs {
    /// No runs. It allocates nothing.
    pub(super) const fn new() -> Self {
        Self(KVec::new())
    }

    /// Replaces all runs by those of the memory of `bvecs`. A run is contiguous, and has up to
    /// `max_run` bytes. `count` is an estimate of the number of `bvecs`. Returns the number of
    /// bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the bytes overflow a `u32`, or `ENOMEM`.
    #[inline]
    pub(super) fn fill<'p>(
        &mut self,
        count: usize,
        mut bvecs: impl Iterator<Item = BVec<'p>>,
        max_run: u32,
        flags: Flags,
    ) -> Result<u32> {
        self.0.clear();
        self.0.reserve(count, flags)?;
        let Some(first) = bvecs.next() else {
            return Ok(0);
        };
        let mut bytes = first.len();
        let mut run = Run::new(&first);
        for bvec in bvecs {
            bytes = bytes.checked_add(bvec.len()).ok_or(EINVAL)?;
            if continues(&run, &bvec, max_run) {
                run.extend(bvec.len());
            } else {
                self.push(run, flags)?;
                run = Run::new(&bvec);
            }
        }
        self.push(run, flags)?;
        Ok(bytes)
    }

    #[inline]
    fn push(&mut self, run: Run, flags: Flags) -> Result {
        if self.0.len() == self.0.capacity() {
            return self.grow(run, flags);
        }
        self.0.push_within_capacity(run).map_err(|_| ENOMEM)
    }

    /// The runs, for the RDMA core.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Run] {
        &mut self.0
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, run: Run, flags: Flags) -> Result {
        self.0.push(run, flags)?;
        Ok(())
    }
}

/// Whether the memory of `bvec` is right behind `run`, and both together are no longer than
/// `max_run` bytes.
#[inline]
fn continues(run: &Run, bvec: &BVec<'_>, max_run: u32) -> bool {
    // NO-OVERFLOW: A run is longer than `max_run`, which is far from 2^32, only if it is one
    // `BVec`, which is within its page.
    let end = run.offset().wrapping_add(run.len());
    // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP)
        && run.page().wrapping_add((end / PAGE) as usize) == bvec.page()
        && end % PAGE == 0
        && bvec.offset() == 0
        && run.len().wrapping_add(bvec.len()) <= max_run
}
