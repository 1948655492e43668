// SPDX-License-Identifier: GPL-2.0

//! All MRs of one connection.
//!
//! C: verbs.c, rpcrdma_mrs_create(), rpcrdma_mrs_destroy()
//! C: xprt_rdma.h, struct rpcrdma_buffer

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};

use crate::{
    lib::{
        barrier::smp_mb,
        grow_list::GrowList,
        llist::Stack,
        sync::Atomic, //
    },
    trace::trace,
    verbs::{
        device::pd::Pd,
        endpoint::ep::HeldUntilDrained, //
    }, //
};

use super::mr_alloc::{
    Mr,
    MrRef,
    MrSpec, //
};

/// The numbers of MRs in a pool.
#[derive(Clone, Copy, Default)]
pub(crate) struct MrUsage {
    /// MRs that are not registered.
    pub(crate) idle: u32,
    /// MRs that a peer may access.
    pub(crate) used: u32,
}

/// All MRs of one connection. Lists of MRs keep the pool, and so does the endpoint, until its
/// queues are drained.
///
/// # Invariants
///
/// - I1: Every MR in `idle` is in `all`, and the device does not know it as valid.
pub(crate) struct MrPool<W> {
    /// Receives each MR that is no longer in use. Dropped before `all`.
    pub(super) idle: Stack<MrRef<W>>,
    all: GrowList<Mr<W>>,
    /// A sender waits for idle MRs.
    wanted: Atomic<bool>,
    pub(super) spec: MrSpec,
    /// The domain of the MRs.
    pub(super) pd: Arc<Pd>,
}

impl<W: Send + 'static> MrPool<W> {
    /// A pool without MRs.
    pub(super) fn new(pd: &Arc<Pd>, spec: MrSpec) -> Result<Arc<Self>> {
        // INVARIANT: There are no MRs.
        Ok(Arc::new(
            Self {
                idle: Stack::new(),
                all: GrowList::new(),
                wanted: Atomic::new(false),
                spec,
                pd: pd.clone(),
            },
            GFP_KERNEL,
        )?)
    }

    /// Allocates up to `count` more MRs; returns how many. Sleeps, and may enter direct reclaim:
    /// not for tasks that must not wait for another RPC.
    pub(crate) fn grow(&self, count: u32) -> u32 {
        (0..count)
            .take_while(|_| match self.alloc() {
                Ok(()) => true,
                Err(error) => {
                    trace!(xprtrdma_frwr_alloc(0, error.to_errno()));
                    false
                }
            })
            .fold(0, |made, _| made + 1)
    }

    fn alloc(&self) -> Result {
        // SAFETY: A pool is in an `Arc`, and kept by all that use its MRs.
        let (owned, mr) = unsafe { Mr::alloc(&self.pd, &self.spec, &self.idle)? };
        // INVARIANT: I1: in `all` first.
        self.all.push(owned);
        mr.into_idle();
        Ok(())
    }
}

impl<W> MrPool<W> {
    /// Notes that the caller waits for MRs. To be called after the task is queued for write space
    /// and a full barrier; the caller checks [`Self::has_idle`] next. If the flag were set any
    /// earlier, [`Self::was_wanted`] could clear it before there is a waiter: a lost wakeup.
    #[cold]
    pub(crate) fn want(&self) {
        self.wanted.store(true, Relaxed);
        // Pairs with the full barrier of `MrRef::into_idle`.
        smp_mb();
    }

    /// Whether there are idle MRs that the mapper has not taken yet.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Whether a sender waits for MRs, and the caller, who has put some back or allocated some, has
    /// to wake it.
    #[inline]
    pub(crate) fn was_wanted(&self) -> bool {
        // `MrRef::into_idle` is a full barrier: a sender whose flag is not seen here sees the idle
        // MR.
        if !self.wanted.load(Relaxed) {
            return false;
        }
        self.wanted.store(false, Relaxed);
        true
    }

    /// How many MRs there are, for an administrator. Walks the list of all.
    #[cold]
    pub(crate) fn usage(&self) -> MrUsage {
        let mut usage = MrUsage::default();
        for mr in self.all.iter() {
            if mr.registered.load(Relaxed) {
                usage.used += 1;
            } else {
                usage.idle += 1;
            }
        }
        usage
    }

    /// Whether `handle` was given out for the Call `xid`, and for no other since.
    #[cold]
    pub(crate) fn gave_out(&self, xid: u32, handle: u32) -> bool {
        self.all.iter().any(|mr| mr.rkey_owner.is(xid, handle))
    }
}

impl<W: Send + 'static> HeldUntilDrained for Arc<MrPool<W>> {
    /// Unmaps the MRs that are still registered. Their memory belongs to RPCs that will be sent
    /// again or were abandoned.
    unsafe fn queues_ended(&self) {
        for mr in self.all.iter() {
            // SAFETY: By this function's contract.
            unsafe { mr.unmap_registered() };
        }
    }
}
