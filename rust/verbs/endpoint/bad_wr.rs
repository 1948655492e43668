// SPDX-License-Identifier: GPL-2.0

//! The part of a chain of work requests that a failed post left unposted.
//!
//! C: svc_rdma_sendto.c, svc_rdma_post_send_err()
//!
//! If `ib_post_send()` fails, the work requests before `bad_wr` were posted and will complete;
//! `bad_wr` and those behind it were not posted. Three drivers deviate:
//!
//! - erdma names the first work request of the chain if the queue fills up midway, although it has
//!   posted the work requests before that point;
//! - siw leaves `bad_wr` alone after it has posted the whole chain and found no CPU to send it;
//! - rdmavt leaves `bad_wr` alone if the state of the QP does not allow a post, and posts nothing.

use core::ptr;

use crate::bindings;

/// The part of a chain of work requests that a failed post left unposted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) enum BadWr {
    /// The whole chain, which is one work request.
    First,
    /// The last work request at least. Which others were posted is not known before the QP is
    /// drained.
    Last,
    /// Unknown. The chain must stay in place until it completes or the QP is drained, and the
    /// caller must end the connection.
    Unknown,
}

impl BadWr {
    /// Classifies a failed post of the chain that starts with `first`. The driver reports `bad` as
    /// the first unposted work request.
    ///
    /// # Safety
    ///
    /// `first` is valid if `bad` is not null: the last work request was not posted.
    #[cold]
    pub(in crate::verbs) unsafe fn of(
        first: *const bindings::ib_send_wr,
        bad: *const bindings::ib_send_wr,
    ) -> Self {
        if bad.is_null() {
            return Self::Unknown;
        }
        // SAFETY: By this function's contract.
        if ptr::eq(bad, first) && unsafe { (*first).next.is_null() } {
            Self::First
        } else {
            Self::Last
        }
    }
}
