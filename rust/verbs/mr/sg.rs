// SPDX-License-Identifier: GPL-2.0

//! The memory that a region covers: described, mapped for the device, kept if need be, unmapped.

use core::ptr;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::bvec::BVec,
    verbs::device::dma_buf::Direction, //
};

/// Pieces of memory in the terms of the DMA layer. Whoever has them unmaps them before they are
/// dropped.
///
/// # Invariants
///
/// The first `mapped` of `entries` are mapped for a device, in `direction`, and stay as they are
/// until they are unmapped. If `held`, there is a reference to each of their pages that is
/// reference-counted.
pub(in crate::verbs) struct ScatterList {
    entries: KVec<bindings::scatterlist>,
    /// 0 if nothing is mapped.
    mapped: c_int,
    held: bool,
    direction: Direction,
}

impl ScatterList {
    /// With room for `depth` pieces.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(in crate::verbs) fn new(depth: u32) -> Result<Self> {
        let entry = bindings::scatterlist::default();
        let mut entries = KVec::from_elem(entry, depth as usize, GFP_KERNEL)?;
        // SAFETY: An array of that many entries.
        unsafe { bindings::sg_init_table(entries.as_mut_ptr(), depth) };
        // INVARIANT: Nothing is mapped.
        Ok(Self {
            entries,
            mapped: 0,
            held: false,
            direction: Direction::ToDevice,
        })
    }

    /// How many pieces are mapped.
    #[inline]
    pub(in crate::verbs) fn mapped(&self) -> u32 {
        self.mapped.cast_unsigned()
    }

    /// Which way the device moves the data that was mapped last.
    #[inline]
    pub(in crate::verbs) fn direction(&self) -> Direction {
        self.direction
    }

    /// The entries, for whoever builds upon the runs that they were mapped to.
    #[inline]
    pub(in crate::verbs) fn as_mut_ptr(&mut self) -> *mut bindings::scatterlist {
        self.entries.as_mut_ptr()
    }

    /// Describes the pieces from the front of `bvecs`, starting with `first`, as many as there is
    /// room for, without `gaps` between them if there may be none. Returns how many, and the one
    /// after them. Nothing is mapped at the time.
    #[inline]
    pub(in crate::verbs) fn fill<'p>(
        &mut self,
        first: BVec<'p>,
        bvecs: &mut impl Iterator<Item = BVec<'p>>,
        gaps: bool,
    ) -> (usize, Option<BVec<'p>>) {
        let mut count = 0;
        let mut bvec = first;
        for entry in self.entries.iter_mut() {
            set_page(entry, &bvec);
            count += 1;
            let Some(next) = bvecs.next() else {
                return (count, None);
            };
            let adjoins = bvec.adjoins(&next);
            bvec = next;
            if !gaps && !adjoins {
                break;
            }
        }
        (count, Some(bvec))
    }

    /// Maps the first `count` pieces; returns how many runs they are to the device, or `None` if
    /// they cannot be mapped.
    ///
    /// # Safety
    ///
    /// So many pieces are described, and none is mapped. `device` is there, and their memory stays,
    /// until they are unmapped.
    #[inline]
    pub(in crate::verbs) unsafe fn map(
        &mut self,
        device: *mut bindings::ib_device,
        count: usize,
        direction: Direction,
    ) -> Option<c_int> {
        // CAST: No more than there is room for, which is counted in 32 bits.
        let entries = count as c_int;
        // SAFETY: By this function's contract.
        let runs = unsafe {
            bindings::rpcrdma_dma_map_sg(
                device,
                self.entries.as_mut_ptr(),
                entries,
                direction.as_raw(),
            )
        };
        if runs <= 0 {
            return None;
        }
        // INVARIANT: Mapped just now.
        self.mapped = entries;
        self.direction = direction;
        Some(runs)
    }

    /// Unmaps what is mapped, and lets go of it.
    ///
    /// # Safety
    ///
    /// It is mapped for `device`.
    #[inline]
    pub(in crate::verbs) unsafe fn unmap(&mut self, device: *mut bindings::ib_device) {
        // SAFETY: Mapped with these arguments; the number is that of entries, not of runs.
        unsafe {
            bindings::rpcrdma_dma_unmap_sg(
                device,
                self.entries.as_mut_ptr(),
                self.mapped,
                self.direction.as_raw(),
            )
        };
        self.let_go();
        // INVARIANT: Nothing is mapped, nor held.
        self.mapped = 0;
    }

    /// Keeps the pages until they are unmapped, even if their owner frees them earlier.
    pub(in crate::verbs) fn hold(&mut self) {
        if !self.held {
            // INVARIANT: They are referred to below.
            self.held = true;
            for page in self.counted_pages() {
                // SAFETY: Mapped, so that the page is there, by promise P1.
                unsafe { bindings::rpcrdma_get_page(page) };
            }
        }
    }

    fn let_go(&mut self) {
        if self.held {
            self.held = false;
            for page in self.counted_pages() {
                // SAFETY: The reference is from `hold`.
                unsafe { bindings::rpcrdma_put_page(page) };
            }
        }
    }

    /// The pages that are mapped; not those that `kmalloc` takes memory from, which have no count.
    /// What a page is does not change while it is mapped: buffers from `kmalloc` outlive that.
    fn counted_pages(&self) -> impl Iterator<Item = *mut bindings::page> + '_ {
        let mapped = self.entries.iter().take(self.mapped as usize);
        mapped.map(page_of).filter(|&page| {
            // SAFETY: The page is there, by promise P1, or since it is held.
            unsafe { bindings::rpcrdma_page_is_counted(page) }
        })
    }
}

/// The low bits of the word say whether the entry is the last of a list.
const MARKS: usize = 0x3;

#[inline]
fn set_page(entry: &mut bindings::scatterlist, bvec: &BVec<'_>) {
    entry.page_link = (entry.page_link & MARKS) | bvec.page().expose_provenance();
    entry.offset = bvec.offset();
    entry.length = bvec.len();
}

#[inline]
fn page_of(entry: &bindings::scatterlist) -> *mut bindings::page {
    ptr::with_exposed_provenance_mut(entry.page_link & !MARKS)
}
