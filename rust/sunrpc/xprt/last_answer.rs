// SPDX-License-Identifier: GPL-2.0

//! Distinguishes a Call that waits for its turn from a Call that gets no answer.
//!
//! A peer may take longer than a Call's timeout to answer all Calls that are outstanding: 40 READs
//! of 1 MiB need three minutes on a link of 2 Mbit/s. As long as the peer answers older Calls, the
//! turn of a Call has not come. Ending the connection would retransmit all Calls, and the new
//! connection would be no faster.
//!
//! The peer may answer the Calls that are outstanding in any order. A Call is passed over only if
//! the last answered Call is younger by more than the number of outstanding Calls. The wait of each
//! Call is bounded: each timeout must bring an answer, and each answer brings its turn nearer.
//!
//! The C module has no counterpart: each Call that is overdue ends the connection.

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    lib::sync::Atomic,
    sunrpc::time::jiffies, //
};

/// The Call that the peer has answered last: its serial number in the lower half, and the time of
/// the answer in jiffies in the upper half; 0 if it has answered none.
pub(super) struct LastAnswer(Atomic<u64>);

impl LastAnswer {
    pub(super) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Notes the answer to a Call. SUNRPC numbers the Calls of a transport; see
    /// [`RqstRef::number`](crate::sunrpc::rpc_rqst::RqstRef::number).
    #[inline]
    pub(super) fn note(&self, number: u32) {
        // CAST: The lower half of the time is enough, since it is compared with a recent time.
        let now = jiffies() as u32;
        self.0
            .store(u64::from(now) << 32 | u64::from(number), Relaxed);
    }

    /// Whether the turn of a Call, one of `outstanding` Calls, may still come: the peer has
    /// answered a Call within `timeout` jiffies, and has not passed over this one.
    pub(super) fn may_come(&self, number: u32, outstanding: usize, timeout: c_ulong) -> bool {
        let last = self.0.load(Relaxed);
        if last == 0 {
            return false;
        }
        // CAST: Both halves of a word. The times wrap around, and so do the numbers.
        let age = (jiffies() as u32).wrapping_sub((last >> 32) as u32);
        let passed = (last as u32).wrapping_sub(number) as i32;
        (age as c_ulong) < timeout && i64::from(passed) <= outstanding as i64
    }
}
