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
        llist_box::LinkedBox,
        pool::Pool, //
    },
    trace::trace,
    verbs::{
        device::attrs::MessageSizes,
        endpoint::{
            completion::{
                Ended,
                SendWorker, //
            },
            ep::{
                Drained,
                Endpoint, //
            },
            ops::Context,
            send_queue::SendQueue, //
        },
        rw::rw_ctxt::Transfer, //
    }, //
};

use super::{
    call_read::{
        Parcel,
        Pulled, //
    },
    send_ctxt::{
        Message,
        Sent, //
    }, //
};

/// A context that pulls Calls and sends Replies.
pub(crate) trait Responder: Context<Recv = Parcel<<Self as Responder>::Call>> {
    /// The state of a Call.
    type Call: Send + 'static;

    /// The resources for it.
    fn sending(&self) -> &Sending<Self::Call>;

    /// A message was sent, or not. The send queue's worker.
    fn sent(worker: &SendWorker<'_, Self>, sent: Sent, how: Ended);

    /// A Call's chunks were pulled, or not. The send queue's worker.
    fn pulled(worker: &SendWorker<'_, Self>, pulled: Pulled<Self::Call>, how: Ended);
}

impl<C: Context> Endpoint<C> {
    /// Transfers that the device needs to move `pages` pages to or from one segment.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::device`].
    pub(crate) fn transfers_for(&self, pages: u32) -> Result<u32> {
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
    pub(crate) fn entries_for(&self, transfers: u32) -> Result<u32> {
        self.with_device(|device, port| {
            // SAFETY: The device stays for the call.
            unsafe { bindings::rdma_rw_max_send_wr(device, port, transfers, 0) }
        })
    }
}

/// What a responder's sending side needs: entries of the Send Queue, and idle objects.
#[pin_data]
pub(crate) struct Sending<S: Send + 'static> {
    #[pin]
    queue: SendQueue,
    #[pin]
    transfers: Pool<LinkedBox<Transfer>>,
    /// Idle messages. Grows to the peak number in use: at most one per share of the Send Queue, one
    /// per nfsd thread, and those that are exposed, or were sent and wait for a thread.
    #[pin]
    messages: Pool<Message>,
    sizes: SetOnce<MessageSizes>,
    /// What was posted in part: nobody knows which part, until the queue pair is drained.
    stranded_messages: Stack<Sent>,
    stranded_pulls: Stack<Pulled<S>>,
}

impl<S: Send + 'static> Sending<S> {
    /// A side that is not open yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- SendQueue::new(),
            transfers <- Pool::new(),
            messages <- Pool::new(),
            sizes: SetOnce::new(),
            stranded_messages: Stack::new(),
            stranded_pulls: Stack::new(),
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
    pub(crate) fn stock<C: Context>(&self, ep: &Endpoint<C>, sizes: &MessageSizes) -> Result {
        self.messages.put(new_message(ep, sizes)?);
        Ok(())
    }

    /// The Send Queue.
    #[inline]
    pub(crate) fn queue(&self) -> &SendQueue {
        &self.queue
    }

    #[inline]
    pub(in crate::verbs) fn transfers(&self) -> &Pool<LinkedBox<Transfer>> {
        &self.transfers
    }

    /// An empty message: an idle one, or else a new one.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map it, `EINVAL` if the endpoint is not open.
    #[inline]
    pub(crate) fn message<C: Context>(&self, ep: &Endpoint<C>) -> Result<Message> {
        match self.messages.get() {
            Some(message) => Ok(message),
            None => new_message(ep, &self.sizes.copy().ok_or(EINVAL)?),
        }
    }

    /// Unmaps what a message has, lets its pages go and keeps it for another.
    #[inline]
    pub(crate) fn put<C: Responder<Call = S>>(&self, ep: &Endpoint<C>, mut message: Message) {
        message.clear(ep);
        self.messages.put(message);
    }

    #[cold]
    pub(in crate::verbs) fn trace_refused<C: Context>(
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
    pub(in crate::verbs) fn strand_pull(&self, pulled: Pulled<S>) {
        self.stranded_pulls.push(pulled);
    }

    /// Releases what was stranded; to be called by [`Context::drained`], by the context that this
    /// is of.
    pub(crate) fn drained<C: Responder<Call = S>>(&self, ep: &Drained<'_, C>) {
        let mut messages = self.stranded_messages.take_all();
        while let Some(mut sent) = messages.pop() {
            if !sent.is_of(ep) {
                // Perhaps still posted.
                mem::forget(sent);
            } else if sent.place().is_some() {
                // Its regions may be registered: the pages stay until the queue pair is gone, and
                // go with this.
                sent.unmap(ep);
                self.stranded_messages.push(sent);
            } else {
                sent.into_message().clear(ep);
            }
        }
        let mut pulls = self.stranded_pulls.take_all();
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
fn new_message<C: Context>(ep: &Endpoint<C>, sizes: &MessageSizes) -> Result<Message> {
    Message::new(ep.domain().ok_or(EINVAL)?, sizes)
}
