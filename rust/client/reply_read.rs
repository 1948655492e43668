// SPDX-License-Identifier: GPL-2.0

//! Fetches an exposed Reply by RDMA Read into the memory that its consumer provides, then sends
//! RDMA_DONE.
//!
//! A Reply that fits inline never gets here. [`start`] runs in the receive worker, [`done`] in the
//! send worker.
//!
//! Not in the C module: this is the extension "pulled Replies".

use crate::{
    engine::{
        inbound::{
            self,
            FromServer,
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
    verbs::{
        Endpoint,
        ReadNotPosted,
        RecvBuf,
        SendWorker,
        WcStatus, //
    }, //
};

use super::{
    answer::Completion,
    complete,
    dones::{
        Done,
        ReplyRead, //
    },
    ep::ClientEp,
    limits::MAX_SEGMENTS,
    shared::RdmaXprt,
    stall::WatchedRead,
    tunables, //
};

/// Fetches the Reply in the `len` bytes of `recv`, and completes `rpc`. A Reply that cannot be
/// fetched is acknowledged by `done` at once, and the RPC fails.
pub(super) fn start(
    ep: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    done: Done,
    recv: RecvBuf<()>,
    len: usize,
) {
    let ctx = ep.context();
    // The message was moved since it was parsed.
    let Some(reply) = parse(ctx, recv.bytes(len)) else {
        ctx.force_disconnect(CloseReason::BadPulledReply);
        return;
    };
    let Some(length) = length(&rpc, &reply) else {
        return refuse(ep, rpc, done, recv);
    };
    let outline = reply.chunks.outline();
    let read = ReplyRead {
        rpc,
        recv,
        len,
        outline,
        length,
        done,
        watch: WatchedRead::begin(&ctx.shared.stall_timer),
    };
    match ep.read_reply(read) {
        Ok(()) => {}
        // The RPC is not completed: SUNRPC sends it again on the next connection.
        Err(ReadNotPosted::Failed) => ctx.force_disconnect(CloseReason::PostFailed),
        Err(ReadNotPosted::Unsuitable(read)) => refuse(ep, read.rpc, done, read.recv),
    }
}

/// Fails an RPC whose Reply cannot be fetched.
#[cold]
fn refuse(ep: &Endpoint<ClientEp>, rpc: Claimed<RdmaXprt>, done: Done, recv: RecvBuf<()>) {
    ep.context().send_done(ep, done);
    complete::fence_rare(ep, rpc, recv, Completion::Refused(Refusal::Fail));
}

/// Parses a Reply again, for functions that are not inlined.
#[inline(never)]
pub(super) fn parse<'a>(ctx: &ClientEp, bytes: &'a [u8]) -> Option<RpcMsg<'a>> {
    match inbound::from_server(bytes, ctx.extensions()) {
        Ok(FromServer::Reply(reply)) => Some(reply),
        _ => None,
    }
}

/// The length of an exposed Reply; `None` if it does not fit the memory of the RPC, or the memory
/// is mapped for a chunk.
fn length(rpc: &Claimed<RdmaXprt>, reply: &RpcMsg<'_>) -> Option<u32> {
    let room = rpc.room();
    let capacity = room
        .head_len()
        .saturating_add(room.page_len())
        .saturating_add(room.tail_len());
    let inflight = rpc.inflight();
    // Then the memory is mapped already, for the Write chunk or Reply chunk.
    let offered = matches!(
        inflight.offer,
        ReplyPlan::WriteChunk | ReplyPlan::ReplyChunk
    );
    let segments = reply.chunks.reads.len();
    match inflight.locate(rpc.exposed(), reply) {
        Ok(ReplyLocation::Exposed {
            length,
            by_write: 0,
        }) if !offered && length <= capacity && segments <= MAX_SEGMENTS as usize => Some(length),
        _ => None,
    }
}

/// Handles the end of a Reply's RDMA Reads: they have completed, or the QP is in the error state.
pub(super) fn done(worker: &SendWorker<'_, ClientEp>, read: ReplyRead, status: WcStatus) {
    let ctx = worker.context();
    if status != WcStatus::Success {
        // SUNRPC sends the RPC again on the next connection. RDMA_DONE is due only on this one.
        ctx.force_disconnect(status.into());
        return;
    }
    tunables::PULLED.inc();
    let ReplyRead {
        rpc,
        recv,
        length,
        done,
        watch,
        ..
    } = read;
    drop(watch);
    let stats = &ctx.shared.stats;
    stats.pulled.add(1);
    stats.pulled_bytes.add(u64::from(length));
    ctx.send_done(worker, done);
    complete::fence_rare(worker, rpc, recv, Completion::Read(length));
}
