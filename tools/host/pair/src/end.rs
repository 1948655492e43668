// SPDX-License-Identifier: GPL-2.0

//! What both ends of a connection have: queues.

use rpcrdma_core::engine::credit::receives_to_post;
use rpcrdma_core::wire::Segment;
use std::collections::VecDeque;

/// A message that arrived, as the Receive completion tells of it.
#[derive(Clone, Debug)]
pub struct Received {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The handle that the peer invalidated, if any.
    pub invalidated: Option<u32>,
}

/// What travels on the wire, in order.
#[derive(Clone, Debug)]
pub enum Op {
    /// RDMA Write.
    Write {
        /// Where to.
        to: Segment,
        /// What.
        data: Vec<u8>,
    },
    /// Send, perhaps With Invalidate. Ends a chain of `entries` work requests.
    Send {
        /// The message.
        message: Received,
        /// Send Queue entries of the chain.
        entries: u32,
    },
}

/// A Send Queue as a ledger.
#[derive(Clone, Copy, Debug)]
pub struct SendQueue {
    depth: u32,
    free: u32,
}

impl SendQueue {
    fn new(depth: u32) -> Self {
        Self { depth, free: depth }
    }

    /// Entries in all.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Entries that nobody has reserved.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Reserves entries, or changes nothing.
    fn reserve(&mut self, entries: u32) -> bool {
        let left = self.free.checked_sub(entries);
        self.free = left.unwrap_or(self.free);
        left.is_some()
    }

    /// Returns entries.
    fn release(&mut self, entries: u32) {
        self.free += entries;
        assert!(self.free <= self.depth, "given back more than was taken");
    }
}

/// The queues of one end on one connection.
#[derive(Debug)]
pub struct Queues {
    /// Receives that stand.
    pub posted: u32,
    /// Receives that must stand.
    pub needed: u32,
    /// Receives posted beyond that, to ring fewer doorbells.
    pub batch: u32,
    /// Receive completions that nobody has looked at.
    pub received: VecDeque<Received>,
    /// The Send Queue.
    pub send: SendQueue,
    /// Chains that wait for room on the Send Queue.
    pub waiting: VecDeque<(Vec<Op>, u32)>,
    /// What was posted and has not arrived.
    pub wire: VecDeque<Op>,
    /// Entries of chains that have arrived, and whose completion nobody has looked at.
    pub done: Vec<u32>,
    /// Entries taken by work that is not on the wire: Reads, invalidations.
    pub busy: u32,
}

impl Queues {
    /// Fresh queues of a new connection, with Receives posted.
    pub fn new(depth: u32, needed: u32, batch: u32) -> Self {
        Self {
            posted: receives_to_post(0, needed, batch),
            needed,
            batch,
            received: VecDeque::new(),
            send: SendQueue::new(depth),
            waiting: VecDeque::new(),
            wire: VecDeque::new(),
            done: Vec::new(),
            busy: 0,
        }
    }

    /// Posts Receives until what is needed stands.
    pub fn refill(&mut self) {
        let before = self.posted;
        self.posted += receives_to_post(before, self.needed, self.batch);
        assert!(self.posted >= self.needed);
        // The Receive Queue has no room for more.
        assert!(self.posted <= before.max(self.needed + self.batch));
    }

    /// Posts a chain that ends with a Send, or lets it wait for its turn.
    pub fn post(&mut self, mut writes: Vec<Op>, message: Received) {
        let entries = writes.len() as u32 + 1;
        assert!(
            entries <= self.send.depth(),
            "a chain longer than the Send Queue"
        );
        writes.push(Op::Send { message, entries });
        self.waiting.push_back((writes, entries));
        self.push();
    }

    /// Posts what waits and has room, in order.
    pub fn push(&mut self) {
        while let Some((_, entries)) = self.waiting.front() {
            if !self.send.reserve(*entries) {
                return;
            }
            if let Some((chain, _)) = self.waiting.pop_front() {
                self.wire.extend(chain);
            }
        }
    }

    /// Takes one entry for work that is not on the wire.
    pub fn take_one(&mut self) -> bool {
        let taken = self.send.reserve(1);
        self.busy += u32::from(taken);
        taken
    }

    /// Gives back an entry of [`Self::take_one`].
    pub fn give_one(&mut self) {
        self.busy -= 1;
        self.send.release(1);
        self.push();
    }

    /// Looks at the completion of chain number `index`.
    pub fn complete(&mut self, index: usize) {
        let entries = self.done.swap_remove(index);
        self.send.release(entries);
        self.push();
    }

    /// The connection is lost: everything is flushed, and every entry must come back.
    pub fn flush(&mut self) {
        let on_wire: u32 = self
            .wire
            .drain(..)
            .map(|op| match op {
                Op::Send { entries, .. } => entries,
                Op::Write { .. } => 0,
            })
            .sum();
        let done: u32 = self.done.drain(..).sum();
        self.send.release(on_wire + done + self.busy);
        assert_eq!(
            self.send.free(),
            self.send.depth(),
            "Send Queue entries lost"
        );
        self.busy = 0;
        self.waiting.clear();
        self.received.clear();
    }
}
