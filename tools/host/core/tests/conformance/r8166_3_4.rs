// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 3.4: reduction, Read chunks, Write chunks.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::BadReads;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_core::engine::responder::reply::Sink;
use rpcrdma_core::wire::ChunkLists;
use rpcrdma_core::wire::ErrorReply;

const BOUNDS: Bounds = Bounds {
    message: 1 << 20,
    max_inline: 4096,
    chunks: 16,
    segments: 256,
};

/// Plans the assembly of a received Call.
fn assemble(received: &[u8]) -> Result<Option<Assembly<'_>>, BadReads> {
    let call = call_at_server(received);
    Assembly::plan(call.payload.map(<[u8]>::len), call.chunks.reads, &BOUNDS)
}

/// The pieces of a Call that has some to pull.
#[track_caller]
fn parts(received: &[u8]) -> Vec<Part> {
    assemble(received).unwrap().unwrap().parts().collect()
}

fn inline(offset: u32, length: u32) -> Part {
    Part::Inline { offset, length }
}

#[test]
fn r8166_3_4_1_1_reduced_item_is_reinserted() {
    // An item of 10 bytes was taken out after 16 of what is now 24 inline bytes.
    let item = segment(7, 10, 0x1000);
    let call = msg_with_reads(&[(16, item)], CALL, 6);
    let assembly = assemble(&call).unwrap().unwrap();
    assert_eq!(
        assembly.layout(),
        Layout::DataItem {
            head: 16,
            data: 12,
            tail: 8
        }
    );
    assert_eq!(
        assembly.parts().collect::<Vec<_>>(),
        [
            inline(0, 16),
            Part::Read(item),
            Part::Pad { length: 2 },
            inline(16, 8)
        ]
    );
    assert_eq!(assembly.reads().collect::<Vec<_>>(), [item]);
}

#[test]
fn r8166_3_4_3_1_empty_segments_are_legal_everywhere() {
    let none = segment(1, 0, 0);
    let some = segment(2, 8, 64);
    let call = msg_with_reads(&[(16, none), (16, some), (16, none), (20, none)], CALL, 6);
    assert_eq!(
        parts(&call),
        [inline(0, 16), Part::Read(some), inline(16, 8)]
    );
    // Nothing but empty segments: nothing to pull.
    let call = msg_with_reads(&[(16, none), (20, none)], CALL, 6);
    assert!(assemble(&call).unwrap().is_none());
    // An empty one at Position zero does not say that the payload is elsewhere.
    let call = msg_with_reads(&[(0, none), (16, some)], CALL, 6);
    assert_eq!(parts(&call).len(), 3);

    // Write chunks and Reply chunks are filled around them.
    let mut body = vec![0, 1, 4];
    for length in [0, 8, 0, 8] {
        body.extend(hloo(length, length, 0));
    }
    body.extend([0, 0]);
    let call = message(0, &[&body, &rpc(CALL)]);
    let chunks = call_at_server(&call).chunks;
    let chunk = chunks.writes.chunks().next().unwrap();
    assert_eq!(chunk.total(), 16);
    let mut sink = Sink::new(&chunk);
    let mut parts = Vec::new();
    while let Some(part) = sink.next_part(6) {
        parts.push((part.offset, part.length));
    }
    assert_eq!(parts, [(0, 6), (6, 2), (0, 6), (6, 2)]);
}

#[test]
fn r8166_3_4_4_1_segments_may_have_any_length() {
    let cut: Vec<_> = (1..=7)
        .map(|length| (8, segment(length, length, u64::from(length) * 3)))
        .collect();
    let call = msg_with_reads(&cut, CALL, 4);
    let assembly = assemble(&call).unwrap().unwrap();
    assert_eq!(assembly.reads().count(), 7);
    assert_eq!(
        assembly.layout(),
        Layout::DataItem {
            head: 8,
            data: 28,
            tail: 8
        }
    );
    let expected: Vec<_> = cut.iter().map(|(_, segment)| *segment).collect();
    assert_eq!(assembly.reads().collect::<Vec<_>>(), expected);
}

#[test]
fn r8166_3_4_4_2_oversized_chunks_are_refused_before_reading() {
    for lengths in [
        &[1 << 20][..],
        &[u32::MAX],
        &[0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff],
        &[1, u32::MAX],
        &[u32::MAX, u32::MAX, 2],
    ] {
        let reads: Vec<_> = lengths
            .iter()
            .map(|length| (8, segment(1, *length, 0)))
            .collect();
        assert_eq!(
            assemble(&msg_with_reads(&reads, CALL, 4)).unwrap_err(),
            BadReads::TooComplex
        );
        let reads: Vec<_> = reads.into_iter().map(|(_, s)| (0, s)).collect();
        let long = nomsg_with_reads(&reads);
        let result = assemble(&long);
        assert!(matches!(result, Err(BadReads::TooComplex)) || lengths == [1 << 20]);
    }
    let many = vec![(8, segment(1, 1, 0)); 257];
    assert_eq!(
        assemble(&msg_with_reads(&many, CALL, 4)).unwrap_err(),
        BadReads::TooComplex
    );
    let chunks: Vec<_> = (1..=17).map(|n| (n * 8, segment(1, 4, 0))).collect();
    assert_eq!(
        assemble(&msg_with_reads(&chunks, CALL, 40)).unwrap_err(),
        BadReads::TooComplex
    );
}

