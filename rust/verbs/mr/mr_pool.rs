// SPDX-License-Identifier: GPL-2.0

//! The regions of one connection: made, idle, taken back.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        barrier::smp_mb,
        Arc, //
    }, //
};

use crate::{
    lib::llist::Stack,
    trace::trace,
    verbs::{
        device::pd::Pd,
        endpoint::{
            completion::Done,
            ep::HeldUntilDrained, //
        }, //
    }, //
};

use super::frwr::{
    Idle,
    Mr, //
    Owned,
};

/// The regions of one connection. It keeps them until the last of what they are used by is gone.
pub(crate) struct MrPool<U> {
    /// Put here by whoever is done with one. Goes before `all`, to which they belong.
    pub(in crate::verbs) idle: Stack<Idle<U>>,
    pub(in crate::verbs) all: Stack<Owned<U>>,
    /// Whoever maps memory waits for idle ones.
    wanted: Atomic<bool>,
    pub(in crate::verbs) depth: u32,
    pub(in crate::verbs) gaps: bool,
    pub(in crate::verbs) reg_done: Done,
    /// Last: `all` unmaps and deregisters by it.
    pub(in crate::verbs) pd: Arc<Pd>,
}

impl<U: Send + 'static> MrPool<U> {
    /// A pool without regions; each will cover `depth` pages, with gaps between them if the device
    /// can do that. `reg_done` handles registrations that did not succeed.
    pub(in crate::verbs) fn new(
        pd: &Arc<Pd>,
        depth: u32,
        gaps: bool,
        reg_done: Done,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                idle: Stack::new(),
                all: Stack::new(),
                wanted: Atomic::new(false),
                depth,
                gaps,
                reg_done,
                pd: pd.clone(),
            },
            GFP_KERNEL,
        )?)
    }

    /// Makes up to `count` more regions; returns how many. Sleeps, and asks for memory like
    /// anybody: not for those who must not wait for another RPC.
    pub(crate) fn grow(&self, count: u32) -> u32 {
        (0..count)
            .take_while(|_| match self.make() {
                Ok(mr) => {
                    self.idle.push(mr);
                    true
                }
                Err(error) => {
                    trace!(xprtrdma_frwr_alloc(0, error.to_errno()));
                    false
                }
            })
            .fold(0, |made, _| made + 1)
    }

    fn make(&self) -> Result<Idle<U>> {
        // SAFETY: A pool is in an `Arc`, and kept by whoever uses its regions.
        let owned = unsafe { Mr::make(self)? };
        let mr = owned.0;
        self.all.push(owned);
        // INVARIANT: Just made, and kept.
        Ok(Idle(mr))
    }
}

impl<U> MrPool<U> {
    /// Says that the caller waits for regions. Call after the task is queued for write space and a
    /// full barrier, then check [`Self::has_idle`]. Set any earlier, [`Self::was_wanted`] could
    /// clear the flag before anybody waits: a lost wake-up.
    #[cold]
    pub(crate) fn want(&self) {
        self.wanted.store(true, Relaxed);
        // Pairs with the barrier of putting one back.
        smp_mb();
    }

    /// Whether there are regions that whoever maps memory has not seen yet.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Whether somebody has begun to wait for regions, and is to be told that there are some: for
    /// those who have put some back, or made some.
    #[inline]
    pub(crate) fn was_wanted(&self) -> bool {
        // Putting one back is a full barrier: whoever wants some, and is not seen here, sees the
        // region.
        if !self.wanted.load(Relaxed) {
            return false;
        }
        self.wanted.store(false, Relaxed);
        true
    }

    /// Takes back a region that the peer cannot reach.
    ///
    /// # Safety
    ///
    /// `mr` is the caller's, of this pool, and it is not registered.
    #[inline]
    pub(in crate::verbs) unsafe fn put_back(&self, mr: NonNull<Mr<U>>) {
        // SAFETY: By this function's contract.
        unsafe { (*mr.as_ptr()).unmap() };
        // INVARIANT: The caller gives it up.
        self.idle.push(Idle(mr));
    }
}

impl<U: Send + 'static> HeldUntilDrained for Arc<MrPool<U>> {
    /// Unmaps what is still mapped: its memory belongs to RPCs that are about to be sent again, or
    /// that were given up.
    fn queues_ended(&self) {
        // SAFETY: Nothing is taken out of the list of all before the pool ends.
        for link in unsafe { self.all.links() } {
            // SAFETY: The link is the `all` of a region, which stays as long as the pool. Nobody
            // else uses those that are mapped: no handler runs any more, and nobody sends.
            unsafe {
                let mr = kernel::container_of!(link.as_ptr(), Mr<U>, all);
                (*mr).unmap();
            }
        }
    }
}

/// Takes back regions that the peer cannot reach, from `first` through `next` to the last.
///
/// # Safety
///
/// The regions are the caller's, not registered, and their pool is there.
#[inline]
pub(in crate::verbs) unsafe fn reclaim<U>(first: NonNull<Mr<U>>) {
    // SAFETY: By this function's contract.
    for mr in unsafe { Mr::chain_from(Some(first)) } {
        // SAFETY: As above.
        unsafe {
            let pool = mr.as_ref().pool;
            pool.as_ref().put_back(mr);
        }
    }
}

/// Gives up regions of a queue pair that has ended: unmaps them, and leaves it at that. From
/// `first` through `next` to the last.
///
/// # Safety
///
/// The regions are the caller's, their pool is there, and their queue pair answers nobody any more.
#[cold]
pub(in crate::verbs) unsafe fn retire<U>(first: NonNull<Mr<U>>) {
    // SAFETY: By this function's contract.
    for mr in unsafe { Mr::chain_from(Some(first)) } {
        // SAFETY: As above.
        unsafe { (*mr.as_ptr()).unmap() };
    }
}
