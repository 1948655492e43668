// SPDX-License-Identifier: GPL-2.0

//! The reverse direction (RFC 8167): Calls of the server, and their Replies.
//!
//! The receive worker receives Calls. SUNRPC's tasks send Replies, with the send lock. Transport
//! errors (RDMA_ERROR) bypass SUNRPC: see [`super::error`].
//!
//! C: backchannel.c, rpcrdma_bc_receive_call(), xprt_rdma_bc_send_reply()
//! C: backchannel.c, rpcrdma_bc_marshal_reply()

use crate::{
    engine::requester::call::CallPlan,
    sunrpc::xprt::{
        BackchannelReply,
        SendError, //
    },
    trace::trace,
    verbs::{
        MrList,
        RecvBuf,
        RecvWorker,
        RequestSender, //
    },
    wire::HeaderWriter, //
};

use super::{
    answer::FenceWaiter,
    compose,
    ep::ClientEp,
    send,
    shared::{
        Connection,
        RdmaXprt,
        XprtShared, //
    }, //
};

/// Hands a Call of the server to SUNRPC: `len` bytes of `recv` from `start` on.
///
/// A Call that cannot be accepted is dropped, and the server may send it again (RFC 8167 Section
/// 5.4). Either no callback service runs, or the server exceeds the credits that it was granted.
/// Neither is a reason to close the connection, with all its outstanding RPCs.
#[cold]
pub(super) fn receive_call(
    worker: &RecvWorker<'_, ClientEp>,
    recv: RecvBuf<()>,
    xid: u32,
    start: usize,
    len: usize,
) {
    let shared = &worker.context().shared;
    trace!(xprtrdma_cb_call(shared.xprt.peer(), xid));
    let accepted = shared
        .backchannel
        .enqueue(&shared.xprt, xid, recv, start, len);
    match accepted {
        Ok(()) => shared.stats.backchannel_calls.add(1),
        Err(recv) => shared.recv_pool.put(recv),
    }
}

/// Sends the Reply to a backchannel Call: inline, in one piece (RFC 8167 Section 5.3).
///
/// If the Call arrived on another connection, the Reply is dropped: on this one the server does not
/// wait for it and has no Receive for it. The server may send the Call again here.
pub(super) fn send_reply(
    conn: &Connection,
    shared: &XprtShared,
    sender: &mut RequestSender<FenceWaiter>,
    reply: &BackchannelReply<'_, RdmaXprt>,
) -> Result<(), SendError> {
    let own = conn.ep.pd().map(|pd| pd.id());
    if reply.call().map(RecvBuf::pd_id) != own {
        return Ok(());
    }
    trace!(xprtrdma_cb_reply(shared.xprt.peer(), reply.xid()));
    let message = reply.message();
    let Some(mut builder) = sender.begin() else {
        return Err(send::ring_full(shared, sender));
    };
    let (buf, _) = builder.parts();
    let credits = conn.ep.context().limits().backchannel;
    let header = HeaderWriter::plain(buf, reply.xid(), credits)?;
    if message.len() as usize + header > conn.limits.send as usize {
        return Err(SendError::TooBig);
    }
    let body = compose::append_body(
        shared,
        &mut builder,
        message,
        CallPlan::Inline { pull_up: true },
        header,
    )?;
    shared.stats.send.inline_bytes.add((header + body) as u64);
    let ready = builder.finish(reply.xid(), MrList::none());
    ready
        .post_plain(&conn.ep)
        .map_err(|_| SendError::NotConnected)
}
