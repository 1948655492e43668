// SPDX-License-Identifier: GPL-2.0

//! Operations on one MR: DMA mapping, rkey, registration, LOCAL_INV, unmapping.
//!
//! C: frwr_ops.c, frwr_map(), frwr_mr_unmap(), frwr_mr_put()

use core::ptr;

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    bindings,
    lib::bvec::{
        BVec,
        PAGE, //
    },
    trace::{
        self,
        trace, //
    },
    verbs::{
        device::dma_buf::Direction,
        endpoint::{
            completion::Done,
            send_wr::set_invalidate, //
        }, //
    }, //
};

use super::mr_alloc::{
    Exposed,
    MrRef, //
};

/// What the peer may do with an MR.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// RDMA Read.
    Read,
    /// RDMA Write.
    Write,
}

impl Access {
    /// The direction in which the local device moves the data.
    #[inline]
    fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::ToDevice,
            Self::Write => Direction::FromDevice,
        }
    }

    /// The `ib_access_flags` of the registration.
    #[inline]
    fn rights(self) -> c_int {
        let rights = match self {
            Self::Read => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            // Remote write access requires local write access (InfiniBand specification,
            // Section 10.6.3).
            Self::Write => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        };
        rights as c_int
    }
}

/// Why memory was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// All MRs are in use; more can be allocated.
    Exhausted,
    /// The device cannot map the memory.
    Failed,
}

