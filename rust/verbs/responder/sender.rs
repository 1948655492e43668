// SPDX-License-Identifier: GPL-2.0

//! The sending side of a server: the Send Queue that all nfsd threads share, and idle objects.
//!
//! Many threads post Reads of Calls, and Replies, on one QP. Every chain that they post ends with
//! one signalled work request. When that has completed, so has the whole chain, and its owner comes
//! back to the [`Responder`].
//!
//! C: svc_rdma_sendto.c, svc_rdma_send_ctxt_get(), svc_rdma_send_ctxt_release()

use core::{
    ffi::c_void,
    mem,
    ptr::NonNull, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        llist::Stack,
        llist_box::LlistBox,
        pool::Pool,
        sync::SetOnce, //
    },
    trace::trace,
    verbs::{
        device::attrs::MessageSizes,
        endpoint::{
            completion::{
                SendWorker,
                WcStatus, //
            },
            ep::{
                Drained,
                Endpoint, //
            },
            in_doubt::InDoubt,
            ops::{
                EndpointOps,
                SendSide, //
            },
            recv_ctxt::RecvBuf,
            send_queue::SendQueue, //
        },
        rw::rw_ctxt::{
            RwCtxtPool,
            RwOps, //
        }, //
    }, //
};

use super::{
    call_read::{
        CallReadDone,
        RecvCtxt, //
    },
    expose::SentExposing,
    send_ctxt::{
        Inner,
        SendCtxt,
        Sent, //
    }, //
};

/// A context that serves Calls. Its methods run in the send queue's worker.
pub(crate) trait Responder:
    RwOps
    + EndpointOps<
        RecvData = RecvCtxt<<Self as Responder>::Call>,
        SendSide = ReplySender<<Self as Responder>::Call>,
    >
{
    /// The state of a Call.
    type Call: Send + 'static;

    /// A Write has failed, or was flushed. The Send behind it does not succeed, and
    /// [`Self::sent`] or [`Self::sent_exposing`] follows.
    fn write_failed(worker: &SendWorker<'_, Self>, status: WcStatus);

    /// A Send has completed.
    fn sent(worker: &SendWorker<'_, Self>, sent: Sent, status: WcStatus);

    /// A Send has completed whose message was posted with MRs and this `slot`.
    fn sent_exposing(
        worker: &SendWorker<'_, Self>,
        sent: SentExposing,
        slot: usize,
        status: WcStatus,
    );

    /// The Reads of a Call have completed.
    fn read_done(worker: &SendWorker<'_, Self>, read: CallReadDone<Self::Call>, status: WcStatus);
}

impl<C: EndpointOps> Endpoint<C> {
    /// The number of transfers that moving `pages` pages to or from one segment takes.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn rw_ctxts_for(&self, pages: u32) -> Result<u32> {
        self.with_device(|device, port| {
            // SAFETY: The device stays for the call.
            unsafe { bindings::rdma_rw_mr_factor(device, port, pages) }
        })
    }

    /// The number of Send Queue entries that `rw_ctxts` transfers may take.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn entries_for(&self, rw_ctxts: u32) -> Result<u32> {
        self.with_device(|device, port| {
            // SAFETY: The device stays for the call.
            unsafe { bindings::rdma_rw_max_send_wr(device, port, rw_ctxts, 0) }
        })
    }
}

impl<C: Responder> Endpoint<C> {
    /// The sending side.
    #[inline]
    pub(crate) fn sender(&self) -> &ReplySender<C::Call> {
        self.send_side()
    }
}

/// The sending side of a server.
#[pin_data]
pub(crate) struct ReplySender<S: Send + 'static> {
    queue: SendQueue,
    #[pin]
    rw_ctxts: RwCtxtPool,
    /// Idle messages. Their number grows to the peak in use: at most one for each share of the Send
    /// Queue, one for each nfsd thread, and those that are exposed, that wait for room on the Send
    /// Queue, or for a thread after their Send.
    #[pin]
    idle: Pool<SendCtxt>,
    sizes: SetOnce<MessageSizes>,
    /// Chains that were posted in part. Which part is not known until the QP is drained.
    stranded: Stack<Sent>,
    stranded_exposing: Stack<SentExposing>,
    stranded_reads: Stack<CallReadDone<S>>,
    /// Messages and Calls whose chains may have been posted.
    #[pin]
    in_doubt: InDoubt<Inner>,
    #[pin]
    reads_in_doubt: InDoubt<c_void>,
}

impl<S: Send + 'static> SendSide for ReplySender<S> {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queue: SendQueue::new(),
            rw_ctxts <- RwCtxtPool::new(),
            idle <- Pool::new(),
            sizes: SetOnce::new(),
            stranded: Stack::new(),
            stranded_exposing: Stack::new(),
            stranded_reads: Stack::new(),
            in_doubt <- InDoubt::new(),
            reads_in_doubt <- InDoubt::new(),
        })
    }
}

