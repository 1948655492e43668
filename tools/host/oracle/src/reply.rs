// SPDX-License-Identifier: GPL-2.0

//! A Reply arrives unchanged in every form. It is refused only if no form is possible.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::CannotReply;
use rpcrdma_core::engine::responder::reply::ChunkWriter;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::Plan;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_core::wire::ChunkLists;
use rpcrdma_core::wire::Segment;
use rpcrdma_core::wire::WriteChunk;

/// Pulled Replies are negotiated.
const PULLED: Extensions = Extensions {
    pulled_replies: true,
};

/// Length of the longest Reply that the model stores byte by byte.
const LONGEST: u32 = 8192;

/// Plans and encodes a Reply to the Call in `bytes`, if it is one.
pub fn reply(bytes: &[u8], results: &[Payload], shape: &ReplyShape, limits: &ReplyLimits) {
    let Ok(FromClient::Call(call)) = from_client(bytes, Extensions::default()) else {
        return;
    };
    let reply = match reply::plan(&call.chunks, results, shape, limits) {
        Ok(reply) => reply,
        Err(refused) => return check_refusal(refused, call.chunks, results, shape, limits),
    };
    assert_eq!(
        u64::from(reply.left()),
        reply
            .runs()
            .map(|(_, length)| u64::from(length))
            .sum::<u64>()
    );
    let exposed = exposed(&reply, limits);
    let mut message = vec![0; limits.threshold as usize];
    let header = reply
        .encode(call.xid, 1, exposed.iter().copied(), &mut message)
        .expect("header fits the threshold");
    let reads = 24 * exposed.len();
    assert_eq!(header, reply.header() as usize + reads);
    if shape.length > LONGEST {
        return;
    }

    // Byte n of the Reply has the value n + 1.
    let mut original: Vec<u32> = (0..shape.length).map(|n| n + 1).collect();
    let take = |at: u32, length: u32| original[at as usize..(at + length) as usize].to_vec();

    // Results and chunks pair one to one. The result of an empty chunk is not reduced.
    let chunks: Vec<WriteChunk<'_>> = call.chunks.writes.chunks().collect();
    let mut written: Vec<Option<(Payload, Vec<u32>)>> = vec![None; chunks.len()];
    if !shape.protected {
        for ((chunk, written), item) in chunks.iter().zip(&mut written).zip(results) {
            if !chunk.is_empty() {
                *written = Some((*item, take(item.offset, item.length)));
            }
        }
    }
    let mut writes = reply.writes();
    for (chunk, written) in chunks.iter().zip(&written) {
        let Some((item, data)) = written else {
            continue;
        };
        if item.length == 0 {
            continue;
        }
        let (to, what) = writes.next().expect("each result with a chunk is written");
        assert_eq!(what, *item);
        assert!(to.segments().eq(chunk.segments()));
        fill(&mut ChunkWriter::new(&to), data.len());
    }
    assert!(writes.next().is_none());
    let left: Vec<u32> = reply
        .runs()
        .flat_map(|(at, length)| take(at, length))
        .collect();
    // The Reply chunk of an old requester is used whenever possible, but not beside a Write list.
    let room = call.chunks.reply.map_or(0, |chunk| chunk.total());
    let must_use = limits.refuses_unused
        && !left.is_empty()
        && room >= left.len() as u64
        && call.chunks.writes.is_empty();
    match reply.form() {
        Form::Inline => {
            assert!(header + left.len() <= limits.threshold as usize);
            assert!(!must_use, "the Reply chunk is returned unused");
        }
        Form::ReplyChunk => {
            assert!(
                must_use || header + left.len() > limits.threshold as usize,
                "the Reply chunk was not needed"
            );
            fill(&mut reply.reply_chunk().unwrap(), left.len());
        }
        // A Reply is exposed only if no other form is possible.
        Form::Exposed => {
            assert!(header - reads + left.len() > limits.threshold as usize);
            let chunk = call.chunks.reply;
            assert!(chunk.is_none_or(|chunk| chunk.total() < left.len() as u64));
        }
    }

    // Decode the header.
    message.truncate(header);
    if reply.form() == Form::Inline {
        message.extend(call.xid.to_be_bytes());
        message.extend(1_u32.to_be_bytes());
    }
    let Ok(FromServer::Reply(received)) = from_server(&message, PULLED) else {
        panic!("{message:?}");
    };
    let lengths: Vec<Vec<u32>> = received
        .chunks
        .writes
        .chunks()
        .map(|chunk| chunk.segments().map(|s| s.length).collect())
        .collect();
    assert_eq!(lengths.len(), chunks.len());
    for ((lengths, chunk), written) in lengths.iter().zip(&chunks).zip(&written) {
        assert_eq!(lengths.len(), chunk.len());
        let len = written.as_ref().map_or(0, |(_, data)| data.len());
        assert_eq!(lengths.iter().sum::<u32>() as usize, len);
    }
    assert_eq!(received.chunks.reply.is_some(), call.chunks.reply.is_some());
    let reads = received.chunks.reads.segments();
    assert!(reads.clone().all(|read| read.position == 0));
    assert!(reads.map(|read| read.segment).eq(exposed));

    // Insert the results, with their roundup, into the rest of the Reply.
    let mut stream = left;
    for (payload, mut item) in written.into_iter().flatten() {
        let end = (payload.offset + payload.length.next_multiple_of(4)).min(shape.length);
        for n in payload.offset + payload.length..end {
            item.push(0);
            original[n as usize] = 0;
        }
        let at = payload.offset as usize;
        stream.splice(at..at, item);
    }
    assert_eq!(stream, original);
}

