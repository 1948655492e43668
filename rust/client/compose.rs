// SPDX-License-Identifier: GPL-2.0

//! Composes a Call: maps its chunks, writes the header, appends the payload. Runs in the RPC's
//! task, with the send lock.
//!
//! C: rpc_rdma.c, rpcrdma_marshal_req(), rpcrdma_prepare_send_sges()
//! C: rpc_rdma.c, rpcrdma_encode_read_list(), rpcrdma_encode_write_list()
//! C: rpc_rdma.c, rpcrdma_encode_reply_chunk()

use crate::{
    engine::requester::call::{
        CallPlan,
        Plan,
        ReplyPlan, //
    },
    sunrpc::{
        xdr::XdrBuf,
        xprt::{
            Call,
            SendError, //
        }, //
    },
    trace::trace,
    verbs::{
        Access,
        Exposed,
        MapError,
        MrList,
        MrMapper,
        SendBuilder,
        SendFull, //
    },
    wire::{
        HeaderWriter,
        Overflow,
        ReadSegment, //
    }, //
};

use super::{
    answer::{
        FenceWaiter,
        MappedMrs, //
    },
    inflight::segment,
    shared::{
        Connection,
        RdmaXprt,
        XprtShared, //
    },
    traces, //
};

/// A Call whose header is written and whose chunks are mapped.
pub(super) struct Composed<'m> {
    /// The MRs of the Read chunk, followed by the MRs of the Write chunk or Reply chunk.
    pub(super) mrs: MappedMrs<'m>,
    /// Number of MRs of the Read chunk.
    pub(super) reads: u32,
}

impl From<MapError> for SendError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Exhausted => Self::Again,
            MapError::Failed => Self::Io,
        }
    }
}

impl From<Overflow> for SendError {
    fn from(_: Overflow) -> Self {
        Self::TooBig
    }
}

impl From<SendFull> for SendError {
    fn from(_: SendFull) -> Self {
        Self::Io
    }
}

/// Maps the chunks, and writes header and payload to `builder`.
#[inline]
pub(super) fn compose<'m>(
    conn: &Connection,
    shared: &XprtShared,
    builder: &mut SendBuilder<'_, FenceWaiter>,
    call: &Call<'m, RdmaXprt>,
    plan: &Plan,
) -> Result<Composed<'m>, SendError> {
    let message = call.message();
    let (buf, mr_mapper) = builder.parts();
    let mut mrs = MrList::none();
    let reads = expose_call(mr_mapper, &mut mrs, call, plan.call)?;
    let writes = expose_room(mr_mapper, &mut mrs, call, plan)?;
    let limits = conn.ep.context().limits();
    let header = write_header(buf, limits.credits, call.xid(), plan, &mrs, reads)?;
    count(shared, plan, &mrs, reads, writes);
    traces::exposed(|| call.task(), &mrs, reads, plan);
    trace!(xprtrdma_marshal(
        call.task(),
        call.xid(),
        header as u32,
        traces::lens(message),
        traces::call(plan.call, message),
        traces::reply(plan.reply)
    ));
    let body = append_body(shared, builder, message, plan.call, header).inspect_err(|error| {
        trace!(xprtrdma_prepsend_failed(
            call.task(),
            call.xid(),
            error.to_errno()
        ));
    })?;
    // Behind bounce buffers, the chunks may have more segments than planned.
    if header + body > conn.limits.send as usize {
        return Err(SendError::TooBig);
    }
    shared.stats.send.inline_bytes.add((header + body) as u64);
    Ok(Composed { mrs, reads })
}

/// Maps the memory that the peer reads; returns the number of MRs.
#[inline]
fn expose_call<'m>(
    mr_mapper: &mut MrMapper<FenceWaiter>,
    mrs: &mut MappedMrs<'m>,
    call: &Call<'m, RdmaXprt>,
    plan: CallPlan,
) -> Result<u32, MapError> {
    match plan {
        CallPlan::Inline { .. } => Ok(0),
        CallPlan::ReadChunk { .. } => mr_mapper.map(call.message_pages(), Access::Read, mrs),
        CallPlan::PositionZero => mr_mapper.map(call.whole_message(), Access::Read, mrs),
    }
}

/// Maps the memory that the peer writes to; returns the number of MRs.
#[inline]
fn expose_room<'m>(
    mr_mapper: &mut MrMapper<FenceWaiter>,
    mrs: &mut MappedMrs<'m>,
    call: &Call<'m, RdmaXprt>,
    plan: &Plan,
) -> Result<u32, MapError> {
    match plan.reply {
        ReplyPlan::Inline | ReplyPlan::Pull => Ok(0),
        ReplyPlan::WriteChunk if plan.roundup != 0 => mr_mapper.map(
            call.room_pages_and_roundup(plan.roundup),
            Access::Write,
            mrs,
        ),
        // Without the roundup, which the peer does not write (RFC 8166 Section 3.4.6.2).
        ReplyPlan::WriteChunk => mr_mapper.map(call.room_pages(), Access::Write, mrs),
        ReplyPlan::ReplyChunk => mr_mapper.map(call.whole_room(), Access::Write, mrs),
    }
}

