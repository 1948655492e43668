// SPDX-License-Identifier: GPL-2.0

//! Received messages, and the RPCs that they answer. Runs in the receive worker.
//!
//! [`received`] completes inline Replies to pending RPCs. The functions on this path are inlined,
//! to keep state in registers; those for all other messages are not.
//!
//! C: verbs.c, rpcrdma_wc_receive()
//! C: rpc_rdma.c, rpcrdma_reply_handler(), rpcrdma_decode_error()
//! C: frwr_ops.c, frwr_reminv()

use crate::{
    engine::{
        inbound::{
            self,
            FromServer,
            Refused,
            RpcMsg, //
        },
        requester::{
            call::ReplyPlan,
            match_reply::ReplyLocation, //
        }, //
    },
    lib::close_reason::CloseReason,
    sunrpc::xprt::{
        Claimed,
        Refusal, //
    },
    trace::trace,
    verbs::{
        Invalidated,
        RecvBuf,
        RecvStatus,
        RecvWorker, //
    },
    wire::RdmaError, //
};

use super::{
    answer::Completion,
    backchannel,
    complete,
    dones::Done,
    ep::ClientEp,
    error,
    reply_read,
    report,
    shared::RdmaXprt,
    traces, //
};

/// How a received message is handled, unless it is an inline Reply to a pending RPC.
enum Outcome {
    /// The message answers this RPC, which completes once its memory is fenced.
    Complete(Claimed<RdmaXprt>, Completion),
    /// The message answers this RPC. Its Reply must be fetched by RDMA Read, and acknowledged.
    Read(Claimed<RdmaXprt>, Done),
    /// The message is a backchannel Call, whose payload starts at offset `start`.
    BackchannelCall { xid: u32, start: usize },
    /// Nothing to do: the message matches no pending RPC.
    Nothing,
}

/// Handles a completed Receive.
#[inline(always)]
pub(super) fn received(worker: &RecvWorker<'_, ClientEp>, recv: RecvBuf<()>, status: RecvStatus) {
    let ctx = worker.context();
    ctx.recv_queue.completed();
    let RecvStatus::Received { len, invalidated } = status else {
        // Free the buffer: a queue in the error state needs no more Receives.
        ctx.recv_failed(status.close_reason());
        return;
    };
    ctx.shared.stats.received.add(len as u64);
    ctx.shared.xprt.reset_backoff();
    let bytes = recv.bytes(len);
    let outcome = match inbound::from_server(bytes, ctx.extensions()) {
        Ok(FromServer::Reply(reply)) => {
            traces::returned(&reply.chunks);
            match match_reply(worker, bytes, &reply, invalidated) {
                // A completed RPC lets SUNRPC send the next Call. Post the Receive for its Reply
                // first.
                Ok((rpc, completion)) => {
                    ctx.refill(worker);
                    return complete::fence(worker, rpc, recv, completion);
                }
                Err(outcome) => outcome,
            }
        }
        Ok(FromServer::Error(error)) => rdma_error(worker, bytes, error, invalidated),
        Ok(FromServer::Empty { xid, credits }) => empty(worker, bytes, xid, credits, invalidated),
        Ok(FromServer::BackchannelCall(call)) => {
            check_invalidates_nothing(ctx, invalidated.is_some());
            Outcome::BackchannelCall {
                xid: call.xid,
                start: bytes.len() - call.payload.map_or(0, <[u8]>::len),
            }
        }
        Err(response) => malformed(worker, bytes, response, invalidated.is_some()),
    };
    handle(worker, recv, len, outcome);
}

/// Handles a message by its outcome.
#[inline(never)]
fn handle(worker: &RecvWorker<'_, ClientEp>, recv: RecvBuf<()>, len: usize, outcome: Outcome) {
    let ctx = worker.context();
    match outcome {
        Outcome::Nothing => {
            ctx.shared.recv_pool.put(recv);
            ctx.refill(worker);
        }
        Outcome::Complete(rpc, completion) => {
            ctx.refill(worker);
            complete::fence_rare(worker, rpc, recv, completion);
        }
        Outcome::Read(rpc, done) => {
            ctx.refill(worker);
            reply_read::start(worker, rpc, done, recv, len);
        }
        Outcome::BackchannelCall { xid, start } => {
            // The service may reply before this returns, and the server may then send another Call.
            ctx.refill(worker);
            backchannel::receive_call(worker, recv, xid, start, len - start);
        }
    }
}

