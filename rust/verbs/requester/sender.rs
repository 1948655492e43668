// SPDX-License-Identifier: GPL-2.0

//! The sending side of a connection that makes Calls.
//!
//! One [`RequestSender`] belongs to whoever holds the right to send. It composes each message in a
//! [`SendBuilder`] and posts it behind the registrations that it speaks of.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::bvec::BVec,
    trace::trace,
    verbs::{
        device::attrs::SenderSizes,
        endpoint::{
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::Endpoint, //
        },
        mr::{
            exposes::Exposes,
            mapper::MrMapper,
            mr_list::{
                Mapped,
                MrList,
                Registered, //
            },
            mr_pool::MrPool, //
        }, //
    }, //
};

use super::sendctx_ring::{
    SendCtx,
    SendCtxRing, //
};

/// A context that makes Calls.
pub(crate) trait Requester: Exposes {
    /// Sends have completed. If well, there is room in the ring; else the connection has to be
    /// closed. The send queue's worker.
    fn sent(worker: &SendWorker<'_, Self>, how: WcStatus);

    /// A message of [`CtrlSendPool`](super::ctrl_send::CtrlSendPool) was sent, or failed, and is
    /// idle again. Runs in the worker of the send queue.
    fn ctrl_sent(worker: &SendWorker<'_, Self>, how: WcStatus);
}

/// The right to send, and what it takes.
pub(crate) struct RequestSender<U> {
    ring: Arc<SendCtxRing>,
    /// The entry used last.
    head: u32,
    /// Work requests since the last that reports its end.
    unsignaled: u32,
    batch: u32,
    mr_mapper: MrMapper<U>,
}

impl<U: Send + 'static> RequestSender<U> {
    /// The sending side of an open endpoint; once for each.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the endpoint is not open.
    pub(crate) fn new<C: Requester<Token = U>>(
        ep: &Endpoint<C>,
        sizes: &SenderSizes,
    ) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        let ring = SendCtxRing::new(pd, sizes, sent::<C>)?;
        // What is posted refers to it.
        ep.hold_until_drained(ring.clone())?;
        Ok(Self {
            ring,
            head: 0,
            unsignaled: 0,
            // A full ring must have a message in it that reports.
            batch: sizes.batch.min(sizes.messages / 2),
            mr_mapper: MrMapper::for_endpoint(ep, sizes.mr_pages, sizes.gaps)?,
        })
    }

    /// The pool of regions.
    pub(crate) fn pool(&self) -> &Arc<MrPool<U>> {
        self.mr_mapper.pool()
    }

    /// Whether there is room for another message.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.ring.next(self.head) != self.ring.released()
    }

    /// Starts a message; `None` if there is no room for one.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<SendBuilder<'_, U>> {
        let index = self.ring.next(self.head);
        if index == self.ring.released() {
            return None;
        }
        // SAFETY: Between what was released and what was posted last there is nothing on its way,
        // and `self` is the only one that composes.
        let entry = unsafe { self.ring.entry(index) };
        entry.clear();
        Some(SendBuilder {
            entry,
            index,
            head: &mut self.head,
            unsignaled: &mut self.unsignaled,
            batch: self.batch,
            mr_mapper: &mut self.mr_mapper,
            ring: &self.ring,
        })
    }
}

/// A message that is being composed. Dropping it sends nothing; what was gathered goes when the
/// next message is begun.
#[must_use]
pub(crate) struct SendBuilder<'a, U> {
    entry: &'a mut SendCtx,
    index: u32,
    head: &'a mut u32,
    unsignaled: &'a mut u32,
    batch: u32,
    mr_mapper: &'a mut MrMapper<U>,
    ring: &'a SendCtxRing,
}

