// SPDX-License-Identifier: GPL-2.0

//! The sending side of a client: builds each Call, and posts it behind the registrations of the MRs
//! that it names.
//!
//! C: frwr_ops.c, frwr_send()

use core::ptr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        fence::Keep, //
    },
    trace::trace,
    verbs::{
        device::attrs::SenderSizes,
        endpoint::{
            completion::{
                handler,
                OnCompletion,
                SendCq,
                SendWorker,
                WcStatus, //
            },
            ep::{
                Endpoint,
                EndpointBox, //
            }, //
        },
        mr::{
            exposes::{
                Exposes,
                Waiting, //
            },
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
    SendCtxRing,
    SendFull, //
};

/// A context that sends Calls.
pub(crate) trait Requester: Exposes {
    /// Handles completed Sends. After a success there is room in the ring; after an error the
    /// connection must be closed. The send CQ's worker.
    fn sent(worker: &SendWorker<'_, Self>, status: WcStatus);

    /// A control Send ([`CtrlSendPool`](super::ctrl_send::CtrlSendPool)) has completed, and is
    /// idle. The send CQ's worker.
    fn ctrl_sent(worker: &SendWorker<'_, Self>, status: WcStatus);
}

/// The right to send, and the state that sending needs.
pub(crate) struct RequestSender<W> {
    ring: Arc<SendCtxRing>,
    /// The last entry that was used.
    head: u32,
    /// The last entry whose buffer was moved to another one. Those behind it have buffers, up to
    /// `head`.
    moved: u32,
    /// Work requests since the last signalled one.
    unsignaled: u32,
    batch: u32,
    mr_mapper: MrMapper<W>,
}

impl<O: Send + 'static, U: Send + 'static> RequestSender<Waiting<O, U>> {
    /// The sending side of an open endpoint; once for each.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the endpoint is not open.
    pub(crate) fn new<C: Requester<Owner = O, Token = U>>(
        ep: &Endpoint<C>,
        sizes: &SenderSizes,
    ) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        // A full ring must contain a Send that is signalled.
        let batch = sizes.batch.min(sizes.messages / 2);
        // So must a ring without another buffer, because there may be no memory for more.
        let ring = SendCtxRing::new(pd, sizes, 2 * batch + 1, handler::<C, SendCtx>())?;
        // Posted work requests refer to the ring.
        ep.hold_until_drained(ring.clone())?;
        Ok(Self {
            head: ring.released(),
            moved: 0,
            ring,
            unsignaled: 0,
            batch,
            mr_mapper: MrMapper::for_endpoint(ep, sizes.mr_pages, sizes.gaps, sizes.mrs)?,
        })
    }
}

impl<W> RequestSender<W> {
    /// The pool of MRs.
    pub(crate) fn pool(&self) -> &Arc<MrPool<W>> {
        self.mr_mapper.pool()
    }

    /// Whether there is room for another Send, and a buffer.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let released = self.ring.released();
        self.ring.next(self.head) != released && self.moved != released
    }

    /// Starts a Send; `None` if there is no room for one, or no buffer.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> Option<SendBuilder<'_, W>> {
        // SAFETY: `self` alone begins Sends. It is borrowed as long as the entry, and `head` and
        // `moved` are those of the ring.
        let (index, entry) = unsafe { self.ring.begin(self.head, &mut self.moved) }?;
        // `self` keeps the ring, and the ring keeps its entries in place.
        // SAFETY: As above: nothing else uses the entry as long as `self` is borrowed.
        let entry = unsafe { &mut *ptr::from_mut(entry) };
        entry.clear();
        Some(SendBuilder {
            sender: self,
            entry,
            index,
        })
    }
}

/// A Send that is being built. Dropping it sends nothing; what was gathered is released when the
/// next Send is begun.
#[must_use]
pub(crate) struct SendBuilder<'a, W> {
    sender: &'a mut RequestSender<W>,
    entry: &'a mut SendCtx,
    index: u32,
}

impl<'a, W> SendBuilder<'a, W> {
    /// The buffer for header and inline content, and the mapper for the MRs that the header names.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut MrMapper<W>) {
        (self.entry.memory(), &mut self.sender.mr_mapper)
    }

    /// Appends the next `len` bytes of the buffer to the message.
    ///
    /// # Errors
    ///
    /// [`SendFull`]: the buffer is too short, or there is no SGE left.
    #[inline]
    pub(crate) fn append(&mut self, len: usize) -> Result<(), SendFull> {
        self.entry.append(len)
    }

    /// Appends bytes of a page, without copying them. The page is held until the Send has
    /// completed.
    ///
    /// # Errors
    ///
    /// [`SendFull`]: there is no SGE left, or the page cannot be held or mapped.
    #[inline]
    pub(crate) fn gather(&mut self, bvec: &BVec<'_>) -> Result<(), SendFull> {
        self.entry.gather(bvec)
    }

    /// Finishes the message of the RPC `xid`, which names `mrs`.
    #[inline]
    pub(crate) fn finish<'m>(self, xid: u32, mrs: MrList<Mapped<'m>, W>) -> ReadySend<'a, 'm, W> {
        // The completion releases pages. And the Send Queue has room for one batch of work requests
        // that have completed without a signal.
        let total = self.sender.unsignaled.saturating_add(mrs.len() + 1);
        let signaled = self.entry.has_pages() || total >= self.sender.batch;
        // INVARIANT: Of an entry of the ring.
        ReadySend {
            send: self.entry.request(signaled),
            xid,
            mrs,
            index: self.index,
            elements: self.entry.elements(),
            now_unsignaled: if signaled { 0 } else { total },
            sender: self.sender,
        }
    }
}

