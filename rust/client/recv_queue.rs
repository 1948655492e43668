// SPDX-License-Identifier: GPL-2.0

//! The Receive Queue, and its buffers.
//!
//! A buffer is posted, receives a message, is read in place by the RPC's task, and becomes idle. A
//! buffer belongs to one connection, but a task may read it after this connection has ended. A
//! buffer that returns to the pool of another connection, or of none, is freed.
//!
//! C: verbs.c, rpcrdma_post_recvs(), rpcrdma_rep_get_locked(), rpcrdma_rep_put()

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    engine::credit,
    lib::{
        barrier::smp_mb,
        pool::Pool,
        sync::Atomic, //
    },
    trace::trace,
    verbs::{
        Endpoint,
        EndpointOps,
        RecvBatch,
        RecvBuf, //
    }, //
};

/// Completion handlers allocate further buffers. Without memory, the next completion tries again.
const FLAGS: Flags = GFP_NOWAIT;

/// No connection.
const NONE: u64 = 0;

/// Idle buffers, all of one connection.
#[pin_data]
pub(super) struct RecvPool {
    #[pin]
    idle: Pool<RecvBuf<()>>,
    /// Identifies the protection domain of this connection.
    pd: Atomic<u64>,
}

impl RecvPool {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            idle <- Pool::new(),
            pd: Atomic::new(NONE),
        })
    }

    /// Admits the buffers of a new connection.
    pub(super) fn open<C: EndpointOps>(&self, ep: &Endpoint<C>) {
        let pd = ep.pd().map_or(NONE, |pd| pd.id());
        self.pd.store(pd, Relaxed);
    }

    /// Frees the idle buffers, and those that return later.
    pub(super) fn close(&self) {
        self.pd.store(NONE, Relaxed);
        // Pairs with the full barrier in `Pool::put()`: a `put` that misses the store above has
        // already added its buffer, which `clear` finds.
        smp_mb();
        self.idle.clear();
    }

    /// Allocates `count` buffers of `size` bytes for the first Receives. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO`, `EINVAL` if the endpoint is not open. The pool is empty then.
    pub(super) fn stock<C: EndpointOps>(
        &self,
        ep: &Endpoint<C>,
        count: u32,
        size: usize,
    ) -> Result {
        let pd = ep.pd().ok_or(EINVAL)?;
        (0..count)
            .try_for_each(|_| {
                self.idle.put(RecvBuf::new(pd, size, (), GFP_KERNEL)?);
                Ok(())
            })
            .inspect_err(|_| self.clear())
    }

    /// Frees the idle buffers.
    pub(super) fn clear(&self) {
        self.idle.clear();
    }

    /// Takes back a buffer whose message is not needed any more.
    #[inline]
    pub(super) fn put(&self, recv: RecvBuf<()>) {
        let pd = recv.pd_id();
        if self.pd.load(Relaxed) != pd {
            return;
        }
        self.idle.put(recv);
        if self.pd.load(Relaxed) != pd {
            self.idle.clear();
        }
    }
}

/// The Receive Queue of a connection.
pub(super) struct RecvQueue {
    /// Receives that are posted. Written by the connect worker, and then by the receive worker.
    posted: Atomic<u32>,
    /// Receives must be posted once fewer than this are. Written like `posted`.
    low: Atomic<u32>,
}

impl RecvQueue {
    pub(super) fn new() -> Self {
        Self {
            posted: Atomic::new(0),
            low: Atomic::new(0),
        }
    }

    /// Receives that are posted.
    #[inline]
    pub(super) fn posted(&self) -> u32 {
        self.posted.load(Relaxed)
    }

    /// Whether Receives have to be posted.
    #[inline]
    pub(super) fn is_low(&self) -> bool {
        self.posted() < self.low.load(Relaxed)
    }

    /// Notes a completed Receive.
    #[inline]
    pub(super) fn completed(&self) {
        let posted = self.posted.load(Relaxed);
        self.posted.store(posted.saturating_sub(1), Relaxed);
    }

    /// Posts Receives of `size` bytes if fewer than `needed` are posted: the missing ones and
    /// `batch` more, as far as there is memory.
    ///
    /// # Errors
    ///
    /// That of `ib_post_recv()`: the Receive Queue has failed.
    pub(super) fn refill<C: EndpointOps<RecvData = ()>>(
        &self,
        ep: &Endpoint<C>,
        pool: &RecvPool,
        needed: u32,
        batch: u32,
        size: usize,
    ) -> Result {
        self.low.store(needed, Relaxed);
        let count = credit::receives_to_post(self.posted(), needed, batch);
        if count == 0 {
            return Ok(());
        }
        self.post(ep, pool, count as usize, size)
    }

    fn post<C: EndpointOps<RecvData = ()>>(
        &self,
        ep: &Endpoint<C>,
        pool: &RecvPool,
        count: usize,
        size: usize,
    ) -> Result {
        let Some(pd) = ep.pd() else {
            return Ok(());
        };
        let mut batch = RecvBatch::new();
        let mut idle = pool.idle.get_many(count);
        while let Some(recv) = idle.pop() {
            // Buffers of another connection are freed.
            if recv.pd_id() == pd.id() {
                batch.push(recv);
            }
        }
        while batch.len() < count {
            match RecvBuf::new(pd, size, (), FLAGS) {
                Ok(recv) => batch.push(recv),
                Err(_) => break,
            }
        }
        let mut posted = batch.len();
        let mut result = Ok(());
        if let Err((error, mut rest)) = ep.post_recv(batch) {
            trace!(xprtrdma_post_recvs_err(
                ep.peer_addr(),
                ep.recv_cq_id(),
                error.to_errno()
            ));
            posted -= rest.len();
            while let Some(recv) = rest.pop() {
                pool.put(recv);
            }
            result = Err(error);
        }
        // CAST: At most `count`.
        let now = self.posted().saturating_add(posted as u32);
        self.posted.store(now, Relaxed);
        trace!(xprtrdma_post_recvs(
            ep.peer_addr(),
            ep.recv_cq_id(),
            posted as u32,
            now as i32
        ));
        result
    }
}
