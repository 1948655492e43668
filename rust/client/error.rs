// SPDX-License-Identifier: GPL-2.0

//! RDMA_ERROR: the answer to a backchannel Call that cannot be accepted.

use crate::{
    lib::close_reason::CloseReason,
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
/// the peer sees the error. Without an idle control Send the Call is dropped: the server ignores
/// its credits, or the device is late with the completions of earlier errors.
#[cold]
pub(super) fn send_error(worker: &RecvWorker<'_, ClientEp>, bytes: &[u8], error: &ErrorReply) {
    let ctx = worker.context();
    traces::malformed(worker, bytes);
    let Some(ctrl_sends) = ctx.ctrl_sends.as_ref() else {
        return;
    };
    let credits = ctx.limits().backchannel;
    let sent = ctrl_sends.send(worker, None, |buf| error.encode(credits, buf).ok());
    if sent.is_err() {
        ctx.force_disconnect(CloseReason::PostFailed);
    }
}
