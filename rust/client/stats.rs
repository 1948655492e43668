// SPDX-License-Identifier: GPL-2.0

//! Counters of a transport, for its line in `mountstats`.
//!
//! C: xprt_rdma.h, struct rpcrdma_stats
//! C: transport.c, xprt_rdma_print_stats()

use kernel::{
    seq_file::SeqFile,
    seq_print, //
};

use crate::lib::counter::{
    AtomicCounter,
    SingleWriterCounter, //
};

/// Counters of the sending side, on a cache line of their own: completion handlers write to the
/// other counters.
///
/// # Invariants
///
/// Only the holder of the send lock (`XPRT_LOCKED`), which also has the
/// [`RequestSender`](crate::verbs::RequestSender), writes to them. The lock makes the stores of one
/// holder visible to the next.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct SendStats {
    /// Calls without chunks. This counter and the next seven share a cache line.
    pub(super) calls_inline: SingleWriterCounter,
    /// Calls with a Read chunk.
    pub(super) calls_read: SingleWriterCounter,
    /// Calls with a Write chunk.
    pub(super) calls_write: SingleWriterCounter,
    /// Bytes of messages, headers included.
    pub(super) inline_bytes: SingleWriterCounter,
    /// Bytes in Read chunks.
    pub(super) read_bytes: SingleWriterCounter,
    /// Segments in Read chunks.
    pub(super) read_segments: SingleWriterCounter,
    /// Segments in Write chunks.
    pub(super) write_segments: SingleWriterCounter,
    /// Bytes offered in Write chunks and Reply chunks.
    pub(super) offered: SingleWriterCounter,
    /// Calls with a Reply chunk.
    pub(super) calls_reply_chunk: SingleWriterCounter,
    /// Segments in Reply chunks.
    pub(super) reply_segments: SingleWriterCounter,
    /// Bytes of pages and tails that were copied into the send buffer.
    pub(super) pulled_up: SingleWriterCounter,
    /// Calls whose composition failed.
    pub(super) failed_marshals: SingleWriterCounter,
    /// RDMA_NOMSG Calls.
    pub(super) nomsg_calls: SingleWriterCounter,
    /// Calls that had to wait for a Send context.
    pub(super) ring_full: SingleWriterCounter,
    /// Calls that had to wait for an MR.
    pub(super) mr_waits: SingleWriterCounter,
    /// Calls that were sent before.
    pub(super) retransmissions: SingleWriterCounter,
}

/// The counters of one transport.
pub(super) struct Stats {
    pub(super) send: SendStats,
    /// Bytes of received messages, headers included. Only the receive worker writes this.
    pub(super) received: SingleWriterCounter,
    /// Replies that were fetched by RDMA Read. Only the send worker writes this, and the next.
    pub(super) pulled: SingleWriterCounter,
    /// Bytes of these Replies.
    pub(super) pulled_bytes: SingleWriterCounter,
    /// Bytes that the server wrote to Write chunks and Reply chunks.
    pub(super) written: AtomicCounter,
    /// Bytes of inline Replies that were copied to pages and tails.
    pub(super) fixed_up: AtomicCounter,
    /// Bytes of buffers that were reallocated because they were too small.
    pub(super) grown: AtomicCounter,
    /// Replies that were malformed or reported an error.
    pub(super) bad_replies: AtomicCounter,
    /// MRs allocated.
    pub(super) mrs_made: AtomicCounter,
    /// MRs invalidated by LOCAL_INV.
    pub(super) local_invalidations: AtomicCounter,
    /// Backchannel Calls. `mountstats` does not show these, nor the next.
    pub(super) backchannel_calls: AtomicCounter,
    /// Bytes of RDMA_ERRORs and RDMA_DONEs.
    pub(super) control_bytes: AtomicCounter,
}

impl Stats {
    pub(super) fn new() -> Self {
        Self {
            send: SendStats::default(),
            received: SingleWriterCounter::default(),
            pulled: SingleWriterCounter::default(),
            pulled_bytes: SingleWriterCounter::default(),
            written: AtomicCounter::new(),
            fixed_up: AtomicCounter::new(),
            grown: AtomicCounter::new(),
            bad_replies: AtomicCounter::new(),
            mrs_made: AtomicCounter::new(),
            local_invalidations: AtomicCounter::new(),
            backchannel_calls: AtomicCounter::new(),
            control_bytes: AtomicCounter::new(),
        }
    }

    /// Prints this transport's part of the line: 17 numbers, whose positions tools know. The
    /// numbers of MRs recycled or orphaned, and of Replies that wait for a Send, are always 0 here.
    pub(super) fn print(&self, seq: &SeqFile) {
        let send = &self.send;
        seq_print!(
            seq,
            "{} {} {} {} {} {} {} {} {} {} {} ",
            send.read_segments.get(),
            send.write_segments.get(),
            send.reply_segments.get(),
            send.offered.get(),
            self.written.get(),
            send.pulled_up.get(),
            self.fixed_up.get(),
            self.grown.get(),
            send.failed_marshals.get(),
            self.bad_replies.get(),
            send.nomsg_calls.get(),
        );
        seq_print!(
            seq,
            "0 0 {} {} {} 0\n",
            self.mrs_made.get(),
            self.local_invalidations.get(),
            send.ring_full.get(),
        );
    }
}
