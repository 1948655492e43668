// SPDX-License-Identifier: GPL-2.0

//! A pending RPC: its registrations, the header of its Call, and the placement of its Reply.

use crate::app::Rpc;
use crate::memory::Access;
use crate::memory::Location;
use crate::memory::Memory;
use crate::rng::Rng;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::Plan;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
use rpcrdma_core::engine::requester::placement::Placement;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::ReadSegment;
use rpcrdma_core::wire::Segment;

/// The outcome of an RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A Reply with this content.
    Reply(Vec<u8>),
    /// The server's transport has refused the Call.
    Refused,
    /// The server's transport has refused the Call, which had no Reply chunk. The client sends the
    /// Call again, with one.
    Retry,
    /// The consumer has cancelled the RPC.
    Cancelled,
}

/// The state of an RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be sent on this connection or a later one.
    Queued,
    /// Sent and not answered.
    Sent,
    /// Answered by an exposed Reply, which is being pulled.
    Pulling {
        /// Segments to be read.
        exposed: Vec<Segment>,
        /// Number of bytes read.
        arrived: usize,
    },
    /// Answered or cancelled. Its handles are being invalidated.
    Fencing(Outcome),
}

/// A pending RPC.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) rpc: Rpc,
    pub(crate) state: State,
    /// Room for the Reply: head, data, tail.
    pub(crate) reply: Vec<u8>,
    pub(crate) reads: Vec<Segment>,
    pub(crate) writes: Vec<Segment>,
    pub(crate) reply_chunk: Vec<Segment>,
    /// The chunk that the Call offers for the Reply.
    pub(crate) offer: ReplyPlan,
    /// The Call has been refused without a Reply chunk.
    pub(crate) needs_reply_chunk: bool,
    /// Handles that the server has invalidated: one by the Reply, more only if it is hostile.
    pub(crate) invalidated_remotely: Vec<u32>,
}

impl Pending {
    /// The handles of all chunks.
    pub(crate) fn handles(&self) -> impl Iterator<Item = u32> + '_ {
        let chunks = self
            .reads
            .iter()
            .chain(&self.writes)
            .chain(&self.reply_chunk);
        chunks.map(|segment| segment.handle)
    }

    /// Removes all chunks, whose handles are invalid.
    pub(crate) fn clear_chunks(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.reply_chunk.clear();
        self.invalidated_remotely.clear();
    }
}

/// Plans a Call, registers the memory of its chunks, and encodes the message.
pub(crate) fn marshal(
    rng: &mut Rng,
    memory: &mut Memory,
    pending: &mut Pending,
    limits: &CallLimits,
    credits: u32,
) -> Vec<u8> {
    let xid = pending.rpc.xid;
    let shape = &CallShape {
        long_reply: pending.needs_reply_chunk || rng.once_in(3),
        ..pending.rpc.shape
    };
    let limits = &CallLimits {
        pull_up: rng.pick(&[0, 512, 2048]),
        room_for_roundup: rng.once_in(4),
        ..*limits
    };
    let Ok(Plan {
        call,
        reply,
        roundup,
    }) = plan(shape, limits)
    else {
        panic!("no plan for {shape:?} {limits:?}");
    };
    let max_len = limits.segment_pages << limits.page_shift;
    let mut register = |access, start: u32, length: u32, page_offset: u32| {
        let mut segments = Vec::new();
        let mut at = 0;
        let mut in_page = page_offset % (1 << limits.page_shift);
        while at < length {
            let part = (max_len - in_page).min(length - at);
            let location = Location {
                buffer: xid,
                offset: (start + at) as usize,
            };
            segments.push(memory.register(rng, access, location, part));
            at += part;
            in_page = 0;
        }
        segments
    };
    let (c, r) = (shape.call, shape.reply);
    let data = c.head;
    let tail = c.head + c.data;
    let mut position = 0;
    let mut inline: Vec<u8> = Vec::new();
    match call {
        CallPlan::Inline { .. } => inline.extend(&pending.rpc.call),
        CallPlan::ReadChunk { position: at } => {
            position = at;
            pending.reads = register(Access::Read, data, c.data, c.page_offset);
            inline.extend(&pending.rpc.call[..data as usize]);
            inline.extend(&pending.rpc.call[(tail + shape.roundup()) as usize..]);
        }
        CallPlan::PositionZero => {
            pending.reads = register(Access::Read, 0, c.head, 77);
            pending
                .reads
                .extend(register(Access::Read, data, c.data, c.page_offset));
            pending
                .reads
                .extend(register(Access::Read, tail, c.tail, 99));
        }
    }
    pending.offer = reply;
    match reply {
        ReplyPlan::Inline | ReplyPlan::Pull => {}
        ReplyPlan::WriteChunk => {
            pending.writes = register(Access::Write, r.head, r.data, r.page_offset);
            let room = register(Access::Write, r.head + r.data, roundup, 0);
            pending.writes.extend(room);
        }
        ReplyPlan::ReplyChunk => {
            let data = register(Access::Write, r.head, r.data, r.page_offset);
            let tail = register(Access::Write, r.head + r.data, r.tail, 99);
            pending.reply_chunk = register(Access::Write, 0, r.head, 77);
            pending.reply_chunk.extend(data);
            pending.reply_chunk.extend(tail);
        }
    }
    let mut message = vec![0; limits.send as usize];
    let header = encode_header(&mut message, pending, call, position, credits);
    message.truncate(header);
    message.extend(inline);
    assert!(
        message.len() <= limits.send as usize,
        "over the inline threshold"
    );
    message
}

