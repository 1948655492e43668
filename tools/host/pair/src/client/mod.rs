// SPDX-License-Identifier: GPL-2.0

//! The client: executes the decisions of the engine.
//!
//! This file has the life of an RPC: submission, Send, cancellation, invalidation. `receive` has
//! the handling of received messages, and of exposed Replies.

mod receive;

use crate::app::Rpc;
use crate::backchannel::Service;
use crate::marshal::marshal;
use crate::marshal::Outcome;
use crate::marshal::Pending;
use crate::marshal::State;
use crate::memory::Location;
use crate::memory::Memory;
use crate::negotiation::Negotiated;
use crate::queues::Queues;
use crate::queues::Received;
use crate::rng::Rng;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use std::collections::BTreeMap;

/// Binary logarithm of the page size. Small pages make chunks of many segments.
const PAGE_SHIFT: u32 = 8;

/// The action that an end requests after a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// None.
    Continue,
    /// Disconnect, because the peer has violated the protocol.
    Disconnect,
}

/// The client, over all its connections.
#[derive(Debug)]
pub struct Client {
    /// Queues of the connection.
    pub queues: Queues,
    /// Registered memory of the connection.
    pub memory: Memory,
    /// Credits.
    pub window: Window,
    /// Credits that every Call requests.
    wanted: u32,
    agreement: Agreement,
    extensions: Extensions,
    /// Backchannel Calls.
    pub backchannel: Service,
    /// Whether the server follows the protocol.
    honest_server: bool,
    /// Most segments in a chunk.
    segments: u32,
    /// Most pages in a segment.
    segment_pages: u32,
    /// RPCs that have not ended, by XID.
    pending: BTreeMap<u32, Pending>,
    /// Number of unanswered Calls on this connection, including those of cancelled RPCs. The
    /// credits limit this number.
    pub unanswered: u32,
    /// XIDs of unanswered Calls whose RPC was cancelled.
    orphans: Vec<u32>,
    /// RPCs that have ended, in order.
    pub finished: Vec<(Rpc, Outcome)>,
}

impl Client {
    /// A client with a new connection.
    pub(crate) fn new(rng: &mut Rng, conn: &Negotiated, backchannel: u32) -> Self {
        let window = Window::FRESH;
        Self {
            queues: Queues::new(
                rng.range(4, 40),
                window.receives(backchannel),
                rng.range(0, 4),
            ),
            memory: Memory::default(),
            window,
            wanted: conn.wanted,
            agreement: conn.client,
            extensions: conn.extensions,
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

    /// Replaces a lost connection by a new one. Only pending RPCs are kept.
    pub(crate) fn reconnect(&mut self, rng: &mut Rng, conn: &Negotiated) {
        self.queues.flush();
        let mut fresh = Self::new(rng, conn, self.backchannel.granted);
        fresh.honest_server = self.honest_server;
        std::mem::swap(&mut fresh.pending, &mut self.pending);
        std::mem::swap(&mut fresh.finished, &mut self.finished);
        *self = fresh;
        for pending in self.pending.values_mut() {
            pending.clear_chunks();
            match pending.state {
                // The handles are invalid, so an answered RPC could complete. The client sends the
                // Call again, as if it had lost the Reply.
                State::Sent
                | State::Pulling { .. }
                | State::Fencing(Outcome::Reply(_) | Outcome::Retry) => {
                    pending.state = State::Queued;
                }
                State::Queued | State::Fencing(_) => {}
            }
        }
    }

    /// Accepts an RPC of the consumer.
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
            needs_reply_chunk: false,
            invalidated_remotely: Vec::new(),
        };
        self.pending.insert(pending.rpc.xid, pending);
    }

    /// XIDs of RPCs that have not ended.
    pub fn pending(&self) -> Vec<u32> {
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

    /// The limits of the connection.
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
            room_for_roundup: false,
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
            "Calls exceed the credits"
        );
        self.send_message(bytes, None);
    }

    /// Posts a Send, With Invalidate of a handle if there is one.
    fn send_message(&mut self, bytes: Vec<u8>, invalidated: Option<u32>) {
        let message = Received { bytes, invalidated };
        self.queues.post(Vec::new(), message);
    }

    /// The consumer cancels an RPC. Its handles must be invalidated before it ends.
    pub fn cancel(&mut self, xid: u32) {
        let Some(pending) = self.pending.get_mut(&xid) else {
            return;
        };
        match pending.state {
            State::Queued => {}
            // The Call keeps its credit until it is answered.
            State::Sent => self.orphans.push(xid),
            // The device writes to the RPC's memory until all Reads have completed.
            State::Pulling { .. } | State::Fencing(_) => return,
        }
        pending.state = State::Fencing(Outcome::Cancelled);
    }

    /// The local invalidation of an RPC's handles completes. The RPC ends.
    pub fn fenced(&mut self, xid: u32) {
        let Some(mut pending) = self.pending.remove(&xid) else {
            return;
        };
        for handle in pending.handles() {
            if pending.invalidated_remotely.contains(&handle) {
                continue;
            }
            // A Reply in the queue may already have invalidated the handle.
            let mut received = self
                .queues
                .received
                .iter()
                .map(|message| message.invalidated);
            let already = received.any(|invalidated| invalidated == Some(handle));
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
        pending.clear_chunks();
        if pending.state == State::Fencing(Outcome::Retry) {
            pending.state = State::Queued;
            pending.needs_reply_chunk = true;
            self.pending.insert(xid, pending);
            return;
        }
        if let State::Fencing(outcome) = pending.state {
            self.finished.push((pending.rpc, outcome));
        }
    }

    /// The device invalidates a handle for a Send With Invalidate. Returns whether it was valid.
    pub fn device_invalidates(&mut self, handle: u32) -> bool {
        self.memory.invalidate(handle)
    }

    /// The device writes to registered memory.
    pub fn device_writes(&mut self, location: Location, data: &[u8]) {
        let pending = self.pending.get_mut(&location.buffer);
        let pending = pending.expect("memory of an ended RPC is registered");
        assert!(!matches!(pending.state, State::Queued));
        pending.reply[location.offset..location.offset + data.len()].copy_from_slice(data);
    }

    /// The device reads from registered memory.
    pub fn device_reads(&self, location: Location, len: u32) -> Vec<u8> {
        let pending = self.pending.get(&location.buffer);
        let pending = pending.expect("memory of an ended RPC is registered");
        pending.rpc.call[location.offset..location.offset + len as usize].to_vec()
    }

    /// Sets whether the server follows the protocol.
    pub fn set_honesty(&mut self, honest: bool) {
        self.honest_server = honest;
    }
}
