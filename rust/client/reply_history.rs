// SPDX-License-Identifier: GPL-2.0

//! Predicts, per procedure, whether a Reply will be long.
//!
//! Not in the C module: this is part of the extension "pulled Replies".

use kernel::sync::atomic::ordering::Relaxed;

use crate::{
    engine::requester::reply_history::ReplyHistory,
    lib::sync::Atomic, //
};

/// More than any program has procedures.
const PROCEDURES: usize = 128;

/// The histories of a transport's procedures. Procedures of two programs may share one, which now
/// and then costs a registration or a round trip.
pub(super) struct ReplyHistories([Atomic<u32>; PROCEDURES]);

impl ReplyHistories {
    pub(super) fn new() -> Self {
        Self([const { Atomic::new(0) }; PROCEDURES])
    }

    #[inline]
    fn entry(&self, procedure: u32) -> Option<&Atomic<u32>> {
        self.0.get(procedure as usize % PROCEDURES)
    }

    /// The history of a procedure.
    pub(super) fn of(&self, procedure: u32) -> ReplyHistory {
        let bits = self.entry(procedure).map_or(0, |entry| entry.load(Relaxed));
        ReplyHistory::from_bits(bits)
    }

    /// Adds a Reply. If two are added concurrently, one may be lost.
    pub(super) fn note(&self, procedure: u32, long: bool) {
        self.change(procedure, |history| history.after(long));
    }

    /// Adds a Call that the server refused because it offered no Reply chunk.
    #[cold]
    pub(super) fn note_refusal(&self, procedure: u32) {
        self.change(procedure, ReplyHistory::after_refusal);
    }

    #[inline]
    fn change(&self, procedure: u32, change: impl FnOnce(ReplyHistory) -> ReplyHistory) {
        let before = self.of(procedure);
        let after = change(before);
        if let Some(entry) = self.entry(procedure).filter(|_| after != before) {
            entry.store(after.to_bits(), Relaxed);
        }
    }
}
