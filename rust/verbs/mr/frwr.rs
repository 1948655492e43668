// SPDX-License-Identifier: GPL-2.0

//! One memory region: made, mapped, given a handle, unmapped.
//!
//! Who may do what with it, and when, is the business of `mrs`.

use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

use crate::{
    bindings,
    lib::{
        bvec::{
            BVec,
            PAGE, //
        },
        llist::{
            Link,
            Linked, //
        }, //
    },
    trace::{
        self,
        trace, //
    },
    verbs::device::dma_buf::Direction, //
};

use super::{
    mr_pool::MrPool,
    rkey::RkeySequence,
    rkey_owner::RkeyOwner,
    sg::ScatterList, //
};

/// What the peer may do with a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read it.
    Read,
    /// Write it.
    Write,
}

impl Access {
    /// What that is to the device.
    #[inline]
    fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::ToDevice,
            Self::Write => Direction::FromDevice,
        }
    }

    #[inline]
    fn rights(self) -> c_int {
        let rights = match self {
            Self::Read => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            // The specification of memory regions wants the one with the other.
            Self::Write => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        };
        rights.cast_signed()
    }
}

/// A region as the peer is told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    /// What the peer names it by.
    pub(crate) handle: u32,
    /// Bytes.
    pub(crate) length: u32,
    /// The address, in the terms of the handle.
    pub(crate) offset: u64,
}

/// Why memory was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// All regions are in use; more can be made.
    Exhausted,
    /// The device cannot map the memory.
    Failed,
}

/// One region.
///
/// # Invariants
///
/// `pool` is there, and `ib_mr` is a memory region of its domain. What is mapped of `memory` is so
/// for the domain's device.
#[repr(C)]
pub(in crate::verbs) struct Mr<U> {
    /// In the list of those that are idle.
    idle: Link,
    /// In the list of all of a pool.
    pub(in crate::verbs) all: Link,
    /// In [`MrList`].
    pub(in crate::verbs) next: Option<NonNull<Mr<U>>>,
    ib_mr: NonNull<bindings::ib_mr>,
    memory: ScatterList,
    pub(in crate::verbs) exposed: Exposed,
    rkeys: RkeySequence,
    pub(in crate::verbs) rkey_owner: RkeyOwner,
    pub(in crate::verbs) reg: bindings::ib_reg_wr,
    pub(in crate::verbs) reg_cqe: bindings::ib_cqe,
    pub(in crate::verbs) inv: bindings::ib_send_wr,
    pub(in crate::verbs) inv_cqe: bindings::ib_cqe,
    /// For the last of a chain that is being invalidated: its first, and what waits for it.
    pub(in crate::verbs) chain: Option<NonNull<Mr<U>>>,
    pub(in crate::verbs) token: MaybeUninit<U>,
    pub(in crate::verbs) pool: NonNull<MrPool<U>>,
}

/// A region that nobody uses.
///
/// # Invariants
///
/// Nobody else uses the region, which its pool keeps.
pub(in crate::verbs) struct Idle<U>(pub(super) NonNull<Mr<U>>);

// SAFETY: Whoever has it may use the region.
unsafe impl<U: Send> Send for Idle<U> {}

// SAFETY: The pool keeps the region in place; `idle` is only touched by whoever has it.
unsafe impl<U> Linked for Idle<U> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        // `idle` is the first member.
        self.0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: By this function's contract.
        Self(link.cast())
    }
}

/// The pool's share in a region, which frees it.
///
/// # Invariants
///
/// From `KBox`; nobody uses the region once this is dropped.
pub(in crate::verbs) struct Owned<U>(pub(super) NonNull<Mr<U>>);

// SAFETY: A region is not bound to a thread.
unsafe impl<U: Send> Send for Owned<U> {}

