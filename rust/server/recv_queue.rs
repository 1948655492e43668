// SPDX-License-Identifier: GPL-2.0

//! The Receive Queue, and its buffers.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_post_recvs(), svc_rdma_refresh_recvs()
//! C: svc_rdma_recvfrom.c, svc_rdma_recv_ctxt_get(), svc_rdma_recv_ctxt_put()

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    engine::credit,
    lib::{
        clock::{
            jiffies,
            ms_since, //
        },
        pool::Pool,
        sync::{
            Atomic,
            SetOnce, //
        }, //
    },
    trace::trace,
    verbs::{
        Endpoint,
        EndpointOps,
        RecvBatch,
        RecvBuf,
        RecvCtxt, //
    }, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    limits::Limits,
    tunables, //
};

/// The Receive Queue of a connection, and its idle buffers.
#[pin_data]
pub(super) struct RecvQueue {
    /// Receives that must be posted.
    needed: Atomic<u32>,
    /// Receives that are posted beyond `needed`, each time fewer than `needed` are posted.
    batch: Atomic<u32>,
    /// Receives that are posted. Written by the accepting thread, and then by the receive worker.
    posted: Atomic<u32>,
    /// Buffers that exist. Written as `posted` is.
    made: Atomic<u32>,
    /// Buffers that may exist.
    most: Atomic<u32>,
    /// The size of a buffer, in bytes.
    size: Atomic<u32>,
    /// For each buffer, when its Call has arrived, in jiffies, or 0.
    arrivals: SetOnce<KVec<Atomic<u64>>>,
    #[pin]
    idle: Pool<Buffer>,
}

impl RecvQueue {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            needed: Atomic::new(0),
            batch: Atomic::new(0),
            posted: Atomic::new(0),
            made: Atomic::new(0),
            most: Atomic::new(0),
            size: Atomic::new(0),
            arrivals: SetOnce::new(),
            idle <- Pool::new(),
        })
    }

    /// Sets the number of Receives, before the first one is posted.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.needed.store(limits.receives, Relaxed);
        self.batch.store(limits.batch, Relaxed);
        self.made.store(limits.posted(), Relaxed);
        self.most.store(limits.buffers(), Relaxed);
        self.size.store(limits.receive_size, Relaxed);
    }

    /// Allocates the buffers that can be posted, for messages of the size in `limits`. `make_ctxt`
    /// allocates the first Send context. Long messages need high-order allocations, and contiguous
    /// space for their mapping: if these fail, `limits` shrink.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the buffers, `EINVAL` if the endpoint is not open.
    pub(super) fn stock<C: EndpointOps>(
        &self,
        ep: &Endpoint<C>,
        limits: &mut Limits,
        make_ctxt: impl Fn(&Limits) -> Result,
    ) -> Result {
        let pd = ep.pd().ok_or(EINVAL)?;
        loop {
            let made = (0..limits.posted()).try_for_each(|number| {
                let ctxt = RecvCtxt::new(Call::new(number));
                let size = limits.receive_size as usize;
                self.idle.put(RecvBuf::new(pd, size, ctxt, GFP_KERNEL)?);
                Ok(())
            });
            match made.and_then(|()| make_ctxt(limits)) {
                Err(ENOMEM | EIO) if limits.shrink() => self.idle.clear(),
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let mut arrivals = KVec::with_capacity(limits.buffers() as usize, GFP_KERNEL)?;
        for _ in 0..limits.buffers() {
            arrivals.push(Atomic::new(0), GFP_KERNEL)?;
        }
        self.arrivals.populate(arrivals);
        Ok(())
    }

    /// Allocates another buffer, since nfsd has those that are not posted. `None` if there is one
    /// for each Call in progress, or no memory. A client that stays within its credits then still
    /// finds a Receive, because more are posted than it has credits.
    #[cold]
    fn another<C: EndpointOps>(&self, ep: &Endpoint<C>) -> Option<Buffer> {
        let number = self.made.load(Relaxed);
        if number >= self.most.load(Relaxed) {
            return None;
        }
        let (size, ctxt) = (self.size.load(Relaxed), RecvCtxt::new(Call::new(number)));
        let buffer = RecvBuf::new(ep.pd()?, size as usize, ctxt, GFP_NOWAIT).ok()?;
        self.made.store(number + 1, Relaxed);
        Some(buffer)
    }

    /// A message has arrived.
    #[inline]
    pub(super) fn arrived(&self, buffer: &Buffer) {
        self.set_arrival(buffer, jiffies());
    }

    #[inline]
    fn set_arrival(&self, buffer: &Buffer, at: u64) {
        let number = buffer.user().call.number as usize;
        if let Some(arrival) = self.arrivals.as_ref().and_then(|all| all.get(number)) {
            arrival.store(at, Relaxed);
        }
    }

    /// The milliseconds since the first message has arrived that still has its buffer.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let arrivals = self.arrivals.as_ref()?.iter();
        let times = arrivals.map(|arrival| arrival.load(Relaxed));
        times.filter(|&at| at != 0).min().map(ms_since)
    }

    /// Takes back a buffer, and releases the pages that its Call was read into.
    #[inline]
    pub(super) fn put(&self, mut buffer: Buffer) {
        buffer.user_mut().pages_mut().release();
        self.set_arrival(&buffer, 0);
        self.idle.put(buffer);
    }

    /// Receives that are posted.
    pub(super) fn posted(&self) -> u32 {
        self.posted.load(Relaxed)
    }

    /// A Receive has completed. Returns how many are still posted. Receive worker only.
    #[inline]
    pub(super) fn completed(&self) -> u32 {
        let posted = self.posted.load(Relaxed).saturating_sub(1);
        self.posted.store(posted, Relaxed);
        posted
    }

    /// Posts Receives if too few are `posted`.
    ///
    /// Called by the receive worker with the result of [`Self::completed`], or before this worker
    /// runs.
    ///
    /// # Errors
    ///
    /// That of `ib_post_recv()`: the Receive Queue has failed. `ENOSPC` if no Receive is left, and
    /// no buffer: the client has sent far more than it was granted (RFC 8166 Section 3.3.1), since
    /// more Receives were posted than messages that it may send. No completion would post a Receive
    /// any more.
    #[inline]
    pub(super) fn refill<C: EndpointOps<RecvData = RecvCtxt<Call>>>(
        &self,
        ep: &Endpoint<C>,
        posted: u32,
    ) -> Result {
        let (needed, batch) = (self.needed.load(Relaxed), self.batch.load(Relaxed));
        let count = credit::receives_to_post(posted, needed, batch);
        if count == 0 {
            return Ok(());
        }
        let mut batch = RecvBatch::new();
        let mut idle = self.idle.get_many(count as usize);
        while batch.len() < count as usize {
            let Some(buffer) = idle.pop().or_else(|| self.another(ep)) else {
                break;
            };
            trace!(svcrdma_post_recv(ep.recv_cid(buffer.serial())));
            batch.push(buffer);
        }
        // CAST: At most `count`.
        let added = batch.len() as u32;
        if posted + added == 0 {
            tunables::FLOODED.inc();
            return Err(ENOSPC);
        }
        let result = ep.post_recv(batch);
        if let Err((error, mut rest)) = result {
            trace!(svcrdma_rq_post_err(ep.peer_addr(), error.to_errno()));
            // The connection ends: `posted` is not read again.
            while let Some(buffer) = rest.pop() {
                self.idle.put(buffer);
            }
            return Err(error);
        }
        self.posted.store(posted + added, Relaxed);
        Ok(())
    }
}