/// A Send that is ready to be posted, and the MRs that its message names.
///
/// # Invariants
///
/// - I1: `send` is the well-formed work request of an entry of the sender's ring.
#[must_use]
pub(crate) struct ReadySend<'a, 'm, W> {
    sender: &'a mut RequestSender<W>,
    send: *mut bindings::ib_send_wr,
    xid: u32,
    mrs: MrList<Mapped<'m>, W>,
    index: u32,
    elements: u32,
    now_unsignaled: u32,
}

/// Why a Send was not posted. The connection has to be closed.
pub(crate) struct NotSent<K> {
    /// The error of the device, or `EINVAL`.
    pub(crate) error: Error,
    /// What keeps the memory of MRs, some of which may have been registered.
    pub(crate) kept: Option<K>,
}

impl<'m, W> ReadySend<'_, 'm, W> {
    /// The number of the Send in traces.
    pub(crate) fn serial(&self) -> i32 {
        self.index as i32
    }

    /// Its SGEs.
    pub(crate) fn elements(&self) -> u32 {
        self.elements
    }

    /// Whether its completion is signalled.
    pub(crate) fn is_signaled(&self) -> bool {
        self.now_unsignaled == 0
    }

    /// The MRs that the message names.
    pub(crate) fn mrs(&self) -> &MrList<Mapped<'m>, W> {
        &self.mrs
    }
}

impl<'m, O: Send + 'static, U: Send + 'static> ReadySend<'_, 'm, Waiting<O, U>> {
    /// Posts the registrations and, behind them, the Send, on the endpoint of `keep`. Right before,
    /// `keep` is given the MRs.
    ///
    /// # Errors
    ///
    /// [`NotSent`]: some of it may have been posted, if it was kept. `EINVAL` if ring or MRs are
    /// not the endpoint's.
    #[inline]
    pub(crate) fn post<C, K>(self, keep: K) -> Result<K::Kept, NotSent<K::Kept>>
    where
        C: Requester<Owner = O, Token = U>,
        K: Keep<'m, MrList<Registered, Waiting<O, U>>, Endpoint = EndpointBox<C>>,
    {
        let ep: &Endpoint<C> = keep.endpoint();
        let Self {
            sender,
            send,
            xid,
            mut mrs,
            index,
            now_unsignaled,
            ..
        } = self;
        let own = mrs.pd().is_none_or(|pd| Arc::ptr_eq(pd, sender.ring.pd()));
        if !own || !ep.owns(sender.ring.pd()) {
            return Err(NotSent {
                error: EINVAL,
                kept: None,
            });
        }
        let exposes = !mrs.is_empty();
        if exposes && keep.frees_early() {
            mrs.hold();
        }
        // From here on the completion may release the entry.
        sender.head = index;
        sender.unsignaled = now_unsignaled;
        let _exposing = exposes.then(|| ep.exposing());
        // SAFETY: The MRs are this endpoint's. Their memory stays by the contract of `Keep`: it was
        // mapped for `'m`, and `keep` is given the MRs below.
        let (first, registered) = unsafe { mrs.register(send) };
        registered.given_out_for(xid);
        let kept = keep.keep(registered);
        // SAFETY: The chain is well formed (I1), and its CQEs expect this endpoint's context. It is
        // part of MRs and of an entry, which pool and ring keep. The endpoint keeps these until its
        // queues are drained.
        match unsafe { ep.post_send_raw(first) } {
            Ok(()) => Ok(kept),
            Err((error, _)) => Err(NotSent {
                error,
                kept: Some(kept),
            }),
        }
    }

    /// Posts a Send whose message names no MRs.
    ///
    /// # Errors
    ///
    /// The device's error; `EINVAL` if the ring is not the endpoint's, or there are MRs. The
    /// connection has to be closed.
    #[inline]
    pub(crate) fn post_plain<C>(self, ep: &Endpoint<C>) -> Result
    where
        C: Requester<Owner = O, Token = U>,
    {
        if !self.mrs.is_empty() || !ep.owns(self.sender.ring.pd()) {
            return Err(EINVAL);
        }
        self.sender.head = self.index;
        self.sender.unsignaled = self.now_unsignaled;
        // SAFETY: As in `post`; nothing is in front of the Send, whose `next` is null.
        unsafe { ep.post_send_raw(self.send) }.map_err(|(error, _)| error)
    }
}

/// Handles the completion of a Send that was signalled, in an entry of a ring that
/// [`RequestSender::new`] made. If it succeeded, so have all Sends before it.
impl<C: Requester> OnCompletion<C> for SendCtx {
    type Queue = SendCq;

    #[inline]
    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The CQE is that of an entry, whose ring stays until the queues are drained.
        let (ring, index) = unsafe { SendCtxRing::of_cqe(cqe) };
        let status = WcStatus::of(wc.status);
        if status == WcStatus::Success {
            // SAFETY: This is the send queue's worker, and the Send has succeeded.
            unsafe { ring.release(index) };
        }
        trace!(xprtrdma_wc_send(
            worker.send_cid(index as i32),
            wc.status,
            wc.vendor_err
        ));
        // After a flush there is no room for a sender that waits, but the connection is closed
        // then.
        C::sent(worker, status);
    }
}
