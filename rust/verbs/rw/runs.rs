// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer.

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

    /// Removes all runs, and provides memory for `count`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn restart(&mut self, count: usize, flags: Flags) -> Result {
        self.0.clear();
        self.0.reserve(count, flags)?;
        Ok(())
    }

    /// Adds the memory of `bvec`: to the last run if this memory is right behind it and both
    /// together are no longer than `max_run` bytes, or else as a run.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn add(&mut self, bvec: &BVec<'_>, max_run: u32, flags: Flags) -> Result {
        if let Some(last) = self.0.last_mut() {
            let end = last.offset() + last.len();
            // With a virtual memory map, neighbouring pages have neighbouring `struct page`s.
            if cfg!(CONFIG_SPARSEMEM_VMEMMAP)
                && last.len() + bvec.len() <= max_run
                && bvec.offset() == 0
                && end % PAGE == 0
                && last.page().wrapping_add((end / PAGE) as usize) == bvec.page()
            {
                last.extend(bvec.len());
                return Ok(());
            }
        }
        let run = Run::new(bvec);
        if self.0.push_within_capacity(run).is_err() {
            return self.grow(run, flags);
        }
        Ok(())
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
