// SPDX-License-Identifier: GPL-2.0

//! What Replies have been like, procedure by procedure.

use kernel::sync::atomic::{
    ordering::Relaxed,
    Atomic, //
};

use crate::engine::requester::reply_history::ReplyHistory;

/// More than any program has procedures.
const PROCEDURES: usize = 128;

/// The records of a transport's procedures. Two programs may share one: that costs a registration,
/// or a round trip, now and then.
pub(super) struct ReplyHistories([Atomic<u32>; PROCEDURES]);

impl ReplyHistories {
    pub(super) fn new() -> Self {
        Self([const { Atomic::new(0) }; PROCEDURES])
    }

    #[inline]
    fn record(&self, procedure: u32) -> Option<&Atomic<u32>> {
        self.0.get(procedure as usize % PROCEDURES)
    }

    /// The record of a procedure.
    pub(super) fn of(&self, procedure: u32) -> ReplyHistory {
        let bits = self
            .record(procedure)
            .map_or(0, |record| record.load(Relaxed));
        ReplyHistory::from_bits(bits)
    }

    /// Notes another Reply. Two at the same time may count as one.
    pub(super) fn note(&self, procedure: u32, long: bool) {
        self.change(procedure, |history| history.after(long));
    }

    /// Notes that a Reply was refused for want of a Reply chunk.
    #[cold]
    pub(super) fn note_refusal(&self, procedure: u32) {
        self.change(procedure, ReplyHistory::after_refusal);
    }

    #[inline]
    fn change(&self, procedure: u32, change: impl FnOnce(ReplyHistory) -> ReplyHistory) {
        let before = self.of(procedure);
        let after = change(before);
        if let Some(record) = self.record(procedure).filter(|_| after != before) {
            record.store(after.to_bits(), Relaxed);
        }
    }
}