impl<S: Send + 'static> ReplySender<S> {
    /// Sets the sizes of messages and the depth of the Send Queue, of which only `share` entries
    /// may be used at first. Does nothing if the side is open.
    pub(crate) fn open(&self, sizes: MessageSizes, depth: u32, share: u32) {
        self.sizes.populate(sizes);
        self.queue.open(depth, share);
    }

    /// Allocates an idle message of these sizes, before the side is open.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it, `EINVAL` if the endpoint is not open.
    pub(crate) fn stock<C: EndpointOps>(&self, ep: &Endpoint<C>, sizes: &MessageSizes) -> Result {
        self.idle.put(new_ctxt(ep, sizes)?);
        Ok(())
    }

    /// The Send Queue.
    #[inline]
    pub(crate) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// Idle transfers.
    #[inline]
    pub(crate) fn rw_ctxts(&self) -> &RwCtxtPool {
        &self.rw_ctxts
    }

    /// Takes an idle message, or allocates one. It is empty.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it, `EINVAL` if the endpoint is not open.
    #[inline(always)]
    pub(crate) fn get<C: EndpointOps>(&self, ep: &Endpoint<C>) -> Result<SendCtxt> {
        match self.idle.get() {
            Some(ctxt) => Ok(ctxt),
            None => new_ctxt(ep, &self.sizes.copy().ok_or(EINVAL)?),
        }
    }

    /// Empties a message, and keeps it for another Reply.
    #[inline(never)]
    pub(crate) fn put<C: RwOps>(&self, ep: &Endpoint<C>, ctxt: SendCtxt) {
        self.put_sent(ep, Sent(ctxt));
    }

    /// [`Self::put`] of a message whose Send has completed.
    #[inline(always)]
    pub(crate) fn put_sent<C: RwOps>(&self, ep: &Endpoint<C>, sent: Sent) {
        let Sent(mut ctxt) = sent;
        if ctxt.clear(ep) {
            self.idle.put(ctxt);
        } else {
            // Writes for another endpoint keep the pages: see `SendCtxt::clear`.
            mem::forget(ctxt);
        }
    }

    #[cold]
    pub(super) fn trace_refused<C: EndpointOps>(
        &self,
        ep: &Endpoint<C>,
        serial: i32,
        error: Error,
    ) {
        let (free, depth) = self.queue.state();
        trace!(svcrdma_sq_post_err(
            ep.send_cid(serial),
            free,
            depth,
            error.to_errno()
        ));
    }

    /// Keeps a message whose chain was posted in part.
    #[cold]
    pub(super) fn strand(&self, ctxt: SendCtxt) {
        match ctxt.0.exposing {
            None => self.stranded.push(Sent(ctxt)),
            Some(_) => self.stranded_exposing.push(SentExposing::new(ctxt)),
        };
    }

    /// Keeps a Call whose Reads were posted in part.
    #[cold]
    pub(super) fn strand_read(&self, read: CallReadDone<S>) {
        self.stranded_reads.push(read);
    }

    /// Notes a message, given up to the device, whose chain may have been posted.
    #[cold]
    pub(super) fn doubt(&self, ctxt: *mut Inner) {
        if let Some(ctxt) = NonNull::new(ctxt) {
            self.in_doubt.add(ctxt);
        }
    }

    /// Notes a Call, given up to the device, whose Reads may have been posted.
    #[cold]
    pub(super) fn doubt_read(&self, recv: NonNull<c_void>) {
        self.reads_in_doubt.add(recv);
    }

    /// Takes back what was in doubt and has not been posted.
    #[cold]
    fn take_unposted(&self) {
        if !self.queue.none_in_doubt_was_posted() {
            return;
        }
        while let Some(ctxt) = self.in_doubt.take() {
            // SAFETY: `SendCtxt::post_chain` gave the message up, and its chain was not posted.
            self.strand(SendCtxt(unsafe { LlistBox::from_raw(ctxt.as_ptr()) }));
        }
        while let Some(recv) = self.reads_in_doubt.take() {
            // SAFETY: `CallRead::post` gave the buffer up, and its chain was not posted.
            self.strand_read(CallReadDone(unsafe { RecvBuf::from_raw(recv) }));
        }
    }
}

impl<C: Responder> Drained<'_, C> {
    /// Releases the chains of the sending side that were posted in part, or not at all.
    pub(crate) fn release_stranded(&self) {
        let sender = self.sender();
        sender.take_unposted();
        let mut stranded = sender.stranded.take_all();
        while let Some(sent) = stranded.pop() {
            sender.put_sent(self, sent);
        }
        let mut reads = sender.stranded_reads.take_all();
        while let Some(read) = reads.pop() {
            drop(read.finish(self));
        }
        // The pages stay until the MRs are unmapped, and are freed with the sending side.
        let mut exposing = sender.stranded_exposing.take_all();
        while let Some(mut sent) = exposing.pop() {
            sent.unmap(self);
            sender.stranded_exposing.push(sent);
        }
    }
}

#[cold]
fn new_ctxt<C: EndpointOps>(ep: &Endpoint<C>, sizes: &MessageSizes) -> Result<SendCtxt> {
    SendCtxt::new(ep.pd().ok_or(EINVAL)?, sizes)
}
