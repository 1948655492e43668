// SPDX-License-Identifier: GPL-2.0

//! Maps memory with as many idle MRs as needed.
//!
//! C: verbs.c, rpcrdma_mr_get()

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::lib::{
    bvec::{
        BVec,
        BVecs, //
    },
    llist::Chain, //
};

use super::{
    frwr::{
        Access,
        MapError, //
    },
    mr_alloc::MrRef,
    mr_list::{
        Mapped,
        MrList, //
    },
    mr_pool::MrPool, //
};

/// Maps memory on one connection.
///
/// # Invariants
///
/// - I1: The MRs at hand are idle ones of `pool`.
pub(crate) struct MrMapper<W> {
    /// Taken out of the pool, so that mapping takes no lock. Dropped before the pool.
    at_hand: Chain<MrRef<W>>,
    pool: Arc<MrPool<W>>,
}

impl<W> MrMapper<W> {
    pub(super) fn new(pool: Arc<MrPool<W>>) -> Self {
        // INVARIANT: Nothing is at hand.
        Self {
            pool,
            at_hand: Chain::new(),
        }
    }

    /// The pool of MRs.
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<MrPool<W>> {
        &self.pool
    }

    /// An idle MR to add to `mrs`.
    #[inline]
    fn take(&mut self, mrs: &MrList<Mapped<'_>, W>) -> Result<MrRef<W>, MapError> {
        // A message that needs more would wait for MRs for ever.
        if mrs.len() >= self.pool.spec.most {
            return Err(MapError::Failed);
        }
        if self.at_hand.is_empty() {
            // INVARIANT: Idle MRs of the pool.
            self.at_hand = self.pool.idle.take_all();
        }
        self.at_hand.pop().ok_or(MapError::Exhausted)
    }

    /// Maps `bvecs` and adds the MRs to `mrs`; returns how many MRs that takes.
    ///
    /// # Errors
    ///
    /// See [`MapError`]; `Failed` if `mrs` has MRs of another pool, which stay. After any other
    /// error `mrs` is empty. Its MRs are kept at hand, so that [`MrPool::has_idle`] is true only
    /// if some were put back since.
    #[inline]
    pub(crate) fn map<'m>(
        &mut self,
        mut bvecs: impl BVecs<'m>,
        access: Access,
        mrs: &mut MrList<Mapped<'m>, W>,
    ) -> Result<u32, MapError> {
        let Some(first) = bvecs.next() else {
            return Ok(0);
        };
        if !mrs.keep(&self.pool) {
            return Err(MapError::Failed);
        }
        self.map_more(first, bvecs, access, mrs)
            .inspect_err(|_| self.take_back(mrs))
    }

    /// [`Self::map`], from `first` on, into `mrs`, which keep this pool.
    #[inline]
    fn map_more<'m>(
        &mut self,
        first: BVec<'m>,
        mut bvecs: impl BVecs<'m>,
        access: Access,
        mrs: &mut MrList<Mapped<'m>, W>,
    ) -> Result<u32, MapError> {
        let before = mrs.len();
        let mut next = Some(first);
        while let Some(first) = next {
            let mut mr = self.take(mrs)?;
            let gaps = self.pool.spec.gaps;
            let (count, after) = mr.memory_mut().fill(first, &mut bvecs, gaps);
            // SAFETY: Idle (I1), and described. The memory stays throughout the lifetime of `mrs`,
            // which unmap it. If they are forgotten, the MR is never unmapped.
            let mapped = unsafe { mr.map(count, access) };
            // SAFETY: Of this pool, which `map` had `mrs` keep, and not registered.
            unsafe { mrs.push(mr) };
            let covered = mapped?;
            if covered != count {
                self.map_rest(covered..count, access, mrs)?;
            }
            next = after;
        }
        Ok(mrs.len() - before)
    }

    /// Maps the `rest` of the entries of the last MR of `mrs`, which that MR does not cover.
    #[cold]
    fn map_rest(
        &mut self,
        mut rest: Range<usize>,
        access: Access,
        mrs: &mut MrList<Mapped<'_>, W>,
    ) -> Result<(), MapError> {
        while !rest.is_empty() {
            let mut mr = self.take(mrs)?;
            let count = mrs.copy_rest(rest, &mut mr);
            // SAFETY: As in `map_more`: idle (I1), and described.
            let mapped = unsafe { mr.map(count, access) };
            // SAFETY: As in `map_more`.
            unsafe { mrs.push(mr) };
            rest = mapped?..count;
        }
        Ok(())
    }

    /// Unmaps `mrs`, all of this pool, and keeps them at hand.
    #[cold]
    fn take_back(&mut self, mrs: &mut MrList<Mapped<'_>, W>) {
        while let Some(mr) = mrs.pop_unmapped() {
            // INVARIANT: Of the pool that `mrs` keep, which is this one.
            self.at_hand.push(mr);
        }
    }
}