impl<W> MrRef<W> {
    /// Maps as many pages from the front of `bvecs`, starting with `first`, as one MR can cover;
    /// returns the first that is left. The MR is idle.
    ///
    /// # Safety
    ///
    /// The memory stays until the MR is unmapped.
    #[inline]
    pub(super) unsafe fn map<'p>(
        &mut self,
        first: BVec<'p>,
        bvecs: &mut impl Iterator<Item = BVec<'p>>,
        gaps: bool,
        access: Access,
    ) -> Result<Option<BVec<'p>>, MapError> {
        let (count, after) = self.memory_mut().fill(first, bvecs, gaps);
        // SAFETY: By this function's contract.
        unsafe { self.map_first(count, access)? };
        Ok(after)
    }

    /// Maps the first `count` entries that [`ScatterList::fill`] described.
    ///
    /// # Safety
    ///
    /// As for [`Self::map`].
    #[inline]
    unsafe fn map_first(&mut self, count: usize, access: Access) -> Result<(), MapError> {
        let direction = access.direction();
        let dir = direction.as_raw();
        // SAFETY: `fill` described `count` entries of an idle MR, of which nothing is mapped; their
        // memory stays, by this function's contract.
        let runs = unsafe { self.memory_mut().map(count, direction) };
        let Some(runs) = runs else {
            // CAST: At most the depth of an MR, which is 32 bits.
            trace!(xprtrdma_frwr_sgerr(self.id(), 0, dir, count as c_int));
            return Err(MapError::Failed);
        };
        let ib_mr = self.ib_mr.as_ptr();
        let list = self.memory_mut().as_mut_ptr();
        // SAFETY: `ib_mr` stays (I1 of `Mr`), and is not in use: the MR is idle, and ours. The list
        // has `runs` entries that are mapped for its device.
        let covered = unsafe { bindings::ib_map_mr_sg(ib_mr, list, runs, ptr::null_mut(), PAGE) };
        if covered != runs {
            trace!(xprtrdma_frwr_maperr(self.id(), 0, dir, covered, runs));
            return Err(MapError::Failed);
        }
        // CAST: No more entries than the depth of an MR, which is 32 bits.
        self.own_mut().nents = count as u32;
        self.own_mut().direction = direction;
        self.draw_rkey(access);
        Ok(())
    }

    /// Gives the MR, which was just mapped, an rkey and an offset that the peer cannot predict.
    #[inline]
    fn draw_rkey(&mut self, access: Access) {
        // SAFETY: Has no preconditions.
        let random = unsafe { bindings::get_random_u64() };
        // CAST: A byte that the offset below does not use.
        let key = u32::from(self.own_mut().rkeys.draw(random as u8));
        let ib_mr = self.ib_mr.as_ptr();
        // SAFETY: `ib_mr` stays (I1 of `Mr`), and only the MR's holder accesses these members.
        let (iova, lkey, rkey, length) =
            unsafe { ((*ib_mr).iova, (*ib_mr).lkey, (*ib_mr).rkey, (*ib_mr).length) };
        // The device needs the offset within the page; the rest is free. Below 2^62, so that the
        // end of the MR does not wrap.
        let in_page = u64::from(PAGE) - 1;
        let exposed = Exposed {
            handle: (rkey & !0xff) | key,
            // CAST: At most `depth` pages.
            length: length as u32,
            offset: ((random >> 2) & !in_page) | (iova & in_page),
        };
        // SAFETY: As above.
        unsafe {
            (*ib_mr).iova = exposed.offset;
            (*ib_mr).lkey = (lkey & !0xff) | key;
            (*ib_mr).rkey = exposed.handle;
        }
        let own = self.own_mut();
        own.reg.key = exposed.handle;
        own.reg.access = access.rights();
        own.exposed = exposed;
    }

    /// Holds a reference to each mapped page until the MR is unmapped.
    pub(super) fn hold(&mut self) {
        self.memory_mut().hold();
    }

    /// Puts the registration of the MR, which is mapped, in front of `wr`, and returns it.
    #[inline]
    pub(super) fn register_before(
        &self,
        wr: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        self.registered.store(true, Relaxed);
        let own = self.own.get();
        // SAFETY: Ours (I2 of `Mr`), and no reference to it is in use.
        unsafe {
            (*own).reg.wr.next = wr;
            &raw mut (*own).reg.wr
        }
    }

    /// Prepares the LOCAL_INV of the MR, in front of that of the next MR in its chain. Only the
    /// last one is signalled.
    #[inline]
    pub(super) fn prepare_inv(&mut self, passed: Done, last: Done) -> *mut bindings::ib_send_wr {
        let own = self.own_mut();
        let (next, flags, done) = match &own.next {
            Some(next) => (next.inv(), 0, passed),
            None => (
                ptr::null_mut(),
                bindings::ib_send_flags_IB_SEND_SIGNALED,
                last,
            ),
        };
        own.inv.next = next;
        own.inv.send_flags = flags;
        own.inv_cqe.done = Some(done);
        set_invalidate(&mut own.inv, own.exposed.handle);
        self.inv()
    }

    #[inline]
    fn inv(&self) -> *mut bindings::ib_send_wr {
        // SAFETY: Stays inside of the MR, which the pool keeps (I1).
        unsafe { &raw mut (*self.own.get()).inv }
    }

    /// Unmaps the memory, if it is mapped.
    ///
    /// # Safety
    ///
    /// The peer cannot reach the MR: its registration was never posted, it was invalidated, or its
    /// QP is in the error state. If it was registered, a reference to its endpoint is in use.
    #[inline]
    pub(super) unsafe fn unmap(&mut self) {
        if self.memory_mut().mapped() != 0 {
            trace!(xprtrdma_mr_unmap(&self.traced()));
            self.memory_mut().unmap();
        }
        self.registered.store(false, Relaxed);
    }

    /// Unmaps the memory and makes the MR idle. A full barrier: see
    /// [`MrPool::was_wanted`](super::mr_pool::MrPool::was_wanted).
    ///
    /// # Safety
    ///
    /// As for [`Self::unmap`], and the device does not know the MR as valid.
    #[inline]
    pub(super) unsafe fn put_back(mut self) {
        // SAFETY: By this function's contract.
        unsafe { self.unmap() };
        self.into_idle();
    }

    /// The MR as traces show it.
    pub(super) fn traced(&self) -> trace::Mr {
        let own = self.own();
        trace::Mr {
            mr_id: self.id(),
            nents: own.nents,
            handle: own.exposed.handle,
            length: own.exposed.length,
            offset: own.exposed.offset,
            dir: own.direction.as_raw(),
        }
    }
}
