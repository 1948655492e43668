// SPDX-License-Identifier: GPL-2.0

//! The Receive Queue: as many Receives as messages may come, and some more.

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
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
        RecvCtxt,
    }, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    ep::ServerEp,
    limits::Limits, //
};

/// A connection's Receive Queue, and the buffers that go round through it.
#[pin_data]
pub(super) struct RecvQueue {
    /// Receives that must stand.
    needed: Atomic<u32>,
    /// How many are posted beyond that, each time fewer stand.
    batch: Atomic<u32>,
    /// Receives that stand. Changed by the receive queue's worker, and before there is one.
    posted: Atomic<u32>,
    /// Buffers that nobody uses.
    #[pin]
    idle: Pool<Buffer>,
}

impl RecvQueue {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            needed: Atomic::new(0),
            batch: Atomic::new(0),
            posted: Atomic::new(0),
            idle <- Pool::new(),
        })
    }

    /// Sets the numbers, before the first Receive is posted.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.needed.store(limits.receives, Relaxed);
        self.batch.store(limits.batch, Relaxed);
    }

    /// Makes the buffers, for messages as long as `limits` say and Calls of so many pages, and has
    /// `make_message` make what the first Reply is sent in. Long messages take memory in large
    /// pieces: if there is none, the limits become smaller.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the buffers, `EINVAL` if the endpoint is not open.
    pub(super) fn stock(
        &self,
        ep: &Endpoint<ServerEp>,
        limits: &mut Limits,
        pages: usize,
        make_message: impl Fn(&Limits) -> Result,
    ) -> Result {
        let pd = ep.pd().ok_or(EINVAL)?;
        loop {
            let made = (0..limits.buffers()).try_for_each(|_| {
                let ctxt = RecvCtxt::new(pages, Call::default())?;
                let size = limits.receive as usize;
                self.idle.put(RecvBuf::new(pd, size, ctxt, GFP_KERNEL)?);
                Ok(())
            });
            match made.and_then(|()| make_message(limits)) {
                Err(ENOMEM) if limits.shrink() => self.idle.clear(),
                made => return made,
            }
        }
    }

    /// Keeps a buffer for another Receive; what it pulled is let go.
    #[inline]
    pub(super) fn recycle(&self, mut buffer: Buffer) {
        buffer.user_mut().pages_mut().release();
        self.idle.put(buffer);
    }

    /// A Receive has ended. Returns how many stand. For the receive queue's worker.
    #[inline]
    pub(super) fn ended(&self) -> u32 {
        let standing = self.posted.load(Relaxed).saturating_sub(1);
        self.posted.store(standing, Relaxed);
        standing
    }

    /// Posts Receives if too few stand; `false` if that failed.
    ///
    /// Called by the receive queue's worker, with what [`Self::ended`] has returned, or before
    /// there is one.
    #[inline]
    pub(super) fn refill(&self, ep: &Endpoint<ServerEp>, standing: u32) -> bool {
        let missing = credit::receives_to_post(
            standing,
            self.needed.load(Relaxed),
            self.batch.load(Relaxed),
        );
        if missing == 0 {
            return true;
        }
        let mut batch = RecvBatch::new();
        let mut idle = self.idle.get_many(missing as usize);
        while let Some(buffer) = idle.pop() {
            trace!(svcrdma_post_recv(ep.recv_cid(buffer.serial())));
            batch.push(buffer);
        }
        // CAST: At most `missing`.
        let more = batch.len() as u32;
        match ep.post_recv(batch) {
            Ok(()) => {
                self.posted.store(standing + more, Relaxed);
                true
            }
            Err((error, mut refused)) => {
                trace!(svcrdma_rq_post_err(ep.peer_addr(), error.to_errno()));
                // The connection is at its end; the count does not matter any more.
                while let Some(buffer) = refused.pop() {
                    self.idle.put(buffer);
                }
                false
            }
        }
    }
}
