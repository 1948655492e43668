// SPDX-License-Identifier: GPL-2.0

//! One MR: what it consists of, its allocation and its end.
//!
//! C: frwr_ops.c, frwr_mr_init(), frwr_mr_release()
//! C: xprt_rdma.h, struct rpcrdma_mr

use core::{
    cell::UnsafeCell,
    mem,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        Completion, //
    }, //
};

use crate::{
    bindings,
    lib::llist::{
        Link,
        Linked,
        Stack, //
    },
    verbs::{
        device::{
            dma_buf::Direction,
            pd::Pd, //
        },
        endpoint::completion::Done, //
    }, //
};

use super::{
    rkey::RkeySequence,
    rkey_owner::RkeyOwner,
    sg::ScatterList, //
};

/// An MR as a chunk segment describes it to the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    /// The rkey.
    pub(crate) handle: u32,
    /// Length in bytes.
    pub(crate) length: u32,
    /// Address of the first byte, relative to the handle.
    pub(crate) offset: u64,
}

/// What the MRs of a pool have in common.
pub(super) struct MrSpec {
    /// Pages that each MR can cover.
    pub(super) depth: u32,
    /// The pages need not adjoin each other.
    pub(super) gaps: bool,
    /// Handles registrations that fail.
    pub(super) reg_done: Done,
}

/// An MR.
///
/// # Invariants
///
/// - I1: `ib_mr` belongs to the PD of the MR's pool, and `memory` maps for the device of that PD.
///   The pool keeps both. `idle_mrs` is part of the pool.
/// - I2: `own` and `memory` belong to the holder of the only [`MrRef`], with one exception: while
///   `registered` is set, `MrPool::queues_ended` may access both.
/// - I3: `registered` is set while the device may know the MR as valid and its memory is mapped. It
///   changes only while an [`Endpoint`](crate::verbs::Endpoint) of the pool is borrowed.
#[repr(C)]
pub(in crate::verbs) struct Mr<W> {
    /// Links the idle MRs. First, so that a pointer to it is a pointer to the MR.
    idle: Link,
    /// Links all MRs of the pool.
    all: Link,
    pub(super) ib_mr: NonNull<bindings::ib_mr>,
    /// The list of idle MRs in the pool.
    idle_mrs: NonNull<Stack<MrRef<W>>>,
    pub(super) rkey_owner: RkeyOwner,
    pub(super) registered: Atomic<bool>,
    pub(super) memory: UnsafeCell<ScatterList>,
    pub(super) own: UnsafeCell<Own<W>>,
}

/// The part of an MR that only the holder of its [`MrRef`] accesses.
pub(super) struct Own<W> {
    /// The next MR of a chain.
    pub(super) next: Option<MrRef<W>>,
    pub(super) exposed: Exposed,
    /// Mapped scatterlist entries, for traces.
    pub(super) nents: u32,
    pub(super) direction: Direction,
    pub(super) rkeys: RkeySequence,
    pub(super) reg: bindings::ib_reg_wr,
    pub(super) reg_cqe: bindings::ib_cqe,
    pub(super) inv: bindings::ib_send_wr,
    pub(super) inv_cqe: bindings::ib_cqe,
    /// In the last MR of a chain whose LOCAL_INVs are posted.
    pub(super) posted: Option<Posted<W>>,
}

/// A chain of MRs whose LOCAL_INVs are posted. It is kept in the last of them until that one's
/// completes.
pub(super) struct Posted<W> {
    /// The first MR.
    pub(super) first: MrRef<W>,
    /// What waits for the completion.
    pub(super) waiter: Waiter<W>,
}

/// What waits for the completion of LOCAL_INVs.
pub(super) enum Waiter<W> {
    /// Is passed to the context of the endpoint.
    Token(W),
    /// A task that sleeps.
    Task(WaitingTask),
}

/// A task that sleeps until LOCAL_INVs have completed.
///
/// # Invariants
///
/// - I1: The task does not return before [`Self::wake`].
pub(super) struct WaitingTask(NonNull<Invalidation>);

// SAFETY: What it points to is `Sync`.
unsafe impl Send for WaitingTask {}

/// LOCAL_INVs that a task waits for.
#[pin_data]
pub(super) struct Invalidation {
    #[pin]
    completion: Completion,
    succeeded: Atomic<bool>,
}

