// SPDX-License-Identifier: GPL-2.0

//! The queues of an end: Receives, Sends, and the wire to the peer.

use rpcrdma_core::engine::credit::receives_to_post;
use rpcrdma_core::wire::Segment;
use std::collections::VecDeque;

/// A message and the flags of its Receive completion.
#[derive(Clone, Debug)]
pub struct Received {
    /// The message.
    pub bytes: Vec<u8>,
    /// The handle that the Send invalidates, if it is a Send With Invalidate.
    pub invalidated: Option<u32>,
}

/// An operation on the wire.
#[derive(Clone, Debug)]
pub enum Op {
    /// RDMA Write.
    Write {
        /// The segment to write to.
        to: Segment,
        /// The data.
        data: Vec<u8>,
    },
    /// Send, perhaps With Invalidate. It is the last of a chain of WRs.
    Send {
        /// The message.
        message: Received,
        /// Number of Send Queue entries of the chain.
        entries: u32,
    },
}

/// The entries of a Send Queue.
#[derive(Clone, Copy, Debug)]
pub struct SendQueue {
    depth: u32,
    free: u32,
}

impl SendQueue {
    fn new(depth: u32) -> Self {
        Self { depth, free: depth }
    }

    /// Number of entries.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Number of entries that are not reserved.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Reserves entries. Returns `false` if too few are free.
    fn reserve(&mut self, entries: u32) -> bool {
        let left = self.free.checked_sub(entries);
        self.free = left.unwrap_or(self.free);
        left.is_some()
    }

    /// Releases entries.
    fn release(&mut self, entries: u32) {
        self.free += entries;
        assert!(self.free <= self.depth, "released more than reserved");
    }
}

/// The queues of one end on one connection.
#[derive(Debug)]
pub struct Queues {
    /// Number of posted Receives.
    pub posted: u32,
    /// Number of Receives that must be posted.
    pub needed: u32,
    /// Receives that are posted in addition, to ring fewer doorbells.
    pub batch: u32,
    /// Receive completions that have not been handled.
    pub received: VecDeque<Received>,
    /// The Send Queue.
    pub send: SendQueue,
    /// Chains that wait for Send Queue entries, each with its number of entries.
    pub waiting: VecDeque<(Vec<Op>, u32)>,
    /// Operations that are posted and have not arrived.
    pub wire: VecDeque<Op>,
    /// Send completions that have not been handled: the number of entries of each chain.
    pub done: Vec<u32>,
    /// Entries of RDMA Reads and invalidations, which are not on the wire.
    pub busy: u32,
}

impl Queues {
    /// The queues of a new connection, with Receives posted.
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

    /// Posts Receives, if fewer than needed are posted.
    pub fn refill(&mut self) {
        let before = self.posted;
        self.posted += receives_to_post(before, self.needed, self.batch);
        assert!(self.posted >= self.needed);
        // The Receive Queue has `needed + batch` entries.
        assert!(self.posted <= before.max(self.needed + self.batch));
    }

    /// Posts a chain that ends with a Send, or queues it until entries are free.
    pub fn post(&mut self, mut writes: Vec<Op>, message: Received) {
        let entries = writes.len() as u32 + 1;
        assert!(
            entries <= self.send.depth(),
            "a chain longer than the Send Queue"
        );
        writes.push(Op::Send { message, entries });
        self.waiting.push_back((writes, entries));
        self.post_waiting();
    }

    /// Posts waiting chains in order while entries are free.
    pub fn post_waiting(&mut self) {
        while let Some((_, entries)) = self.waiting.front() {
            if !self.send.reserve(*entries) {
                return;
            }
            if let Some((chain, _)) = self.waiting.pop_front() {
                self.wire.extend(chain);
            }
        }
    }

    /// Reserves an entry for a Read or an invalidation. Returns `false` if none is free.
    pub fn reserve_one(&mut self) -> bool {
        let reserved = self.send.reserve(1);
        self.busy += u32::from(reserved);
        reserved
    }

    /// Releases an entry of [`Self::reserve_one`].
    pub fn release_one(&mut self) {
        self.busy -= 1;
        self.send.release(1);
        self.post_waiting();
    }

    /// Handles the Send completion with this index.
    pub fn complete(&mut self, index: usize) {
        let entries = self.done.swap_remove(index);
        self.send.release(entries);
        self.post_waiting();
    }

    /// Handles a disconnect: flushes all work, and checks that every entry is released.
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