/// Encodes the header of a Call; returns its length in bytes.
fn encode_header(
    buf: &mut [u8],
    pending: &Pending,
    call: CallPlan,
    position: u32,
    credits: u32,
) -> usize {
    let xid = pending.rpc.xid;
    let mut encode = || {
        let mut header = match call {
            CallPlan::PositionZero => HeaderWriter::nomsg(buf, xid, credits)?,
            _ => HeaderWriter::msg(buf, xid, credits)?,
        };
        for segment in &pending.reads {
            let segment = *segment;
            header.read_segment(ReadSegment { position, segment })?;
        }
        let mut writes = header.no_more_reads()?;
        if !pending.writes.is_empty() {
            writes.write_chunk(pending.writes.iter().copied())?;
        }
        let end = writes.no_more_writes()?;
        match pending.reply_chunk.is_empty() {
            true => end.no_reply_chunk(),
            false => end.reply_chunk(pending.reply_chunk.iter().copied()),
        }
    };
    encode().expect("planned to fit")
}

/// The Reply that the consumer decodes from head, pages and tail.
pub(crate) fn consume(pending: &Pending, arrived: &ReplyLocation<'_>) -> Vec<u8> {
    let room = &pending.rpc.shape.reply;
    let (payload, by_write) = match *arrived {
        ReplyLocation::InReplyChunk { length, .. } | ReplyLocation::Exposed { length, .. } => {
            return pending.reply[..length as usize].to_vec();
        }
        ReplyLocation::Inline { payload, by_write } => (payload, by_write),
    };
    let placement = Placement::with_write_chunk(payload.len(), by_write, room);
    // The last word of the payload is placed as a whole.
    let mut words = payload.to_vec();
    words.resize(payload.len().next_multiple_of(4), 0);
    let payload = words;
    let run = |offset: u32, length: u32| &payload[offset as usize..(offset + length) as usize];
    let mut stream = run(0, placement.head).to_vec();
    match placement.pages {
        Some(pages) => {
            let start = room.head as usize;
            stream.extend(&pending.reply[start..start + pages as usize]);
            let tail = placement.tail;
            let roundup = (pages.wrapping_neg() % 4).min(tail.length);
            stream.resize(stream.len() + roundup as usize, 0);
            stream.extend(run(tail.offset + roundup, tail.length - roundup));
        }
        None => {
            stream.extend(run(placement.copy.offset, placement.copy.length));
            stream.extend(run(placement.tail.offset, placement.tail.length));
        }
    }
    assert_eq!(stream.len() as u32, placement.length);
    stream
}
