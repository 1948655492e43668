// SPDX-License-Identifier: GPL-2.0

//! Operations on one MR: DMA mapping, rkey, registration, LOCAL_INV, unmapping.
//!
//! C: frwr_ops.c, frwr_map(), frwr_mr_unmap()

use core::ptr;

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    bindings,
    lib::bvec::PAGE,
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

use super::mr_alloc::MrRef;

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
    /// Maps the memory that the first `count` entries of [`Self::memory_mut`] describe, up to the
    /// first gap of bus addresses; returns how many entries that are.
    ///
    /// Memory without gaps may be mapped with gaps: bounce buffers (swiotlb) do not keep the offset
    /// in a page.
    ///
    /// # Safety
    ///
    /// The MR is idle. [`ScatterList::fill`](super::sg::ScatterList::fill) has described the
    /// entries since they were last mapped, and their memory stays until the MR is unmapped.
    #[inline]
    pub(super) unsafe fn map(&mut self, count: usize, access: Access) -> Result<usize, MapError> {
        let direction = access.direction();
        let mut count = count;
        // SAFETY: By this function's contract; nothing is mapped if `try_map` returns `Some`.
        while let Some(fewer) = unsafe { self.try_map(count, direction)? } {
            self.memory_mut().renew(fewer);
            count = fewer;
        }
        let own = self.own_mut();
        // CAST: No more entries than the depth of an MR, which is 32 bits.
        own.nents = count as u32;
        own.direction = direction;
        // The peer cannot predict the rkey nor the offset.
        // SAFETY: Has no preconditions.
        let random = unsafe { bindings::get_random_u64() };
        // CAST: A byte that the offset does not use.
        let key = own.rkeys.draw(random as u8);
        // Below 2^62, so that the end of the MR does not wrap.
        // SAFETY: The device does not know an idle MR as valid.
        own.exposed = unsafe { own.ib_mr.set_key(key, random >> 2) };
        own.reg.key = own.exposed.handle;
        own.reg.access = access.rights();
        Ok(count)
    }

    /// Maps the first `count` entries. If the MR cannot cover all of them, unmaps them, and returns
    /// how many it can.
    ///
    /// # Safety
    ///
    /// As for [`Self::map`]; nothing is mapped.
    #[inline]
    unsafe fn try_map(
        &mut self,
        count: usize,
        direction: Direction,
    ) -> Result<Option<usize>, MapError> {
        let dir = direction.as_raw();
        // SAFETY: By this function's contract.
        let runs = unsafe { self.memory_mut().map(count, direction) };
        let Some(runs) = runs else {
            // CAST: At most the depth of an MR, which is 32 bits.
            trace!(xprtrdma_frwr_sgerr(self.id(), 0, dir, count as c_int));
            return Err(MapError::Failed);
        };
        let ib_mr = self.own_mut().ib_mr.as_ptr();
        let list = self.memory_mut().as_mut_ptr();
        // SAFETY: `ib_mr` is valid, and the device does not use it: the MR is idle. The list has
        // `runs` entries that are mapped for its device.
        let covered = unsafe { bindings::ib_map_mr_sg(ib_mr, list, runs, ptr::null_mut(), PAGE) };
        if covered == runs {
            return Ok(None);
        }
        self.memory_mut().unmap();
        match usize::try_from(covered) {
            // Each run is an entry.
            Ok(fewer @ 1..) if usize::try_from(runs) == Ok(count) => Ok(Some(fewer)),
            _ => {
                trace!(xprtrdma_frwr_maperr(self.id(), 0, dir, covered, runs));
                Err(MapError::Failed)
            }
        }
    }

    /// Holds a reference to each mapped page until the MR is unmapped.
    pub(super) fn hold(&mut self) {
        self.memory_mut().hold();
    }

    /// Puts the registration of the MR, which is mapped, in front of `wr`, and returns it.
    #[inline]
    pub(super) fn register_before(
        &mut self,
        wr: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        self.registered.store(true, Relaxed);
        let reg = &mut self.own_mut().reg;
        reg.wr.next = wr;
        &raw mut reg.wr
    }

    /// Prepares the LOCAL_INV of the MR, in front of that of the next MR in its chain. Only the
    /// last one is signalled.
    #[inline]
    pub(super) fn prepare_inv(&mut self, passed: Done, last: Done) -> *mut bindings::ib_send_wr {
        let own = self.own_mut();
        let (next, flags, done) = match &mut own.next {
            Some(next) => (&raw mut next.own_mut().inv, 0, passed),
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
        &raw mut own.inv
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
