// SPDX-License-Identifier: GPL-2.0

//! Sending a Call: choose, expose, compose, post. Runs in an RPC's task, with the send lock.

use crate::{
    admin::trace::trace,
    engine::call::{
        self,
        CallPlan,
        CallShape,
        Extent,
        ReplyPlan, //
    },
    sunrpc::{
        xdr::XdrBuf,
        Call,
        SendError, //
    },
    verbs::{
        Access,
        Draft,
        MapError,
        Mapped,
        NoRoomInMessage,
        Regions,
        Registrar,
        Sender, //
    },
    wire::{
        HeaderWriter,
        Overflow,
        ReadSegment, //
    }, //
};

use super::{
    complete::Pending,
    connection::Connection,
    exchange::{
        segment,
        Exchange, //
    },
    shared::Shared,
    traces,
    transport::Rdma, //
};

/// A Call whose header is written and whose chunks are mapped.
struct Composed {
    regions: Regions<Mapped, Pending>,
    reads: u32,
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

impl From<NoRoomInMessage> for SendError {
    fn from(_: NoRoomInMessage) -> Self {
        Self::Io
    }
}

/// Sends a Call.
pub(super) fn call(
    to: &Connection,
    shared: &Shared,
    sender: &mut Sender<Pending>,
    call: &Call<'_, Rdma>,
) -> Result<(), SendError> {
    // Memory that a peer is to write to must be there beforehand.
    if call.room().is_sparse() && !call.room().fill_sparse_pages() {
        return Err(SendError::NoBuffers);
    }
    let (how, offer) = choose(to, shared, call)?;
    let Some(mut draft) = sender.begin() else {
        return Err(ring_full(shared, sender));
    };
    let composed = match compose(to, shared, &mut draft, call, how, offer) {
        Ok(composed) => composed,
        Err(error) => return Err(failed(to, shared, sender, call, error)),
    };
    let (posting, regions) = draft.finish(call.xid(), composed.regions);
    traces::registered(|| call.task(), &regions);
    trace!(xprtrdma_post_send(
        call.task(),
        to.ep.send_cid(posting.serial()),
        posting.elements(),
        posting.is_signaled()
    ));
    let exchange = Exchange {
        regions,
        reads: composed.reads,
        offer,
        procedure: call.procedure(),
    };
    if let Err(error) = posting.post(&to.ep, || call.commit(exchange)) {
        trace!(xprtrdma_post_send_err(
            call.task(),
            to.ep.send_cq_id(),
            error.to_errno()
        ));
        // What may have been posted ends with the connection, and what it exposed with it.
        drop(call.revoke());
        return Err(SendError::NotConnected);
    }
    Ok(())
}

/// How the Call travels, and its Reply.
#[inline]
fn choose(
    to: &Connection,
    shared: &Shared,
    call: &Call<'_, Rdma>,
) -> Result<(CallPlan, ReplyPlan), SendError> {
    let (message, room) = (call.message(), call.room());
    let shape = CallShape {
        call: extent(message),
        call_eligible: message.is_write(),
        reply: extent(room),
        reply_eligible: room.is_read(),
        protected: call.is_protected(),
        // One that is sent again may have been refused for want of a Reply chunk.
        long_reply: to.limits.pulled_replies
            && (shared.habits.of(call.procedure()).is_long() || call.was_sent()),
    };
    call::plan(&shape, &to.limits).map_err(|_| SendError::TooBig)
}

#[inline]
fn extent(buf: &XdrBuf) -> Extent {
    Extent {
        head: buf.head_len(),
        data: buf.page_len(),
        page_offset: buf.page_base(),
        tail: buf.tail_len(),
    }
}

/// There is no room in the ring: Sends have not ended.
#[cold]
pub(super) fn ring_full(shared: &Shared, sender: &Sender<Pending>) -> SendError {
    shared.stats.ring_full.add(1);
    shared.xprt.wait_for_space();
    if sender.has_room() {
        shared.xprt.space();
    }
    SendError::Again
}

#[cold]
fn failed(
    to: &Connection,
    shared: &Shared,
    sender: &Sender<Pending>,
    call: &Call<'_, Rdma>,
    error: SendError,
) -> SendError {
    shared.stats.failed_marshals.add(1);
    trace!(xprtrdma_marshal_failed(
        call.task(),
        call.xid(),
        error.to_errno()
    ));
    if error == SendError::Again {
        trace!(xprtrdma_nomrs_err(to.ep.peer_addr(), call.task()));
        // All regions are in use. Whoever puts some back tells of space. So does whoever makes
        // more, in any case; but the memory for that may be free only when others have been sent.
        let pool = sender.pool();
        pool.want();
        shared.xprt.wait_for_space();
        if pool.has_idle() {
            shared.xprt.space();
        }
        if let Some(refill) = to.ep.context().refill.as_ref() {
            refill.start();
        }
    }
    error
}

/// Maps the chunks and writes the message.
#[inline]
fn compose(
    to: &Connection,
    shared: &Shared,
    draft: &mut Draft<'_, Pending>,
    call: &Call<'_, Rdma>,
    how: CallPlan,
    offer: ReplyPlan,
) -> Result<Composed, SendError> {
    let message = call.message();
    let (memory, registrar) = draft.parts();
    let mut regions = Regions::none();
    let reads = expose_call(registrar, &mut regions, message, how)?;
    if reads != 0 && call.is_protected() {
        // Privacy: to send the Call once more, SUNRPC encrypts it into other pages, and frees these
        // without asking.
        regions.hold();
    }
    let writes = expose_room(registrar, &mut regions, call.room(), offer)?;
    if reads + writes > to.sizes.regions_per_call {
        return Err(SendError::Io);
    }
    let header = write_header(
        memory,
        to.sizes.requests,
        call.xid(),
        how,
        offer,
        &regions,
        reads,
    )?;
    count(shared, how, offer, &regions, reads, writes);
    traces::exposed(|| call.task(), &regions, reads, how, offer);
    trace!(xprtrdma_marshal(
        call.task(),
        call.xid(),
        header as u32,
        traces::extent(message),
        traces::call(how, message),
        traces::reply(offer)
    ));
    append_body(shared, draft, message, how, header).inspect_err(|error| {
        trace!(xprtrdma_prepsend_failed(
            call.task(),
            call.xid(),
            error.to_errno()
        ));
    })?;
    Ok(Composed { regions, reads })
}

/// Maps what the peer is to read; returns how many regions that takes.
#[inline]
fn expose_call(
    registrar: &mut Registrar<Pending>,
    regions: &mut Regions<Mapped, Pending>,
    message: &XdrBuf,
    how: CallPlan,
) -> Result<u32, MapError> {
    match how {
        CallPlan::Inline { .. } => Ok(0),
        CallPlan::ReadChunk { .. } => registrar.map(message.pages(), Access::Read, regions),
        CallPlan::PositionZero => {
            let all = Iterator::chain(message.head(), message.pages());
            registrar.map(Iterator::chain(all, message.tail()), Access::Read, regions)
        }
    }
}

/// Maps what the peer is to write; returns how many regions that takes.
#[inline]
fn expose_room(
    registrar: &mut Registrar<Pending>,
    regions: &mut Regions<Mapped, Pending>,
    room: &XdrBuf,
    offer: ReplyPlan,
) -> Result<u32, MapError> {
    match offer {
        ReplyPlan::Inline | ReplyPlan::Pull => Ok(0),
        // No room for the roundup: it does not travel (RFC 8166 Section 3.4.6.2).
        ReplyPlan::WriteChunk => registrar.map(room.pages(), Access::Write, regions),
        ReplyPlan::ReplyChunk => {
            let all = Iterator::chain(room.head(), room.pages());
            registrar.map(Iterator::chain(all, room.tail()), Access::Write, regions)
        }
    }
}

/// Writes the transport header; returns its length.
#[inline]
fn write_header(
    memory: &mut [u8],
    credits: u32,
    xid: u32,
    how: CallPlan,
    offer: ReplyPlan,
    regions: &Regions<Mapped, Pending>,
    reads: u32,
) -> Result<usize, Overflow> {
    if regions.is_empty() {
        return HeaderWriter::plain(memory, xid, credits);
    }
    let mut segments = regions.exposed().map(segment);
    let (mut header, position) = match how {
        CallPlan::Inline { .. } => (HeaderWriter::msg(memory, xid, credits)?, 0),
        CallPlan::ReadChunk { position } => (HeaderWriter::msg(memory, xid, credits)?, position),
        CallPlan::PositionZero => (HeaderWriter::nomsg(memory, xid, credits)?, 0),
    };
    for segment in segments.by_ref().take(reads as usize) {
        header.read_segment(ReadSegment { position, segment })?;
    }
    let mut header = header.no_more_reads()?;
    if offer == ReplyPlan::WriteChunk {
        header.write_chunk(segments.by_ref())?;
    }
    let header = header.no_more_writes()?;
    match offer {
        ReplyPlan::ReplyChunk => header.reply_chunk(segments),
        _ => header.no_reply_chunk(),
    }
}

/// Writes what of the Call is sent with the header, and puts the message together.
#[inline]
pub(super) fn append_body(
    shared: &Shared,
    draft: &mut Draft<'_, Pending>,
    message: &XdrBuf,
    how: CallPlan,
    header: usize,
) -> Result<(), SendError> {
    let (memory, _) = draft.parts();
    let body = memory.get_mut(header..).ok_or(SendError::TooBig)?;
    let mut out = Copier { body, copied: 0 };
    match how {
        CallPlan::PositionZero => {}
        CallPlan::ReadChunk { .. } => {
            out.copy(|to| message.copy_head(to))?;
            // The roundup of what the chunk holds does not travel, either.
            let roundup = crate::wire::pad(message.page_len());
            out.copy(|to| message.copy_tail(roundup, to))?;
        }
        CallPlan::Inline { pull_up: false } if message.page_len() != 0 => {
            let head = out.copy(|to| message.copy_head(to))?;
            let tail = out.copy(|to| message.copy_tail(0, to))?;
            draft.append(header + head)?;
            for piece in message.pages() {
                draft.gather(&piece)?;
            }
            return Ok(draft.append(tail)?);
        }
        CallPlan::Inline { .. } => {
            out.copy(|to| message.copy_head(to))?;
            let head = out.copied;
            out.copy(|to| message.copy_pages(to))?;
            out.copy(|to| message.copy_tail(0, to))?;
            if out.copied != head {
                shared.stats.pulled_up.add((out.copied - head) as u64);
            }
        }
    }
    let copied = out.copied;
    Ok(draft.append(header + copied)?)
}

/// Appends to the part of a message that is copied.
struct Copier<'a> {
    body: &'a mut [u8],
    copied: usize,
}

