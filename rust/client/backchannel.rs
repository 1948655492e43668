// SPDX-License-Identifier: GPL-2.0

//! The reverse direction (RFC 8167): the server calls, and this end answers.
//!
//! Calls come to the receive worker, Replies go out in SUNRPC's tasks, with the send lock. An
//! answer that SUNRPC has no part in is an error, and goes beside.

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
    connection::Connection,
    ep::ClientEp,
    send,
    shared::{
        RdmaXprt,
        XprtShared, //
    }, //
};

/// The server calls.
///
/// A Call that cannot be taken is dropped, and the server may send it again (RFC 8167 Section 5.4):
/// there is no service, and nobody has promised that there would be one; or the server has more
/// Calls outstanding than it was granted. Neither is worth the connection and what else is under
/// way on it.
#[cold]
pub(super) fn call(
    worker: &RecvWorker<'_, ClientEp>,
    recv: RecvBuf<()>,
    xid: u32,
    start: usize,
    bytes: usize,
) {
    let shared = &worker.context().shared;
    trace!(xprtrdma_cb_call(shared.xprt.peer(), xid));
    let taken = shared
        .backchannel
        .enqueue(&shared.xprt, xid, recv, start, bytes);
    match taken {
        Ok(()) => shared.stats.backchannel_calls.add(1),
        Err(recv) => shared.recv_pool.put(recv),
    }
}

/// Sends the Reply to a reverse Call: inline, in one piece (RFC 8167 Section 5.3).
///
/// On the connection that the Call came by: on another, the server waits for no such Reply, and has
/// no Receive for it. It may call again there.
pub(super) fn reply(
    to: &Connection,
    shared: &XprtShared,
    sender: &mut RequestSender<FenceWaiter>,
    reply: &BackchannelReply<'_, RdmaXprt>,
) -> Result<(), SendError> {
    let own = to.ep.pd().map(|pd| pd.id());
    if reply.call().map(RecvBuf::pd_id) != own {
        return Ok(());
    }
    trace!(xprtrdma_cb_reply(shared.xprt.peer(), reply.xid()));
    let message = reply.message();
    let Some(mut builder) = sender.begin() else {
        return Err(send::ring_full(shared, sender));
    };
    let (memory, _) = builder.parts();
    let credits = to.ep.context().limits().backchannel;
    let header = HeaderWriter::plain(memory, reply.xid(), credits)?;
    if message.len() as usize + header > to.limits.send as usize {
        return Err(SendError::TooBig);
    }
    compose::append_body(
        shared,
        &mut builder,
        message,
        CallPlan::Inline { pull_up: true },
        header,
    )?;
    let ready = builder.finish(reply.xid(), MrList::none());
    ready
        .post_plain(&to.ep)
        .map_err(|_| SendError::NotConnected)
}
