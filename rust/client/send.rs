// SPDX-License-Identifier: GPL-2.0

//! Chooses the form of a Call, composes it, posts it. Runs in the RPC's task, with the send lock.
//!
//! C: rpc_rdma.c, rpcrdma_marshal_req(), rpcrdma_mr_prepare()
//! C: verbs.c, rpcrdma_sendctx_get_locked()

use crate::{
    engine::requester::call::{
        self,
        CallLimits,
        CallPlan,
        CallShape,
        Plan, //
    },
    sunrpc::{
        xdr::XdrBuf,
        xprt::{
            Call,
            Committed,
            SendError, //
        }, //
    },
    trace::trace,
    verbs::RequestSender, //
};

use super::{
    answer::FenceWaiter,
    compose::compose,
    inflight::{
        lens,
        Inflight, //
    },
    shared::{
        Connection,
        RdmaXprt,
        XprtShared, //
    },
    traces, //
};

/// Sends a Call.
pub(super) fn send_call<'a>(
    conn: &Connection,
    shared: &XprtShared,
    sender: &mut RequestSender<FenceWaiter>,
    call: Call<'a, RdmaXprt>,
) -> Result<Committed<'a, RdmaXprt>, SendError> {
    // The server can write only to allocated pages.
    if call.room().is_sparse() && !call.room().fill_sparse_pages() {
        return Err(SendError::NoBuffers);
    }
    let plan = match choose(conn, shared, &call) {
        Ok(plan) => plan,
        Err(error) => return Err(failed(conn, shared, sender, &call, error)),
    };
    let Some(mut builder) = sender.begin() else {
        return Err(ring_full(shared, sender));
    };
    let composed = match compose(conn, shared, &mut builder, &call, &plan) {
        Ok(composed) => composed,
        Err(error) => return Err(failed(conn, shared, sender, &call, error)),
    };
    let ready = builder.finish(call.xid(), composed.mrs);
    traces::registered(|| call.task(), ready.mrs());
    trace!(xprtrdma_post_send(
        call.task(),
        conn.ep.send_cid(ready.serial()),
        ready.elements(),
        ready.is_signaled()
    ));
    if call.was_sent() {
        shared.stats.send.retransmissions.add(1);
    }
    let inflight = Inflight {
        reads: composed.reads,
        offer: plan.reply,
        // `procedure()` is a chain of loads: call it only if its result is needed.
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
                conn.ep.send_cq_id(),
                failed.error.to_errno()
            ));
        }
        // Some WRs may have been posted. The Call stays committed until the close of the connection
        // fences its memory.
        SendError::NotConnected
    })
}

/// Chooses the form of the Call, and of its Reply.
#[inline]
fn choose(
    conn: &Connection,
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
        // The server may have refused an earlier transmission for lack of a Reply chunk.
        long_reply: conn.limits.pulled_replies
            && (shared.reply_histories.of(call.procedure()).is_long() || call.was_sent()),
    };
    let plan = call::plan(&shape, &conn.limits);
    let gathers = |plan: &Plan| plan.call == CallPlan::Inline { pull_up: false };
    if message.page_len() != 0 && plan.as_ref().is_ok_and(gathers) && !can_gather(message) {
        return choose_without_gather(conn, &shape);
    }
    plan.map_err(|_| SendError::TooBig)
}

/// Chooses the form of a Call whose pages cannot be sent from.
// Not inlined, so that `call::plan()` has one caller in `choose`, and is inlined there.
#[cold]
#[inline(never)]
fn choose_without_gather(conn: &Connection, shape: &CallShape) -> Result<Plan, SendError> {
    let limits = CallLimits {
        sges: 0,
        ..conn.limits
    };
    call::plan(shape, &limits).map_err(|_| SendError::TooBig)
}

/// Whether references can hold the pages until the Send completes. Slab pages take no references.
#[cold]
fn can_gather(message: &XdrBuf) -> bool {
    message.pages().all(|bvec| bvec.is_counted())
}

/// Makes the task wait for a Send context, since all are in use.
#[cold]
pub(super) fn ring_full(shared: &XprtShared, sender: &RequestSender<FenceWaiter>) -> SendError {
    shared.stats.send.ring_full.add(1);
    shared.xprt.wait_for_space();
    if sender.has_room() {
        shared.xprt.write_space();
    }
    SendError::Again
}

/// Handles a Call that fits no form, or could not be composed.
#[cold]
fn failed(
    conn: &Connection,
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
        shared.stats.send.mr_waits.add(1);
        trace!(xprtrdma_nomrs_err(conn.ep.peer_addr(), call.task()));
        // All MRs are in use, or all but too few. An MR that returns to the pool wakes this task,
        // and so does `MrRefresh` if it allocates any. Become a waiter before calling `want`: the
        // thread that clears the flag must find a waiter.
        let pool = sender.pool();
        shared.xprt.wait_for_space();
        pool.want();
        if pool.has_idle() {
            shared.xprt.write_space();
        }
        if let Some(refresh) = conn.ep.context().mr_refresh.as_ref() {
            refresh.start();
        }
    }
    error
}
