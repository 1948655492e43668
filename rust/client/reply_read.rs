// SPDX-License-Identifier: GPL-2.0

//! Pulling a Reply that the server exposes: RDMA Read to where the consumer wants it, then
//! RDMA_DONE.
//!
//! Nothing of this is on the way of a Reply that fits a message. It begins in the receive queue's
//! worker and goes on in the send queue's.

use crate::{
    engine::{
        inbound::{
            self,
            FromServer,
            RpcMsg, //
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
    verbs::{
        Endpoint,
        PreparedReads,
        ReadNotPosted,
        RecvBuf,
        Remote,
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
    tunables, //
};

/// Pulls what answers `rpc`, and completes it; or else says that it will not be pulled, and fails
/// it. The server is told by `done`.
pub(super) fn start(
    ep: &Endpoint<ClientEp>,
    rpc: Claimed<RdmaXprt>,
    done: Done,
    recv: RecvBuf<()>,
    bytes: usize,
) {
    let this = ep.context();
    let Some(reply) = parse(this, recv.bytes(bytes)) else {
        this.force_disconnect();
        return;
    };
    match prepare(ep, &rpc, &reply) {
        Ok((prepared, length)) => {
            let pulling = ReplyRead {
                rpc,
                recv,
                length,
                done,
            };
            if this.reply_reads.start(ep, prepared, pulling).is_err() {
                // Not completed; SUNRPC sends it again on the next connection.
                this.force_disconnect();
            }
        }
        Err(ReadNotPosted::Failed) => this.force_disconnect(),
        Err(ReadNotPosted::Unsuitable) => {
            this.send_done(ep, done);
            complete::fence(ep, rpc, recv, Completion::Refused(Refusal::Fail));
        }
    }
}

/// Prepares the RDMA Reads of what `reply` exposes, to where the consumer wants it; returns its
/// length, too.
fn prepare(
    ep: &Endpoint<ClientEp>,
    rpc: &Claimed<RdmaXprt>,
    reply: &RpcMsg<'_>,
) -> Result<(PreparedReads<ReplyRead>, u32), ReadNotPosted> {
    let reads = reply.chunks.reads;
    let room = rpc.room();
    let capacity = room
        .head_len()
        .saturating_add(room.page_len())
        .saturating_add(room.tail_len());
    let inflight = rpc.inflight();
    // The memory of an offered chunk is mapped for the device already.
    let offered = matches!(
        inflight.offer,
        ReplyPlan::WriteChunk | ReplyPlan::ReplyChunk
    );
    let length = match inflight.arrived(rpc.exposed(), reply) {
        Ok(Arrived::Exposed {
            length,
            by_write: 0,
        }) if !offered && length <= capacity && reads.len() <= MAX_SEGMENTS as usize => length,
        _ => return Err(ReadNotPosted::Unsuitable),
    };
    let bvecs = Iterator::chain(room.head(), room.pages());
    let bvecs = Iterator::chain(bvecs, room.tail());
    let segments = reads.segments().map(|read| read.segment);
    let segments = segments.filter(|segment| !segment.is_empty());
    let sources = segments.map(|segment| {
        let from = Remote {
            handle: segment.handle,
            offset: segment.offset,
        };
        (from, segment.length)
    });
    let prepared = ep.context().reply_reads.prepare(ep, bvecs, sources)?;
    Ok((prepared, length))
}

/// A Reply has been pulled, or the connection ended first.
pub(super) fn done(worker: &SendWorker<'_, ClientEp>, pulling: ReplyRead, status: WcStatus) {
    let this = worker.context();
    if status != WcStatus::Success {
        // Sent again on the next connection, on which nothing is owed for this one.
        this.force_disconnect();
        return;
    }
    tunables::PULLED.inc();
    let ReplyRead {
        rpc,
        recv,
        length,
        done,
    } = pulling;
    this.send_done(worker, done);
    complete::fence(worker, rpc, recv, Completion::Read(length));
}

/// The Reply in a message that was looked at before.
fn parse<'a>(this: &ClientEp, message: &'a [u8]) -> Option<RpcMsg<'a>> {
    match inbound::from_server(message, this.extensions()) {
        Ok(FromServer::Reply(reply)) => Some(reply),
        _ => None,
    }
}
