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

/// A number that grows. Readers need no order among several.
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

/// The counters, in the order of the line.
pub(super) struct Stats {
    /// Segments of Read chunks.
    pub(super) read_segments: Count,
    /// Segments of Write chunks.
    pub(super) write_segments: Count,
    /// Segments of Reply chunks.
    pub(super) reply_segments: Count,
    /// Octets offered to be written.
    pub(super) offered: Count,
    /// Octets that were written.
    pub(super) written: Count,
    /// Octets of Calls that were copied from pages or a tail.
    pub(super) pulled_up: Count,
    /// Octets of Replies that were copied to pages.
    pub(super) fixed_up: Count,
    /// Octets for which buffers had to grow.
    pub(super) grown: Count,
    /// Calls that could not be composed.
    pub(super) failed_marshals: Count,
    /// Replies that could not be understood, or reported an error.
    pub(super) bad_replies: Count,
    /// Calls that went wholly by a Read chunk.
    pub(super) nomsg_calls: Count,
    /// Memory regions made.
    pub(super) regions_made: Count,
    /// Memory regions that had to be invalidated by this end.
    pub(super) local_invalidations: Count,
    /// Calls that had to wait for room in the ring of messages.
    pub(super) ring_full: Count,
    /// Reverse Calls; not in the line.
    pub(super) reverse_calls: Count,
}

impl Stats {
    pub(super) const fn new() -> Self {
        Self {
            read_segments: Count::new(),
            write_segments: Count::new(),
            reply_segments: Count::new(),
            offered: Count::new(),
            written: Count::new(),
            pulled_up: Count::new(),
            fixed_up: Count::new(),
            grown: Count::new(),
            failed_marshals: Count::new(),
            bad_replies: Count::new(),
            nomsg_calls: Count::new(),
            regions_made: Count::new(),
            local_invalidations: Count::new(),
            ring_full: Count::new(),
            reverse_calls: Count::new(),
        }
    }

    /// Prints this transport's part of the line: 17 numbers. Tools know their places, so those of
    /// what does not happen here (regions recycled or orphaned, Replies that wait for a Send) stay.
    pub(super) fn print(&self, seq: &SeqFile) {
        seq_print!(
            seq,
            "{} {} {} {} {} {} {} {} {} {} {} ",
            self.read_segments.get(),
            self.write_segments.get(),
            self.reply_segments.get(),
            self.offered.get(),
            self.written.get(),
            self.pulled_up.get(),
            self.fixed_up.get(),
            self.grown.get(),
            self.failed_marshals.get(),
            self.bad_replies.get(),
            self.nomsg_calls.get(),
        );
        seq_print!(
            seq,
            "0 0 {} {} {} 0\n",
            self.regions_made.get(),
            self.local_invalidations.get(),
            self.ring_full.get(),
        );
    }
}
