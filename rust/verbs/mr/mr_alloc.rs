// SPDX-License-Identifier: GPL-2.0

//! One MR: what it consists of, its allocation and its end.
//!
//! C: frwr_ops.c, frwr_mr_init(), frwr_mr_put()
//! C: xprt_rdma.h, struct rpcrdma_mr

use core::{
    cell::UnsafeCell,
    marker::PhantomPinned,
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::{
            Acquire,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};

use crate::{
    bindings,
    lib::{
        completion::Completion,
        llist::{
            Link,
            Linked,
            Stack, //
        },
        llist_box::LlistBox,
        sync::Atomic, //
    },
    verbs::{
        device::{
            dma_buf::Direction,
            pd::Pd, //
        },
        endpoint::{
            completion::Done,
            send_wr::set_cqe, //
        }, //
    }, //
};

use super::{
    ib_mr::{
        Exposed,
        IbMr, //
    },
    rkey::RkeySequence,
    rkey_owner::RkeyOwner,
    sg::ScatterList, //
};

/// How long a task waits for its LOCAL_INVs before it moves the QP to the error state. LOCAL_INVs
/// wait behind Sends. The device may retry a Send for ever if the peer posts no Receives: the peer
/// chooses the RNR retry count, in its REP.
const INVALIDATE_MS: u32 = 30_000;

/// What the MRs of a pool have in common.
pub(super) struct MrSpec {
    /// Pages that each MR can cover.
    pub(super) depth: u32,
    /// The pages need not adjoin each other.
    pub(super) gaps: bool,
    /// MRs that a message may have.
    pub(super) most: u32,
    /// Handles registrations that fail.
    pub(super) reg_done: Done,
}

/// An MR.
///
/// # Invariants
///
/// - I1: `own.ib_mr` belongs to the PD of the MR's pool, and `memory` maps for the device of that
///   PD. `idle_mrs` is part of the pool.
/// - I2: `own` and `memory` belong to the holder of the only [`MrRef`], with one exception: while
///   `registered` is set, `MrPool::queues_ended` may access `memory`.
/// - I3: `registered` is set while the device may know the MR as valid and its memory is mapped. It
///   changes only while an [`Endpoint`](crate::verbs::Endpoint) of the pool is borrowed.
/// - I4: `posted` is set in the last MR of a chain whose LOCAL_INVs are posted, or about to be. It
///   has the right to this MR. While `is_posted` is not set it belongs to the thread that has the
///   right, and then to the thread that clears `is_posted`: the completion handler, or the poster
///   whose post has failed.
#[repr(C)]
pub(in crate::verbs) struct Mr<W> {
    /// Links the idle MRs. First, so that a pointer to it is a pointer to the MR.
    idle: Link,
    /// The number of the MR in traces and in `rdma resource`.
    id: u32,
    /// The list of idle MRs in the pool.
    idle_mrs: NonNull<Stack<MrRef<W>>>,
    pub(super) rkey_owner: RkeyOwner,
    pub(super) registered: Atomic<bool>,
    memory: UnsafeCell<ScatterList>,
    own: UnsafeCell<Own<W>>,
    is_posted: Atomic<bool>,
    posted: UnsafeCell<Option<Posted<W>>>,
    /// Work requests and other MRs have raw pointers to the MR.
    _pin: PhantomPinned,
}

// SAFETY: Nothing of an MR is bound to a thread, and what waits in `posted` is `Send`.
unsafe impl<W: Send> Send for Mr<W> {}
// SAFETY: A shared reference reads constants and atomics. `own`, `memory` and `posted` have one
// user at a time (I2, I4), on any thread.
unsafe impl<W: Send> Sync for Mr<W> {}

/// The part of an MR that only the holder of its [`MrRef`] accesses.
pub(super) struct Own<W> {
    /// The next MR of a chain.
    pub(super) next: Option<MrRef<W>>,
    pub(super) ib_mr: IbMr,
    pub(super) exposed: Exposed,
    /// Mapped scatterlist entries, for traces.
    pub(super) nents: u32,
    pub(super) direction: Direction,
    pub(super) rkeys: RkeySequence,
    pub(super) reg: bindings::ib_reg_wr,
    pub(super) reg_cqe: bindings::ib_cqe,
    pub(super) inv: bindings::ib_send_wr,
    pub(super) inv_cqe: bindings::ib_cqe,
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

    /// Sleeps until [`WaitingTask::wake`]; returns whether the MRs are invalid. Calls `overdue`,
    /// which flushes the LOCAL_INVs, if they take long.
    pub(super) fn wait(&self, overdue: impl FnOnce()) -> bool {
        if !self.completion.wait_ms(INVALIDATE_MS) {
            overdue();
            self.completion.wait();
        }
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
// API may be called on any thread.
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
        unsafe { &*self.own.get() }
    }

    /// The holder's part, to be changed.
    #[inline]
    pub(super) fn own_mut(&mut self) -> &mut Own<W> {
        // SAFETY: As in `own`; the right is borrowed exclusively.
        unsafe { &mut *self.own.get() }
    }

    /// Puts the MR, which is not mapped and which the device does not know as valid, into the list
    /// of idle ones. A full barrier, on which
    /// [`MrPool::was_wanted`](super::mr_pool::MrPool::was_wanted) depends.
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

impl<W> Mr<W> {
    /// Allocates an MR.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the device's error.
    ///
    /// # Safety
    ///
    /// `idle_mrs` is part of a pool that does not move. It keeps the first result, and stays while
    /// the second is used.
    pub(super) unsafe fn alloc(
        pd: &Arc<Pd>,
        spec: &MrSpec,
        idle_mrs: &Stack<MrRef<W>>,
    ) -> Result<(LlistBox<Self>, MrRef<W>)> {
        let memory = ScatterList::new(pd, spec.depth)?;
        let (ib_mr, id, rkey) = IbMr::alloc(pd, spec.depth, spec.gaps)?;
        // INVARIANT: `ib_mr` and `memory` are for the pool's PD (I1). The one `MrRef` is returned
        // below (I2), and the device does not know the MR as valid (I3). Nothing is posted (I4).
        let mut owned = LlistBox::new_uninit(GFP_KERNEL)?.write(Self {
            idle: Link::new(),
            id,
            idle_mrs: NonNull::from(idle_mrs),
            rkey_owner: RkeyOwner::none(),
            registered: Atomic::new(false),
            memory: UnsafeCell::new(memory),
            // CAST: The low byte.
            own: UnsafeCell::new(Own::new(ib_mr, rkey as u8, spec)),
            is_posted: Atomic::new(false),
            posted: UnsafeCell::new(None),
            _pin: PhantomPinned,
        });
        // INVARIANT: The first `MrRef`; the pool stays, by this function's contract.
        let mut mr = MrRef(owned.as_non_null());
        let own = mr.own_mut();
        set_cqe(&mut own.reg.wr, &raw mut own.reg_cqe);
        set_cqe(&mut own.inv, &raw mut own.inv_cqe);
        Ok((owned, mr))
    }

    /// The MR that `cqe` is the `reg_cqe` of.
    ///
    /// # Safety
    ///
    /// `cqe` comes from a registration that [`MrRef::register_before`] returned, and the MR's pool
    /// stays throughout `'a`.
    pub(super) unsafe fn of_reg_cqe<'a>(cqe: *mut bindings::ib_cqe) -> &'a Self {
        // SAFETY: By this function's contract, `cqe` is a member of the `Own` of an MR.
        // `UnsafeCell` is `repr(transparent)`.
        unsafe {
            let own = kernel::container_of!(cqe, Own<W>, reg_cqe);
            &*kernel::container_of!(own.cast::<UnsafeCell<Own<W>>>(), Self, own)
        }
    }

    /// The MR that `cqe` is the `inv_cqe` of.
    ///
    /// # Safety
    ///
    /// `cqe` comes from the `inv` of an MR, whose pool stays throughout `'a`.
    pub(super) unsafe fn of_inv_cqe<'a>(cqe: *mut bindings::ib_cqe) -> &'a Self {
        // SAFETY: As in `of_reg_cqe`.
        unsafe {
            let own = kernel::container_of!(cqe, Own<W>, inv_cqe);
            &*kernel::container_of!(own.cast::<UnsafeCell<Own<W>>>(), Self, own)
        }
    }

    /// The number of the MR in traces and in `rdma resource`.
    pub(super) fn id(&self) -> u32 {
        self.id
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

    /// Puts a chain into its last MR, which this is, before it is posted.
    ///
    /// # Safety
    ///
    /// `posted` has the right to this MR.
    #[inline]
    pub(super) unsafe fn put_posted(&self, posted: Posted<W>) {
        // SAFETY: `posted` is this thread's (I4), which has the right to this MR.
        unsafe { *self.posted.get() = Some(posted) };
        self.is_posted.store(true, Release);
    }

    /// Takes the chain out of its last MR, which this is; `None` if it was taken already.
    #[inline]
    pub(super) fn take_posted(&self) -> Option<Posted<W>> {
        if !self.is_posted.xchg(false, Acquire) {
            return None;
        }
        // SAFETY: `posted` is the caller's (I4), and was set before `is_posted` was.
        unsafe { (*self.posted.get()).take() }
    }
}

impl<W> Own<W> {
    /// For an MR whose last rkey has the low byte `key`.
    fn new(ib_mr: IbMr, key: u8, spec: &MrSpec) -> Self {
        let mut reg: bindings::ib_reg_wr = pin_init::zeroed();
        reg.mr = ib_mr.as_ptr();
        reg.wr.opcode = bindings::ib_wr_opcode_IB_WR_REG_MR;
        let mut inv: bindings::ib_send_wr = pin_init::zeroed();
        inv.opcode = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
        Self {
            next: None,
            ib_mr,
            exposed: Exposed {
                handle: 0,
                length: 0,
                offset: 0,
            },
            nents: 0,
            direction: Direction::ToDevice,
            rkeys: RkeySequence::having(key),
            reg,
            reg_cqe: bindings::ib_cqe {
                done: Some(spec.reg_done),
            },
            inv,
            inv_cqe: bindings::ib_cqe { done: None },
        }
    }
}