/// Segments of an exposed Reply, as many as the limits allow.
fn exposed(reply: &Plan<'_>, limits: &ReplyLimits) -> Vec<Segment> {
    if reply.form() != Form::Exposed {
        return Vec::new();
    }
    let count = limits.exposed_segments.min(reply.left());
    let mut left = reply.left();
    (0..count)
        .map(|n| {
            let length = match n + 1 == count {
                true => left,
                false => reply.left() / count,
            };
            left -= length;
            Segment {
                handle: n + 1,
                length,
                offset: u64::from(n),
            }
        })
        .collect()
}

/// Fills `writer` with `len` bytes. It must have room for them.
fn fill(writer: &mut ChunkWriter<'_>, len: usize) {
    let mut left = u32::try_from(len).unwrap();
    while left > 0 {
        let part = writer
            .next_part(left)
            .expect("the plan has checked the room");
        assert!(part.length > 0 && part.length <= left);
        left -= part.length;
    }
}

/// Checks that no form is possible for a refused Reply.
fn check_refusal(
    refused: CannotReply,
    chunks: ChunkLists<'_>,
    results: &[Payload],
    shape: &ReplyShape,
    limits: &ReplyLimits,
) {
    let pairs = || {
        let chunks = chunks.writes.chunks();
        chunks.zip(results).filter(|(chunk, _)| !chunk.is_empty())
    };
    match refused {
        CannotReply::WriteChunk { segments, excess } => {
            assert!(!shape.protected);
            assert!(pairs().any(|(chunk, item)| chunk.len() as u32 == segments
                && u64::from(item.length) == chunk.total() + u64::from(excess)
                && excess > 0));
        }
        CannotReply::NoRoom => {
            let header = 28 + chunks.writes.encoded_len() as u64 - 4
                + chunks.reply.map_or(0, |chunk| chunk.encoded_len() as u64);
            let removed: u64 = match shape.protected {
                true => 0,
                false => pairs()
                    .map(|(_, i)| u64::from(i.length).next_multiple_of(4))
                    .sum(),
            };
            let least = u64::from(shape.length).saturating_sub(removed);
            let inline = header + least <= u64::from(limits.threshold);
            assert!(!inline, "the Reply fits inline");
            let header_fits = header <= u64::from(limits.threshold);
            let long = chunks
                .reply
                .is_some_and(|chunk| chunk.total() >= u64::from(shape.length));
            assert!(!(header_fits && long), "the Reply fits the Reply chunk");
            let reads = 24 * u64::from(limits.exposed_segments);
            let exposable = reads > 0 && header + reads <= u64::from(limits.threshold);
            assert!(!exposable, "the Reply can be exposed");
        }
        CannotReply::Results => {
            let mut end = 0;
            let good = results.iter().all(|item| {
                let fits = u64::from(item.offset) >= end
                    && u64::from(item.offset) + u64::from(item.length) <= u64::from(shape.length);
                end = u64::from(item.offset) + u64::from(item.length).next_multiple_of(4);
                fits
            });
            assert!(!good);
        }
    }
}
