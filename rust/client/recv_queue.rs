// SPDX-License-Identifier: GPL-2.0

//! Receive buffers: as many posted as Replies may come, and some more.
//!
//! A buffer goes round: posted, received into, read in place by the RPC's task, idle. It belongs to
//! one connection. The last stage but one may outlive that, so a buffer that comes home to another
//! connection, or to none, is dropped.

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        barrier::smp_mb, //
    }, //
};

use crate::{
    engine::credit,
    lib::pool::Pool,
    trace::trace,
    verbs::{
        Endpoint,
        RecvBatch, //
        RecvBuf,
    }, //
};

use super::ep::ClientEp;

/// Later buffers are made in completion handlers; if there is no memory now, the next one tries
/// again.
const FLAGS: Flags = GFP_NOWAIT;

/// No connection.
const NONE: usize = 0;

/// Buffers that are not posted, all of one connection.
#[pin_data]
pub(super) struct RecvPool {
    #[pin]
    idle: Pool<RecvBuf<()>>,
    /// The domain of the connection whose buffers are kept.
    pd: Atomic<usize>,
}

impl RecvPool {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            idle <- Pool::new(),
            pd: Atomic::new(NONE),
        })
    }

    /// Keeps the buffers of a new connection.
    pub(super) fn open(&self, ep: &Endpoint<ClientEp>) {
        let pd = ep.pd().map_or(NONE, |pd| pd.id());
        self.pd.store(pd, Relaxed);
    }

    /// Gives up the buffers that are idle, and those to come.
    pub(super) fn close(&self) {
        self.pd.store(NONE, Relaxed);
        // Pairs with the full barrier of putting a buffer down: whoever has not seen that this is
        // closed has put the buffer where it is found here.
        smp_mb();
        self.idle.clear();
    }

    /// Makes buffers for the first Receives. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO`, `EINVAL` if the endpoint is not open. The pool is empty then.
    pub(super) fn stock(&self, ep: &Endpoint<ClientEp>, count: u32, size: usize) -> Result {
        let pd = ep.pd().ok_or(EINVAL)?;
        (0..count)
            .try_for_each(|_| {
                self.idle.put(RecvBuf::new(pd, size, (), GFP_KERNEL)?);
                Ok(())
            })
            .inspect_err(|_| self.empty())
    }

    /// Gives up the buffers that are idle.
    pub(super) fn empty(&self) {
        self.idle.clear();
    }

    /// Takes back a buffer whose message nobody needs any more.
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
pub(super) struct Receives {
    /// How many are posted. Written by the connection's maker, and then by the receive worker.
    posted: Atomic<u32>,
}

impl Receives {
    pub(super) fn new() -> Self {
        Self {
            posted: Atomic::new(0),
        }
    }

    /// A Receive has ended.
    #[inline]
    pub(super) fn ended(&self) {
        let posted = self.posted.load(Relaxed);
        self.posted.store(posted.saturating_sub(1), Relaxed);
    }

    /// Posts Receives if there are not enough for `needed` messages; returns how many stand. If
    /// those are fewer, there was no memory.
    #[inline]
    pub(super) fn refill(&self, ep: &Endpoint<ClientEp>, needed: u32) -> u32 {
        let posted = self.posted.load(Relaxed);
        let limits = ep.context().limits();
        let count = credit::receives_to_post(posted, needed, limits.receive_batch());
        if count != 0 {
            self.post(ep, count as usize, limits.own.receive_size as usize);
        }
        self.posted.load(Relaxed)
    }

    fn post(&self, ep: &Endpoint<ClientEp>, count: usize, size: usize) {
        let Some(pd) = ep.pd() else {
            return;
        };
        let recv_pool = &ep.context().shared.recv_pool;
        let mut batch = RecvBatch::new();
        let mut idle = recv_pool.idle.get_many(count);
        while let Some(recv) = idle.pop() {
            // Those of another connection are dropped.
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
        if let Err((error, mut rest)) = ep.post_recv(batch) {
            trace!(xprtrdma_post_recvs_err(
                ep.peer_addr(),
                ep.recv_cq_id(),
                error.to_errno()
            ));
            posted -= rest.len();
            while let Some(recv) = rest.pop() {
                recv_pool.put(recv);
            }
            ep.context().receive_failed();
        }
        // CAST: No more than `count`.
        let now = self.posted.load(Relaxed).saturating_add(posted as u32);
        self.posted.store(now, Relaxed);
        trace!(xprtrdma_post_recvs(
            ep.peer_addr(),
            ep.recv_cq_id(),
            posted as u32,
            now.cast_signed()
        ));
    }
}