/// Closes the connection if a message other than the answer to a Call `invalidates` a handle (RFC
/// 8797 Section 4.1).
fn check_invalidates_nothing(ctx: &ClientEp, invalidates: bool) {
    if invalidates {
        ctx.force_disconnect(CloseReason::UnexpectedInvalidation);
    }
}

/// Handles a message that cannot be processed.
#[cold]
fn malformed(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    response: inbound::Response,
    invalidates: bool,
) -> Outcome {
    let ctx = worker.context();
    match response {
        inbound::Response::Answer(error) => {
            // The server may send another Call once it has the error.
            ctx.refill(worker);
            error::send_error(worker, bytes, &error);
        }
        // A malformed Reply is not answered (RFC 8166 Section 4.5).
        inbound::Response::Drop => {
            ctx.shared.stats.bad_replies.add(1);
            traces::malformed(worker, bytes);
        }
    }
    check_invalidates_nothing(ctx, invalidates);
    Outcome::Nothing
}

/// Finds the RPC that `reply` answers, if the Reply is inline. A message that returns chunks which
/// the Call did not offer is not its Reply.
///
/// # Errors
///
/// The outcome of the message, if the Reply is not inline or no RPC waits for the Reply.
#[inline(always)]
fn match_reply(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    reply: &RpcMsg<'_>,
    invalidated: Option<Invalidated>,
) -> Result<(Claimed<RdmaXprt>, Completion), Outcome> {
    let ctx = worker.context();
    let handle = invalidated.as_ref().map(Invalidated::handle);
    let Some(mut rpc) = claim(worker, bytes, reply.xid, reply.credits, handle) else {
        // No RPC waits. If the Reply is exposed, tell the server that the client will not read it.
        if let Some(done) = ctx.done_for(reply.xid, reply.chunks.reads) {
            ctx.send_done(worker, done);
        }
        return Err(Outcome::Nothing);
    };
    let location = rpc.inflight().locate(rpc.exposed(), reply);
    let Ok(ReplyLocation::Inline { payload, by_write }) = location else {
        return Err(not_inline(worker, bytes, rpc, invalidated));
    };
    if !take_invalidated(worker, &mut rpc, invalidated) {
        return Err(Outcome::Nothing);
    }
    answered(worker, &rpc, reply.credits, false);
    let completion = Completion::Inline {
        start: bytes.len() - payload.len(),
        len: payload.len(),
        by_write,
    };
    Ok((rpc, completion))
}

/// Handles a Reply that is not inline, or does not match `rpc`.
#[inline(never)]
fn not_inline(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    mut rpc: Claimed<RdmaXprt>,
    invalidated: Option<Invalidated>,
) -> Outcome {
    let ctx = worker.context();
    let Some(reply) = reply_read::parse(ctx, bytes) else {
        return Outcome::Nothing;
    };
    let location = rpc.inflight().locate(rpc.exposed(), &reply);
    let in_place = match (location, ctx.done_for(reply.xid, reply.chunks.reads)) {
        (
            Ok(ReplyLocation::InReplyChunk {
                length,
                by_write: 0,
            }),
            _,
        ) => Ok(Completion::InReplyChunk(length)),
        // An exposed Reply is read, or at least acknowledged, even if it does not match.
        (_, Some(done)) => Err(done),
        (_, None) => {
            ctx.shared.stats.bad_replies.add(1);
            traces::malformed(worker, bytes);
            // The Reply may still arrive, but cannot be written to memory whose handle is invalid.
            if invalidated.is_some() {
                take_invalidated(worker, &mut rpc, invalidated);
                ctx.force_disconnect(CloseReason::UnexpectedInvalidation);
            }
            return Outcome::Nothing;
        }
    };
    if !take_invalidated(worker, &mut rpc, invalidated) {
        return Outcome::Nothing;
    }
    let long = location.map_or(true, |location| location.is_long(ctx.inline_receive()));
    answered(worker, &rpc, reply.credits, long);
    match in_place {
        Ok(completion) => Outcome::Complete(rpc, completion),
        Err(done) => Outcome::Read(rpc, done),
    }
}

