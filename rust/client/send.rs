// SPDX-License-Identifier: GPL-2.0

//! Sending a Call: choose, compose, post. Runs in an RPC's task, with the send lock.

use crate::{
    engine::requester::call::{
        self,
        CallShape,
        Plan, //
    },
    sunrpc::xprt::{
        Call,
        Committed,
        SendError, //
    },
    trace::trace,
    verbs::RequestSender, //
};

use super::{
    answer::FenceWaiter,
    compose::compose,
    connection::Connection,
    inflight::{
        lens,
        Inflight, //
    },
    shared::{
        RdmaXprt,
        XprtShared, //
    },
    traces, //
};

/// Sends a Call.
pub(super) fn call<'a>(
    to: &Connection,
    shared: &XprtShared,
    sender: &mut RequestSender<FenceWaiter>,
    call: Call<'a, RdmaXprt>,
) -> Result<Committed<'a, RdmaXprt>, SendError> {
    // Memory that a peer is to write to must be there beforehand.
    if call.room().is_sparse() && !call.room().fill_sparse_pages() {
        return Err(SendError::NoBuffers);
    }
    let plan = choose(to, shared, &call)?;
    let Some(mut builder) = sender.begin() else {
        return Err(ring_full(shared, sender));
    };
    let composed = match compose(to, shared, &mut builder, &call, &plan) {
        Ok(composed) => composed,
        Err(error) => return Err(failed(to, shared, sender, &call, error)),
    };
    let ready = builder.finish(call.xid(), composed.mrs);
    traces::registered(|| call.task(), ready.mrs());
    trace!(xprtrdma_post_send(
        call.task(),
        to.ep.send_cid(ready.serial()),
        ready.elements(),
        ready.is_signaled()
    ));
    let inflight = Inflight {
        reads: composed.reads,
        offer: plan.reply,
        // A chain of loads, of which a short Reply makes no use.
        procedure: if plan.reply.may_be_long() {
            call.procedure()
        } else {
            0
        },
    };
    ready.post(call.commit(inflight)).map_err(|failed| {
        if let Some(sent) = failed.kept {
            trace!(xprtrdma_post_send_err(
                sent.task(),
                to.ep.send_cq_id(),
                failed.error.to_errno()
            ));
        }
        // Part of the chain may have been posted. The Call stays committed until the connection is
        // closed.
        SendError::NotConnected
    })
}

/// How the Call travels, and its Reply.
#[inline]
fn choose(
    to: &Connection,
    shared: &XprtShared,
    call: &Call<'_, RdmaXprt>,
) -> Result<Plan, SendError> {
    let (message, room) = (call.message(), call.room());
    let shape = CallShape {
        call: lens(message),
        call_eligible: message.is_write(),
        reply: lens(room),
        reply_eligible: room.is_read(),
        protected: call.is_protected(),
        // One that is sent again may have been refused for want of a Reply chunk.
        long_reply: to.limits.pulled_replies
            && (shared.reply_histories.of(call.procedure()).is_long() || call.was_sent()),
    };
    call::plan(&shape, &to.limits).map_err(|_| SendError::TooBig)
}

/// There is no room in the ring: Sends have not ended.
#[cold]
pub(super) fn ring_full(shared: &XprtShared, sender: &RequestSender<FenceWaiter>) -> SendError {
    shared.stats.send.ring_full.add(1);
    shared.xprt.wait_for_space();
    if sender.has_room() {
        shared.xprt.write_space();
    }
    SendError::Again
}

#[cold]
fn failed(
    to: &Connection,
    shared: &XprtShared,
    sender: &RequestSender<FenceWaiter>,
    call: &Call<'_, RdmaXprt>,
    error: SendError,
) -> SendError {
    shared.stats.send.failed_marshals.add(1);
    trace!(xprtrdma_marshal_failed(
        call.task(),
        call.xid(),
        error.to_errno()
    ));
    if error == SendError::Again {
        trace!(xprtrdma_nomrs_err(to.ep.peer_addr(), call.task()));
        // All regions are in use. Returning one wakes us, and so does `MrRefresh`, even if it made
        // none. Queue as a waiter first, then say that some are wanted: who clears that must find a
        // waiter.
        let pool = sender.pool();
        shared.xprt.wait_for_space();
        pool.want();
        if pool.has_idle() {
            shared.xprt.write_space();
        }
        if let Some(refill) = to.ep.context().mr_refresh.as_ref() {
            refill.start();
        }
    }
    error
}
