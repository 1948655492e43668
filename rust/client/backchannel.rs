// SPDX-License-Identifier: GPL-2.0

//! The reverse direction (RFC 8167): the server calls, and this end answers.
//!
//! Calls come to the receive worker, Replies go out in SUNRPC's tasks, with the send lock. An
//! answer that SUNRPC has no part in is an error, and goes beside.

use crate::{
    engine::requester::call::CallPlan,
    sunrpc::xprt::{
        ReverseReply,
        SendError, //
    },
    trace::trace,
    verbs::{
        Recv,
        RecvWorker,
        Regions,
        Sender, //
    },
    wire::{
        ErrorReply,
        HeaderWriter, //
    }, //
};

use super::{
    channel::Channel,
    complete::FenceWaiter,
    compose,
    connection::Connection,
    send,
    shared::Shared,
    traces,
    transport::Rdma, //
};

/// The server calls.
///
/// A Call that cannot be taken is dropped, and the server may send it again (RFC 8167 Section 5.4):
/// there is no service, and nobody has promised that there would be one; or the server has more
/// Calls outstanding than it was granted. Neither is worth the connection and what else is under
/// way on it.
#[cold]
pub(super) fn call(
    worker: &RecvWorker<'_, Channel>,
    recv: Recv<()>,
    xid: u32,
    start: usize,
    octets: usize,
) {
    let shared = &worker.context().shared;
    trace!(xprtrdma_cb_call(shared.xprt.peer(), xid));
    let taken = shared
        .reverse
        .enqueue(&shared.xprt, xid, recv, start, octets);
    match taken {
        Ok(()) => shared.stats.reverse_calls.add(1),
        Err(recv) => shared.recv_pool.put(recv),
    }
}

/// Tells the server that its Call cannot be taken the way that it came.
///
/// There are as many messages for this as Calls may be outstanding, twice: one comes back a little
/// after it was sent. Without one the Call is dropped; only a server that ignores its credits sees
/// that.
#[cold]
pub(super) fn refuse(worker: &RecvWorker<'_, Channel>, message: &[u8], error: &ErrorReply) {
    let this = worker.context();
    traces::not_understood(worker, message);
    let Some(asides) = this.asides.as_ref() else {
        return;
    };
    let credits = this.sizes().reverse;
    let sent = asides.send(worker, None, |octets| error.encode(credits, octets).ok());
    if sent.is_err() {
        this.lose();
    }
}

/// Sends the Reply to a reverse Call: inline, in one piece (RFC 8167 Section 5.3).
///
/// On the connection that the Call came by: on another, the server waits for no such Reply, and has
/// no Receive for it. It may call again there.
pub(super) fn reply(
    to: &Connection,
    shared: &Shared,
    sender: &mut Sender<FenceWaiter>,
    reply: &ReverseReply<'_, Rdma>,
) -> Result<(), SendError> {
    let own = to.ep.domain().map(|domain| domain.id());
    if reply.call().map(Recv::domain_id) != own {
        return Ok(());
    }
    trace!(xprtrdma_cb_reply(shared.xprt.peer(), reply.xid()));
    let message = reply.message();
    let Some(mut draft) = sender.begin() else {
        return Err(send::ring_full(shared, sender));
    };
    let (memory, _) = draft.parts();
    let credits = to.ep.context().sizes().reverse;
    let header = HeaderWriter::plain(memory, reply.xid(), credits)?;
    if message.len() as usize + header > to.limits.send as usize {
        return Err(SendError::TooBig);
    }
    compose::append_body(
        shared,
        &mut draft,
        message,
        CallPlan::Inline { pull_up: true },
        header,
    )?;
    let (posting, _) = draft.finish(reply.xid(), Regions::none());
    posting
        .post(&to.ep, || ())
        .map_err(|_| SendError::NotConnected)
}
