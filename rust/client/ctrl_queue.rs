// SPDX-License-Identifier: GPL-2.0

//! Control messages of one connection: sent, or queued for a control Send.

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

/// A message without an RPC: RDMA_ERROR or RDMA_DONE.
pub(super) trait CtrlMessage: Copy {
    /// Length of the longest message, in bytes.
    const MAX_LEN: usize;
    /// What fills the unused entries of a queue.
    const UNUSED: Self;

    /// Writes the message, which grants or asks for `credits`, to `buf`; returns its length, or
    /// `None` if `buf` is shorter than [`Self::MAX_LEN`].
    fn encode(&self, credits: u32, buf: &mut [u8]) -> Option<usize>;

    /// The peer's handle that the Send invalidates, if any.
    fn invalidates(&self) -> Option<u32> {
        None
    }

    /// The message was posted.
    fn posted(&self) {}
}

impl CtrlMessage for ErrorReply {
    const MAX_LEN: usize = MIN_LEN;
    const UNUSED: Self = Self::chunk(0);

    fn encode(&self, credits: u32, buf: &mut [u8]) -> Option<usize> {
        self.encode(credits, buf).ok()
    }
}

/// The control messages of one kind.
#[pin_data]
pub(super) struct CtrlQueue<M: CtrlMessage> {
    sends: SetOnce<CtrlSendPool>,
    #[pin]
    waiting: SpinLock<Ring<M>>,
}

impl<M: CtrlMessage> CtrlQueue<M> {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            sends: SetOnce::new(),
            waiting <- new_spinlock!(Ring::new(KVVec::new()), "CtrlQueue::waiting"),
        })
    }

    /// Allocates `sends` control Sends, and room for `messages` that are not sent yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or as [`CtrlSendPool::new`].
    pub(super) fn open<C: Requester>(&self, ep: &Endpoint<C>, sends: u32, messages: u32) -> Result {
        let ring = KVVec::from_elem(M::UNUSED, messages as usize, GFP_KERNEL)?;
        *self.waiting.lock() = Ring::new(ring);
        self.sends
            .populate(CtrlSendPool::new(ep, sends, M::MAX_LEN)?);
        Ok(())
    }

    /// Queues `message`; `false` if there is no room.
    pub(super) fn push(&self, message: M) -> bool {
        self.waiting.lock().push(message)
    }

    /// Sends queued messages with these `credits` while control Sends are idle. Adds the length of
    /// what is sent to `bytes`.
    ///
    /// # Errors
    ///
    /// That of the device: the connection has to be closed. The queue is empty then.
    pub(super) fn send<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        credits: u32,
        bytes: &AtomicCounter,
    ) -> Result {
        let Some(sends) = self.sends.as_ref() else {
            return Ok(());
        };
        // The lock is held across the Sends. A message that stays queued because no control Send
        // was idle is therefore seen by the completion that makes one idle.
        let mut waiting = self.waiting.lock();
        while let Some(message) = waiting.first() {
            let mut length = 0;
            let sent = sends.send(ep, message.invalidates(), |buf| {
                length = message.encode(credits, buf)?;
                Some(length)
            });
            match sent {
                Ok(CtrlPost::Posted) => {
                    waiting.pop();
                    bytes.add(length as u64);
                    message.posted();
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