/// Notes a Reply to `rpc` with these credits, `long` if it did not fit a Send without chunks.
#[inline(always)]
fn answered(worker: &RecvWorker<'_, ClientEp>, rpc: &Claimed<RdmaXprt>, credits: u32, long: bool) {
    let ctx = worker.context();
    let inflight = rpc.inflight();
    if inflight.offer.may_be_long() {
        let learn = !ctx.limits().all_pulled;
        ctx.shared
            .reply_histories
            .note(inflight.procedure, long && learn);
    }
    trace!(xprtrdma_reply(rpc.task(), rpc.xid(), credits));
    ctx.grant(worker, credits);
}

/// Handles an RDMA_ERROR: the server could not serve a Call.
#[cold]
fn rdma_error(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    error: Refused,
    invalidated: Option<Invalidated>,
) -> Outcome {
    let ctx = worker.context();
    let handle = invalidated.as_ref().map(Invalidated::handle);
    let Some(mut rpc) = claim(worker, bytes, error.xid, error.credits, handle) else {
        return Outcome::Nothing;
    };
    traces::rdma_error(rpc.task(), error.xid, &error.error);
    ctx.grant(worker, error.credits);
    let own = take_invalidated(worker, &mut rpc, invalidated);
    let inflight = rpc.inflight();
    let refusal = match (inflight.offer, error.error) {
        // Either the server could not expose the Reply, which it can send with a Reply chunk, or it
        // refused the Read chunks of the Call, which it will refuse again.
        (ReplyPlan::Pull, RdmaError::Chunk) => {
            ctx.shared.reply_histories.note_refusal(inflight.procedure);
            Refusal::SendAgain
        }
        _ => {
            report::call_refused(ctx.shared.xprt.peer(), rpc.name(), &error.error);
            Refusal::Fail
        }
    };
    if own {
        Outcome::Complete(rpc, Completion::Refused(refusal))
    } else {
        Outcome::Nothing
    }
}

/// Handles a Reply without an RPC message: an error of some servers. No other Reply follows.
#[cold]
fn empty(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    xid: u32,
    credits: u32,
    invalidated: Option<Invalidated>,
) -> Outcome {
    let ctx = worker.context();
    let handle = invalidated.as_ref().map(Invalidated::handle);
    let Some(mut rpc) = claim(worker, bytes, xid, credits, handle) else {
        return Outcome::Nothing;
    };
    traces::malformed(worker, bytes);
    ctx.grant(worker, credits);
    if take_invalidated(worker, &mut rpc, invalidated) {
        Outcome::Complete(rpc, Completion::Refused(Refusal::Fail))
    } else {
        Outcome::Nothing
    }
}

/// Claims the RPC with this XID, which the message `bytes` answers.
#[inline(always)]
fn claim(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    xid: u32,
    credits: u32,
    invalidated: Option<u32>,
) -> Option<Claimed<RdmaXprt>> {
    let found = worker.context().shared.xprt.claim(xid);
    if found.is_none() {
        unmatched(worker, bytes, xid, credits, invalidated);
    }
    found
}

/// Takes back the MR that the message has invalidated. If the MR does not belong to `rpc`, another
/// RPC may have lost its memory: closes the connection and returns `false`. `rpc` then does not
/// complete on this connection, and its memory stays exposed until the close.
#[inline(always)]
fn take_invalidated(
    worker: &RecvWorker<'_, ClientEp>,
    rpc: &mut Claimed<RdmaXprt>,
    invalidated: Option<Invalidated>,
) -> bool {
    let Some(invalidated) = invalidated else {
        return true;
    };
    traces::remote_inv(|| rpc.task(), rpc.exposed(), invalidated.handle());
    let own = rpc.exposed_mut().take_invalidated(worker, invalidated);
    worker.context().wake_mr_waiters();
    if !own {
        worker.context().force_disconnect(CloseReason::WrongHandle);
    }
    own
}

/// Handles a message for which no task waits. If the message answers an abandoned Call, releases
/// the Call's credit. The handles of an abandoned Call are invalid or about to be: the message may
/// have invalidated one of them, but no other handle.
#[cold]
fn unmatched(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    xid: u32,
    credits: u32,
    invalidated: Option<u32>,
) {
    let ctx = worker.context();
    traces::unmatched(worker, bytes);
    if ctx.shared.credits.is_held(xid) {
        ctx.grant(worker, credits);
        ctx.shared.credits.release(xid);
    }
    if invalidated.is_some_and(|handle| !ctx.gave_out(xid, handle)) {
        ctx.force_disconnect(CloseReason::WrongHandle);
    }
}
