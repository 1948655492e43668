// SPDX-License-Identifier: GPL-2.0

//! RDMA_ERROR: the answer to a backchannel Call that cannot be accepted.

use crate::{
    verbs::RecvWorker,
    wire::ErrorReply, //
};

use super::{
    ep::ClientEp,
    traces, //
};

/// Answers the backchannel Call in `bytes` with `error`.
///
/// RDMA_ERROR bypasses SUNRPC and uses the preallocated control Sends. There are twice as many as
/// backchannel Calls may be outstanding, because a control Send becomes idle a little later than
/// the peer sees the error. If none is idle, the device is late with the completions of earlier
/// errors, and `error` waits for one of them.
#[cold]
pub(super) fn send_error(worker: &RecvWorker<'_, ClientEp>, bytes: &[u8], error: &ErrorReply) {
    traces::malformed(worker, bytes);
    worker.context().send_error(worker, error);
}
