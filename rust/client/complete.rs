// SPDX-License-Identifier: GPL-2.0

//! The end of an RPC: fence what it exposed, then wake the task that waits.
//!
//! Runs in the worker that found the answer; the last step, if there was something to invalidate,
//! in the send queue's.

use crate::{
    engine::requester::placement::Placement,
    sunrpc::xprt::{
        Claimed,
        Fencing,
        Refusal,
        Scatter, //
    },
    trace::{
        trace,
        xprtrdma_fixup, //
    },
    verbs::{
        Endpoint,
        Fenced,
        QueueEnded,
        Recv,
        SendWorker, //
    }, //
};

use super::{
    channel::Channel,
    inflight::extent,
    traces,
    transport::Rdma, //
};

/// What waits for memory to be fenced.
pub(super) enum FenceWaiter {
    /// A Reply.
    Reply(Answer),
    /// The task that gives up an RPC.
    GivenUp,
}

/// An RPC and the message that answers it.
pub(super) struct Answer {
    rpc: Fencing<Rdma>,
    recv: Recv<()>,
    how: How,
}

/// How an RPC ends.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// The Reply, or all but one item of it, came inline.
    Inline {
        /// Where in the message the payload starts.
        start: usize,
        /// Its octets.
        octets: usize,
        /// Octets that came by RDMA Write.
        by_write: u32,
    },
    /// The Reply came by RDMA Write.
    InReplyChunk(u32),
    /// The Reply was pulled.
    Pulled(u32),
    /// The peer could not do it.
    Refused(Refusal),
}

/// Completes the RPC once nothing of it is exposed any more.
#[inline]
pub(super) fn fence(worker: &Endpoint<Channel>, rpc: Claimed<Rdma>, recv: Recv<()>, how: How) {
    let this = worker.context();
    let (rpc, exchange) = rpc.withdraw();
    let answer = Answer { rpc, recv, how };
    let regions = match exchange.regions.try_fence() {
        Ok(fence) => return complete(worker, answer, fence),
        Err(regions) => regions,
    };
    let count = u64::from(regions.len());
    this.shared.stats.local_invalidations.add(count);
    traces::invalidated_here(|| answer.rpc.task(), &regions);
    if let Err((error, waiter, _)) = regions.invalidate(worker, FenceWaiter::Reply(answer)) {
        if let FenceWaiter::Reply(answer) = &waiter {
            trace!(xprtrdma_post_linv_err(answer.rpc.task(), error.to_errno()));
        }
        // Not completed; SUNRPC sends it again on the next connection.
        this.lose();
    }
}

/// What a Call exposed has been invalidated, or the queue pair has ended.
pub(super) fn fenced(
    worker: &SendWorker<'_, Channel>,
    waiter: FenceWaiter,
    fence: Result<Fenced, QueueEnded>,
) {
    let this = worker.context();
    this.regions_are_back();
    if fence.is_err() {
        this.lose();
    }
    match (waiter, fence) {
        (FenceWaiter::Reply(answer), Ok(fence)) => complete(worker, answer, fence),
        // What was written last cannot be trusted: the RPC is sent again.
        (FenceWaiter::Reply(answer), Err(_)) => drop(answer),
        (FenceWaiter::GivenUp, fence) => {
            let fence = fence.unwrap_or_else(QueueEnded::fence);
            *this.fenced.lock() = Some(fence);
            this.fence_done.notify_all();
        }
    }
}

/// Wakes the task that waits.
#[inline]
fn complete(ep: &Endpoint<Channel>, answer: Answer, fence: Fenced) {
    let shared = &ep.context().shared;
    let Answer { rpc, recv, how } = answer;
    match how {
        How::Inline {
            start,
            octets,
            by_write,
        } => {
            let buf = rpc.room();
            let room = extent(buf);
            let placement = match by_write {
                0 => Placement::inline(octets, &room),
                _ => Placement::beside_write_chunk(octets, by_write, &room),
            };
            let scatter = Scatter {
                payload: start,
                head: placement.head,
                copy: (placement.copy.offset, placement.copy.length),
                pages: placement.pages,
                tail: (placement.tail.offset, placement.tail.length),
                length: placement.length,
            };
            let traced = xprtrdma_fixup::enabled().then(|| (rpc.task(), traces::extent(buf)));
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
        How::InReplyChunk(length) => {
            rpc.complete_in_place(fence, length);
            shared.recv_pool.put(recv);
            shared.stats.written.add(u64::from(length));
        }
        How::Pulled(length) => {
            rpc.complete_in_place(fence, length);
            shared.recv_pool.put(recv);
        }
        How::Refused(refusal) => {
            shared.stats.bad_replies.add(1);
            rpc.refuse(fence, refusal);
            shared.recv_pool.put(recv);
        }
    }
}
