// SPDX-License-Identifier: GPL-2.0

//! RDMA_ERRORs, which answer backchannel Calls: sent, or queued for a control Send.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use crate::{
    lib::{
        counter::AtomicCounter,
        ring::Ring,
        sync::SetOnce, //
    },
    verbs::{
        CtrlPost,
        CtrlSendPool,
        Endpoint,
        Requester, //
    },
    wire::{
        ErrorReply,
        MIN_LEN, //
    }, //
};

/// The RDMA_ERRORs of one connection.
#[pin_data]
pub(super) struct Errors {
    sends: SetOnce<CtrlSendPool>,
    #[pin]
    waiting: SpinLock<Ring<ErrorReply>>,
}

impl Errors {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            sends: SetOnce::new(),
            waiting <- new_spinlock!(Ring::new(KVVec::new()), "Errors::waiting"),
        })
    }

    /// Allocates `sends` control Sends, and a ring for the `calls` that the server may have
    /// outstanding.
    pub(super) fn open<C: Requester>(&self, ep: &Endpoint<C>, sends: u32, calls: u32) -> Result {
        let none = ErrorReply::chunk(0);
        let ring = KVVec::from_elem(none, calls as usize, GFP_KERNEL)?;
        *self.waiting.lock() = Ring::new(ring);
        self.sends.populate(CtrlSendPool::new(ep, sends, MIN_LEN)?);
        Ok(())
    }

    /// Sends `error` with these `credits`, or queues it until a control Send is idle. Adds what is
    /// sent to `bytes`. A server that has more Calls outstanding than it may gets no answer to some
    /// of them.
    ///
    /// # Errors
    ///
    /// That of the device: the connection has to be closed. The queue is empty then.
    pub(super) fn send<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        error: &ErrorReply,
        credits: u32,
        bytes: &AtomicCounter,
    ) -> Result {
        self.waiting.lock().push(*error);
        self.send_next(ep, credits, bytes)
    }

    /// Sends queued RDMA_ERRORs while control Sends are idle.
    ///
    /// # Errors
    ///
    /// As for [`Self::send`].
    pub(super) fn send_next<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        credits: u32,
        bytes: &AtomicCounter,
    ) -> Result {
        let Some(sends) = self.sends.as_ref() else {
            return Ok(());
        };
        // The lock is held across the Sends. An RDMA_ERROR that stays queued because no control
        // Send was idle is therefore seen by the completion that makes one idle.
        let mut waiting = self.waiting.lock();
        while let Some(error) = waiting.first() {
            match sends.send(ep, None, |buf| error.encode(credits, buf).ok()) {
                Ok(CtrlPost::Posted) => {
                    waiting.pop();
                    bytes.add(error.error.message_len() as u64);
                }
                Ok(CtrlPost::NotPosted) => return Ok(()),
                Err(failed) => {
                    waiting.clear();
                    return Err(failed);
                }
            }
        }
        Ok(())
    }
}