impl<'a, U: Send + 'static> SendBuilder<'a, U> {
    /// The memory to compose the message in, and what maps memory that it speaks of.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut MrMapper<U>) {
        (self.entry.memory(), self.mr_mapper)
    }

    /// Appends the next `bytes` of the memory to the message.
    ///
    /// # Errors
    ///
    /// [`SendFull`] in the memory, or for another element.
    #[inline]
    pub(crate) fn append(&mut self, bytes: usize) -> Result<(), SendFull> {
        self.entry.append(bytes)
    }

    /// Appends a piece of a page, from where it lies; the page is kept until the message has been
    /// sent.
    ///
    /// # Errors
    ///
    /// [`SendFull`] for another element, or the device cannot map the page.
    #[inline]
    pub(crate) fn gather(&mut self, bvec: &BVec<'_>) -> Result<(), SendFull> {
        self.entry.gather(bvec)
    }

    /// Finishes the message of the RPC `xid`. The `mrs` are registered when it is posted, and
    /// from then on the peer may reach them.
    #[inline]
    pub(crate) fn finish(
        self,
        xid: u32,
        mrs: MrList<Mapped, U>,
    ) -> (ReadySend<'a>, MrList<Registered, U>) {
        let requests = mrs.len() + 1;
        let own = mrs.pd().is_none_or(|pd| Arc::ptr_eq(pd, self.ring.pd()));
        let pages = self.entry.has_pages();
        // Pages are not kept for longer than need be; and the queue has room for one batch of work
        // requests that have ended without anybody having been told.
        let total = self.unsignaled.saturating_add(requests);
        let signaled = pages || total >= self.batch;
        let send = self.entry.request(signaled);
        // SAFETY: The entry stays until the ring goes, and the ring is kept by the endpoint.
        let (first, registered) = unsafe { mrs.register(send) };
        registered.given_out_for(xid);
        // INVARIANT: The registrations, of regions in the pool, and the Send, of an entry in the
        // ring.
        let posting = ReadySend {
            first,
            index: self.index,
            elements: self.entry.elements(),
            exposes: requests > 1,
            own,
            head: self.head,
            unsignaled: self.unsignaled,
            now_unsignaled: if signaled { 0 } else { total },
            ring: self.ring,
        };
        (posting, registered)
    }
}

/// There is no room in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendFull;

/// A message that is ready.
///
/// # Invariants
///
/// `first` starts a well-formed chain whose work requests the ring and the pool of regions keep;
/// both are the same endpoint's if `own`.
#[must_use]
pub(crate) struct ReadySend<'a> {
    first: *mut bindings::ib_send_wr,
    index: u32,
    elements: u32,
    exposes: bool,
    /// The regions are of the ring's domain.
    own: bool,
    head: &'a mut u32,
    unsignaled: &'a mut u32,
    now_unsignaled: u32,
    ring: &'a SendCtxRing,
}

impl ReadySend<'_> {
    /// What names the message in traces.
    pub(crate) fn serial(&self) -> i32 {
        self.index.cast_signed()
    }

    /// Its scatter/gather elements.
    pub(crate) fn elements(&self) -> u32 {
        self.elements
    }

    /// Whether its end is reported.
    pub(crate) fn is_signaled(&self) -> bool {
        self.now_unsignaled == 0
    }

    /// Posts the message, and the registrations before it. Right before that `commit` gives out the
    /// regions; it must not sleep.
    ///
    /// # Errors
    ///
    /// The connection has to be ended: some of it may have been posted. `EINVAL` if ring or regions
    /// are not the endpoint's.
    #[inline]
    pub(crate) fn post<C: Requester>(self, ep: &Endpoint<C>, commit: impl FnOnce()) -> Result {
        if !self.own || !ep.owns(self.ring.pd()) {
            return Err(EINVAL);
        }
        // From here on the entry may be released by its completion.
        *self.head = self.index;
        *self.unsignaled = self.now_unsignaled;
        let _exposing = self.exposes.then(|| ep.exposing());
        commit();
        // SAFETY: By the type's invariants. The endpoint keeps ring and pool until its queues are
        // drained.
        unsafe { ep.post_send_raw(self.first) }.map_err(|(error, _)| error)
    }
}

/// The end of a message that was to report it; if it has been sent, so have all before it.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for an entry of its ring.
unsafe extern "C" fn sent<C: Requester>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The `cqe` is in an entry of a ring, which the endpoint keeps.
    let index = unsafe { SendCtxRing::index(cqe) };
    let how = WcStatus::of(wc.status);
    if how == WcStatus::Success {
        // SAFETY: As above, in the send queue's worker, and sent.
        unsafe { SendCtxRing::release(cqe) };
    }
    trace!(xprtrdma_wc_send(
        worker.send_cid(index.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    // Whoever waits for room finds none if it was flushed, but the connection is closed then.
    C::sent(&worker, how);
}
