// SPDX-License-Identifier: GPL-2.0

//! The parameters of a run, and its statistics.

/// The parameters of a run. A rate of `n` means once in `n` times, and 0 means never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scenario {
    /// Number of RPCs of the consumer.
    pub rpcs: u32,
    /// Number of backchannel Calls of the server.
    pub backchannel_calls: u32,
    /// Rate of backchannel Calls in a form that the client does not accept.
    pub illegal_calls: usize,
    /// Credits that are requested and granted in both directions. 0: random numbers.
    pub credits: u32,
    /// Rate of steps in which the connection is lost.
    pub disconnect: usize,
    /// Rate of steps in which the consumer cancels an RPC.
    pub cancel: usize,
    /// Number of steps after which exposed Replies expire. 0: never.
    pub expiry: u64,
    /// Rate of operations of the server that are mutated.
    pub hostile_server: usize,
    /// Rate of operations of the client that are mutated.
    pub hostile_client: usize,
}

impl Scenario {
    /// Whether one of the ends is hostile.
    pub(crate) fn hostile(&self) -> bool {
        self.hostile_client != 0 || self.hostile_server != 0
    }
}

/// The statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// RPCs that ended with a Reply.
    pub replies: u32,
    /// RPCs that the server has refused.
    pub refused: u32,
    /// RPCs that the consumer has cancelled.
    pub cancelled: u32,
    /// Lost connections.
    pub disconnects: u32,
    /// Handles that a Send has invalidated.
    pub invalidated: u32,
    /// Replies that were exposed.
    pub exposed: u32,
    /// Replies in the Reply chunk that would have fit inline.
    pub reply_chunks: u32,
    /// Bytes in RDMA Reads and RDMA Writes.
    pub rdma_bytes: u64,
    /// Backchannel Calls that the client has served.
    pub backchannel: u32,
    /// Backchannel Calls that the client has refused.
    pub backchannel_refused: u32,
    /// Mutated operations.
    pub mutated: u32,
    /// Steps of the simulation.
    pub steps: u64,
}
