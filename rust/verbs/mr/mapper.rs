// SPDX-License-Identifier: GPL-2.0

//! Mapping memory: idle regions become [`Mapped`] ones, as many as it takes.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::lib::{
    bvec::BVec,
    llist::Chain, //
};

use super::{
    frwr::{
        Access,
        Idle,
        MapError, //
    },
    mr_list::{
        Mapped,
        MrList, //
    },
    mr_pool::MrPool, //
};

/// Maps memory. There is one for each connection, with whoever sends.
///
/// # Invariants
///
/// What is at hand is of `pool`.
pub(crate) struct MrMapper<U> {
    /// At hand, so that taking one needs no lock. Goes before the pool, which keeps the regions.
    at_hand: Chain<Idle<U>>,
    pool: Arc<MrPool<U>>,
}

impl<U> MrMapper<U> {
    pub(in crate::verbs) fn new(pool: Arc<MrPool<U>>) -> Self {
        // INVARIANT: Nothing is at hand.
        Self {
            pool,
            at_hand: Chain::new(),
        }
    }

    /// The regions' pool.
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<MrPool<U>> {
        &self.pool
    }

    #[inline]
    fn take(&mut self) -> Option<Idle<U>> {
        if self.at_hand.is_empty() {
            // INVARIANT: What is idle in the pool is the pool's.
            self.at_hand = self.pool.idle.take_all();
        }
        self.at_hand.pop()
    }

    /// Maps `bvecs`, with as many regions as that takes, at the end of `mrs`. Returns how many
    /// it took.
    ///
    /// # Errors
    ///
    /// See [`MapError`]; `Failed` if there are regions of another pool, which stay. On any other
    /// error `mrs` is left empty. What was in it is kept at hand, so that
    /// [`MrPool::has_idle`] tells only of regions put back since.
    #[inline]
    pub(crate) fn map<'p>(
        &mut self,
        bvecs: impl IntoIterator<Item = BVec<'p>>,
        access: Access,
        mrs: &mut MrList<Mapped, U>,
    ) -> Result<u32, MapError> {
        let mut bvecs = bvecs.into_iter();
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
    fn map_more<'p>(
        &mut self,
        first: BVec<'p>,
        mut bvecs: impl Iterator<Item = BVec<'p>>,
        access: Access,
        mrs: &mut MrList<Mapped, U>,
    ) -> Result<u32, MapError> {
        let before = mrs.len();
        let mut next = Some(first);
        while let Some(first) = next {
            let idle = self.take().ok_or(MapError::Exhausted)?;
            // SAFETY: Of this pool, which `map` had `mrs` keep.
            let mr = unsafe { mrs.push(idle) };
            next = mr.map(first, &mut bvecs, self.pool.gaps, access)?;
        }
        Ok(mrs.len() - before)
    }

    /// Takes back what was mapped, all of this pool, to have it at hand.
    #[cold]
    fn take_back(&mut self, mrs: &mut MrList<Mapped, U>) {
        for idle in mrs.take_all() {
            // INVARIANT: Of the pool that `mrs` keep, which is this one.
            self.at_hand.push(idle);
        }
    }
}
