// SPDX-License-Identifier: GPL-2.0

//! Receiving: what a message is, and which RPC it answers. Runs in the receive queue's worker.

use crate::{
    engine::{
        inbound::{
            self,
            FromServer,
            Refused, //
            RpcMsg,
        },
        requester::{
            call::ReplyPlan,
            match_reply::Arrived, //
        }, //
    },
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
    shared::RdmaXprt,
    traces, //
};

/// What a message means for the RPC that it answers.
enum Outcome {
    /// The RPC ends like this, once nothing of it is exposed.
    Complete(Claimed<RdmaXprt>, Completion),
    /// Its Reply is still to be pulled, and then acknowledged like this.
    Pull(Claimed<RdmaXprt>, Done),
    /// It answers none: the server calls, and its Call starts there in the message.
    BackchannelCall { xid: u32, start: usize },
    /// Nothing; or it answers none.
    Nothing,
}

/// A Receive has ended.
pub(super) fn received(worker: &RecvWorker<'_, ClientEp>, recv: RecvBuf<()>, status: RecvStatus) {
    let this = worker.context();
    this.recv_queue.completed();
    let RecvStatus::Received { len, invalidated } = status else {
        // The buffer is dropped: a queue that has failed posts no more.
        this.recv_failed();
        return;
    };
    this.shared.xprt.reset_backoff();
    match classify(worker, recv.bytes(len), invalidated) {
        Outcome::Nothing => {
            this.shared.recv_pool.put(recv);
            this.refill(worker);
        }
        // The end of an RPC lets out the next Call: the Receive for its Reply comes first.
        Outcome::Complete(rpc, how) => {
            this.refill(worker);
            complete::fence(worker, rpc, recv, how);
        }
        Outcome::Pull(rpc, done) => {
            this.refill(worker);
            reply_read::start(worker, rpc, done, recv, len);
        }
        Outcome::BackchannelCall { xid, start } => {
            backchannel::call(worker, recv, xid, start, len - start);
            this.refill(worker);
        }
    }
}

/// Says what a message is, and answers those that want no more than that.
#[inline]
fn classify(
    worker: &RecvWorker<'_, ClientEp>,
    message: &[u8],
    invalidated: Option<Invalidated>,
) -> Outcome {
    let this = worker.context();
    // Only what answers a Call may invalidate anything (RFC 8797 Section 4.1).
    let invalidates = invalidated.is_some();
    let answers_nothing = || {
        if invalidates {
            this.force_disconnect();
        }
    };
    match inbound::from_server(message, this.extensions()) {
        Ok(FromServer::Reply(reply)) => {
            let start = message.len() - reply.payload.map_or(0, <[u8]>::len);
            find(worker, message, &reply, start, invalidated)
        }
        Ok(FromServer::Error(error)) => refused(worker, message, &error, invalidated),
        Ok(FromServer::BackchannelCall(call)) => {
            answers_nothing();
            Outcome::BackchannelCall {
                xid: call.xid,
                start: message.len() - call.payload.map_or(0, <[u8]>::len),
            }
        }
        Err(inbound::Response::Answer(error)) => {
            error::send_error(worker, message, &error);
            answers_nothing();
            Outcome::Nothing
        }
        // Nobody waits for an answer to what is not understood (RFC 8166 Section 4.5).
        Err(inbound::Response::Drop) => {
            this.shared.stats.bad_replies.add(1);
            traces::not_understood(worker, message);
            answers_nothing();
            Outcome::Nothing
        }
    }
}

