// SPDX-License-Identifier: GPL-2.0

//! The connecting end: executes what the engine decides, and lets the world check it.

use crate::app::Rpc;
use crate::backchannel::Service;
use crate::end::Queues;
use crate::end::Received;
use crate::marshal::consume;
use crate::marshal::marshal;
use crate::marshal::Outcome;
use crate::marshal::Pending;
use crate::marshal::State;
use crate::memory::Memory;
use crate::memory::Place;
use crate::rng::Rng;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::inbound::RpcMsg;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::match_reply::arrived;
use rpcrdma_core::engine::requester::match_reply::Arrived;
use rpcrdma_core::engine::requester::match_reply::Offered;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::ReadList;
use rpcrdma_core::wire::Segment;
use std::collections::BTreeMap;

/// Bytes in a page, as a shift; small, so that chunks have many segments.
const PAGE_SHIFT: u32 = 8;

/// What an end asks the world to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Go,
    /// To end the connection, which cannot be trusted.
    Disconnect,
}

/// The connecting end of one connection after another.
#[derive(Debug)]
pub struct Client {
    /// Queues of the connection.
    pub queues: Queues,
    /// Registrations of the connection.
    pub memory: Memory,
    /// Forward credits.
    pub window: Window,
    /// Credits that every Call asks for.
    wanted: u32,
    agreement: Agreement,
    extensions: Extensions,
    /// Reverse Calls.
    pub backchannel: Service,
    /// Whether the server follows the protocol.
    honest_server: bool,
    segments: u32,
    segment_pages: u32,
    pending: BTreeMap<u32, Pending>,
    /// Calls on this connection that have not been answered, cancelled ones included: what the
    /// credit limit counts.
    pub unanswered: u32,
    /// Those of them whose RPC is gone.
    orphans: Vec<u32>,
    /// RPCs that have ended, in order.
    pub finished: Vec<(Rpc, Outcome)>,
}

