// SPDX-License-Identifier: GPL-2.0

//! Counters of one connection, for its file.

use crate::lib::counter::{
    AtomicCounter,
    SingleWriterCounter, //
};

/// What the receive worker counts.
#[derive(Default)]
pub(super) struct ReceiveCounters {
    /// Messages.
    pub(super) messages: SingleWriterCounter,
    /// Bytes of these messages, headers included.
    pub(super) bytes: SingleWriterCounter,
}

/// What the send worker counts, when a chain has completed.
#[derive(Default)]
pub(super) struct SendCounters {
    /// Messages without RDMA Writes.
    pub(super) inline: SingleWriterCounter,
    /// Replies with RDMA Writes.
    pub(super) written: SingleWriterCounter,
    /// Bytes of these Writes.
    pub(super) written_bytes: SingleWriterCounter,
    /// Bytes of all messages, headers included.
    pub(super) inline_bytes: SingleWriterCounter,
    /// Calls that were fetched by RDMA Read.
    pub(super) reads: SingleWriterCounter,
    /// Bytes of these Reads.
    pub(super) read_bytes: SingleWriterCounter,
    /// Replies that the client reads.
    pub(super) exposed: SingleWriterCounter,
}

/// The counters of one connection.
pub(super) struct Counters {
    pub(super) receive: ReceiveCounters,
    pub(super) send: SendCounters,
    /// Received messages that are no Calls.
    pub(super) other_messages: AtomicCounter,
    /// Messages and RDMA Reads that had to wait for room on the Send Queue.
    pub(super) send_waits: AtomicCounter,
    /// Backchannel Calls.
    pub(super) backchannel_calls: AtomicCounter,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            receive: ReceiveCounters::default(),
            send: SendCounters::default(),
            other_messages: AtomicCounter::new(),
            send_waits: AtomicCounter::new(),
            backchannel_calls: AtomicCounter::new(),
        }
    }

    /// Calls that have arrived.
    pub(super) fn calls(&self) -> u64 {
        let others = self.other_messages.get();
        self.receive.messages.get().saturating_sub(others)
    }
}
