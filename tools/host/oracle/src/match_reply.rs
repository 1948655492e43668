// SPDX-License-Identifier: GPL-2.0

//! A requester accepts only chunks that its Call has offered.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::requester::match_reply::locate;
use rpcrdma_core::engine::requester::match_reply::Mismatch;
use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
use rpcrdma_core::wire::Segment;
use rpcrdma_core::wire::WriteChunk;

/// Matches the Reply in `bytes`, if it is one, with a Call that offered segments of these lengths.
///
/// Handles and offsets are small numbers, so that generated Replies often have them.
pub fn match_reply(bytes: &[u8], write: [u16; 3], reply: [u16; 3]) {
    let ext = Extensions {
        pulled_replies: true,
    };
    let Ok(FromServer::Reply(message)) = from_server(bytes, ext) else {
        return;
    };
    let write = segments(1, write);
    let reply = segments(2, reply);
    let offered = OfferedChunks {
        write: write.iter().copied(),
        reply: reply.iter().copied(),
    };
    let mut chunks = message.chunks.writes.chunks();
    let first = chunks.next();
    let written = match &first {
        None => Some(0),
        Some(chunk) if chunk.is_empty() => Some(0),
        Some(chunk) => written_len(chunk, &write),
    };
    let in_reply = match &message.chunks.reply {
        None => Some(0),
        Some(chunk) => written_len(chunk, &reply),
    };
    let expected = match (written, in_reply, message.payload) {
        _ if chunks.next().is_some() => Err(Mismatch),
        (Some(by_write), Some(0), None) if !message.chunks.reads.is_empty() => {
            let reads: Vec<_> = message.chunks.reads.segments().collect();
            let total = reads
                .iter()
                .map(|read| u64::from(read.segment.length))
                .sum::<u64>();
            let good = reads.iter().all(|read| read.position == 0);
            match u32::try_from(total) {
                Ok(length) if good && length >= 4 => {
                    Ok(ReplyLocation::Exposed { length, by_write })
                }
                _ => Err(Mismatch),
            }
        }
        _ if !message.chunks.reads.is_empty() => Err(Mismatch),
        (Some(by_write), Some(0), Some(payload)) => Ok(ReplyLocation::Inline { payload, by_write }),
        (Some(by_write), Some(length), None) if length > 0 => {
            Ok(ReplyLocation::InReplyChunk { length, by_write })
        }
        _ => Err(Mismatch),
    };
    assert_eq!(locate(&message, offered), expected);
}

/// The segments of an offered chunk: one for each length before the first zero.
fn segments(handle: u32, lengths: [u16; 3]) -> Vec<Segment> {
    let offered = lengths.into_iter().take_while(|length| *length != 0);
    offered
        .map(|length| Segment {
            handle,
            length: u32::from(length),
            offset: 0,
        })
        .collect()
}

/// A segment to which nothing was written.
const UNUSED: Segment = Segment {
    handle: 0,
    length: 0,
    offset: 0,
};

/// Number of bytes in a returned chunk. `None` if it is not the chunk `own`, filled from its front
/// without holes.
fn written_len(chunk: &WriteChunk<'_>, own: &[Segment]) -> Option<u32> {
    let theirs: Vec<Segment> = chunk.segments().collect();
    let total: u32 = theirs
        .iter()
        .try_fold(0u32, |sum, s| sum.checked_add(s.length))?;
    let mut left = total;
    let filled: Vec<Segment> = own
        .iter()
        .map(|segment| {
            let length = left.min(segment.length);
            left -= length;
            segment.with_length(length)
        })
        .collect();
    // Segments that are not returned are unused. Handle and offset of an unused one do not matter.
    let padded = filled.iter().copied().chain(std::iter::repeat(UNUSED));
    let same = std::iter::zip(&theirs, padded)
        .all(|(their, own)| *their == own || (their.length == 0 && own.length == 0));
    (same && left == 0).then_some(total)
}
