// SPDX-License-Identifier: GPL-2.0

//! Mapping memory: idle regions become [`Mapped`] ones, as many as it takes.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::lib::{
    bvec::Piece,
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
        Regions, //
    },
    mr_pool::RegionPool, //
};

/// Maps memory. There is one for each connection, with whoever sends.
///
/// # Invariants
///
/// What is at hand is of `pool`.
pub(crate) struct Registrar<U> {
    /// At hand, so that taking one needs no lock. Goes before the pool, which keeps the regions.
    at_hand: Chain<Idle<U>>,
    pool: Arc<RegionPool<U>>,
}

impl<U> Registrar<U> {
    pub(in crate::verbs) fn new(pool: Arc<RegionPool<U>>) -> Self {
        // INVARIANT: Nothing is at hand.
        Self {
            pool,
            at_hand: Chain::new(),
        }
    }

    /// The regions' pool.
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<RegionPool<U>> {
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

    /// Maps `pieces`, with as many regions as that takes, at the end of `regions`. Returns how many
    /// it took.
    ///
    /// # Errors
    ///
    /// See [`MapError`]; `Failed` if there are regions of another pool, which stay. On any other
    /// error `regions` is left empty. What was in it is kept at hand, so that
    /// [`RegionPool::has_idle`] tells only of regions put back since.
    #[inline]
    pub(crate) fn map<'p>(
        &mut self,
        pieces: impl IntoIterator<Item = Piece<'p>>,
        access: Access,
        regions: &mut Regions<Mapped, U>,
    ) -> Result<u32, MapError> {
        let mut pieces = pieces.into_iter();
        let Some(first) = pieces.next() else {
            return Ok(0);
        };
        if !regions.keep(&self.pool) {
            return Err(MapError::Failed);
        }
        self.map_more(first, pieces, access, regions)
            .inspect_err(|_| self.take_back(regions))
    }

    /// [`Self::map`], from `first` on, into `regions`, which keep this pool.
    #[inline]
    fn map_more<'p>(
        &mut self,
        first: Piece<'p>,
        mut pieces: impl Iterator<Item = Piece<'p>>,
        access: Access,
        regions: &mut Regions<Mapped, U>,
    ) -> Result<u32, MapError> {
        let before = regions.len();
        let mut next = Some(first);
        while let Some(first) = next {
            let idle = self.take().ok_or(MapError::Exhausted)?;
            // SAFETY: Of this pool, which `map` had `regions` keep.
            let region = unsafe { regions.push(idle) };
            next = region.map(first, &mut pieces, self.pool.gaps, access)?;
        }
        Ok(regions.len() - before)
    }

    /// Takes back what was mapped, all of this pool, to have it at hand.
    #[cold]
    fn take_back(&mut self, regions: &mut Regions<Mapped, U>) {
        for idle in regions.take_all() {
            // INVARIANT: Of the pool that `regions` keep, which is this one.
            self.at_hand.push(idle);
        }
    }
}