#[test]
fn r8166_3_4_4_1_1_length_word_stays_inline() {
    // The head of a WRITE ends with the count of its opaque<>: Position is behind it, and all of
    // the head is inline.
    let shape = write_call(10_000);
    let call = plan(&shape, &limits()).unwrap().call;
    let position = shape.call.head;
    assert_eq!(call, CallPlan::ReadChunk { position });
    // It stays there when the item comes back.
    let bytes = msg_with_reads(&[(position, segment(9, 10_000, 0))], CALL, 40);
    assert_eq!(
        assemble(&bytes).unwrap().unwrap().layout(),
        Layout::DataItem {
            head: 160,
            data: 10_000,
            tail: 0
        }
    );
}

#[test]
fn r8166_3_4_4_2_1_discriminator_stays_inline() {
    // No item of NFS is like this, but the rule is the same: what precedes Position is inline.
    let call = msg_with_reads(&[(12, segment(1, 4, 0))], CALL, 4);
    assert_eq!(
        parts(&call),
        [inline(0, 12), Part::Read(segment(1, 4, 0)), inline(12, 4)]
    );
}

#[test]
fn r8166_3_4_4_4_2_roundup_is_not_inline() {
    for data in 10_000..10_008 {
        let shape = write_call(data);
        let call = plan(&shape, &limits()).unwrap().call;
        assert_eq!(call, CallPlan::ReadChunk { position: 160 });
        assert_eq!(shape.roundup(), data.wrapping_neg() % 4);
        assert_eq!((shape.call.tail - shape.roundup()) % 4, 0);
    }
    // An item that cannot be taken out cleanly is not taken out.
    let mut unaligned = write_call(10_001);
    unaligned.call.tail = 0;
    assert_eq!(
        plan(&unaligned, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
}

#[test]
fn r8166_3_4_5_1_position_counts_the_unreduced_stream() {
    // Inline: 16 bytes, [10 bytes + 2], 8 bytes, [5 bytes + 3], 4 bytes.
    let first = segment(1, 10, 0);
    let second = segment(2, 5, 0);
    let call = msg_with_reads(&[(16, first), (36, second)], CALL, 7);
    assert_eq!(
        parts(&call),
        [
            inline(0, 16),
            Part::Read(first),
            Part::Pad { length: 2 },
            inline(16, 8),
            Part::Read(second),
            Part::Pad { length: 3 },
            inline(24, 4),
        ]
    );
    assert_eq!(
        assemble(&call).unwrap().unwrap().layout(),
        Layout::Whole { length: 48 }
    );
}

#[test]
fn r8166_3_4_5_1_position_counts_the_unreduced_stream_of_a_long_call() {
    // As above, with what is left of the stream in the Position-zero chunk, cut in three. The
    // second Position is beyond the bytes of that chunk, and legal.
    let zero = [segment(8, 10, 100), segment(9, 17, 200), segment(9, 1, 300)];
    let first = segment(1, 10, 0);
    let second = segment(2, 5, 0);
    let call = nomsg_with_reads(&[
        (0, zero[0]),
        (0, zero[1]),
        (0, zero[2]),
        (16, first),
        (36, second),
    ]);
    assert_eq!(
        parts(&call),
        [
            Part::Read(segment(8, 10, 100)),
            Part::Read(segment(9, 6, 200)),
            Part::Read(first),
            Part::Pad { length: 2 },
            Part::Read(segment(9, 8, 206)),
            Part::Read(second),
            Part::Pad { length: 3 },
            Part::Read(segment(9, 3, 214)),
            Part::Read(segment(9, 1, 300)),
        ]
    );
}

#[test]
fn r8166_3_4_5_3_positions_are_multiples_of_four() {
    for position in [1, 2, 3, 5, 4095, u32::MAX] {
        let call = msg_with_reads(&[(position, segment(1, 4, 0))], CALL, 6);
        assert_eq!(
            from_client(&call, PLAIN).unwrap_err(),
            Response::Answer(ErrorReply::chunk(XID))
        );
    }
    // The requester does not use any other.
    let mut odd = write_call(10_000);
    odd.call.head = 161;
    assert_eq!(plan(&odd, &limits()).unwrap().call, CallPlan::PositionZero);
}

#[test]
fn r8166_3_4_5_4_segments_of_a_chunk_in_list_order() {
    // Interleaved and out of order: the chunks are as if they were not.
    let a = [segment(1, 4, 0), segment(2, 6, 0)];
    let b = [segment(3, 3, 0), segment(4, 5, 0)];
    let expected = parts(&msg_with_reads(
        &[(8, a[0]), (8, a[1]), (24, b[0]), (24, b[1])],
        CALL,
        4,
    ));
    for order in [
        [(8, a[0]), (24, b[0]), (8, a[1]), (24, b[1])],
        [(24, b[0]), (24, b[1]), (8, a[0]), (8, a[1])],
        [(24, b[0]), (8, a[0]), (24, b[1]), (8, a[1])],
    ] {
        assert_eq!(parts(&msg_with_reads(&order, CALL, 4)), expected);
    }
}

#[test]
fn r8166_3_4_5_4_overlapping_or_outside_chunks_are_refused() {
    for reads in [
        // Beyond the inline bytes, by a word, by much, by all there is.
        &[(28, segment(1, 4, 0))][..],
        &[(24 + 65_536, segment(1, 4, 0))],
        &[(0xffff_fffc, segment(1, 4, 0))],
        // Overlapping, wholly or by a word.
        &[(8, segment(1, 4096, 0)), (16, segment(2, 4096, 0))],
        &[(8, segment(1, 8, 0)), (12, segment(2, 8, 0))],
        &[(8, segment(1, 5, 0)), (12, segment(2, 8, 0))],
        // The second beyond the end once the first is put in.
        &[(8, segment(1, 8, 0)), (36, segment(2, 8, 0))],
    ] {
        assert_eq!(
            assemble(&msg_with_reads(reads, CALL, 6)).unwrap_err(),
            BadReads::Position,
            "{reads:?}"
        );
        let mut long = vec![(0, segment(3, 24, 0))];
        long.extend(reads);
        assert_eq!(
            assemble(&nomsg_with_reads(&long)).unwrap_err(),
            BadReads::Position
        );
    }
    // Adjacent chunks, and one at the very end, are legal.
    let call = msg_with_reads(
        &[
            (8, segment(1, 5, 0)),
            (16, segment(2, 8, 0)),
            (40, segment(3, 1, 0)),
        ],
        CALL,
        6,
    );
    assert_eq!(
        assemble(&call).unwrap().unwrap().layout(),
        Layout::Whole { length: 44 }
    );
}

#[test]
fn r8166_3_4_5_2_2_roundup_may_be_sent() {
    // In a segment of its own, in an extended last one, or not at all: the Call is the same.
    for data in 1..=8 {
        let aligned = (data + 3) & !3;
        let layout = Layout::DataItem {
            head: 16,
            data: aligned,
            tail: 8,
        };
        let mut own = vec![(16, segment(1, data, 0))];
        if aligned != data {
            own.push((16, segment(2, aligned - data, 0)));
        }
        for reads in [
            &[(16, segment(1, data, 0))][..],
            &[(16, segment(1, aligned, 0))],
            &own,
        ] {
            let call = msg_with_reads(reads, CALL, 6);
            assert_eq!(assemble(&call).unwrap().unwrap().layout(), layout);
        }
    }
}

/// A Call that offers one Write chunk for each slice of lengths.
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

fn item(offset: u32, length: u32) -> Payload {
    Payload { offset, length }
}

const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    threshold: 4096,
    refuses_unused: false,
    exposed_segments: 0,
};

fn shape(length: u32) -> ReplyShape {
    ReplyShape {
        length,
        protected: false,
    }
}

/// The lengths that a Reply returns for each Write chunk.
fn returned(chunks: ChunkLists<'_>, results: &[Payload], length: u32) -> Vec<Vec<u32>> {
    let reply = reply::plan(chunks, results, &shape(length), &REPLY_LIMITS).unwrap();
    let mut bytes = [0; 1024];
    let end = reply.encode(XID, 32, [], &mut bytes).unwrap();
    bytes[end..end + 8].copy_from_slice(&words(&[XID, REPLY]));
    let lists = reply_at_client(&bytes[..end + 8]).chunks;
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
    let reply = reply::plan(chunks, &results, &shape(112), &REPLY_LIMITS).unwrap();
    let writes: Vec<_> = reply.writes().collect();
    assert_eq!(writes.len(), 1);
    let mut sink = Sink::new(&writes[0].0);
    let mut left = writes[0].1.length;
    let mut parts = Vec::new();
    while left > 0 {
        let part = sink.next_part(left).unwrap();
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
    // Handles and offsets are those of the Call.
    let results = [item(100, 10)];
    let reply = reply::plan(chunks, &results, &shape(128), &REPLY_LIMITS).unwrap();
    let mut bytes = [0; 1024];
    let end = reply.encode(XID, 32, [], &mut bytes).unwrap();
    bytes[end..end + 8].copy_from_slice(&words(&[XID, REPLY]));
    let lists = reply_at_client(&bytes[..end + 8]).chunks;
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
        let reply = reply::plan(chunks, &results, &shape(total), &REPLY_LIMITS).unwrap();
        assert_eq!(by_write(&reply), length);
        // Neither is it inline.
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