impl Invalidation {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            completion <- Completion::new(),
            succeeded: Atomic::new(false),
        })
    }

    /// What wakes the calling task.
    ///
    /// # Safety
    ///
    /// The task calls [`Self::wait`] if the result is not dropped, and does not return before.
    pub(super) unsafe fn waiter(&self) -> WaitingTask {
        // INVARIANT: By this function's contract.
        WaitingTask(NonNull::from(self))
    }

    /// Sleeps until [`WaitingTask::wake`]; returns whether the MRs are invalid.
    pub(super) fn wait(&self) -> bool {
        self.completion.wait_for_completion();
        self.succeeded.load(Relaxed)
    }
}

impl WaitingTask {
    /// Wakes the task.
    pub(super) fn wake(self, succeeded: bool) {
        // SAFETY: The task waits (I1). `complete_all()` is the last to touch it.
        let invalidation = unsafe { self.0.as_ref() };
        invalidation.succeeded.store(succeeded, Relaxed);
        invalidation.completion.complete_all();
    }
}

/// The right to use an MR. It has no destructor: an MR whose right is lost stays unused until its
/// pool frees it.
///
/// # Invariants
///
/// - I1: The MR's pool stays while this is used.
/// - I2: There is no other `MrRef` of the MR.
#[repr(transparent)]
pub(in crate::verbs) struct MrRef<W>(NonNull<Mr<W>>);

// SAFETY: By I2 the receiving thread becomes the only user of `own` and `memory`. Verbs and the DMA
// API may be called on any thread. `W` moves along in `posted`, and is `Send`.
unsafe impl<W: Send> Send for MrRef<W> {}

// SAFETY: `into_link` gives up the only right to the MR (I2), and the pool keeps the MR in place.
// Nothing but a list accesses `idle`.
unsafe impl<W> Linked for MrRef<W> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        // `idle` is the first member.
        self.0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: The right that `into_link` gave up, by this function's contract.
        Self(link.cast())
    }
}

impl<W> Deref for MrRef<W> {
    type Target = Mr<W>;

    #[inline]
    fn deref(&self) -> &Mr<W> {
        // SAFETY: The pool owns the MR, and stays (I1). All that changes is in cells and atomics.
        unsafe { self.0.as_ref() }
    }
}

impl<W> MrRef<W> {
    /// The right to the MR at `mr`.
    ///
    /// # Safety
    ///
    /// The MR's pool stays while the result is used, and no other `MrRef` of this MR is.
    #[inline]
    pub(super) unsafe fn from_ptr(mr: NonNull<Mr<W>>) -> Self {
        // INVARIANT: By this function's contract.
        Self(mr)
    }

    /// A pointer that names the MR.
    #[inline]
    pub(super) fn as_ptr(&self) -> NonNull<Mr<W>> {
        self.0
    }

    /// The holder's part.
    #[inline]
    pub(super) fn own(&self) -> &Own<W> {
        // SAFETY: Only the holder of the right accesses `own` (I2 of `Mr`), which is borrowed.
        // `queues_ended` writes `posted` alone, and of MRs whose `MrRef` is inside of it.
        unsafe { &*self.own.get() }
    }

    /// The holder's part, to be changed.
    #[inline]
    pub(super) fn own_mut(&mut self) -> &mut Own<W> {
        // SAFETY: As in `own`; the right is borrowed exclusively.
        unsafe { &mut *self.own.get() }
    }

    /// Puts the MR, which is not mapped, into the list of idle ones.
    #[inline]
    pub(super) fn into_idle(self) {
        let idle = self.idle_mrs;
        // SAFETY: Part of the pool, which stays (I1).
        unsafe { idle.as_ref() }.push(self);
    }

    /// The memory, to be mapped or unmapped.
    #[inline]
    pub(super) fn memory_mut(&mut self) -> &mut ScatterList {
        // SAFETY: Only the holder of the right accesses `memory` (I2 of `Mr`), and it is borrowed
        // exclusively. An MR that `queues_ended` might unmap is registered: those are unmapped by
        // holders of an endpoint's reference, which cannot exist while the endpoint is dropped.
        unsafe { &mut *self.memory.get() }
    }
}

/// The pool's ownership of an MR, which frees it.
///
/// # Invariants
///
/// - I1: Points to an MR from `KBox`, which no [`MrRef`] is used for once this is dropped.
pub(super) struct OwnedMr<W>(NonNull<Mr<W>>);

// SAFETY: Nothing of an MR is bound to a thread, and a token that is still inside is `Send`.
unsafe impl<W: Send> Send for OwnedMr<W> {}

