// SPDX-License-Identifier: GPL-2.0

//! Allocation of more MRs, by a worker that may wait for memory.
//!
//! C: verbs.c, rpcrdma_mrs_refresh(), rpcrdma_mr_refresh_worker()

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

use crate::lib::sync::Atomic;

use super::mr_pool::MrPool;

/// The senders that wait for MRs.
pub(crate) trait MrWaiter: Send + Sync + 'static {
    /// The allocation scope of the worker, until this is dropped.
    type Scope;

    /// Called when the worker begins. Direct reclaim may depend on the new MRs.
    fn scope(&self) -> Self::Scope;

    /// Wakes a sender that waits for MRs: there is one more.
    fn one_more(&self);

    /// The worker has finished, and has allocated `made` MRs.
    fn refilled(&self, made: u32);
}

/// Allocates MRs for a pool on request.
///
/// Queued work keeps everything that it needs, so that the end of a connection does not wait for
/// it: the worker may be waiting for memory that this end frees.
#[pin_data]
pub(crate) struct MrRefresh<W: Send + 'static, N: MrWaiter> {
    pool: Arc<MrPool<W>>,
    count: u32,
    /// MRs that may still be allocated. Only the worker changes it.
    left: Atomic<u32>,
    waiter: N,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl{W: Send + 'static, N: MrWaiter} HasWork<MrRefresh<W, N>> for MrRefresh<W, N> { self.work }
}

impl<W: Send + 'static, N: MrWaiter> MrRefresh<W, N> {
    /// Creates a worker that allocates `count` MRs at a time for `pool`, and `most` in all.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(pool: Arc<MrPool<W>>, count: u32, most: u32, waiter: N) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                pool,
                count,
                left: Atomic::new(most),
                waiter,
                work <- new_work!("MrRefresh::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// The pool.
    pub(crate) fn pool(&self) -> &MrPool<W> {
        &self.pool
    }

    /// Starts the worker, unless it is queued; [`MrWaiter::refilled`] follows in either case. Does
    /// nothing if the pool has all MRs that it may have: then the return of one wakes the sender.
    pub(crate) fn start(self: &Arc<Self>) {
        if self.left.load(Relaxed) == 0 {
            return;
        }
        // Work that is queued already has not begun.
        let _ = workqueue::system_highpri().enqueue(self.clone());
    }
}

impl<W: Send + 'static, N: MrWaiter> WorkItem for MrRefresh<W, N> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let scope = this.waiter.scope();
        let (mut made, left) = (0, this.left.load(Relaxed));
        let most = this.count.min(left);
        // Announce each MR at once: the next allocation may take long.
        while made < most && this.pool.grow(1) == 1 {
            made += 1;
            this.left.store(left - made, Relaxed);
            if this.pool.was_wanted() {
                this.waiter.one_more();
            }
        }
        drop(scope);
        this.waiter.refilled(made);
    }
}
