// SPDX-License-Identifier: GPL-2.0

//! The memory that an MR covers, as a scatterlist.
//!
//! C: frwr_ops.c, frwr_map()
//!
//! `kernel::scatterlist` does not fit: it maps by `dma_map_sgtable()`, and RDMA devices map by
//! `ib_dma_map_sg()`, which rxe and siw implement without the DMA layer.

use core::{
    ops::Range,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::bvec::{
        BVec,
        BVecs, //
    },
    verbs::device::{
        dma_buf::Direction,
        pd::Pd, //
    }, //
};

/// A scatterlist that describes memory and maps it for a device. It has no destructor: what is
/// still mapped when it is dropped stays mapped.
///
/// # Invariants
///
/// - I1: `device` is that of `_pd`, so it stays while the list exists.
/// - I2: The first `mapped` of `entries` are mapped for `device`, in `direction`, and do not change
///   before they are unmapped.
/// - I3: If `held` is set, the list holds a reference to each mapped page that has a reference
///   count.
pub(super) struct ScatterList {
    device: *mut bindings::ib_device,
    /// Keeps `device` valid.
    _pd: Arc<Pd>,
    entries: KVec<bindings::scatterlist>,
    /// 0 if nothing is mapped.
    mapped: c_int,
    held: bool,
    direction: Direction,
}

impl ScatterList {
    /// A list with room for `depth` entries, for the device of `pd`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(pd: &Arc<Pd>, depth: u32) -> Result<Self> {
        let entry = bindings::scatterlist::default();
        let mut entries = KVec::from_elem(entry, depth as usize, GFP_KERNEL)?;
        // SAFETY: An array of that many entries.
        unsafe { bindings::sg_init_table(entries.as_mut_ptr(), depth) };
        // INVARIANT: I1: the PD's device. I2, I3: nothing is mapped.
        Ok(Self {
            device: pd.device(),
            _pd: pd.clone(),
            entries,
            mapped: 0,
            held: false,
            direction: Direction::ToDevice,
        })
    }

    /// How many entries are mapped.
    #[inline]
    pub(super) fn mapped(&self) -> u32 {
        self.mapped as u32
    }

    /// The entries, for `ib_map_mr_sg()`.
    #[inline]
    pub(super) fn as_mut_ptr(&mut self) -> *mut bindings::scatterlist {
        self.entries.as_mut_ptr()
    }

    /// Describes as many pages from the front of `bvecs`, starting with `first`, as there is room
    /// for; without `gaps`, up to the first gap. Returns how many entries that takes, and the first
    /// page that is left. Nothing is mapped at the time.
    #[inline]
    pub(super) fn fill<'p>(
        &mut self,
        first: BVec<'p>,
        bvecs: &mut impl BVecs<'p>,
        gaps: bool,
    ) -> (usize, Option<BVec<'p>>) {
        let Some((entry, rest)) = self.entries.split_first_mut() else {
            return (0, Some(first));
        };
        set_page(entry, &first);
        match bvecs.next() {
            Some(next) if gaps || first.adjoins(&next) => {
                let (count, left) = fill(rest, next, bvecs, gaps);
                // NO-OVERFLOW: There are so many entries.
                (count.wrapping_add(1), left)
            }
            left => (1, left),
        }
    }

    /// Describes what the `rest` of the entries of `other`, a list of the same depth, describe;
    /// returns how many entries that takes. Nothing is mapped at the time.
    #[cold]
    pub(super) fn copy(&mut self, other: &Self, rest: Range<usize>) -> usize {
        let rest = other.entries.get(rest).unwrap_or_default();
        for (entry, from) in self.entries.iter_mut().zip(rest) {
            set_memory(entry, page_of(from), from.offset, from.length);
        }
        rest.len()
    }

    /// Describes the same memory again, without the marks of a mapping that has ended. Nothing is
    /// mapped at the time.
    #[cold]
    pub(super) fn renew(&mut self, count: usize) {
        for entry in self.entries.iter_mut().take(count) {
            let (page, offset, length) = (page_of(entry), entry.offset, entry.length);
            set_memory(entry, page, offset, length);
        }
    }

    /// Maps the first `count` entries; returns to how many runs of bus addresses, or `None` if they
    /// cannot be mapped.
    ///
    /// # Safety
    ///
    /// [`Self::fill`], [`Self::copy`] or [`Self::renew`] has described `count` entries since they
    /// were last mapped. Nothing is mapped, and the memory stays until it is unmapped.
    #[inline]
    pub(super) unsafe fn map(&mut self, count: usize, direction: Direction) -> Option<c_int> {
        // CAST: At most the depth, which is 32 bits.
        let entries = count as c_int;
        // SAFETY: The device stays (I1); the rest by this function's contract.
        let runs = unsafe {
            bindings::rpcrdma_dma_map_sg(
                self.device,
                self.entries.as_mut_ptr(),
                entries,
                direction.as_raw(),
            )
        };
        if runs <= 0 {
            return None;
        }
        // INVARIANT: Just mapped.
        self.mapped = entries;
        self.direction = direction;
        Some(runs)
    }

    /// Unmaps what is mapped, and drops the references to its pages.
    #[inline]
    pub(super) fn unmap(&mut self) {
        // SAFETY: Mapped with these arguments (I2). The count is that of entries, not of runs.
        unsafe {
            bindings::rpcrdma_dma_unmap_sg(
                self.device,
                self.entries.as_mut_ptr(),
                self.mapped,
                self.direction.as_raw(),
            )
        };
        self.release();
        // INVARIANT: Nothing is mapped, nor held.
        self.mapped = 0;
    }

    /// Holds a reference to each mapped page until it is unmapped.
    pub(super) fn hold(&mut self) {
        if !self.held {
            // INVARIANT: The references are taken here.
            self.held = true;
            for page in self.counted_pages() {
                // SAFETY: A page that is mapped stays, by the contract of `map`.
                unsafe { bindings::rpcrdma_get_page(page) };
            }
        }
    }

    /// Drops the references that `hold` took.
    #[inline]
    fn release(&mut self) {
        if self.held {
            self.held = false;
            for page in self.counted_pages() {
                // SAFETY: The reference is from `hold` (I3).
                unsafe { bindings::rpcrdma_put_page(page) };
            }
        }
    }

    /// The mapped pages that have a reference count: slab pages have none. Which of the two a page
    /// is does not change while it is mapped, since buffers from `kmalloc` outlive their mapping.
    fn counted_pages(&self) -> impl Iterator<Item = *mut bindings::page> + '_ {
        let mapped = self.entries.iter().take(self.mapped as usize);
        mapped.map(page_of).filter(|&page| {
            // SAFETY: The page stays, by the contract of `map`, or because it is held.
            unsafe { bindings::rpcrdma_page_is_counted(page) }
        })
    }
}

