// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 3.4.6: Write chunks.

use crate::support::*;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::ChunkWriter;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::wire::ChunkLists;

/// A Call that offers a Write chunk for each slice of segment lengths.
fn call_with_writes(chunks: &[&[u32]]) -> Vec<u8> {
    let mut body = vec![0];
    for (n, lengths) in (1..).zip(chunks) {
        body.extend([1, lengths.len() as u32]);
        for length in *lengths {
            body.extend(hloo(n, *length, 0x1000));
        }
    }
    body.extend([0, 0]);
    message(0, &[&body, &rpc(CALL)])
}

const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    threshold: 4096,
    refuses_unused: false,
    exposed_segments: 0,
};

/// The segment lengths of each Write chunk that a Reply returns.
fn returned(chunks: ChunkLists<'_>, results: &[Payload], length: u32) -> Vec<Vec<u32>> {
    let reply = reply::plan(&chunks, results, &reply_shape(length), &REPLY_LIMITS).unwrap();
    let mut buf = [0; 1024];
    let end = reply.encode(XID, 32, [], &mut buf).unwrap();
    buf[end..end + 8].copy_from_slice(&words(&[XID, REPLY]));
    let lists = reply_at_client(&buf[..end + 8]).chunks;
    lists
        .writes
        .chunks()
        .map(|chunk| chunk.segments().map(|s| s.length).collect())
        .collect()
}

#[test]
fn r8166_3_4_6_2_one_item_per_write_chunk_segments_in_order() {
    let call = call_with_writes(&[&[3, 5, 9]]);
    let chunks = call_at_server(&call).chunks;
    let results = [item(100, 10)];
    let reply = reply::plan(&chunks, &results, &reply_shape(112), &REPLY_LIMITS).unwrap();
    let writes: Vec<_> = reply.writes().collect();
    assert_eq!(writes.len(), 1);
    let mut writer = ChunkWriter::new(&writes[0].0);
    let mut left = writes[0].1.length;
    let mut parts = Vec::new();
    while left > 0 {
        let part = writer.next_part(left).unwrap();
        left -= part.length;
        parts.push(part.length);
    }
    assert_eq!(parts, [3, 5, 2]);
}

#[test]
fn r8166_3_4_6_3_chunks_are_returned_with_lengths_written() {
    let call = call_with_writes(&[&[3, 5, 9], &[4, 4]]);
    let chunks = call_at_server(&call).chunks;
    assert_eq!(
        returned(chunks, &[item(100, 10), item(120, 1)], 128),
        [vec![3, 5, 2], vec![1, 0]]
    );
    // The Reply returns the handles and offsets of the Call.
    let results = [item(100, 10)];
    let reply = reply::plan(&chunks, &results, &reply_shape(128), &REPLY_LIMITS).unwrap();
    let mut buf = [0; 1024];
    let end = reply.encode(XID, 32, [], &mut buf).unwrap();
    buf[end..end + 8].copy_from_slice(&words(&[XID, REPLY]));
    let lists = reply_at_client(&buf[..end + 8]).chunks;
    for (ours, theirs) in lists.writes.chunks().zip(chunks.writes.chunks()) {
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.segments().zip(theirs.segments()) {
            assert_eq!(ours, theirs.with_length(ours.length));
        }
    }
}

#[test]
fn r8166_3_4_6_4_empty_unused_and_used_are_three_states() {
    let call = call_with_writes(&[&[], &[8, 8], &[8, 8]]);
    let chunks = call_at_server(&call).chunks;
    let states: Vec<_> = chunks
        .writes
        .chunks()
        .map(|chunk| (chunk.is_empty(), chunk.len(), chunk.total()))
        .collect();
    assert_eq!(states, [(true, 0, 0), (false, 2, 16), (false, 2, 16)]);
    let returned = returned(chunks, &[item(100, 4), item(108, 12)], 120);
    assert_eq!(returned, [vec![], vec![8, 4], vec![0, 0]]);
}

#[test]
fn r8166_3_4_6_2_2_roundup_is_not_written() {
    for length in 1..=9 {
        let call = call_with_writes(&[&[16]]);
        let results = [item(100, length)];
        let total = 100 + ((length + 3) & !3);
        let chunks = call_at_server(&call).chunks;
        let reply = reply::plan(&chunks, &results, &reply_shape(total), &REPLY_LIMITS).unwrap();
        assert_eq!(by_write(&reply), length);
        // The roundup is not inline either.
        assert_eq!(reply.left(), 100);
        assert_eq!(reply.runs().collect::<Vec<_>>(), [(0, 100)]);
    }
}

#[test]
fn r8166_3_4_6_2_3_returned_length_is_item_length() {
    for length in 1..=9 {
        let call = call_with_writes(&[&[4, 5, 7]]);
        let chunks = call_at_server(&call).chunks;
        let returned = returned(chunks, &[item(100, length)], 100 + ((length + 3) & !3));
        assert_eq!(returned[0].iter().sum::<u32>(), length);
    }
}

#[test]
fn r8166_3_4_6_1_write_chunk_has_room_for_the_largest_item() {
    let shape = CallShape {
        reply: XdrLens {
            head: 128,
            data: 1 << 20,
            page_offset: 4095,
            tail: 0,
        },
        ..read_call(0)
    };
    // 257 pages, 32 to a segment.
    assert_eq!(limits().segments_for(4095, 1 << 20), 9);
    assert_eq!(
        plan(&shape, &limits()).unwrap().reply,
        ReplyPlan::WriteChunk
    );
}

#[test]
fn r8166_3_4_6_2_1_only_old_responders_get_room_for_roundup() {
    let shape = |data, tail| CallShape {
        reply: XdrLens {
            head: 128,
            data,
            page_offset: 0,
            tail,
        },
        ..read_call(0)
    };
    let old = CallLimits {
        room_for_roundup: true,
        ..limits()
    };
    let roundup = |data, tail, limits: &CallLimits| {
        let planned = plan(&shape(data, tail), limits).unwrap();
        assert_eq!(planned.reply, ReplyPlan::WriteChunk);
        planned.roundup
    };
    for (data, expected) in [(65536, 0), (65537, 3), (65538, 2), (65539, 1)] {
        assert_eq!(roundup(data, 4, &limits()), 0);
        assert_eq!(roundup(data, 4, &old), expected);
    }
    // The tail has no room for it.
    assert_eq!(roundup(65537, 2, &old), 0);
    // The chunk has no segment left for it.
    for segments in 9..12 {
        let few = CallLimits { segments, ..old };
        let expected = if segments > 9 { 1 } else { 0 };
        assert_eq!(roundup((1 << 20) + 3, 4, &few), expected, "{segments}");
    }
}
