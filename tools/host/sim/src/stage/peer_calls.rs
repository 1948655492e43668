// SPDX-License-Identifier: GPL-2.0

//! The Calls of peers of the stage: how they are composed, and whether a Reply is the right one.

use core::ops::Range;

use kernel::sched::{self, below};

use super::rpc::Rpc;
use crate::bindings::fabric_peer as queue;
use crate::engine::agreement::Agreement;
use crate::wire::{ChunkLists, HeaderWriter, ReadSegment, Segment, WriteChunk};

/// What is in a Write chunk that is not used.
const UNUSED: u8 = 0xcc;

/// A Call that was sent.
pub(super) struct Sent {
    pub(super) rpc: Rpc,
    pub(super) attempt: u32,
    pub(super) reads: Vec<Segment>,
    pub(super) writes: Vec<Segment>,
    /// A second Write chunk, for which the service has no result.
    pub(super) unused: Vec<Segment>,
    pub(super) reply: Vec<Segment>,
}

impl Sent {
    pub(super) fn new(rpc: Rpc, attempt: u32) -> Self {
        Self {
            rpc,
            attempt,
            reads: Vec::new(),
            writes: Vec::new(),
            unused: Vec::new(),
            reply: Vec::new(),
        }
    }

    /// All memory that the Call offers.
    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> + Clone {
        let chunks = [&self.reads, &self.writes, &self.unused, &self.reply];
        chunks.into_iter().flatten()
    }
}

/// The bytes that the segments of a chunk have received, by the lengths that the server returns.
pub(super) fn content(offered: &[Segment], returned: &WriteChunk<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if returned.len() != offered.len() {
        sched::fail("a chunk is returned with another number of segments");
    }
    for (offered, returned) in offered.iter().zip(returned.segments()) {
        if returned.handle != offered.handle || returned.length > offered.length {
            sched::fail(format_args!(
                "a segment is returned as {returned:?}, was {offered:?}"
            ));
        }
        let memory = queue::peer_content(offered.handle);
        bytes.extend(&memory[..returned.length as usize]);
    }
    bytes
}

/// Fails the run if a Reply is not what the Call asks for.
pub(super) fn check(call: &Sent, payload: Vec<u8>, chunks: &ChunkLists<'_>) {
    let item = call.rpc.reply_item();
    let mut writes = chunks.writes.chunks();
    let written = writes
        .next()
        .map_or(Vec::new(), |chunk| content(&call.writes, &chunk));
    let unused = writes
        .next()
        .map_or(Vec::new(), |chunk| content(&call.unused, &chunk));
    let touched = |segment: &Segment| {
        queue::peer_content(segment.handle)
            .iter()
            .any(|b| *b != UNUSED)
    };
    if !unused.is_empty() || call.unused.iter().any(touched) {
        sched::fail("a Write chunk without a result is used");
    }
    if writes.next().is_some() {
        sched::fail("the Reply has more Write chunks than the Call");
    }
    let mut reply = payload;
    if !written.is_empty() {
        if call.rpc.is_protected() {
            sched::fail("a protected Reply is reduced");
        }
        let rest = reply.split_off(item.start.min(reply.len()));
        reply.extend(written);
        reply.resize(reply.len().next_multiple_of(4), 0);
        reply.extend(rest);
    }
    let expected = call.rpc.reply();
    if reply != expected {
        let at = reply.iter().zip(&expected).position(|(a, b)| a != b);
        sched::fail(format_args!(
            "the Reply to {:?} has {} bytes, {} expected, the first other one at {at:?}",
            call.rpc,
            reply.len(),
            expected.len()
        ));
    }
}

/// Registers memory in up to four segments.
pub(super) fn register(qp: u32, bytes: &[u8], write: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let last = segments.len() == 3 || below(2) == 0;
        let take = if last {
            rest.len()
        } else {
            1 + below(rest.len())
        };
        let (now, later) = rest.split_at(take);
        let (rkey, offset) = queue::peer_register(qp, now.to_vec(), write);
        segments.push(Segment::new(rkey, take as u32, offset));
        rest = later;
    }
    segments
}

/// Composes a Call.
pub(super) fn compose(call: &mut Sent, qp: u32, agreement: &Agreement, credits: u32) -> Vec<u8> {
    let rpc = call.rpc;
    let bytes = rpc.call(call.attempt);
    let (send, receive) = (agreement.send as usize, agreement.receive as usize);
    // The Reply: its data in a Write chunk, if there may be one, and all else inline if it fits.
    let reply = rpc.reply().len();
    let item = rpc.reply_item().len();
    let mut left = reply;
    if rpc.is_eligible() && !rpc.is_protected() && below(4) != 0 {
        let room = vec![0xee; item + [0, 0, 3, 500][below(4)]];
        call.writes = register(qp, &room, true);
        left -= item.next_multiple_of(4);
        if below(4) == 0 {
            call.unused = register(qp, &[UNUSED; 500], true);
        }
    }
    // The longest header has four segments in each chunk.
    if left + 300 > receive || below(6) == 0 {
        let room = vec![0xdd; reply.max(left) + [0, 8, 400][below(3)]];
        call.reply = register(qp, &room, true);
    }
    // The Call: inline, with its data in a Read chunk, or as a whole.
    let item = rpc.call_item();
    let (mut position, mut inline, mut long): (u32, Range<usize>, bool) = (0, 0..0, false);
    let mut rest: Range<usize> = 0..0;
    let reduced = bytes.len() - item.len().next_multiple_of(4);
    let chunk_room = 400;
    if bytes.len() + chunk_room <= send && below(5) != 0 {
        inline = 0..bytes.len();
    } else if !item.is_empty() && reduced + chunk_room <= send && below(3) != 0 {
        position = item.start as u32;
        inline = 0..item.start;
        rest = item.end.next_multiple_of(4)..bytes.len();
        call.reads = register(qp, &bytes[item], false);
    } else {
        long = true;
        call.reads = register(qp, &bytes, false);
    }
    let mut message = vec![0; send];
    let mut encode = || {
        let mut header = if long {
            HeaderWriter::nomsg(&mut message, rpc.xid, credits)?
        } else {
            HeaderWriter::msg(&mut message, rpc.xid, credits)?
        };
        for segment in &call.reads {
            let segment = *segment;
            header.read_segment(ReadSegment { position, segment })?;
        }
        let mut writes = header.no_more_reads()?;
        if !call.writes.is_empty() {
            writes.write_chunk(call.writes.iter().copied())?;
        }
        if !call.unused.is_empty() {
            writes.write_chunk(call.unused.iter().copied())?;
        }
        let end = writes.no_more_writes()?;
        if call.reply.is_empty() {
            end.no_reply_chunk()
        } else {
            end.reply_chunk(call.reply.iter().copied())
        }
    };
    let len = match encode() {
        Ok(len) => len,
        Err(_) => panic!("the header does not fit"),
    };
    message.truncate(len);
    message.extend(&bytes[inline]);
    message.extend(&bytes[rest]);
    assert!(message.len() <= send, "a Call is too long");
    message
}
