// SPDX-License-Identifier: GPL-2.0

//! Receives one Call: a message that was received, or a Call whose RDMA Reads have completed.
//!
//! A Call without Read chunks is delivered in its Receive buffer. Read chunks are fetched first.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_recvfrom(), svc_rdma_next_recv_ctxt()

use core::ops::Range;

use kernel::{
    page::PAGE_SIZE,
    sync::atomic::ordering::Relaxed, //
};

use super::{
    backchannel,
    call::{
        Buffer,
        Call,
        MAX_RESULTS, //
    },
    connection::Connection,
    ep::{
        Incoming,
        ServerEp, //
    },
    error,
    read_admission,
    read_chunks,
    release,
    stall::Stalled,
    traces,
    tunables, //
};
use crate::{
    engine::{
        inbound::{
            self,
            FromClient,
            Response,
            RpcMsg, //
        },
        responder::reply::can_return,
        stall::Polled, //
    },
    lib::{
        close_reason::CloseReason,
        displaced_pages::CtxtPages, //
    },
    sunrpc::svc::{
        Arriving,
        BackchannelAnswer,
        Received,
        Receiving, //
    },
    verbs::{
        CallReadDone,
        Endpoint,
        RecvCtxt, //
    },
    wire::ChunkLists, //
};

/// The largest number of Reply bytes whose pages are recorded. If nfsd defers a Call, the pages
/// stay recorded until the Call is revisited.
const MAX_RECORDED: usize = 1 << 20;

/// Work for a thread.
enum Next {
    /// A received message.
    Fresh(Buffer),
    /// A deferred Call whose Read chunks may be fetched now.
    Deferred(Buffer),
    ReadDone(CallReadDone<Call>),
}

/// How a received message is handled.
enum Step {
    /// These bytes of the message are a Call.
    Deliver(Range<usize>),
    /// The Read chunks of the Call are still to be fetched.
    Read,
    /// The chunks of the Call with this XID cannot be used.
    Refuse(u32),
    /// There is nothing left to do.
    Drop,
}

/// Receives one Call, if there is one.
#[inline]
pub(super) fn receive_call(conn: &Connection, mut rqst: Arriving<'_, Connection>) -> Received {
    let ctx = conn.ep.context();
    // While chains wait for the Send Queue, a thread only checks deadlines. `XPT_DATA` stays set:
    // the completion that posts the last of these chains wakes a thread.
    let next = if ctx.send_backlog.is_empty() {
        let mut incoming = ctx.incoming.lock();
        let next = next(ctx, &mut incoming);
        if next.is_none() {
            rqst.clear_data();
        }
        next
    } else {
        None
    };
    let rqst = rqst.clear_busy();
    if ctx.timer.take_fired() {
        check_deadlines(&conn.ep);
    }
    match next {
        Some(Next::Fresh(buffer)) => begin(conn, rqst, buffer),
        Some(Next::Deferred(buffer)) => read_chunks::read(conn, rqst, buffer),
        Some(Next::ReadDone(read)) => match read.finish(&conn.ep) {
            Some(buffer) => read_chunks::finish(conn, rqst, buffer),
            None => rqst.leave_empty(),
        },
        None => rqst.leave_empty(),
    }
}

/// Removes the oldest work. Calls whose Reads have completed arrived first.
#[inline]
fn next(ctx: &ServerEp, incoming: &mut Incoming) -> Option<Next> {
    match incoming.read_done.pop() {
        Some(read) => Some(Next::ReadDone(read)),
        None => match read_admission::next(ctx, incoming) {
            Some(buffer) => Some(Next::Deferred(buffer)),
            None => incoming.fresh.pop().map(Next::Fresh),
        },
    }
}

/// Closes a stalled connection, and releases expired Replies.
#[cold]
fn check_deadlines(ep: &Endpoint<ServerEp>) {
    let ctx = ep.context();
    match ctx.stall_detector.poll(ep.sender().queue(), reads(ep)) {
        Ok(next) => {
            for when in [next, release::expire(ep)].into_iter().flatten() {
                ctx.timer.arm(when);
            }
        }
        Err(Stalled) => {
            tunables::STALLED.inc();
            ctx.close(CloseReason::Stalled);
        }
    }
}

/// The RDMA Reads, for the stall detector: none on a device that completes all WRs in order.
///
/// A Call whose Reads have completed has its pages until a thread takes the Call, which may be
/// late. While such Calls wait, no Read counts as outstanding.
fn reads(ep: &Endpoint<ServerEp>) -> Polled {
    if !ep.registers_to_read() {
        return Polled::default();
    }
    let ctx = ep.context();
    Polled {
        // CAST: The number wraps.
        completed: ctx.counters.send.reads.get() as u32,
        outstanding: ctx.read_throttle.pages() != 0 && ctx.incoming.lock().read_done.is_empty(),
    }
}

