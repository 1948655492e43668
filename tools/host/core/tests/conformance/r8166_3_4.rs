// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Sections 3.4.1 to 3.4.5: reduction and Read chunks.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::requester::call::plan;
use rpcrdma_core::engine::requester::call::CallPlan;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::BadReads;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Layout;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::engine::responder::reply::ChunkWriter;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Segment;

const BOUNDS: Bounds = Bounds {
    message: 1 << 20,
    max_inline: 4096,
    chunks: 16,
    segments: 256,
};

/// Plans the reassembly of a received Call.
fn assemble(received: &[u8]) -> Result<Option<Assembly<'_>>, BadReads> {
    let call = call_at_server(received);
    Assembly::plan(call.payload.map(<[u8]>::len), call.chunks.reads, &BOUNDS)
}

/// The parts of a Call with Read chunks.
#[track_caller]
fn parts(received: &[u8]) -> Vec<Part> {
    assemble(received).unwrap().unwrap().parts().collect()
}

fn inline(offset: u32, length: u32) -> Part {
    Part::Inline { offset, length }
}

#[test]
fn r8166_3_4_1_1_reduced_item_is_reinserted() {
    // The requester has removed an item of 10 bytes after 16 bytes. 24 bytes are inline.
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
    // Only empty segments: no bytes to read.
    let call = msg_with_reads(&[(16, none), (20, none)], CALL, 6);
    assert!(assemble(&call).unwrap().is_none());
    // An empty Position-zero chunk does not make the Call a Long Call.
    let call = msg_with_reads(&[(0, none), (16, some)], CALL, 6);
    assert_eq!(parts(&call).len(), 3);

    // The responder skips empty segments when it fills a chunk.
    let mut body = vec![0, 1, 4];
    for length in [0, 8, 0, 8] {
        body.extend(hloo(length, length, 0));
    }
    body.extend([0, 0]);
    let call = message(0, &[&body, &rpc(CALL)]);
    let chunks = call_at_server(&call).chunks;
    let chunk = chunks.writes.chunks().next().unwrap();
    assert_eq!(chunk.total(), 16);
    let mut writer = ChunkWriter::new(&chunk);
    let mut parts = Vec::new();
    while let Some(part) = writer.next_part(6) {
        parts.push((part.offset, part.length));
    }
    assert_eq!(parts, [(0, 6), (6, 2), (0, 6), (6, 2)]);
}

#[test]
fn r8166_3_4_4_1_segments_may_have_any_length() {
    let segments: Vec<_> = (1..=7)
        .map(|length| (8, segment(length, length, u64::from(length) * 3)))
        .collect();
    let call = msg_with_reads(&segments, CALL, 4);
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
    let expected: Vec<_> = segments.iter().map(|(_, segment)| *segment).collect();
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
    // The head of a WRITE ends with the length of its opaque<>. The Position is behind that, and
    // the whole head is inline.
    let shape = write_call(10_000);
    let call = plan(&shape, &limits()).unwrap().call;
    let position = shape.call.head;
    assert_eq!(call, CallPlan::ReadChunk { position });
    // Reassembly inserts the item behind the length.
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
    // NFS has no optional DDP-eligible item. All bytes before the Position are inline.
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
    // An item whose roundup is not at the front of the tail is not reduced.
    let mut unaligned = write_call(10_001);
    unaligned.call.tail = 0;
    assert_eq!(
        plan(&unaligned, &limits()).unwrap().call,
        CallPlan::PositionZero
    );
}

/// Inserts `bytes` of roundup at `position` of the inline payload of a Call.
fn with_inline_roundup(mut received: Vec<u8>, position: u32, bytes: u32) -> Vec<u8> {
    let payload = call_at_server(&received).payload.unwrap().len();
    let at = received.len() - payload + position as usize;
    received.splice(at..at, vec![0; bytes as usize]);
    received
}

