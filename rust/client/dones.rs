// SPDX-License-Identifier: GPL-2.0

//! RDMA_DONEs, which acknowledge pulled Replies: sent, or queued for a control Send.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

use crate::{
    lib::{
        bvec::BVec,
        counter::AtomicCounter,
        ring::Ring,
        sync::SetOnce, //
    },
    sunrpc::xprt::Claimed,
    verbs::{
        CtrlPost,
        CtrlSendPool,
        Endpoint,
        ReadTarget,
        RecvBuf,
        Remote,
        Requester, //
    },
    wire::{
        HeaderWriter,
        Outline,
        ReadList,
        FIXED_LEN, //
    }, //
};

use super::{
    shared::RdmaXprt,
    tunables, //
};

/// An RPC whose Reply is being fetched by RDMA Read. Owns the memory that the Reads write to.
pub(super) struct ReplyRead {
    pub(super) rpc: Claimed<RdmaXprt>,
    pub(super) recv: RecvBuf<()>,
    /// Length of the message in `recv`.
    pub(super) len: usize,
    /// Positions of the chunk lists in that message.
    pub(super) outline: Outline,
    /// Length of the Reply.
    pub(super) length: u32,
    pub(super) done: Done,
}

impl ReadTarget for ReplyRead {
    fn room(&self) -> impl Iterator<Item = BVec<'_>> {
        let room = self.rpc.room();
        let front = Iterator::chain(room.head(), room.pages());
        Iterator::chain(front, room.tail())
    }

    fn sources(&self) -> impl Iterator<Item = (Remote, u32)> {
        let lists = self.outline.lists(self.recv.bytes(self.len));
        // The outline was made from the same bytes, so that it always fits.
        let reads = lists.unwrap_or_default().reads;
        let segments = reads.segments().map(|read| read.segment);
        let segments = segments.filter(|segment| !segment.is_empty());
        segments.map(|segment| {
            let source = Remote {
                handle: segment.handle,
                offset: segment.offset,
            };
            (source, segment.length)
        })
    }
}

/// An RDMA_DONE to be sent.
#[derive(Clone, Copy)]
pub(super) struct Done {
    xid: u32,
    /// The peer's handle that the Send may invalidate.
    handle: u32,
}

impl Done {
    /// Acknowledges the Reply that has this Read list; `None` if the Reply exposes nothing.
    pub(super) fn for_reply(xid: u32, reads: &ReadList<'_>) -> Option<Self> {
        let first = reads.segments().next()?;
        Some(Self {
            xid,
            handle: first.segment.handle,
        })
    }
}

/// No RDMA_DONE can be sent: the connection has to be closed.
pub(super) struct Lost;

/// The RDMA_DONEs of one connection.
#[pin_data]
pub(super) struct Dones {
    sends: SetOnce<CtrlSendPool>,
    /// The order matters for fairness only: the server keeps the pages of each Reply until the
    /// RDMA_DONE for this Reply arrives.
    #[pin]
    waiting: SpinLock<Ring<Done>>,
}

impl Dones {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            sends: SetOnce::new(),
            waiting <- new_spinlock!(Ring::new(KVVec::new()), "Dones::waiting"),
        })
    }

    /// Allocates `sends` control Sends, and a ring for `calls` outstanding Calls.
    pub(super) fn open<C: Requester>(&self, ep: &Endpoint<C>, sends: u32, calls: u32) -> Result {
        let none = Done { xid: 0, handle: 0 };
        let ring = KVVec::from_elem(none, calls as usize, GFP_KERNEL)?;
        *self.waiting.lock() = Ring::new(ring);
        self.sends
            .populate(CtrlSendPool::new(ep, sends, FIXED_LEN)?);
        Ok(())
    }

    /// Sends `done` with these `credits`, or queues it until a control Send is idle. Adds what is
    /// sent to `bytes`.
    ///
    /// # Errors
    ///
    /// [`Lost`], also if the server wants more RDMA_DONEs than there can be Calls: it cannot be
    /// trusted.
    pub(super) fn send<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        done: Done,
        credits: u32,
        invalidate: bool,
        bytes: &AtomicCounter,
    ) -> Result<(), Lost> {
        let queued = self.waiting.lock().push(done);
        if !queued {
            return Err(Lost);
        }
        self.send_next(ep, credits, invalidate, bytes)
    }

    /// Sends queued RDMA_DONEs while control Sends are idle.
    ///
    /// # Errors
    ///
    /// [`Lost`]. The queue is empty then.
    pub(super) fn send_next<C: Requester>(
        &self,
        ep: &Endpoint<C>,
        credits: u32,
        invalidate: bool,
        bytes: &AtomicCounter,
    ) -> Result<(), Lost> {
        let Some(sends) = self.sends.as_ref() else {
            return Ok(());
        };
        // The lock is held across the Sends. An RDMA_DONE that stays queued because no control Send
        // was idle is therefore seen by the completion that makes one idle.
        let mut waiting = self.waiting.lock();
        while let Some(done) = waiting.first() {
            let handle = invalidate.then_some(done.handle);
            let sent = sends.send(ep, handle, |buf| {
                HeaderWriter::done(buf, done.xid, credits).ok()
            });
            match sent {
                Ok(CtrlPost::Posted) => {
                    waiting.pop();
                    bytes.add(FIXED_LEN as u64);
                    tunables::DONES.inc();
                }
                Ok(CtrlPost::NotPosted) => return Ok(()),
                Err(_) => {
                    waiting.clear();
                    return Err(Lost);
                }
            }
        }
        Ok(())
    }
}