/// The low bits of `page_link`, which tell the last entry of a list.
const MARKS: usize = 0x3;

#[inline]
fn set_page(entry: &mut bindings::scatterlist, bvec: &BVec<'_>) {
    set_memory(entry, bvec.page(), bvec.offset(), bvec.len());
}

/// Assigns the whole entry. The DMA layer keeps marks of its own in it (`dma_flags`), some of which
/// it never clears, and which mislead the next mapping.
#[inline]
fn set_memory(
    entry: &mut bindings::scatterlist,
    page: *mut bindings::page,
    offset: u32,
    length: u32,
) {
    *entry = bindings::scatterlist {
        page_link: (entry.page_link & MARKS) | page.expose_provenance(),
        offset,
        length,
        ..Default::default()
    };
}

/// [`ScatterList::fill`] for `entries`.
#[inline]
fn fill<'p>(
    entries: &mut [bindings::scatterlist],
    first: BVec<'p>,
    bvecs: &mut impl BVecs<'p>,
    gaps: bool,
) -> (usize, Option<BVec<'p>>) {
    let depth = entries.len();
    let mut entries = entries.iter_mut();
    let mut bvec = first;
    let mut left = Some(first);
    while let Some(entry) = entries.next() {
        set_page(entry, &bvec);
        if bvec.ends_page() {
            // Each page ends where the next one starts, so there are no gaps.
            for page in bvecs.whole_pages(entries.len()) {
                let Some(page) = page.bvec() else {
                    // NO-OVERFLOW: As below.
                    return (depth.wrapping_sub(entries.len()), None);
                };
                let Some(entry) = entries.next() else {
                    break;
                };
                set_page(entry, &page);
                bvec = page;
            }
        }
        left = bvecs.next();
        match left {
            Some(next) if gaps || bvec.adjoins(&next) => bvec = next,
            _ => break,
        }
    }
    // NO-OVERFLOW: No more are left than there were.
    (depth.wrapping_sub(entries.len()), left)
}

#[inline]
fn page_of(entry: &bindings::scatterlist) -> *mut bindings::page {
    ptr::with_exposed_provenance_mut(entry.page_link & !MARKS)
}
