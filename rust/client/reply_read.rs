// SPDX-License-Identifier: GPL-2.0

//! Pulling a Reply that the server exposes: RDMA Read to where the consumer wants it, then
//! RDMA_DONE.
//!
//! Nothing of this is on the way of a Reply that fits a message. It begins in the receive queue's
//! worker and goes on in the send queue's.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        SetOnce,
        SpinLock, //
    }, //
};

use crate::{
    engine::{
        inbound::RpcMsg,
        requester::{
            call::ReplyPlan,
            match_reply::Arrived, //
        }, //
    },
    sunrpc::xprt::{
        Claimed,
        Refusal, //
    },
    verbs::{
        CtrlSendPool,
        Endpoint,
        PreparedReads,
        ReadNotPosted,
        RecvBuf,
        Remote,
        SendWorker, //
        WcStatus,
    },
    wire::{
        HeaderWriter,
        ReadList,
        FIXED_LEN, //
    }, //
};

use super::{
    complete::{
        self,
        Completion, //
    },
    ep::ClientEp,
    limits::MAX_SEGMENTS,
    reply,
    transport::RdmaXprt,
    tunables, //
};

/// An RPC whose Reply is being pulled. It keeps the memory that the Reply goes to.
pub(super) struct ReplyRead {
    rpc: Claimed<RdmaXprt>,
    recv: RecvBuf<()>,
    length: u32,
    done: Done,
}

/// An RDMA_DONE to be sent.
#[derive(Clone, Copy)]
pub(super) struct Done {
    xid: u32,
    /// The handle that may be invalidated with it.
    handle: u32,
}

impl Done {
    /// The one that a Reply with this Read list wants; `None` if it exposes nothing.
    pub(super) fn for_reply(xid: u32, reads: &ReadList<'_>) -> Option<Self> {
        let first = reads.segments().next()?;
        Some(Self {
            xid,
            handle: first.segment.handle,
        })
    }
}

/// RDMA_DONEs that wait. Nothing but fairness wants them in order: the server keeps the pages of a
/// Reply until it has its own.
struct DoneRing {
    ring: KVVec<Done>,
    first: usize,
    count: usize,
}

impl DoneRing {
    /// None; there is room for as many as `ring` is long.
    const fn none(ring: KVVec<Done>) -> Self {
        Self {
            ring,
            first: 0,
            count: 0,
        }
    }

    /// Adds one, or returns `false` if there is no room.
    fn push(&mut self, done: Done) -> bool {
        let end = self.place(self.count);
        let full = self.count == self.ring.len();
        match self.ring.get_mut(end) {
            Some(place) if !full => {
                *place = done;
                self.count += 1;
                true
            }
            _ => false,
        }
    }

    /// The one that has waited longest.
    fn first(&self) -> Option<Done> {
        let first = self.ring.get(self.first).copied();
        first.filter(|_| self.count > 0)
    }

    /// Removes that one, if there is one.
    fn pop(&mut self) {
        if self.count > 0 {
            self.first = self.place(1);
            self.count -= 1;
        }
    }

    /// Where the one that is `behind` the first is, or will be.
    fn place(&self, behind: usize) -> usize {
        let place = self.first + behind;
        place.checked_sub(self.ring.len()).unwrap_or(place)
    }
}

/// RDMA_DONEs on their way, or waiting for it.
#[pin_data]
pub(super) struct Dones {
    messages: SetOnce<CtrlSendPool>,
    #[pin]
    waiting: SpinLock<DoneRing>,
}

