// SPDX-License-Identifier: GPL-2.0

//! The sending side of a connection that answers Calls.
//!
//! Many threads pull Calls and send Replies on one queue pair. Every chain that they post ends with
//! one signalled work request, behind whose completion all of it has ended; what was posted then
//! comes back to the [`Responder`].

use core::mem;

use kernel::{
    prelude::*,
    sync::SetOnce, //
};

use crate::{
    bindings,
    lib::{
        llist::Stack,
        llist_box::LlistBox,
        pool::Pool, //
    },
    trace::trace,
    verbs::{
        device::attrs::MessageSizes,
        endpoint::{
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::{
                Drained,
                Endpoint, //
            },
            ops::EndpointOps,
            send_queue::SendQueue, //
        },
        rw::rw_ctxt::RwCtxt, //
    }, //
};

use super::{
    call_read::{
        CallReadDone, //
        RecvCtxt,
    },
    send_ctxt::{
        SendCtxt,
        Sent, //
    }, //
};

/// A context that pulls Calls and sends Replies.
pub(crate) trait Responder:
    EndpointOps<RecvData = RecvCtxt<<Self as Responder>::Call>>
{
    /// The state of a Call.
    type Call: Send + 'static;

    /// The resources for it.
    fn sender(&self) -> &ReplySender<Self::Call>;

    /// A message was sent, or not. The send queue's worker.
    fn sent(worker: &SendWorker<'_, Self>, sent: Sent, how: WcStatus);

    /// A Call's chunks were pulled, or not. The send queue's worker.
    fn read_done(worker: &SendWorker<'_, Self>, pulled: CallReadDone<Self::Call>, how: WcStatus);
}

impl<C: EndpointOps> Endpoint<C> {
    /// Transfers that the device needs to move `pages` pages to or from one segment.
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

    /// Entries of the Send Queue that as many transfers may take.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn entries_for(&self, rw_chain: u32) -> Result<u32> {
        self.with_device(|device, port| {
            // SAFETY: The device stays for the call.
            unsafe { bindings::rdma_rw_max_send_wr(device, port, rw_chain, 0) }
        })
    }
}

/// What a responder's sending side needs: entries of the Send Queue, and idle objects.
#[pin_data]
pub(crate) struct ReplySender<S: Send + 'static> {
    #[pin]
    queue: SendQueue,
    #[pin]
    rw_chain: Pool<LlistBox<RwCtxt>>,
    /// Idle messages. Grows to the peak number in use: at most one per share of the Send Queue, one
    /// per nfsd thread, and those that are exposed, or were sent and wait for a thread.
    #[pin]
    messages: Pool<SendCtxt>,
    sizes: SetOnce<MessageSizes>,
    /// What was posted in part: nobody knows which part, until the queue pair is drained.
    stranded_messages: Stack<Sent>,
    stranded_reads: Stack<CallReadDone<S>>,
}

impl<S: Send + 'static> ReplySender<S> {
    /// A side that is not open yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- SendQueue::new(),
            rw_chain <- Pool::new(),
            messages <- Pool::new(),
            sizes: SetOnce::new(),
            stranded_messages: Stack::new(),
            stranded_reads: Stack::new(),
        })
    }

    /// Sets the sizes and the depth of the Send Queue, once.
    pub(crate) fn open(&self, sizes: MessageSizes, depth: u32) {
        self.sizes.populate(sizes);
        self.queue.open(depth);
    }

    /// Makes an idle message of these sizes, before there is another.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it, `EINVAL` if the endpoint is not open.
    pub(crate) fn stock<C: EndpointOps>(&self, ep: &Endpoint<C>, sizes: &MessageSizes) -> Result {
        self.messages.put(new_message(ep, sizes)?);
        Ok(())
    }

    /// The Send Queue.
    #[inline]
    pub(crate) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    #[inline]
    pub(in crate::verbs) fn rw_chain(&self) -> &Pool<LlistBox<RwCtxt>> {
        &self.rw_chain
    }

    /// An empty message: an idle one, or else a new one.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it, `EINVAL` if the endpoint is not open.
    #[inline]
    pub(crate) fn get<C: EndpointOps>(&self, ep: &Endpoint<C>) -> Result<SendCtxt> {
        match self.messages.get() {
            Some(message) => Ok(message),
            None => new_message(ep, &self.sizes.copy().ok_or(EINVAL)?),
        }
    }

    /// Unmaps what a message has, lets its pages go and keeps it for another.
    #[inline]
    pub(crate) fn put<C: Responder<Call = S>>(&self, ep: &Endpoint<C>, mut message: SendCtxt) {
        message.clear(ep);
        self.messages.put(message);
    }

    #[cold]
    pub(in crate::verbs) fn trace_refused<C: EndpointOps>(
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

    #[cold]
    pub(in crate::verbs) fn strand_message(&self, sent: Sent) {
        self.stranded_messages.push(sent);
    }

    #[cold]
    pub(in crate::verbs) fn strand_read(&self, pulled: CallReadDone<S>) {
        self.stranded_reads.push(pulled);
    }

    /// Releases what was stranded; to be called by [`EndpointOps::drained`], by the context that
    /// this is of.
    pub(crate) fn drained<C: Responder<Call = S>>(&self, ep: &Drained<'_, C>) {
        let mut messages = self.stranded_messages.take_all();
        while let Some(mut sent) = messages.pop() {
            if !sent.is_of(ep) {
                // Perhaps still posted.
                mem::forget(sent);
            } else if sent.slot().is_some() {
                // Its regions may be registered: the pages stay until the queue pair is gone, and
                // go with this.
                sent.unmap(ep);
                self.stranded_messages.push(sent);
            } else {
                sent.into_ctxt().clear(ep);
            }
        }
        let mut pulls = self.stranded_reads.take_all();
        while let Some(pulled) = pulls.pop() {
            if pulled.is_of(ep) {
                drop(pulled.finish(ep))
            } else {
                mem::forget(pulled)
            }
        }
    }
}

#[cold]
fn new_message<C: EndpointOps>(ep: &Endpoint<C>, sizes: &MessageSizes) -> Result<SendCtxt> {
    SendCtxt::new(ep.pd().ok_or(EINVAL)?, sizes)
}
