// SPDX-License-Identifier: GPL-2.0

//! The status of completed work requests.
//!
//! C: verbs.c, rpcrdma_flush_disconnect()

use crate::{
    bindings,
    lib::close_reason::CloseReason, //
};

/// The status of a completed chain of work requests.
///
/// C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `enum ib_wc_status`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcStatus {
    /// All work requests of the chain succeeded.
    Success,
    /// The connection ended before the chain did.
    Flushed,
    /// A work request failed, and with it the connection. The value is the `ib_wc_status`.
    Error(u32),
}

impl WcStatus {
    #[inline]
    pub(in crate::verbs) fn of(status: bindings::ib_wc_status) -> Self {
        match status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Self::Success,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Self::Flushed,
            other => Self::Error(other),
        }
    }
}

impl From<WcStatus> for CloseReason {
    /// Why the connection ends. No connection ends because of a success.
    #[cold]
    fn from(status: WcStatus) -> Self {
        match status {
            WcStatus::Error(status) => Self::Completion(status),
            WcStatus::Success | WcStatus::Flushed => Self::Flushed,
        }
    }
}

/// A completion handler, the `done` of an `ib_cqe`.
pub(in crate::verbs) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);