impl Dones {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            messages: SetOnce::new(),
            waiting <- new_spinlock!(DoneRing::none(KVVec::new()), "Dones::waiting"),
        })
    }

    /// Makes what it takes to send some, if `calls` may be outstanding.
    pub(super) fn open(&self, ep: &Endpoint<ClientEp>, messages: u32, calls: u32) -> Result {
        let none = Done { xid: 0, handle: 0 };
        let ring = KVVec::from_elem(none, calls as usize, GFP_KERNEL)?;
        *self.waiting.lock() = DoneRing::none(ring);
        self.messages
            .populate(CtrlSendPool::new(ep, messages, FIXED_LEN)?);
        Ok(())
    }

    /// Sends one, as soon as there is room. A server that wants more of them than there can be
    /// Calls is not to be trusted.
    pub(super) fn send(&self, ep: &Endpoint<ClientEp>, done: Done) {
        let room = self.waiting.lock().push(done);
        if room {
            self.next(ep);
        } else {
            ep.context().force_disconnect();
        }
    }

    /// Sends those that wait, as far as there is room.
    pub(super) fn next(&self, ep: &Endpoint<ClientEp>) {
        let this = ep.context();
        let Some(messages) = self.messages.as_ref() else {
            return;
        };
        let credits = this.limits().requests;
        // Sent with the lock: what waits because no message was idle is seen when one comes back.
        let mut waiting = self.waiting.lock();
        while let Some(done) = waiting.first() {
            let invalidate = this.invalidates().then_some(done.handle);
            let sent = messages.send(ep, invalidate, |bytes| {
                HeaderWriter::done(bytes, done.xid, credits).ok()
            });
            match sent {
                Ok(Some(())) => {
                    waiting.pop();
                    tunables::DONES.inc();
                }
                Ok(None) => return,
                Err(_) => {
                    waiting.count = 0;
                    drop(waiting);
                    this.force_disconnect();
                    return;
                }
            }
        }
    }
}

/// Pulls what answers `rpc`, and completes it; or else says that it will not be pulled, and fails
/// it. The server is told by `done`.
pub(super) fn start(
    ep: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    done: Done,
    recv: RecvBuf<()>,
    bytes: usize,
) {
    let this = ep.context();
    let Some(reply) = reply::parse(this, recv.bytes(bytes)) else {
        this.force_disconnect();
        return;
    };
    match prepare(ep, &rpc, &reply) {
        Ok((prepared, length)) => {
            let pulling = ReplyRead {
                rpc,
                recv,
                length,
                done,
            };
            if this.reply_reads.start(ep, prepared, pulling).is_err() {
                // Not completed; SUNRPC sends it again on the next connection.
                this.force_disconnect();
            }
        }
        Err(ReadNotPosted::Failed) => this.force_disconnect(),
        Err(ReadNotPosted::Unsuitable) => {
            this.dones.send(ep, done);
            complete::fence(ep, rpc, recv, Completion::Refused(Refusal::Fail));
        }
    }
}

/// Prepares the RDMA Reads of what `reply` exposes, to where the consumer wants it; returns its
/// length, too.
fn prepare(
    ep: &Endpoint<ClientEp>,
    rpc: &Claimed<RdmaXprt>,
    reply: &RpcMsg<'_>,
) -> Result<(PreparedReads<ReplyRead>, u32), ReadNotPosted> {
    let reads = reply.chunks.reads;
    let room = rpc.room();
    let capacity = room
        .head_len()
        .saturating_add(room.page_len())
        .saturating_add(room.tail_len());
    let inflight = rpc.inflight();
    // The memory of an offered chunk is mapped for the device already.
    let offered = matches!(
        inflight.offer,
        ReplyPlan::WriteChunk | ReplyPlan::ReplyChunk
    );
    let length = match inflight.arrived(reply) {
        Ok(Arrived::Exposed {
            length,
            by_write: 0,
        }) if !offered && length <= capacity && reads.len() <= MAX_SEGMENTS as usize => length,
        _ => return Err(ReadNotPosted::Unsuitable),
    };
    let bvecs = Iterator::chain(room.head(), room.pages());
    let bvecs = Iterator::chain(bvecs, room.tail());
    let segments = reads.segments().map(|read| read.segment);
    let segments = segments.filter(|segment| !segment.is_empty());
    let sources = segments.map(|segment| {
        let from = Remote {
            handle: segment.handle,
            offset: segment.offset,
        };
        (from, segment.length)
    });
    let prepared = ep.context().reply_reads.prepare(ep, bvecs, sources)?;
    Ok((prepared, length))
}

/// A Reply has been pulled, or the connection ended first.
pub(super) fn pulled(worker: &SendWorker<'_, ClientEp>, pulling: ReplyRead, status: WcStatus) {
    let this = worker.context();
    if status != WcStatus::Success {
        // Sent again on the next connection, on which nothing is owed for this one.
        this.force_disconnect();
        return;
    }
    tunables::PULLED.inc();
    let ReplyRead {
        rpc,
        recv,
        length,
        done,
    } = pulling;
    this.dones.send(worker, done);
    complete::fence(worker, rpc, recv, Completion::Pulled(length));
}
