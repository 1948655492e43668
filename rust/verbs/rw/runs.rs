// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer.
//!
//! C: svc_rdma_rw.c, svc_rdma_vec_to_bvec(), svc_rdma_pagelist_to_bvec()

use core::{
    cell::Cell,
    ptr, //
};

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
        let mut bytes = 0u64;
        let mut behind = ptr::null_mut();
        let mut neighbours = false;
        loop {
            let mut filled = 0;
            for (entry, bvec) in self.0.spare_capacity_mut().iter_mut().zip(&mut bvecs) {
                entry.write(Run::new(&bvec));
                // NO-OVERFLOW: A `u32` for each run that memory holds.
                bytes = bytes.wrapping_add(bvec.len().into());
                neighbours |= bvec.page() == behind;
                behind = bvec.page().wrapping_add(1);
                filled += 1;
            }
            // SAFETY: The loop has written so many entries of the spare capacity.
            unsafe { self.0.inc_len(filled) };
            let Some(bvec) = bvecs.next() else {
                break;
            };
            bytes = bytes.wrapping_add(bvec.len().into());
            // The next page is not compared with this one.
            neighbours = true;
            self.grow(Run::new(&bvec), flags)?;
        }
        // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
        if cfg!(CONFIG_SPARSEMEM_VMEMMAP) && neighbours {
            self.merge(max_run);
        }
        u32::try_from(bytes).map_err(|_| EINVAL)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, run: Run, flags: Flags) -> Result {
        self.0.push(run, flags)?;
        Ok(())
    }

    /// Joins runs whose memory is contiguous.
    #[inline(never)]
    fn merge(&mut self, max_run: u32) {
        let runs = Cell::from_mut(&mut self.0[..]).as_slice_of_cells();
        // As many places as runs, none of them behind the run that it gets.
        let mut places = runs.iter();
        let mut last: Option<&Cell<Run>> = None;
        let mut merged = 0;
        for run in runs.iter().map(Cell::get) {
            let longer = last.and_then(|last| joined(&last.get(), &run, max_run));
            if let (Some(last), Some(longer)) = (last, longer) {
                last.set(longer);
                continue;
            }
            last = places.next();
            if let Some(place) = last {
                place.set(run);
                merged += 1;
            }
        }
        self.0.truncate(merged);
    }

    /// The runs, for the RDMA core.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Run] {
        &mut self.0
    }
}

/// The run of the memory of `run` and that of `next`, if it is contiguous and has up to `max_run`
/// bytes.
#[inline]
fn joined(run: &Run, next: &Run, max_run: u32) -> Option<Run> {
    let end = run.offset().checked_add(run.len())?;
    let behind = run.page().wrapping_add((end / PAGE) as usize);
    let contiguous = behind == next.page() && end % PAGE == next.offset();
    let len = run.len().checked_add(next.len())?;
    (contiguous && len <= max_run).then(|| run.with_len(len))
}
