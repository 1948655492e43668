// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer.
//!
//! C: svc_rdma_rw.c, svc_rdma_vec_to_bvec(), svc_rdma_pagelist_to_bvec()

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::lib::bvec::BVec;

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
        let Some(mut first) = bvecs.next() else {
            return Ok(0);
        };
        let mut bytes = first.len();
        // The run is `first` and `more` bytes behind it, of which `last` has the last ones.
        let mut more = 0;
        let mut last = first;
        for bvec in bvecs {
            bytes = bytes.checked_add(bvec.len()).ok_or(EINVAL)?;
            // NO-OVERFLOW: A run is no longer than `bytes`, which are a `u32`.
            let longer = bvec.len().wrapping_add(more);
            if is_behind(&last, &bvec) && longer.wrapping_add(first.len()) <= max_run {
                more = longer;
            } else {
                self.push(&first, more, flags)?;
                first = bvec;
                more = 0;
            }
            last = bvec;
        }
        self.push(&first, more, flags)?;
        Ok(bytes)
    }

    /// Adds the run of `first` and `more` bytes behind it.
    #[inline]
    fn push(&mut self, first: &BVec<'_>, more: u32, flags: Flags) -> Result {
        let mut run = Run::new(first);
        run.extend(more);
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

/// Whether the memory of `bvec` is right behind that of `last`.
#[inline]
fn is_behind(last: &BVec<'_>, bvec: &BVec<'_>) -> bool {
    // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP)
        && last.page().wrapping_add(1) == bvec.page()
        && last.adjoins(bvec)
}