/// Handles a received message.
#[inline]
fn begin(conn: &Connection, rqst: Receiving<'_, Connection>, mut buffer: Buffer) -> Received {
    tunables::RECEIVES.inc();
    match parse(conn, &rqst, &mut buffer) {
        Step::Deliver(call) => rqst.deliver(buffer, call),
        Step::Read => read_chunks::read(conn, rqst, buffer),
        Step::Refuse(xid) => error::refuse_call(conn, rqst, buffer, xid),
        Step::Drop => error::drop_call(conn, rqst, buffer),
    }
}

/// Parses a received message, and handles everything but Calls.
#[inline]
fn parse(conn: &Connection, rqst: &Receiving<'_, Connection>, buffer: &mut Buffer) -> Step {
    let len = buffer.user().call.len;
    let serial = buffer.serial();
    let (bytes, ctxt) = buffer.split(len);
    let message = ctxt.call.message;
    let invalidated = ctxt.call.invalidated.take();
    match inbound::from_client(bytes, conn.extensions) {
        Ok(FromClient::Done { xid }) => release::done(&conn.ep, xid, invalidated),
        // Only RDMA_DONE may invalidate a handle. Any other message may have invalidated that of
        // any exposed Reply.
        _ if invalidated.is_some() => conn.ep.context().close(CloseReason::UnexpectedInvalidation),
        Ok(FromClient::Call(call)) => {
            let start = len - call.payload.map_or(0, <[u8]>::len);
            traces::call(&conn.ep, serial, bytes, start, call.chunks);
            return begin_call(conn, rqst, &call, ctxt, start..len);
        }
        Ok(FromClient::BackchannelReply(reply)) => {
            let answer = BackchannelAnswer::Reply(reply.payload.unwrap_or(&[]));
            let (xid, credits) = (reply.xid, reply.credits);
            if !backchannel::receive_reply(conn, rqst, message, xid, credits, answer) {
                traces::dropped(&conn.ep, serial, bytes);
            }
        }
        Ok(FromClient::BackchannelError(refused)) => {
            let answer = BackchannelAnswer::Refused;
            let (xid, credits) = (refused.xid, refused.credits);
            if !backchannel::receive_reply(conn, rqst, message, xid, credits, answer) {
                traces::dropped(&conn.ep, serial, bytes);
            }
        }
        Err(response) => {
            traces::refused(&conn.ep, serial, bytes, &response);
            if let Response::Answer(answer) = response {
                error::send_error(conn, &answer);
            }
        }
    }
    // Calls have returned above.
    conn.ep.context().counters.other_messages.add(1);
    Step::Drop
}

/// Initializes the state of a Call whose inline part is `inline`.
#[inline]
fn begin_call(
    conn: &Connection,
    rqst: &Receiving<'_, Connection>,
    message: &RpcMsg<'_>,
    ctxt: &mut RecvCtxt<Call>,
    inline: Range<usize>,
) -> Step {
    let (chunks, long) = (&message.chunks, message.payload.is_none());
    let reads = if chunks.reads.is_empty() {
        0
    } else {
        let lengths = chunks.reads.segments().map(|read| read.segment.length);
        lengths.fold(0, u32::saturating_add)
    };
    // CAST: A Receive buffer is shorter than 4 GiB.
    let parts = reads.saturating_add(inline.len() as u32);
    ctxt.call
        .begin(message.xid, inline.start, long, parts, chunks.outline());
    // `Call` has room for `MAX_RESULTS` results, a Reply must have room to return the chunks, and
    // the service accepts no longer Call.
    if chunks.writes.has_more_than(MAX_RESULTS)
        || !can_return(chunks, conn.reply_limits.threshold)
        || inline.len() > conn.bounds.message as usize
    {
        Step::Refuse(message.xid)
    } else if !long && reads == 0 {
        // A Read list of empty segments is legal, and needs no RDMA Read.
        record_reply_pages(conn, rqst, chunks, ctxt.pages_mut());
        Step::Deliver(inline)
    } else {
        Step::Read
    }
}

/// Records the Reply pages that pages of a file may displace, if there is a Write chunk for them:
/// all pages if the last Reply had pages displaced, and otherwise one, to detect displacement.
#[inline]
fn record_reply_pages(
    conn: &Connection,
    rqst: &Receiving<'_, Connection>,
    chunks: &ChunkLists<'_>,
    pages: &mut CtxtPages,
) {
    let Some(chunk) = chunks.writes.chunks().next() else {
        return;
    };
    let len = if conn.displaces.load(Relaxed) {
        usize::try_from(chunk.total()).unwrap_or(usize::MAX)
    } else {
        1
    };
    rqst.note_reply_pages(len.min(MAX_RECORDED).div_ceil(PAGE_SIZE), pages);
}
