// SPDX-License-Identifier: GPL-2.0

//! The local memory of a transfer.
//!
//! C: svc_rdma_rw.c, svc_rdma_vec_to_bvec(), svc_rdma_pagelist_to_bvec()

use core::mem::MaybeUninit;

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::lib::bvec::{
    is_next_page,
    BVec,
    BVecs,
    PAGE, //
};

use super::run::Run;

/// The largest run of contiguous pages that is mapped as one. The bounce buffers (swiotlb) of some
/// machines have 256 KiB for a mapping, whatever the page size, and may be fragmented.
const MAX_RUN: u32 = if PAGE > 64 << 10 { PAGE } else { 64 << 10 };

/// The pages of a READ or WRITE of 128 KiB. An array that was longer is allocated again: that costs
/// little beside the transfer, and each idle context of each connection has an array.
const KEPT: usize = 32;

/// Runs of contiguous memory.
pub(super) struct Runs(KVec<Run>);

impl Runs {
    /// No runs. It allocates nothing.
    pub(super) const fn new() -> Self {
        Self(KVec::new())
    }

    /// Replaces all runs by those of the memory of `bvecs`. A run is contiguous, and has up to
    /// [`MAX_RUN`] bytes. There are at most `count` of the `bvecs`. Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more, or if the bytes overflow a `u32`; `ENOMEM`.
    #[inline]
    pub(super) fn fill<'p>(
        &mut self,
        count: usize,
        mut bvecs: impl BVecs<'p>,
        flags: Flags,
    ) -> Result<u32> {
        self.0.clear();
        if count > self.0.capacity() {
            self.replace(count, flags)?;
        }
        let Some(first) = bvecs.next() else {
            return Ok(0);
        };
        let room = self.0.spare_capacity_mut();
        let (entry, rest) = room.split_first_mut().ok_or(EINVAL)?;
        let run = entry.write(Run::new(&first));
        let (more, bytes) = match bvecs.next() {
            None => (0, 0),
            Some(second) => fill_rest(run, rest, [first, second], bvecs)?,
        };
        // SAFETY: So many entries of the spare capacity were written.
        unsafe { self.0.inc_len(more.wrapping_add(1)) };
        u32::try_from(bytes.wrapping_add(first.len().into())).map_err(|_| EINVAL)
    }

    /// Allocates an array of `count` entries. [`KVec::reserve`] would at least double the old one.
    #[cold]
    fn replace(&mut self, count: usize, flags: Flags) -> Result {
        self.0 = KVec::new();
        self.0 = KVec::with_capacity(count, flags)?;
        Ok(())
    }

    /// Frees the memory of an array longer than [`KEPT`].
    #[inline]
    pub(super) fn trim(&mut self) {
        if self.0.capacity() > KEPT {
            self.0 = KVec::new();
        }
    }

    /// The runs, for the RDMA core.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Run] {
        &mut self.0
    }
}

/// Writes the runs of the memory behind `before` to `room`, or makes `last`, the run of `before`,
/// longer. The memory starts with `first`. Returns the number of runs that were written, and of
/// bytes.
///
/// # Errors
///
/// `EINVAL` if `room` is too short.
#[inline]
fn fill_rest<'r, 'p>(
    mut last: &'r mut Run,
    room: &'r mut [MaybeUninit<Run>],
    [mut before, first]: [BVec<'p>; 2],
    mut bvecs: impl BVecs<'p>,
) -> Result<(usize, u64)> {
    let most = room.len();
    let mut room = room.iter_mut();
    let mut bytes: u64 = 0;
    let mut next = Some(first);
    while let Some(bvec) = next {
        // NO-OVERFLOW: A `u32` for each run that memory holds.
        bytes = bytes.wrapping_add(bvec.len().into());
        // NO-OVERFLOW: A run has up to `MAX_RUN` bytes.
        let longer = last.len().wrapping_add(bvec.len());
        if is_next_page(before.page(), bvec.page()) && before.adjoins(&bvec) && longer <= MAX_RUN {
            last.set_len(longer);
        } else {
            last = room.next().ok_or(EINVAL)?.write(Run::new(&bvec));
        }
        before = bvec;
        if before.ends_page() {
            // The same for the pages between the first and the last.
            for page in bvecs.whole_pages(usize::MAX) {
                let bvec = page.bvec().ok_or(EINVAL)?;
                bytes = bytes.wrapping_add(PAGE.into());
                let longer = last.len().wrapping_add(PAGE);
                if is_next_page(before.page(), bvec.page()) && longer <= MAX_RUN {
                    last.set_len(longer);
                } else {
                    last = room.next().ok_or(EINVAL)?.write(Run::new(&bvec));
                }
                before = bvec;
            }
        }
        next = bvecs.next();
    }
    // NO-OVERFLOW: No more are left than there were.
    Ok((most.wrapping_sub(room.len()), bytes))
}