#[test]
fn r8166_3_4_4_4_2_inline_roundup_is_taken_once() {
    for data in 1..=1029 {
        let item = segment(7, data, 0x1000);
        let roundup = data.wrapping_neg() % 4;
        for behind in [0, 1, 4, 40] {
            let words = 4 + behind as usize;
            let legal = msg_with_reads(&[(16, item)], CALL, words);
            let call = with_inline_roundup(legal.clone(), 16, roundup);
            let layout = Layout::DataItem {
                head: 16,
                data: data + roundup,
                tail: behind * 4,
            };
            let assembly = assemble(&call).unwrap().unwrap();
            assert_eq!(assembly.layout(), layout);
            assert_eq!(assemble(&legal).unwrap().unwrap().layout(), layout);
            assert!(assembly.reads().eq([item]));
            // The roundup is skipped, and the bytes behind it are those of the legal Call.
            let mut expected = vec![inline(0, 16), Part::Read(item)];
            if roundup != 0 {
                expected.push(Part::Pad { length: roundup });
            }
            if behind != 0 {
                expected.push(inline(16 + roundup, behind * 4));
            }
            assert_eq!(parts(&call), expected);
        }
    }
}

#[test]
fn r8166_3_4_4_4_2_inline_roundup_in_pages() {
    // Too much inline for the layout that leaves it in the Receive buffer.
    let item = segment(7, 5, 0x1000);
    let legal = msg_with_reads(&[(16, item)], CALL, 1100);
    let call = with_inline_roundup(legal, 16, 3);
    let assembly = assemble(&call).unwrap().unwrap();
    assert_eq!(assembly.layout(), Layout::Whole { length: 4408 });
    assert_eq!(
        parts(&call),
        [
            inline(0, 16),
            Part::Read(item),
            Part::Pad { length: 3 },
            inline(19, 4384)
        ]
    );
}

#[test]
fn r8166_3_4_4_4_2_other_inline_bytes_are_no_roundup() {
    let layout = |reads: &[(u32, Segment)], position, bytes| {
        let call = with_inline_roundup(msg_with_reads(reads, CALL, 8), position, bytes);
        assemble(&call).unwrap().unwrap().layout()
    };
    for data in 1..=8_u32 {
        let roundup = data.wrapping_neg() % 4;
        for bytes in (0..=8).filter(|bytes| bytes % 4 != roundup) {
            let layout = layout(&[(16, segment(7, data, 0))], 16, bytes);
            assert_eq!(layout.length(), 32 + data + roundup + bytes);
        }
    }
    // The roundup of two chunks: the lengths could add up to a word.
    let two = [(16, segment(7, 5, 0)), (28, segment(8, 8, 0))];
    assert_eq!(layout(&two, 16, 3), Layout::Whole { length: 51 });
    // A Long Call.
    let long = nomsg_with_reads(&[(0, segment(6, 35, 0)), (16, segment(7, 5, 0))]);
    assert_eq!(
        assemble(&long).unwrap().unwrap().layout(),
        Layout::Whole { length: 43 }
    );
}

#[test]
fn r8166_3_4_4_4_2_chunk_with_inline_roundup_is_not_beyond_the_end() {
    // The Position is that of the reduced stream: its end, but not beyond.
    for (position, accepted) in [(32, true), (36, false)] {
        let call = msg_with_reads(&[(position, segment(7, 5, 0))], CALL, 8);
        let call = with_inline_roundup(call, 32, 3);
        assert_eq!(assemble(&call).is_ok(), accepted, "{position}");
    }
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
    // As above, with the reduced stream in a Position-zero chunk of three segments. The second
    // Position is beyond the length of that chunk, which is legal.
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
    // The requester does not reduce an item at another Position.
    let mut odd = write_call(10_000);
    odd.call.head = 161;
    assert_eq!(plan(&odd, &limits()).unwrap().call, CallPlan::PositionZero);
}

#[test]
fn r8166_3_4_5_4_segments_of_a_chunk_in_list_order() {
    // Chunks may be interleaved and out of order.
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
        // Beyond the inline bytes: by a word, by 64 KiB, by the maximum.
        &[(28, segment(1, 4, 0))][..],
        &[(24 + 65_536, segment(1, 4, 0))],
        &[(0xffff_fffc, segment(1, 4, 0))],
        // Overlapping: as a whole, or by a word.
        &[(8, segment(1, 4096, 0)), (16, segment(2, 4096, 0))],
        &[(8, segment(1, 8, 0)), (12, segment(2, 8, 0))],
        &[(8, segment(1, 5, 0)), (12, segment(2, 8, 0))],
        // The second is beyond the end after the first is inserted.
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
    // Adjacent chunks and a chunk at the end are legal.
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
    // The Call is the same whether the roundup has its own segment, extends the last one, or is
    // not sent.
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