// SAFETY: The MR stays in place until it is freed by the drop of this. Nothing but the pool's list
// of all MRs accesses `all`.
unsafe impl<W> Linked for OwnedMr<W> {
    fn into_link(self) -> NonNull<Link> {
        let mr = mem::ManuallyDrop::new(self).0;
        // SAFETY: A valid MR (I1); the pointer stays inside of it.
        unsafe { NonNull::new_unchecked(&raw mut (*mr.as_ptr()).all) }
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // INVARIANT: As when it was given up.
        // SAFETY: By this function's contract, `link` is the `all` of an MR.
        Self(unsafe { Mr::of_all(link) })
    }
}

impl<W> Drop for OwnedMr<W> {
    fn drop(&mut self) {
        // SAFETY: No right to the MR is used any more (I1).
        let mr = unsafe { KBox::from_raw(self.0.as_ptr()) };
        // Nothing is mapped: a list of mapped MRs keeps the pool, and registered ones were unmapped
        // by `MrPool::queues_ended`.
        // SAFETY: Allocated by `Mr::alloc`; the PD stays while the pool does (I1 of `Mr`).
        unsafe { bindings::ib_dereg_mr_user(mr.ib_mr.as_ptr(), ptr::null_mut()) };
    }
}

impl<W> Mr<W> {
    /// Allocates an MR.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the device's error.
    ///
    /// # Safety
    ///
    /// `pd` and `idle_mrs` are part of a pool that does not move. It keeps the first result, and
    /// stays while the second is used.
    pub(super) unsafe fn alloc(
        pd: &Arc<Pd>,
        spec: &MrSpec,
        idle_mrs: &Stack<MrRef<W>>,
    ) -> Result<(OwnedMr<W>, MrRef<W>)> {
        // SAFETY: The pool keeps the PD, and the MR.
        let memory = unsafe { ScatterList::new(pd, spec.depth)? };
        let kind = if spec.gaps {
            bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS
        } else {
            bindings::ib_mr_type_IB_MR_TYPE_MEM_REG
        };
        // SAFETY: A valid PD.
        let ib_mr = from_err_ptr(unsafe { bindings::ib_alloc_mr(pd.as_ptr(), kind, spec.depth) })?;
        let ib_mr = NonNull::new(ib_mr).ok_or(ENOMEM)?;
        // SAFETY: Just allocated.
        let rkey = unsafe { (*ib_mr.as_ptr()).rkey };
        // INVARIANT: `ib_mr` and `memory` are for the pool's PD (I1). The one `MrRef` is returned
        // below (I2), and the device does not know the MR as valid (I3).
        let mr = KBox::new(
            Self {
                idle: Link::new(),
                all: Link::new(),
                ib_mr,
                idle_mrs: NonNull::from(idle_mrs),
                rkey_owner: RkeyOwner::none(),
                registered: Atomic::new(false),
                memory: UnsafeCell::new(memory),
                // CAST: The low byte.
                own: UnsafeCell::new(Own::new(ib_mr, rkey as u8, spec)),
            },
            GFP_KERNEL,
        )
        .inspect_err(|_| {
            // SAFETY: Just allocated, and not in use.
            unsafe { bindings::ib_dereg_mr_user(ib_mr.as_ptr(), ptr::null_mut()) };
        })?;
        let mr = NonNull::from(KBox::leak(mr));
        // SAFETY: Just allocated.
        let own = unsafe { mr.as_ref() }.own.get();
        // SAFETY: The MR is not shared yet. The CQEs are part of it, and it does not move.
        unsafe {
            *(*own).reg.wr.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*own).reg_cqe;
            *(*own).inv.__bindgen_anon_1.wr_cqe.as_mut() = &raw mut (*own).inv_cqe;
        }
        // INVARIANT: From `KBox`; the pool drops this last, by this function's contract.
        let owned = OwnedMr(mr);
        // INVARIANT: The first `MrRef`; the pool stays, by this function's contract.
        Ok((owned, MrRef(mr)))
    }

    /// The MR that links `link` into the list of all MRs of its pool.
    ///
    /// # Safety
    ///
    /// `link` comes from [`OwnedMr::into_link`].
    pub(super) unsafe fn of_all(link: NonNull<Link>) -> NonNull<Self> {
        // SAFETY: By this function's contract, `link` is a member of an MR.
        unsafe { NonNull::new_unchecked(kernel::container_of!(link.as_ptr(), Self, all)) }
    }

    /// The MR that `cqe` is the `reg_cqe` of.
    ///
    /// # Safety
    ///
    /// `cqe` comes from a registration that [`MrRef::register_before`] returned.
    pub(super) unsafe fn of_reg_cqe(cqe: *mut bindings::ib_cqe) -> NonNull<Self> {
        // SAFETY: By this function's contract, `cqe` is a member of an `Own`.
        unsafe { Self::of_own(kernel::container_of!(cqe, Own<W>, reg_cqe)) }
    }

    /// The MR that `cqe` is the `inv_cqe` of.
    ///
    /// # Safety
    ///
    /// `cqe` comes from the `inv` of an MR.
    pub(super) unsafe fn of_inv_cqe(cqe: *mut bindings::ib_cqe) -> NonNull<Self> {
        // SAFETY: By this function's contract, `cqe` is a member of an `Own`.
        unsafe { Self::of_own(kernel::container_of!(cqe, Own<W>, inv_cqe)) }
    }

    /// # Safety
    ///
    /// `own` is that of an MR.
    unsafe fn of_own(own: *mut Own<W>) -> NonNull<Self> {
        let cell = own.cast::<UnsafeCell<Own<W>>>();
        // SAFETY: `UnsafeCell` is `repr(transparent)`, and by this function's contract.
        unsafe { NonNull::new_unchecked(kernel::container_of!(cell, Self, own)) }
    }

    /// The number of the MR in traces and in `rdma resource`.
    pub(super) fn id(&self) -> u32 {
        // SAFETY: `ib_mr` stays (I1), and the number does not change.
        unsafe { (*self.ib_mr.as_ptr()).res.id }
    }

    /// Unmaps the memory of an MR that was registered on a QP that is gone.
    ///
    /// # Safety
    ///
    /// No reference to the pool's endpoint is in use, and none of its completion handlers runs.
    #[cold]
    pub(super) unsafe fn unmap_registered(&self) {
        if self.registered.load(Relaxed) {
            // SAFETY: A registered MR is unmapped only with a reference to its endpoint (I3), of
            // which there is none.
            unsafe { (*self.memory.get()).unmap() };
        }
    }

    /// Takes the chain and the token of LOCAL_INVs that never completed.
    ///
    /// # Safety
    ///
    /// As for [`Self::unmap_registered`].
    #[cold]
    pub(super) unsafe fn take_unfinished(&self) -> Option<Posted<W>> {
        if !self.registered.load(Relaxed) {
            return None;
        }
        self.registered.store(false, Relaxed);
        // SAFETY: While the MR is registered, `posted` changes only with a reference to its
        // endpoint, or in a handler. There is neither.
        if unsafe { (*self.own.get()).posted.is_none() } {
            return None;
        }
        // SAFETY: The queues are gone.
        unsafe { self.take_posted() }
    }

    /// Puts a chain into its last MR, which this is, before it is posted.
    ///
    /// # Safety
    ///
    /// `posted` has the right to this MR.
    #[inline]
    pub(super) unsafe fn put_posted(&self, posted: Posted<W>) {
        // SAFETY: The caller has the right to the MR, and gives it away here.
        unsafe { (*self.own.get()).posted = Some(posted) };
    }

    /// Takes a chain back out of its last MR, which this is.
    ///
    /// # Safety
    ///
    /// The chain is not posted, or not any more, and the caller is the only one to take it.
    #[inline]
    pub(super) unsafe fn take_posted(&self) -> Option<Posted<W>> {
        // SAFETY: The right to the MR is inside, so that nothing else accesses its part.
        unsafe { (*self.own.get()).posted.take() }
    }
}

impl<W> Own<W> {
    /// For an MR whose last rkey has the low byte `key`.
    fn new(ib_mr: NonNull<bindings::ib_mr>, key: u8, spec: &MrSpec) -> Self {
        let mut own = Self {
            next: None,
            exposed: Exposed {
                handle: 0,
                length: 0,
                offset: 0,
            },
            nents: 0,
            direction: Direction::ToDevice,
            rkeys: RkeySequence::having(key),
            reg: pin_init::zeroed(),
            reg_cqe: bindings::ib_cqe {
                done: Some(spec.reg_done),
            },
            inv: pin_init::zeroed(),
            inv_cqe: bindings::ib_cqe { done: None },
            posted: None,
        };
        own.reg.mr = ib_mr.as_ptr();
        own.reg.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        own.inv.opcode = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
        own
    }
}
