// SPDX-License-Identifier: GPL-2.0

//! What a transport counts for its line in `mountstats`.

use kernel::{
    seq_file::SeqFile,
    seq_print,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    }, //
};

/// A number that grows. Readers need no order among several, here and below.
pub(super) struct Count(Atomic<u64>);

impl Count {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub(super) fn add(&self, n: u64) {
        self.0.add(n, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that grows, by one writer at a time: [`SendStats`] says who that is. So what it takes
/// is a load and a store, and no atomic addition.
pub(super) struct SingleWriter(Atomic<u64>);

impl SingleWriter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`. If two do that at a time, one of them does not count.
    #[inline]
    pub(super) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of what is sent, on a cache line of their own: completion handlers write to the
/// others.
///
/// # Invariants
///
/// Only the holder of the send lock (`XPRT_LOCKED`), which also has the
/// [`RequestSender`](crate::verbs::RequestSender), writes to them. The lock makes the stores of one
/// holder visible to the next.
#[repr(align(64))]
pub(super) struct SendStats {
    /// Segments of Read chunks.
    pub(super) read_segments: SingleWriter,
    /// Segments of Write chunks.
    pub(super) write_segments: SingleWriter,
    /// Segments of Reply chunks.
    pub(super) reply_segments: SingleWriter,
    /// Bytes offered to be written.
    pub(super) offered: SingleWriter,
    /// Bytes of Calls that were copied from pages or a tail.
    pub(super) pulled_up: SingleWriter,
    /// Calls that could not be composed.
    pub(super) failed_marshals: SingleWriter,
    /// Calls that went wholly by a Read chunk.
    pub(super) nomsg_calls: SingleWriter,
    /// Calls that had to wait for room in the ring of messages.
    pub(super) ring_full: SingleWriter,
}

impl SendStats {
    const fn new() -> Self {
        Self {
            read_segments: SingleWriter::new(),
            write_segments: SingleWriter::new(),
            reply_segments: SingleWriter::new(),
            offered: SingleWriter::new(),
            pulled_up: SingleWriter::new(),
            failed_marshals: SingleWriter::new(),
            nomsg_calls: SingleWriter::new(),
            ring_full: SingleWriter::new(),
        }
    }
}

/// The counters.
pub(super) struct Stats {
    /// Those of what is sent.
    pub(super) send: SendStats,
    /// Bytes that were written.
    pub(super) written: Count,
    /// Bytes of Replies that were copied to pages.
    pub(super) fixed_up: Count,
    /// Bytes for which buffers had to grow.
    pub(super) grown: Count,
    /// Replies that could not be understood, or reported an error.
    pub(super) bad_replies: Count,
    /// Memory regions made.
    pub(super) mrs_made: Count,
    /// Memory regions that had to be invalidated by this end.
    pub(super) local_invalidations: Count,
    /// Reverse Calls; not in the line.
    pub(super) backchannel_calls: Count,
}

impl Stats {
    pub(super) const fn new() -> Self {
        Self {
            send: SendStats::new(),
            written: Count::new(),
            fixed_up: Count::new(),
            grown: Count::new(),
            bad_replies: Count::new(),
            mrs_made: Count::new(),
            local_invalidations: Count::new(),
            backchannel_calls: Count::new(),
        }
    }

    /// Prints this transport's part of the line: 17 numbers. Tools know their places, so those of
    /// what does not happen here (regions recycled or orphaned, Replies that wait for a Send) stay.
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