/// Finds the RPC that `reply` answers, and how that ends it. One whose chunks are not those that
/// were offered is no answer.
#[inline]
fn find(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    reply: &RpcMsg<'_>,
    start: usize,
    invalidated: Option<Invalidated>,
) -> Outcome {
    let this = worker.context();
    let found = claim(
        worker,
        bytes,
        reply.xid,
        reply.credits,
        invalidated.as_ref(),
    );
    let Some(mut rpc) = found else {
        // Whoever wanted it: the server is told that nobody will pull it.
        if let Some(done) = Done::for_reply(reply.xid, &reply.chunks.reads) {
            this.send_done(worker, done);
        }
        return Outcome::Nothing;
    };
    let arrived = match rpc.inflight().arrived(rpc.exposed(), reply) {
        Ok(Arrived::Inline { payload, by_write }) => Ok(Completion::Inline {
            start,
            len: payload.len(),
            by_write,
        }),
        Ok(Arrived::InReplyChunk {
            length,
            by_write: 0,
        }) => Ok(Completion::InReplyChunk(length)),
        // What is exposed is pulled or else acknowledged, whatever it is.
        _ => match Done::for_reply(reply.xid, &reply.chunks.reads) {
            Some(done) => Err(done),
            None => {
                this.shared.stats.bad_replies.add(1);
                traces::not_understood(worker, bytes);
                // The RPC's Reply may still come; not if what it waits for is invalid.
                if invalidated.is_some() {
                    take_back(worker, &mut rpc, invalidated);
                    this.force_disconnect();
                }
                return Outcome::Nothing;
            }
        },
    };
    if !take_back(worker, &mut rpc, invalidated) {
        return Outcome::Nothing;
    }
    let inflight = rpc.inflight();
    if inflight.offer.may_be_long() {
        let long = !matches!(arrived, Ok(Completion::Inline { .. }));
        let learn = !this.limits().all_pulled;
        this.shared
            .reply_histories
            .note(inflight.procedure, long && learn);
    }
    trace!(xprtrdma_reply(rpc.task(), reply.xid, reply.credits));
    this.grant(worker, reply.credits);
    match arrived {
        Ok(how) => Outcome::Complete(rpc, how),
        Err(done) => Outcome::Pull(rpc, done),
    }
}

/// The server could not serve the Call of `error`.
#[cold]
fn refused(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    error: &Refused,
    invalidated: Option<Invalidated>,
) -> Outcome {
    let this = worker.context();
    let found = claim(
        worker,
        bytes,
        error.xid,
        error.credits,
        invalidated.as_ref(),
    );
    let Some(mut rpc) = found else {
        return Outcome::Nothing;
    };
    traces::refused(rpc.task(), error.xid, &error.error);
    this.grant(worker, error.credits);
    let own = take_back(worker, &mut rpc, invalidated);
    let inflight = rpc.inflight();
    let refusal = match (inflight.offer, error.error) {
        // It can do it with a Reply chunk.
        (ReplyPlan::Pull, RdmaError::Chunk) => {
            this.shared.reply_histories.note_refusal(inflight.procedure);
            Refusal::SendAgain
        }
        _ => Refusal::Fail,
    };
    if own {
        Outcome::Complete(rpc, Completion::Refused(refusal))
    } else {
        Outcome::Nothing
    }
}

/// Finds the RPC that a message names. If nobody waits for it any more, its handles are gone, or
/// about to be: the message may name one of those, and no other.
#[inline]
fn claim(
    worker: &RecvWorker<'_, ClientEp>,
    bytes: &[u8],
    xid: u32,
    credits: u32,
    invalidated: Option<&Invalidated>,
) -> Option<Claimed<RdmaXprt>> {
    let this = worker.context();
    let found = this.shared.xprt.claim(xid);
    if found.is_none() {
        too_late(worker, bytes, xid, credits);
        let handle = invalidated.map(Invalidated::handle);
        if handle.is_some_and(|handle| !this.gave_out(xid, handle)) {
            this.force_disconnect();
        }
    }
    found
}

/// Takes back the region that the peer has invalidated. It must be one of this very RPC: if it is
/// not, another RPC may have lost its memory, and this one is not completed on this connection.
/// What it exposes is exposed until that is closed.
#[inline]
fn take_back(
    worker: &RecvWorker<'_, ClientEp>,
    rpc: &mut Claimed<RdmaXprt>,
    invalidated: Option<Invalidated>,
) -> bool {
    let Some(invalidated) = invalidated else {
        return true;
    };
    traces::invalidated_there(|| rpc.task(), rpc.exposed(), invalidated.handle());
    let own = rpc.exposed_mut().take_invalidated(worker, invalidated);
    worker.context().wake_mr_waiters();
    if !own {
        worker.context().force_disconnect();
    }
    own
}

/// Nobody waits for this answer. If somebody did when the Call was sent, it frees a credit.
#[cold]
fn too_late(worker: &RecvWorker<'_, ClientEp>, bytes: &[u8], xid: u32, credits: u32) {
    let this = worker.context();
    traces::not_asked_for(worker, bytes);
    if this.shared.credits.answered(xid) {
        this.grant(worker, credits);
        this.shared.credits.give_back(xid);
    }
}
