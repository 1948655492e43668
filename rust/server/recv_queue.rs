// SPDX-License-Identifier: GPL-2.0

//! The Receive Queue, its buffers, and the credits that the posted Receives allow.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_post_recvs(), svc_rdma_refresh_recvs()
//! C: svc_rdma_recvfrom.c, svc_rdma_recv_ctxt_get(), svc_rdma_recv_ctxt_put()

use kernel::{
    prelude::*,
    sync::atomic::ordering::{
        Acquire,
        Relaxed,
        Release, //
    }, //
};

use crate::{
    engine::credit,
    lib::{
        clock::{
            jiffies,
            ms_since,
            Since, //
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
    /// The credits that every message grants: those of `target` for which a Receive is posted.
    /// Written like `posted`.
    granted: Atomic<u32>,
    /// The credits to grant. Never shrinks. Written like `posted`.
    target: Atomic<u32>,
    /// How many messages have arrived since `counting`. Written like `posted`.
    recent: Atomic<u32>,
    counting: Since,
    /// The most credits to grant.
    credits: Atomic<u32>,
    /// Receives that must be posted in addition to one for each credit.
    others: Atomic<u32>,
    /// Receives that are posted beyond those, each time fewer are posted.
    batch: Atomic<u32>,
    /// Receives that are posted. Written by the accepting thread, and then by the receive worker.
    posted: Atomic<u32>,
    /// Buffers that exist. Written like `posted`.
    made: Atomic<u32>,
    /// The size of a buffer, in bytes.
    size: Atomic<u32>,
    /// For each buffer, when its Call has arrived, in jiffies, or 0.
    arrivals: SetOnce<KVVec<Atomic<u64>>>,
    #[pin]
    idle: Pool<Buffer>,
}

impl RecvQueue {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            granted: Atomic::new(0),
            target: Atomic::new(0),
            recent: Atomic::new(0),
            counting: Since::now(),
            credits: Atomic::new(0),
            others: Atomic::new(0),
            batch: Atomic::new(0),
            posted: Atomic::new(0),
            made: Atomic::new(0),
            size: Atomic::new(0),
            arrivals: SetOnce::new(),
            idle <- Pool::new(),
        })
    }

    /// Sets the number of Receives, before the first one is posted.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.granted.store(limits.first_credits(), Relaxed);
        self.target.store(limits.first_credits(), Relaxed);
        self.credits.store(limits.credits, Relaxed);
        self.others.store(limits.other_receives(), Relaxed);
        self.batch.store(limits.batch, Relaxed);
        self.made.store(limits.first_posted(), Relaxed);
        self.size.store(limits.receive_size, Relaxed);
    }

    /// Allocates the buffers that are posted at first, for messages of the size in `limits`.
    /// `make_ctxt` allocates the first Send context. Long messages need high-order allocations and
    /// contiguous DMA address space. If either fails, `limits` shrink.
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
            let made = (0..limits.first_posted()).try_for_each(|number| {
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
        let mut arrivals = KVVec::with_capacity(limits.buffers() as usize, GFP_KERNEL)?;
        for _ in 0..limits.buffers() {
            arrivals.push(Atomic::new(0), GFP_KERNEL)?;
        }
        self.arrivals.populate(arrivals);
        Ok(())
    }

    /// The credits that a message grants.
    #[inline]
    pub(super) fn granted(&self) -> u32 {
        // Pairs with `grant`: the Receives are posted.
        self.granted.load(Acquire)
    }

    /// Grants the credits for which `posted` Receives are enough.
    #[inline]
    fn grant(&self, posted: u32) {
        let covered = posted.saturating_sub(self.others.load(Relaxed));
        let granted = covered.min(self.target.load(Relaxed)).max(1);
        // Pairs with `granted`.
        self.granted.store(granted, Release);
    }

    /// Raises the target if the client uses its credits: `in_progress` Calls are in progress, and
    /// `recent` have arrived within a second.
    #[inline]
    fn follow_use(&self, in_progress: u32, recent: u32) {
        let (target, limit) = (self.target.load(Relaxed), self.credits.load(Relaxed));
        let next = credit::next_grant(target, in_progress, recent, limit);
        self.target.store(next, Relaxed);
    }

    /// Counts `arrived` messages; returns how many have arrived within a second.
    #[inline]
    fn count_recent(&self, arrived: u32) -> u32 {
        let recent = if self.counting.ms() < 1_000 {
            self.recent.load(Relaxed).saturating_add(arrived)
        } else {
            self.counting.restart();
            arrived
        };
        self.recent.store(recent, Relaxed);
        recent
    }

    /// Allocates buffers for `batch`, since nfsd has all that are neither posted nor in `batch`. If
    /// nfsd has many, allocates enough to grant more credits.
    ///
    /// Allocates fewer if memory is short, or if there is a buffer for each Call in progress. A
    /// client that stays within its credits then still finds a Receive, because more are posted
    /// than it has credits.
    #[cold]
    fn make<C: EndpointOps<RecvData = RecvCtxt<Call>>>(
        &self,
        ep: &Endpoint<C>,
        posted: u32,
        batch: &mut RecvBatch<RecvCtxt<Call>>,
    ) {
        // CAST: A batch is shorter than the queue.
        let elsewhere = posted + batch.len() as u32;
        self.follow_use(self.made.load(Relaxed).saturating_sub(elsewhere), 0);
        let target = self.target.load(Relaxed);
        let most = self.needed(target) + self.batch.load(Relaxed) + target;
        let count = self.to_post(posted) as usize;
        while batch.len() < count {
            let Some(buffer) = self.another(ep, most) else {
                break;
            };
            push(ep, batch, buffer);
        }
    }

    /// Allocates a buffer, if there are fewer than `most`. `None` also if memory is short.
    fn another<C: EndpointOps>(&self, ep: &Endpoint<C>, most: u32) -> Option<Buffer> {
        let number = self.made.load(Relaxed);
        if number >= most {
            return None;
        }
        let (size, ctxt) = (self.size.load(Relaxed), RecvCtxt::new(Call::new(number)));
        let buffer = RecvBuf::new(ep.pd()?, size as usize, ctxt, GFP_NOWAIT).ok()?;
        self.made.store(number + 1, Relaxed);
        Some(buffer)
    }

    /// Receives that must be posted before `credits` can be granted.
    #[inline]
    fn needed(&self, credits: u32) -> u32 {
        credits + self.others.load(Relaxed)
    }

    /// Receives to post while `posted` are posted.
    #[inline]
    fn to_post(&self, posted: u32) -> u32 {
        let needed = self.needed(self.target.load(Relaxed));
        credit::receives_to_post(posted, needed, self.batch.load(Relaxed))
    }

    /// Notes that a message has arrived.
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

    /// The milliseconds since the arrival of the oldest message that still has its buffer.
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

    /// Notes a completed Receive. Returns how many are still posted. Receive worker only.
    #[inline]
    pub(super) fn completed(&self) -> u32 {
        let posted = self.posted.load(Relaxed).saturating_sub(1);
        self.posted.store(posted, Relaxed);
        posted
    }

    /// Posts the first Receives, before the receive worker runs.
    ///
    /// # Errors
    ///
    /// Those of [`Self::refill`].
    pub(super) fn fill<C: EndpointOps<RecvData = RecvCtxt<Call>>>(
        &self,
        ep: &Endpoint<C>,
    ) -> Result {
        self.post(ep, 0)
    }

    /// Posts Receives if too few are `posted`. The receive worker calls this with the result of
    /// [`Self::completed`].
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
        let arrived = self.to_post(posted);
        if arrived == 0 {
            return Ok(());
        }
        self.follow_use(0, self.count_recent(arrived));
        self.post(ep, posted)
    }

    /// Posts the Receives that are missing while `posted` are posted.
    #[inline]
    fn post<C: EndpointOps<RecvData = RecvCtxt<Call>>>(
        &self,
        ep: &Endpoint<C>,
        posted: u32,
    ) -> Result {
        let count = self.to_post(posted) as usize;
        let mut batch = RecvBatch::new();
        let mut idle = self.idle.get_many(count);
        while let Some(buffer) = idle.pop() {
            push(ep, &mut batch, buffer);
        }
        if batch.len() < count {
            self.make(ep, posted, &mut batch);
        }
        // CAST: A batch is shorter than the queue.
        let posted = posted + batch.len() as u32;
        if posted == 0 {
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
        self.posted.store(posted, Relaxed);
        self.grant(posted);
        Ok(())
    }
}

/// Adds `buffer` to the Receives to post.
#[inline]
fn push<C: EndpointOps<RecvData = RecvCtxt<Call>>>(
    ep: &Endpoint<C>,
    batch: &mut RecvBatch<RecvCtxt<Call>>,
    buffer: Buffer,
) {
    trace!(svcrdma_post_recv(ep.recv_cid(buffer.serial())));
    batch.push(buffer);
}