impl Client {
    /// A client on a fresh connection.
    pub fn new(
        rng: &mut Rng,
        agreement: Agreement,
        extensions: Extensions,
        wanted: u32,
        backchannel: u32,
    ) -> Self {
        let window = Window::FRESH;
        Self {
            queues: Queues::new(
                rng.range(4, 40),
                window.receives(backchannel),
                rng.range(0, 4),
            ),
            memory: Memory::default(),
            window,
            wanted,
            agreement,
            extensions,
            backchannel: Service::new(backchannel),
            honest_server: true,
            segments: 16,
            segment_pages: rng.range(3, 6),
            pending: BTreeMap::new(),
            unanswered: 0,
            orphans: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// A new connection takes the place of a lost one: nothing of the old one is left but RPCs.
    pub fn reconnect(
        &mut self,
        rng: &mut Rng,
        agreement: Agreement,
        extensions: Extensions,
        wanted: u32,
    ) {
        self.queues.flush();
        let mut fresh = Self::new(rng, agreement, extensions, wanted, self.backchannel.granted);
        fresh.honest_server = self.honest_server;
        std::mem::swap(&mut fresh.pending, &mut self.pending);
        std::mem::swap(&mut fresh.finished, &mut self.finished);
        *self = fresh;
        for pending in self.pending.values_mut() {
            pending.forget_chunks();
            match pending.state {
                // Its handles are gone with the connection, so it could complete; sending it again
                // is as good, and what a client does that has lost the Reply.
                State::Sent
                | State::Pulling { .. }
                | State::Fencing(Outcome::Reply(_) | Outcome::Again) => {
                    pending.state = State::Queued;
                }
                State::Queued | State::Fencing(_) => {}
            }
        }
    }

    /// Takes an RPC from the consumer.
    pub fn submit(&mut self, rpc: Rpc) {
        let room = &rpc.shape.reply;
        let pending = Pending {
            reply: vec![0; (room.head + room.data + room.tail) as usize],
            rpc,
            state: State::Queued,
            reads: Vec::new(),
            writes: Vec::new(),
            reply_chunk: Vec::new(),
            offer: ReplyPlan::Inline,
            insured: false,
            remotely: Vec::new(),
        };
        self.pending.insert(pending.rpc.xid, pending);
    }

    /// XIDs of RPCs under way.
    pub fn under_way(&self) -> Vec<u32> {
        self.pending.keys().copied().collect()
    }

    /// XIDs of RPCs that may be sent now.
    pub fn sendable(&self) -> Vec<u32> {
        if self.window.granted() <= self.unanswered {
            return Vec::new();
        }
        let queued = self.pending.values().filter(|p| p.state == State::Queued);
        queued.map(|pending| pending.rpc.xid).collect()
    }

    /// XIDs of RPCs whose handles are being invalidated.
    pub fn fencing(&self) -> Vec<u32> {
        let fencing = |p: &&Pending| matches!(p.state, State::Fencing(_));
        self.pending
            .values()
            .filter(fencing)
            .map(|p| p.rpc.xid)
            .collect()
    }

    fn limits(&self) -> CallLimits {
        CallLimits {
            send: self.agreement.send,
            receive: self.agreement.receive,
            pull_up: 0,
            buf_len: self.agreement.send,
            sges: 6,
            segments: self.segments,
            segment_pages: self.segment_pages,
            page_shift: PAGE_SHIFT,
            pulled_replies: self.extensions.pulled_replies,
        }
    }

    /// Sends a queued RPC.
    pub fn send(&mut self, rng: &mut Rng, xid: u32) {
        let limits = self.limits();
        let Some(pending) = self.pending.get_mut(&xid) else {
            return;
        };
        let bytes = marshal(rng, &mut self.memory, pending, &limits, self.wanted);
        pending.state = State::Sent;
        self.unanswered += 1;
        assert!(
            self.unanswered <= self.window.granted(),
            "more Calls than credits"
        );
        let message = Received {
            bytes,
            invalidated: None,
        };
        self.queues.post(Vec::new(), message);
    }

    /// The consumer gives up on an RPC. Its handles are invalidated all the same.
    pub fn cancel(&mut self, xid: u32) {
        let Some(pending) = self.pending.get_mut(&xid) else {
            return;
        };
        match pending.state {
            State::Queued => {}
            // The Call stays unanswered, and counts until it is.
            State::Sent => self.orphans.push(xid),
            // Its memory is in the device's hands until it has been pulled.
            State::Pulling { .. } | State::Fencing(_) => return,
        }
        pending.state = State::Fencing(Outcome::Cancelled);
    }

    /// The local invalidation of an RPC's handles completes, and with it the RPC.
    pub fn fenced(&mut self, xid: u32) {
        let Some(mut pending) = self.pending.remove(&xid) else {
            return;
        };
        for handle in pending.handles() {
            if pending.remotely.contains(&handle) {
                continue;
            }
            // A Reply that was not looked at yet may have done it: invalidating again does no harm.
            let mut late = self
                .queues
                .received
                .iter()
                .map(|message| message.invalidated);
            let already = late.any(|invalidated| invalidated == Some(handle));
            assert!(
                self.memory.invalidate(handle) || already,
                "invalidated twice"
            );
        }
        for handle in pending.handles() {
            assert!(
                !self.memory.is_valid(handle),
                "completed while a handle is valid"
            );
        }
        pending.forget_chunks();
        if pending.state == State::Fencing(Outcome::Again) {
            pending.state = State::Queued;
            pending.insured = true;
            self.pending.insert(xid, pending);
            return;
        }
        if let State::Fencing(outcome) = pending.state {
            self.finished.push((pending.rpc, outcome));
        }
    }

    /// The device invalidates a handle because a Send asks for it.
    pub fn device_invalidates(&mut self, handle: u32) -> bool {
        self.memory.invalidate(handle)
    }

    /// The device writes to registered memory.
    pub fn device_writes(&mut self, place: Place, data: &[u8]) {
        let pending = self.pending.get_mut(&place.xid);
        let pending = pending.expect("memory of an RPC that is gone was still registered");
        assert!(!matches!(pending.state, State::Queued));
        pending.reply[place.start..place.start + data.len()].copy_from_slice(data);
    }

    /// The device reads from registered memory.
    pub fn device_reads(&self, place: Place, length: u32) -> Vec<u8> {
        let pending = self.pending.get(&place.xid);
        let pending = pending.expect("memory of an RPC that is gone was still registered");
        pending.rpc.call[place.start..place.start + length as usize].to_vec()
    }

    /// Looks at the oldest Receive completion.
    pub fn receive(&mut self) -> Verdict {
        let Some(Received { bytes, invalidated }) = self.queues.received.pop_front() else {
            return Verdict::Go;
        };
        // What the device has invalidated is invalid, whatever becomes of the message. If no RPC
        // has the handle, it was that of an RPC given up: its Reply came too late.
        let mut foreign = false;
        if let Some(handle) = invalidated {
            for pending in self.pending.values_mut() {
                if pending.handles().any(|own| own == handle) {
                    pending.remotely.push(handle);
                    foreign = !bytes.starts_with(&pending.rpc.xid.to_be_bytes());
                }
            }
        }
        let verdict = match from_server(&bytes, self.extensions) {
            Ok(FromServer::Reply(message)) => self.reply(&message, invalidated),
            Ok(FromServer::Error(refused)) => {
                if self.answered(refused.xid) {
                    self.credits(refused.credits);
                    let outcome = match self.pending.get(&refused.xid) {
                        Some(pending) if pending.offer == ReplyPlan::Pull => Outcome::Again,
                        _ => Outcome::Refused,
                    };
                    self.end(refused.xid, outcome);
                }
                Verdict::Go
            }
            Ok(FromServer::BackchannelCall(message)) => {
                self.backchannel.call(&message, self.honest_server);
                Verdict::Go
            }
            Err(Response::Answer(error)) => {
                self.refuse(&error);
                Verdict::Go
            }
            Err(Response::Drop) => Verdict::Go,
        };
        self.queues.refill();
        match foreign {
            true => Verdict::Disconnect,
            false => verdict,
        }
    }

    /// Whether a Call of this XID was waiting for an answer; it is not any more.
    fn answered(&mut self, xid: u32) -> bool {
        let orphan = self.orphans.iter().position(|orphan| *orphan == xid);
        let sent = self
            .pending
            .get(&xid)
            .is_some_and(|p| p.state == State::Sent);
        if let (Some(index), false) = (orphan, sent) {
            self.orphans.swap_remove(index);
        }
        let known = sent || orphan.is_some();
        self.unanswered -= u32::from(known);
        known
    }

    fn credits(&mut self, credits: u32) {
        self.window.grant(credits, self.wanted);
        // Receives first: the window opens for the next Call only after this returns.
        self.queues.needed = self.window.receives(self.backchannel.granted);
        self.queues.refill();
    }

    fn end(&mut self, xid: u32, outcome: Outcome) {
        if let Some(pending) = self.pending.get_mut(&xid) {
            if pending.state == State::Sent {
                pending.state = State::Fencing(outcome);
            }
        }
    }

    fn reply(&mut self, message: &RpcMsg<'_>, handle: Option<u32>) -> Verdict {
        let xid = message.xid;
        if let Some(pending) = self.pending.get(&xid) {
            if pending.state == State::Sent {
                let own = |handle| pending.handles().any(|exposed| exposed == handle);
                if !handle.is_none_or(own) {
                    return Verdict::Disconnect;
                }
                let offered = Offered {
                    write: pending.writes.iter().copied(),
                    reply: pending.reply_chunk.iter().copied(),
                };
                let room = pending.reply.len() as u32;
                let outcome = match arrived(message, offered) {
                    Ok(Arrived::Exposed {
                        length,
                        by_write: 0,
                    }) if length <= room => None,
                    // It cannot be taken, and will not become better by waiting.
                    _ if !message.chunks.reads.is_empty() => Some(Outcome::Refused),
                    Ok(arrived) => Some(Outcome::Reply(consume(pending, &arrived))),
                    // If it is not a Reply to this Call, the Call is still unanswered.
                    Err(_) => return Verdict::Go,
                };
                self.unanswered -= 1;
                self.credits(message.credits);
                match outcome {
                    Some(outcome) => {
                        self.end(xid, outcome);
                        self.done(xid, &message.chunks.reads);
                    }
                    None => self.pull(xid, &message.chunks.reads),
                }
                return Verdict::Go;
            }
        }
        // The Reply to a Call whose RPC was given up: it still frees a credit.
        if self.answered(xid) {
            self.credits(message.credits);
        }
        self.done(xid, &message.chunks.reads);
        Verdict::Go
    }

    fn pull(&mut self, xid: u32, reads: &ReadList<'_>) {
        let segments = reads.segments().map(|read| read.segment);
        if let Some(pending) = self.pending.get_mut(&xid) {
            pending.state = State::Pulling {
                exposed: segments.filter(|segment| !segment.is_empty()).collect(),
                arrived: 0,
            };
        }
    }

    /// Tells the responder that what it exposes has been pulled, or will not be.
    fn done(&mut self, xid: u32, reads: &ReadList<'_>) {
        let first = reads.segments().next();
        if let Some(first) = first {
            self.send_done(xid, first.segment.handle);
        }
    }

    fn send_done(&mut self, xid: u32, handle: u32) {
        let mut bytes = vec![0; 16];
        HeaderWriter::done(&mut bytes, xid, self.wanted).expect("16 bytes suffice");
        let message = Received {
            bytes,
            invalidated: self.agreement.remote_invalidation.then_some(handle),
        };
        self.queues.post(Vec::new(), message);
    }

    /// XIDs of RPCs whose Replies are being pulled, each with what is to be read next.
    pub fn pulling(&self) -> Vec<(u32, Segment)> {
        let next = |pending: &Pending| match &pending.state {
            State::Pulling { exposed, .. } => Some((pending.rpc.xid, *exposed.last()?)),
            _ => None,
        };
        self.pending.values().filter_map(next).collect()
    }

    /// An RDMA Read of a Reply completes: the last segment first, since any order will do.
    pub fn pulled(&mut self, xid: u32, data: &[u8]) {
        let Some(pending) = self.pending.get_mut(&xid) else {
            return;
        };
        let State::Pulling { exposed, arrived } = &mut pending.state else {
            return;
        };
        let Some(segment) = exposed.pop() else {
            return;
        };
        let before: u32 = exposed.iter().map(|segment| segment.length).sum();
        let start = before as usize;
        pending.reply[start..start + data.len()].copy_from_slice(data);
        *arrived += data.len();
        if exposed.is_empty() {
            let stream = pending.reply[..*arrived].to_vec();
            pending.state = State::Fencing(Outcome::Reply(stream));
            self.send_done(xid, segment.handle);
        }
    }

    /// Refuses a reverse Call.
    fn refuse(&mut self, error: &ErrorReply) {
        let mut bytes = vec![0; 28];
        let length = error.encode(self.backchannel.granted, &mut bytes);
        bytes.truncate(length.expect("28 bytes suffice"));
        self.say(bytes);
    }

    /// Serves one of the reverse Calls.
    pub fn serve_backchannel(&mut self, rng: &mut Rng) {
        if let Some(bytes) = self.backchannel.reply(rng) {
            self.say(bytes);
        }
    }

    fn say(&mut self, bytes: Vec<u8>) {
        let message = Received {
            bytes,
            invalidated: None,
        };
        self.queues.post(Vec::new(), message);
    }

    /// Whether to believe that the server follows the protocol.
    pub fn trust(&mut self, honest: bool) {
        self.honest_server = honest;
    }
}