/// Writes the transport header; returns its length.
#[inline]
fn write_header(
    buf: &mut [u8],
    credits: u32,
    xid: u32,
    plan: &Plan,
    mrs: &MappedMrs<'_>,
    reads: u32,
) -> Result<usize, Overflow> {
    if mrs.is_empty() {
        return HeaderWriter::plain(buf, xid, credits);
    }
    let mut segments = mrs.exposed().map(segment);
    if let (CallPlan::Inline { .. }, ReplyPlan::WriteChunk) = (plan.call, plan.reply) {
        return HeaderWriter::with_write_chunk(buf, xid, credits, mrs.len(), segments);
    }
    let (mut header, position) = match plan.call {
        CallPlan::Inline { .. } => (HeaderWriter::msg(buf, xid, credits)?, 0),
        CallPlan::ReadChunk { position } => (HeaderWriter::msg(buf, xid, credits)?, position),
        CallPlan::PositionZero => (HeaderWriter::nomsg(buf, xid, credits)?, 0),
    };
    for segment in segments.by_ref().take(reads as usize) {
        header.read_segment(ReadSegment { position, segment })?;
    }
    let mut header = header.no_more_reads()?;
    if plan.reply == ReplyPlan::WriteChunk {
        header.write_chunk(segments.by_ref())?;
    }
    let header = header.no_more_writes()?;
    match plan.reply {
        ReplyPlan::ReplyChunk => header.reply_chunk(segments),
        _ => header.no_reply_chunk(),
    }
}

/// Appends the inline part of `message` to the header, by copying or gathering; returns its length.
#[inline]
pub(super) fn append_body(
    shared: &XprtShared,
    builder: &mut SendBuilder<'_, FenceWaiter>,
    message: &XdrBuf,
    plan: CallPlan,
    header: usize,
) -> Result<usize, SendError> {
    let only_head = message.page_len() == 0 && message.tail_len() == 0;
    if plan != (CallPlan::Inline { pull_up: false }) || !only_head {
        return append_parts(shared, builder, message, plan, header);
    }
    // Most Calls.
    let (buf, _) = builder.parts();
    let body = buf.get_mut(header..).ok_or(SendError::TooBig)?;
    let head = message.copy_head(body).ok_or(SendError::TooBig)?;
    builder.append(header + head)?;
    Ok(head)
}

/// As [`append_body`], for any plan.
#[inline(never)]
fn append_parts(
    shared: &XprtShared,
    builder: &mut SendBuilder<'_, FenceWaiter>,
    message: &XdrBuf,
    plan: CallPlan,
    header: usize,
) -> Result<usize, SendError> {
    let (buf, _) = builder.parts();
    let body = buf.get_mut(header..).ok_or(SendError::TooBig)?;
    let mut out = Copier { body, copied: 0 };
    match plan {
        CallPlan::PositionZero => {}
        CallPlan::ReadChunk { .. } => {
            out.copy(|to| message.copy_head(to))?;
            // Without the roundup of the data item, which is not sent either.
            let roundup = crate::wire::pad(message.page_len());
            out.copy(|to| message.copy_tail(roundup, to))?;
        }
        CallPlan::Inline { pull_up: false } if message.page_len() != 0 => {
            let head = out.copy(|to| message.copy_head(to))?;
            let tail = out.copy(|to| message.copy_tail(0, to))?;
            builder.append(header + head)?;
            for bvec in message.pages() {
                builder.gather(&bvec)?;
            }
            builder.append(tail)?;
            return Ok(head + tail + message.page_len() as usize);
        }
        CallPlan::Inline { .. } => {
            out.copy(|to| message.copy_head(to))?;
            let head = out.copied;
            out.copy(|to| message.copy_pages(to))?;
            out.copy(|to| message.copy_tail(0, to))?;
            if out.copied != head {
                shared.stats.send.pulled_up.add((out.copied - head) as u64);
            }
        }
    }
    let copied = out.copied;
    builder.append(header + copied)?;
    Ok(copied)
}

/// Appends to the copied part of a message.
struct Copier<'a> {
    body: &'a mut [u8],
    copied: usize,
}

impl Copier<'_> {
    #[inline]
    fn copy(&mut self, from: impl FnOnce(&mut [u8]) -> Option<usize>) -> Result<usize, SendError> {
        let rest = self.body.get_mut(self.copied..).ok_or(SendError::TooBig)?;
        let copied = from(rest).ok_or(SendError::TooBig)?;
        self.copied += copied;
        Ok(copied)
    }
}

/// Counts the chunks of a Call.
#[inline]
fn count(shared: &XprtShared, plan: &Plan, mrs: &MappedMrs<'_>, reads: u32, writes: u32) {
    let stats = &shared.stats.send;
    if mrs.is_empty() {
        stats.calls_inline.add(1);
        return;
    }
    if reads != 0 {
        stats.calls_read.add(1);
        stats.read_segments.add(u64::from(reads));
        let bytes = mrs.exposed().take(reads as usize);
        stats.read_bytes.add(sum(bytes));
        if plan.call == CallPlan::PositionZero {
            stats.nomsg_calls.add(1);
        }
    }
    if writes != 0 {
        match plan.reply {
            ReplyPlan::WriteChunk => {
                stats.calls_write.add(1);
                stats.write_segments.add(u64::from(writes));
            }
            _ => {
                stats.calls_reply_chunk.add(1);
                stats.reply_segments.add(u64::from(writes));
            }
        }
        let room = mrs.exposed().skip(reads as usize);
        stats.offered.add(sum(room));
    }
}

/// The length of some MRs.
#[inline]
fn sum(mrs: impl Iterator<Item = Exposed>) -> u64 {
    mrs.fold(0, |sum, exposed| {
        sum.saturating_add(u64::from(exposed.length))
    })
}
