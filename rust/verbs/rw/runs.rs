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
    /// `max_run` bytes. There are at most `count` of the `bvecs`. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more, or if the bytes overflow a `u32`; `ENOMEM`.
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
        let mut entries = self.0.spare_capacity_mut().iter_mut();
        let mut last = entries.next().ok_or(EINVAL)?.write(Run::new(&first));
        let mut filled: usize = 1;
        let mut bytes = u64::from(first.len());
        let mut before = first;
        for bvec in bvecs {
            // NO-OVERFLOW: A `u32` for each run that memory holds.
            bytes = bytes.wrapping_add(bvec.len().into());
            // NO-OVERFLOW: A run has up to `max_run` bytes or one page.
            let longer = last.len().wrapping_add(bvec.len());
            if is_behind(&before, &bvec) && longer <= max_run {
                last.set_len(longer);
            } else {
                last = entries.next().ok_or(EINVAL)?.write(Run::new(&bvec));
                // NO-OVERFLOW: No more than there are entries.
                filled = filled.wrapping_add(1);
            }
            before = bvec;
        }
        // SAFETY: So many entries of the spare capacity were written.
        unsafe { self.0.inc_len(filled) };
        u32::try_from(bytes).map_err(|_| EINVAL)
    }

    /// The runs, for the RDMA core.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Run] {
        &mut self.0
    }
}

/// Whether the memory of `bvec` is right behind that of `before`.
#[inline]
fn is_behind(before: &BVec<'_>, bvec: &BVec<'_>) -> bool {
    // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
    cfg!(CONFIG_SPARSEMEM_VMEMMAP)
        && before.page().wrapping_add(1) == bvec.page()
        && before.adjoins(bvec)
}
