// SPDX-License-Identifier: GPL-2.0

//! The end of an RPC: fence what it exposed, then wake the task that waits.
//!
//! Runs in the worker that found the answer; the last step, if there was something to invalidate,
//! in the send queue's.

use crate::{
    engine::requester::placement::Placement,
    sunrpc::xprt::{
        Claimed,
        Scatter, //
    },
    trace::{
        trace,
        xprtrdma_fixup, //
    },
    verbs::{
        Endpoint,
        Fenced,
        QpEnded,
        RecvBuf,
        SendWorker, //
    }, //
};

use super::{
    answer::{
        Answer,
        Completion,
        FenceWaiter, //
    },
    ep::ClientEp,
    inflight::lens,
    shared::RdmaXprt,
    traces, //
};

/// Completes the RPC once nothing of it is exposed any more.
#[inline]
pub(super) fn fence(
    worker: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    recv: RecvBuf<()>,
    completion: Completion,
) {
    let this = worker.context();
    let (rpc, inflight) = rpc.withdraw();
    let answer = Answer {
        rpc,
        recv,
        completion,
    };
    let mrs = match inflight.mrs.try_fence() {
        Ok(fence) => return complete(worker, answer, fence),
        Err(mrs) => mrs,
    };
    let count = u64::from(mrs.len());
    this.shared.stats.local_invalidations.add(count);
    traces::invalidated_here(|| answer.rpc.task(), &mrs);
    if let Err((error, waiter, _)) = mrs.invalidate(worker, FenceWaiter::Reply(answer)) {
        if let FenceWaiter::Reply(answer) = &waiter {
            trace!(xprtrdma_post_linv_err(answer.rpc.task(), error.to_errno()));
        }
        // Not completed; SUNRPC sends it again on the next connection.
        this.force_disconnect();
    }
}

/// What a Call exposed has been invalidated, or the queue pair has ended.
pub(super) fn invalidated(
    worker: &SendWorker<'_, ClientEp>,
    waiter: FenceWaiter,
    fence: Result<Fenced, QpEnded>,
) {
    let this = worker.context();
    this.wake_mr_waiters();
    if fence.is_err() {
        this.force_disconnect();
    }
    match (waiter, fence) {
        (FenceWaiter::Reply(answer), Ok(fence)) => complete(worker, answer, fence),
        // What was written last cannot be trusted: the RPC is sent again.
        (FenceWaiter::Reply(answer), Err(_)) => drop(answer),
        (FenceWaiter::GivenUp, fence) => {
            let fence = fence.unwrap_or_else(QpEnded::fence);
            *this.fenced.lock() = Some(fence);
            this.fence_done.notify_all();
        }
    }
}

/// Wakes the task that waits.
#[inline]
fn complete(ep: &Endpoint<ClientEp>, answer: Answer, fence: Fenced) {
    let shared = &ep.context().shared;
    let Answer {
        rpc,
        recv,
        completion,
    } = answer;
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
            let (old, copied) = rpc.complete(fence, recv, &scatter);
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
            rpc.complete_in_place(fence, length);
            shared.recv_pool.put(recv);
            shared.stats.written.add(u64::from(length));
        }
        Completion::Read(length) => {
            rpc.complete_in_place(fence, length);
            shared.recv_pool.put(recv);
        }
        Completion::Refused(refusal) => {
            shared.stats.bad_replies.add(1);
            rpc.refuse(fence, refusal);
            shared.recv_pool.put(recv);
        }
    }
}