// SAFETY: `all` is only touched by the list of all regions.
unsafe impl<U> Linked for Owned<U> {
    fn into_link(self) -> NonNull<Link> {
        // SAFETY: A valid region; the pointer stays inside of it.
        unsafe { NonNull::new_unchecked(&raw mut (*mem::ManuallyDrop::new(self).0.as_ptr()).all) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `link` is the `all` of a region.
        let mr = unsafe { kernel::container_of!(link.as_ptr(), Mr<U>, all) };
        // INVARIANT: As when it was given up.
        // SAFETY: Around a valid pointer, hence not null.
        Self(unsafe { NonNull::new_unchecked(mr) })
    }
}

impl<U> Drop for Owned<U> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariants. The pool is there, or being dropped: `pool.pd` goes
        // after `pool.all`, where this is, and nothing else of the pool is touched.
        unsafe {
            self.0.as_mut().unmap();
            bindings::ib_dereg_mr_user(self.0.as_ref().ib_mr.as_ptr(), ptr::null_mut());
            drop(KBox::from_raw(self.0.as_ptr()));
        }
    }
}

impl<U> Mr<U> {
    /// Makes a region of `pool`, as large as the pool says.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the device reports.
    ///
    /// # Safety
    ///
    /// `pool` does not move, and keeps what is returned for as long as anybody uses the region.
    pub(in crate::verbs) unsafe fn make(pool: &MrPool<U>) -> Result<Owned<U>> {
        let memory = ScatterList::new(pool.depth)?;
        let kind = if pool.gaps {
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS
        } else {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG
        };
        // SAFETY: The domain is there.
        let ib_mr =
            from_err_ptr(unsafe { bindings::ib_alloc_mr(pool.pd.as_ptr(), kind, pool.depth) })?;
        let ib_mr = NonNull::new(ib_mr).ok_or(ENOMEM)?;
        // INVARIANT: The pool stays, by this function's contract, and `ib_mr` was just made in its
        // domain. Nothing is mapped.
        let mr = KBox::new(
            Self {
                idle: Link::new(),
                all: Link::new(),
                next: None,
                ib_mr,
                memory,
                exposed: Exposed {
                    handle: 0,
                    length: 0,
                    offset: 0,
                },
                // SAFETY: Just made. CAST: The last byte.
                rkeys: RkeySequence::having(unsafe { ib_mr.as_ref() }.rkey as u8),
                rkey_owner: RkeyOwner::never(),
                reg: pin_init::zeroed(),
                reg_cqe: bindings::ib_cqe {
                    done: Some(pool.reg_done),
                },
                inv: pin_init::zeroed(),
                inv_cqe: bindings::ib_cqe { done: None },
                chain: None,
                token: MaybeUninit::uninit(),
                pool: NonNull::from(pool),
            },
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: Just made, and nobody's.
            unsafe { bindings::ib_dereg_mr_user(ib_mr.as_ptr(), ptr::null_mut()) };
        })?;
        let mr = NonNull::from(KBox::leak(mr));
        let p = mr.as_ptr();
        // What never changes in its work requests. The cells are part of the region, which does not
        // move.
        // SAFETY: Ours alone.
        unsafe {
            (*p).reg.mr = ib_mr.as_ptr();
            (*p).reg.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
            *(*p).reg.wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*p).reg_cqe;
            (*p).inv.opcode = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
            *(*p).inv.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*p).inv_cqe;
        }
        // INVARIANT: From `KBox`; the pool drops this after all who use the region.
        Ok(Owned(mr))
    }

    #[inline]
    fn device(&self) -> *mut bindings::ib_device {
        // SAFETY: By the type's invariants: the pool keeps its regions, not the other way round.
        unsafe { self.pool.as_ref() }.pd.device()
    }

    /// For traces.
    pub(in crate::verbs) fn traced(&self) -> trace::Mr {
        trace::Mr {
            mr_id: self.id(),
            nents: self.memory.mapped(),
            handle: self.exposed.handle,
            length: self.exposed.length,
            offset: self.exposed.offset,
            dir: self.memory.direction().as_raw().cast_unsigned(),
        }
    }

    /// What names the region in traces.
    pub(in crate::verbs) fn id(&self) -> u32 {
        // SAFETY: The memory region is there as long as this.
        unsafe { self.ib_mr.as_ref() }.res.id
    }

    pub(in crate::verbs) fn unmap(&mut self) {
        if self.memory.mapped() != 0 {
            trace!(xprtrdma_mr_unmap(&self.traced()));
            // SAFETY: By the type's invariants.
            unsafe { self.memory.unmap(self.device()) };
        }
    }

    /// Keeps the pages until the region is unmapped, even if their owner frees them earlier.
    pub(in crate::verbs) fn hold(&mut self) {
        self.memory.hold();
    }

    /// Maps the pieces from the front of `bvecs` that one region can cover, starting with `first`,
    /// for the peer to use them as `access` says; returns the one after them. The region is idle.
    #[inline]
    pub(in crate::verbs) fn map<'p>(
        &mut self,
        first: BVec<'p>,
        bvecs: &mut impl Iterator<Item = BVec<'p>>,
        gaps: bool,
        access: Access,
    ) -> Result<Option<BVec<'p>>, MapError> {
        let (count, after) = self.memory.fill(first, bvecs, gaps);
        self.map_first(count, access)?;
        Ok(after)
    }

    /// Maps the first `count` pieces that are described.
    #[inline]
    fn map_first(&mut self, count: usize, access: Access) -> Result<(), MapError> {
        let direction = access.direction();
        let dir = direction.as_raw().cast_unsigned();
        // SAFETY: As many are described, and an idle region has nothing mapped. The memory stays
        // until the region is unmapped, by promise P1 of `Documentation/architecture.rst`, and the
        // device is there as long as the region.
        // INVARIANT: The device is the domain's.
        let runs = unsafe { self.memory.map(self.device(), count, direction) };
        let Some(runs) = runs else {
            // CAST: No more than the region's depth, which the device counts in 32 bits.
            trace!(xprtrdma_frwr_sgerr(self.id(), 0, dir, count as c_int));
            return Err(MapError::Failed);
        };
        let ib_mr = self.ib_mr.as_ptr();
        // SAFETY: The region is idle, so that its memory region is ours.
        let covered = unsafe {
            bindings::ib_map_mr_sg(ib_mr, self.memory.as_mut_ptr(), runs, ptr::null_mut(), PAGE)
        };
        if covered != runs {
            trace!(xprtrdma_frwr_maperr(self.id(), 0, dir, covered, runs));
            return Err(MapError::Failed);
        }
        // SAFETY: Has no preconditions.
        let random = unsafe { bindings::get_random_u64() };
        // SAFETY: As before, the memory region is ours.
        unsafe {
            // The offset within the page means something to the device, the rest nothing to
            // anybody. Far from the end of the address space, so that nothing wraps.
            let place = u64::from(PAGE) - 1;
            (*ib_mr).iova = ((random >> 2) & !place) | ((*ib_mr).iova & place);
            // CAST: A byte that the address does not have.
            let key = self.rkeys.draw(random as u8);
            (*ib_mr).lkey = ((*ib_mr).lkey & !0xff) | u32::from(key);
            (*ib_mr).rkey = ((*ib_mr).rkey & !0xff) | u32::from(key);
            self.reg.key = (*ib_mr).rkey;
            self.reg.access = access.rights();
            self.exposed = Exposed {
                handle: (*ib_mr).rkey,
                // CAST: At most `depth` pages.
                length: (*ib_mr).length as u32,
                offset: (*ib_mr).iova,
            };
        }
        Ok(())
    }

    /// The regions of a chain, in order.
    ///
    /// # Safety
    ///
    /// From `first` through `next` to the last, the regions are there; each may be given up once it
    /// has been returned.
    #[inline]
    pub(in crate::verbs) unsafe fn chain_from(
        first: Option<NonNull<Self>>,
    ) -> impl Iterator<Item = NonNull<Self>> {
        let mut next = first;
        core::iter::from_fn(move || {
            let mr = next?;
            // SAFETY: By this function's contract. The link is read before the region can be given
            // up.
            next = unsafe { (*mr.as_ptr()).next };
            Some(mr)
        })
    }

    /// The region after this one in a chain.
    #[inline]
    pub(in crate::verbs) fn next(&self) -> Option<NonNull<Self>> {
        self.next
    }

    /// What the peer names it by.
    #[inline]
    pub(in crate::verbs) fn handle(&self) -> u32 {
        self.exposed.handle
    }
}
