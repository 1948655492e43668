// SPDX-License-Identifier: GPL-2.0

//! Received messages, and the RPCs that they answer. Runs in the receive worker.
//!
//! An inline Reply to a pending RPC is completed in [`received`], whose parts are inlined: what is
//! known of it stays in registers. All else leaves this way for functions that are not inlined.
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
    /// It answers this RPC, which completes once its memory is fenced.
    Complete(Claimed<RdmaXprt>, Completion),
    /// It answers this RPC, but the Reply has yet to be fetched by RDMA Read, and acknowledged.
    Read(Claimed<RdmaXprt>, Done),
    /// It is a backchannel Call, whose payload starts at this offset.
    BackchannelCall { xid: u32, start: usize },
    /// Nothing to do: the message matches no pending RPC.
    Nothing,
}

/// A Receive has completed.
#[inline(always)]
pub(super) fn received(worker: &RecvWorker<'_, ClientEp>, recv: RecvBuf<()>, status: RecvStatus) {
    let ctx = worker.context();
    ctx.recv_queue.completed();
    let RecvStatus::Received { len, invalidated } = status else {
        // Free the buffer: a queue in error needs no more Receives.
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

/// Closes the connection if the message `invalidates` a handle: only the answer to a Call may (RFC
/// 8797 Section 4.1).
fn check_invalidates_nothing(ctx: &ClientEp, invalidates: bool) {
    if invalidates {
        ctx.force_disconnect(CloseReason::UnexpectedInvalidation);
    }
}

/// A message that cannot be processed.
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

/// Finds the RPC that `reply` answers, if the Reply is inline. A message whose chunks are not those
/// that the Call has offered is not its Reply.
///
/// # Errors
///
/// The outcome, if the Reply is not inline, or no RPC waits for it.
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
        // No RPC waits. If the Reply is exposed, tell the server that it will not be read.
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

/// A Reply that is not inline, or does not match `rpc`.
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
            // The Reply may still arrive, but not to memory whose handle is invalid.
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

/// A Reply with these credits answers `rpc`. It is `long` if it did not fit a Send without chunks.
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

/// RDMA_ERROR: the server could not serve a Call.
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
        // The server could not expose the Reply, and can send it with a Reply chunk. Or it has
        // refused the Read chunks of the Call, and refuses them again.
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

/// A Reply without an RPC message, with which some servers convey an error. No other Reply follows.
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

/// Claims the RPC `xid`, which the message with these `bytes` answers.
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

/// Takes back the MR that the message has invalidated; `false` if it is not one of this RPC. Then
/// another RPC may have lost its memory, and this one is not completed on this connection: its
/// memory stays exposed until the connection is closed.
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

/// No task waits for this message. If it answers an abandoned Call, it returns the Call's credit.
/// The handles of such a Call are invalid, or about to be: the message may have invalidated one of
/// those, but no other handle.
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
