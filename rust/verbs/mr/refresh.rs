// SPDX-License-Identifier: GPL-2.0

//! More memory regions, made where there is time to wait for memory.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

use super::mr_pool::MrPool;

/// Who waits for regions.
pub(crate) trait MrWaiter: Send + Sync + 'static {
    /// How the worker asks for memory, as long as it has this.
    type Scope;

    /// The worker begins. Whoever frees memory may need the very regions that are made here.
    fn scope(&self) -> Self::Scope;

    /// There is one more, and somebody has begun to wait for it.
    fn one_more(&self);

    /// An attempt to make more has ended, with so many more.
    fn refilled(&self, made: u32);
}

/// Makes regions for a pool when asked to.
///
/// The work that is under way holds on to all that it needs, so nobody has to wait for it: not the
/// end of a connection, which may be what frees the memory that it waits for.
#[pin_data]
pub(crate) struct MrRefresh<U: Send + 'static, N: MrWaiter> {
    pool: Arc<MrPool<U>>,
    count: u32,
    waiting: N,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl{U: Send + 'static, N: MrWaiter} HasWork<MrRefresh<U, N>> for MrRefresh<U, N> { self.work }
}

impl<U: Send + 'static, N: MrWaiter> MrRefresh<U, N> {
    /// Will make `count` regions at a time for `pool`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(pool: Arc<MrPool<U>>, count: u32, waiting: N) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                pool,
                count,
                waiting,
                work <- new_work!("Refill::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// The pool.
    pub(crate) fn pool(&self) -> &MrPool<U> {
        &self.pool
    }

    /// Starts making some, if that is not under way; [`MrWaiter::refilled`] is called in any
    /// case.
    pub(crate) fn start(self: &Arc<Self>) {
        // If it is queued already, it has not begun to look.
        let _ = workqueue::system_highpri().enqueue(self.clone());
    }
}

impl<U: Send + 'static, N: MrWaiter> WorkItem for MrRefresh<U, N> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let scope = this.waiting.scope();
        let mut made = 0;
        // The next one may take long.
        while made < this.count && this.pool.grow(1) == 1 {
            made += 1;
            if this.pool.was_wanted() {
                this.waiting.one_more();
            }
        }
        drop(scope);
        this.waiting.refilled(made);
    }
}