impl Copier<'_> {
    #[inline]
    fn copy(&mut self, from: impl FnOnce(&mut [u8]) -> Option<usize>) -> Result<usize, SendError> {
        let to = self.body.get_mut(self.copied..).ok_or(SendError::TooBig)?;
        let copied = from(to).ok_or(SendError::TooBig)?;
        self.copied += copied;
        Ok(copied)
    }
}

#[inline]
fn count(
    shared: &Shared,
    how: CallPlan,
    offer: ReplyPlan,
    regions: &Regions<Mapped, Pending>,
    reads: u32,
    writes: u32,
) {
    if regions.is_empty() {
        return;
    }
    let stats = &shared.stats;
    if reads != 0 {
        stats.read_segments.add(u64::from(reads));
        if how == CallPlan::PositionZero {
            stats.nomsg_calls.add(1);
        }
    }
    if writes != 0 {
        match offer {
            ReplyPlan::WriteChunk => stats.write_segments.add(u64::from(writes)),
            _ => stats.reply_segments.add(u64::from(writes)),
        }
        let room = regions.exposed().skip(reads as usize);
        let octets = Iterator::fold(room, 0u64, |sum, exposed| {
            sum.saturating_add(u64::from(exposed.length))
        });
        stats.offered.add(octets);
    }
}
