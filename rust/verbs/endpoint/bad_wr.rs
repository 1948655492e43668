// SPDX-License-Identifier: GPL-2.0

//! The part of a chain of work requests that a failed post left unposted.
//!
//! C: svc_rdma_sendto.c, svc_rdma_post_send_err()
//!
//! If `ib_post_send()` fails, the work requests before `bad_wr` were posted and will complete;
//! `bad_wr` and those behind it were not posted. If the driver leaves `bad_wr` null, the caller
//! cannot tell: siw leaves it null after it has posted the whole chain and found no CPU to send it.

use core::ptr;

/// The part of a chain of work requests that a failed post left unposted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) enum BadWr {
    /// The whole chain.
    First,
    /// The last work request at least, but not the first.
    Last,
    /// Unknown. The chain must stay in place until it completes, which may never happen, and the
    /// caller must end the connection.
    Unknown,
}

impl BadWr {
    /// For the chain that starts with `first`, of which the device reports `bad` as the first work
    /// request that was not posted.
    pub(in crate::verbs) fn of<T>(first: *const T, bad: *const T) -> Self {
        if bad.is_null() {
            Self::Unknown
        } else if ptr::eq(bad, first) {
            Self::First
        } else {
            Self::Last
        }
    }
}
