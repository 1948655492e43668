// SPDX-License-Identifier: GPL-2.0

//! Completion of an RPC: fences the memory that it exposes, then wakes its task.
//!
//! [`fence`] runs in the worker that found the answer. If MRs have to be invalidated first,
//! [`invalidated`] continues in the send worker.
//!
//! C: frwr_ops.c, frwr_unmap_async(), frwr_wc_localinv_done(), frwr_wc_localinv_wake()
//! C: rpc_rdma.c, rpcrdma_complete_rqst()

use crate::{
    engine::requester::placement::Placement,
    lib::{
        close_reason::CloseReason,
        fence::{
            Fenced,
            Reachable,
            Unreachable, //
        }, //
    },
    sunrpc::xprt::{
        Claimed,
        Fencing,
        Scatter, //
    },
    trace::{
        trace,
        xprtrdma_fixup, //
    },
    verbs::{
        Endpoint,
        RecvBuf,
        SendWorker, //
    }, //
};

use super::{
    answer::{
        Answer,
        Completion,
        RegisteredMrs, //
    },
    ep::ClientEp,
    inflight::lens,
    shared::RdmaXprt,
    traces, //
};

/// Completes `rpc` once its memory is fenced.
#[inline(always)]
pub(super) fn fence(
    ep: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    recv: RecvBuf<()>,
    completion: Completion,
) {
    match rpc.withdraw().try_fence() {
        Ok(rpc) => complete(ep, rpc, recv, completion),
        Err(rpc) => invalidate(ep, rpc, Answer { recv, completion }),
    }
}

/// As [`fence`], for all but inline Replies: not inlined.
#[inline(never)]
pub(super) fn fence_rare(
    ep: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    recv: RecvBuf<()>,
    completion: Completion,
) {
    let answer = Answer { recv, completion };
    match rpc.withdraw().try_fence() {
        Ok(rpc) => complete_rare(ep, rpc, answer),
        Err(rpc) => invalidate(ep, rpc, answer),
    }
}

/// Posts LOCAL_INV for the MRs that are still valid.
#[inline(never)]
fn invalidate(
    ep: &Endpoint<ClientEp>,
    rpc: Reachable<Fencing<RdmaXprt>, RegisteredMrs>,
    answer: Answer,
) {
    let ctx = ep.context();
    let mrs = rpc.exposed();
    let count = u64::from(mrs.len());
    ctx.shared.stats.local_invalidations.add(count);
    traces::local_inv(|| rpc.task(), mrs);
    if let Err(failed) = rpc.invalidate(ep, answer) {
        if let Some(rpc) = &failed.owner {
            trace!(xprtrdma_post_linv_err(rpc.task(), failed.error.to_errno()));
        }
        // The RPC is not completed: SUNRPC sends it again on the next connection.
        ctx.force_disconnect(CloseReason::PostFailed);
    }
}

/// Handles an RPC whose MRs have been invalidated, or whose QP is in the error state.
pub(super) fn invalidated(
    worker: &SendWorker<'_, ClientEp>,
    rpc: Result<Fenced<Fencing<RdmaXprt>>, Unreachable<Fencing<RdmaXprt>>>,
    answer: Answer,
) {
    let ctx = worker.context();
    ctx.wake_mr_waiters();
    match rpc {
        Ok(rpc) => complete_rare(worker, rpc, answer),
        // The server may still have written to the memory of the Reply. SUNRPC sends the RPC again
        // on the next connection.
        Err(rpc) => {
            ctx.force_disconnect(CloseReason::NotInvalidated);
            drop(rpc);
        }
    }
}

/// As [`complete`]: not inlined.
#[inline(never)]
fn complete_rare(ep: &Endpoint<ClientEp>, rpc: Fenced<Fencing<RdmaXprt>>, answer: Answer) {
    complete(ep, rpc, answer.recv, answer.completion);
}

/// Hands the Reply to SUNRPC, and wakes the task.
#[inline(always)]
fn complete(
    ep: &Endpoint<ClientEp>,
    rpc: Fenced<Fencing<RdmaXprt>>,
    recv: RecvBuf<()>,
    completion: Completion,
) {
    let shared = &ep.context().shared;
    match completion {
        Completion::Inline {
            start,
            len,
            by_write,
        } => {
            let buf = rpc.room();
            let room = lens(buf);
            let placement = match by_write {
                0 => Placement::inline(len, &room),
                _ => Placement::with_write_chunk(len, by_write, &room),
            };
            let scatter = Scatter {
                payload: start,
                head: placement.head,
                copy: (placement.copy.offset, placement.copy.length),
                pages: placement.pages,
                tail: (placement.tail.offset, placement.tail.length),
                length: placement.length,
            };
            let traced = xprtrdma_fixup::enabled().then(|| (rpc.task(), traces::lens(buf)));
            let (old, copied) = rpc.complete(recv, &scatter);
            if let Some((task, parts)) = traced.filter(|_| copied != 0) {
                trace!(xprtrdma_fixup(task, copied as u32, parts));
            }
            if let Some(old) = old {
                shared.recv_pool.put(old);
            }
            if copied != 0 {
                shared.stats.fixed_up.add(copied as u64);
            }
            if by_write != 0 {
                shared.stats.written.add(u64::from(by_write));
            }
        }
        Completion::InReplyChunk(length) => {
            rpc.complete_in_place(length);
            shared.recv_pool.put(recv);
            shared.stats.written.add(u64::from(length));
        }
        Completion::Read(length) => {
            rpc.complete_in_place(length);
            shared.recv_pool.put(recv);
        }
        Completion::Refused(refusal) => {
            shared.stats.bad_replies.add(1);
            rpc.refuse(refusal);
            shared.recv_pool.put(recv);
        }
    }
}
