// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 4.1: the XDR definition. Golden vectors for encoder and decoder.

use crate::support::*;
use rpcrdma_core::wire::size;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::Malformed;
use rpcrdma_core::wire::RdmaError;
use rpcrdma_core::wire::ReadSegment;
use rpcrdma_core::wire::Segment;

/// Checks that `encode` writes the golden words, and nothing after them.
#[track_caller]
fn golden(expected: &[u32], encode: impl FnOnce(&mut [u8]) -> usize) {
    let mut buf = [0xee; 512];
    let len = encode(&mut buf);
    assert_eq!(buf[..len], words(expected));
    assert!(buf[len..].iter().all(|byte| *byte == 0xee));
}

const A: Segment = Segment {
    handle: 0xa1,
    length: 0xa2,
    offset: 0x0000_00a3_0000_00a4,
};
const B: Segment = Segment {
    handle: 0xb1,
    length: 0xb2,
    offset: 0x0000_00b3_0000_00b4,
};
const C: Segment = Segment {
    handle: 0xc1,
    length: 0xc2,
    offset: 0x0000_00c3_0000_00c4,
};

#[test]
fn r8166_4_1_no_chunks() {
    golden(&[XID, 1, 32, 0, 0, 0, 0], |buf| {
        HeaderWriter::plain(buf, XID, 32).unwrap()
    });
}

#[test]
fn r8166_4_2_rpc_message_is_unchanged() {
    // The bytes after a header without chunks are those after a record mark on TCP.
    let rpc: Vec<u8> = words(&[XID, 0, 2, 100_003, 3, 1, 0, 0, 0, 0]);
    for odd in 0..4 {
        let mut rpc = rpc.clone();
        rpc.extend(vec![0xff; odd]);
        let mut sent = vec![0; 28];
        HeaderWriter::plain(&mut sent, XID, 32).unwrap();
        sent.extend(&rpc);
        assert_eq!(call_at_server(&sent).payload, Some(&rpc[..]));
    }
}

#[test]
fn r8166_4_1_2_1_read_list_layout() {
    #[rustfmt::skip]
    let expected = [
        XID, 1, 32, 0,
        1, 160, 0xa1, 0xa2, 0xa3, 0xa4,
        1, 160, 0xb1, 0xb2, 0xb3, 0xb4,
        0,
        0,
        0,
    ];
    golden(&expected, |buf| {
        let mut header = HeaderWriter::msg(buf, XID, 32).unwrap();
        for segment in [A, B] {
            let position = 160;
            header
                .read_segment(ReadSegment { position, segment })
                .unwrap();
        }
        let writes = header.no_more_reads().unwrap();
        writes.no_more_writes().unwrap().no_reply_chunk().unwrap()
    });
    let bytes = words(&expected);
    let Body::Msg { chunks, .. } = Header::decode(&bytes).unwrap().body else {
        panic!();
    };
    let reads: Vec<_> = chunks.reads.segments().collect();
    assert_eq!(reads.len(), 2);
    assert_eq!(reads.iter().map(|r| r.segment).collect::<Vec<_>>(), [A, B]);
    assert!(reads.iter().all(|read| read.position == 160));
}

#[test]
fn r8166_4_1_2_2_write_list_layout() {
    #[rustfmt::skip]
    let expected = [
        XID, 1, 32, 0,
        0,
        1, 3, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4, 0xc1, 0xc2, 0xc3, 0xc4,
        1, 2, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4,
        0,
        0,
    ];
    golden(&expected, |buf| {
        let header = HeaderWriter::msg(buf, XID, 32).unwrap();
        let mut writes = header.no_more_reads().unwrap();
        writes.write_chunk([A, B, C]).unwrap();
        writes.write_chunk([A, B]).unwrap();
        writes.no_more_writes().unwrap().no_reply_chunk().unwrap()
    });
    let bytes = words(&expected);
    let Body::Msg { chunks, .. } = Header::decode(&bytes).unwrap().body else {
        panic!();
    };
    let writes: Vec<Vec<_>> = chunks
        .writes
        .chunks()
        .map(|chunk| chunk.segments().collect())
        .collect();
    assert_eq!(writes, [vec![A, B, C], vec![A, B]]);
}

#[test]
fn r8166_4_1_2_3_reply_chunk_layout() {
    #[rustfmt::skip]
    let expected = [
        XID, 1, 32, 1,
        0,
        0,
        1, 2, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4,
    ];
    golden(&expected, |buf| {
        let header = HeaderWriter::nomsg(buf, XID, 32).unwrap();
        let writes = header.no_more_reads().unwrap();
        writes
            .no_more_writes()
            .unwrap()
            .reply_chunk([A, B])
            .unwrap()
    });
    let bytes = words(&expected);
    let Body::NoMsg { chunks } = Header::decode(&bytes).unwrap().body else {
        panic!();
    };
    let reply: Vec<_> = chunks.reply.unwrap().segments().collect();
    assert_eq!(reply, [A, B]);
}

#[test]
fn r8166_4_1_2_4_lists_in_order() {
    #[rustfmt::skip]
    let expected = [
        XID, 1, 32, 1,
        1, 0, 0xa1, 0xa2, 0xa3, 0xa4,
        0,
        1, 1, 0xb1, 0xb2, 0xb3, 0xb4,
        0,
        1, 1, 0xc1, 0xc2, 0xc3, 0xc4,
    ];
    golden(&expected, |buf| {
        let mut header = HeaderWriter::nomsg(buf, XID, 32).unwrap();
        let read = ReadSegment {
            position: 0,
            segment: A,
        };
        header.read_segment(read).unwrap();
        let mut writes = header.no_more_reads().unwrap();
        writes.write_chunk([B]).unwrap();
        writes.no_more_writes().unwrap().reply_chunk([C]).unwrap()
    });
    let bytes = words(&expected);
    let Body::NoMsg { chunks } = Header::decode(&bytes).unwrap().body else {
        panic!();
    };
    assert_eq!(chunks.reads.segments().next().unwrap().segment, A);
    let write = chunks.writes.chunks().next().unwrap();
    assert_eq!(write.segments().next().unwrap(), B);
    assert_eq!(chunks.reply.unwrap().segments().next().unwrap(), C);
}

#[test]
fn r8166_4_1_2_4_outline_restores_the_lists() {
    let body = [
        1, 0, 1, 2, 3, 4, 0, 1, 0, 1, 1, 5, 6, 7, 8, 0, 1, 1, 9, 10, 11, 12,
    ];
    let bytes = message(1, &[&body]);
    let Body::NoMsg { chunks } = Header::decode(&bytes).unwrap().body else {
        panic!();
    };
    let again = chunks.outline().lists(&bytes).unwrap();
    assert_eq!(format!("{again:?}"), format!("{chunks:?}"));
    // Use with another message causes no panic.
    for len in 0..bytes.len() {
        if let Some(lists) = chunks.outline().lists(&bytes[..len]) {
            assert!(lists.reads.segments().count() <= 1);
        }
    }
}

#[test]
fn r8166_4_1_2_5_error_codes() {
    golden(&[XID, 1, 32, 4, 2], |buf| {
        ErrorReply::chunk(XID).encode(32, buf).unwrap()
    });
    let vers = ErrorReply {
        xid: XID,
        vers: 7,
        error: RdmaError::Vers { low: 1, high: 1 },
    };
    golden(&[XID, 7, 32, 4, 1, 1, 1], |buf| {
        vers.encode(32, buf).unwrap()
    });
    assert_eq!(vers.error.message_len(), 28);
    assert_eq!(RdmaError::Chunk.message_len(), 20);
    // Unknown codes.
    for code in [0, 3, 9, u32::MAX] {
        let bytes = words(&[XID, 1, 32, 4, code, 1, 1]);
        assert_eq!(
            Header::decode(&bytes).unwrap_err(),
            Malformed::Error {
                xid: XID,
                code: Some(code)
            }
        );
    }
}

#[test]
fn r8166_4_1_2_5_procedures() {
    let lists = [0, 0, 0];
    assert!(matches!(
        Header::decode(&message(0, &[&lists])).unwrap().body,
        Body::Msg { .. }
    ));
    assert!(matches!(
        Header::decode(&message(1, &[&lists])).unwrap().body,
        Body::NoMsg { .. }
    ));
    assert!(matches!(
        Header::decode(&message(3, &[])).unwrap().body,
        Body::Done
    ));
    assert!(matches!(
        Header::decode(&message(4, &[&[2]])).unwrap().body,
        Body::Error(RdmaError::Chunk)
    ));
    for procedure in [2, 5, 6, 255, 0x0100_0000, u32::MAX] {
        assert_eq!(
            Header::decode(&message(procedure, &[&lists])).unwrap_err(),
            Malformed::Procedure {
                xid: XID,
                procedure
            }
        );
    }
    golden(&[XID, 1, 32, 3], |buf| {
        HeaderWriter::done(buf, XID, 32).unwrap()
    });
}

#[test]
fn r8166_4_1_2_6_discriminators_are_zero_or_one() {
    let a = [0xa1, 0xa2, 0xa3, 0xa4];
    for bad in [2, 3, 0x0100_0000, u32::MAX] {
        for body in [
            &[&[bad, 0][..], &a, &[0, 0, 0]][..],
            &[&[1, 0], &a, &[bad, 0, 0]],
            &[&[0, bad, 1], &a, &[0, 0]],
            &[&[0, 1, 1], &a, &[bad, 0]],
            &[&[0, 0, bad, 1], &a],
        ] {
            for procedure in [0, 1] {
                assert_eq!(
                    Header::decode(&message(procedure, body)).unwrap_err(),
                    Malformed::Lists { xid: XID }
                );
            }
        }
    }
}

#[test]
fn r8166_4_1_2_sizes_match_the_encoder() {
    for reads in 0..5 {
        for writes in 0..4 {
            for per_chunk in 0..4 {
                for reply in [None, Some(0), Some(1), Some(3)] {
                    let mut buf = [0; 1024];
                    let mut header = HeaderWriter::msg(&mut buf, XID, 32).unwrap();
                    for _ in 0..reads {
                        let read = ReadSegment {
                            position: 4,
                            segment: A,
                        };
                        header.read_segment(read).unwrap();
                    }
                    let mut list = header.no_more_reads().unwrap();
                    for _ in 0..writes {
                        list.write_chunk(vec![B; per_chunk]).unwrap();
                    }
                    let end = list.no_more_writes().unwrap();
                    let len = match reply {
                        None => end.no_reply_chunk().unwrap(),
                        Some(segments) => end.reply_chunk(vec![C; segments]).unwrap(),
                    };
                    let expected = 28
                        + size::reads(reads)
                        + writes * size::write_chunk(per_chunk)
                        + reply.map_or(0, size::reply_chunk);
                    assert_eq!(len, expected);
                }
            }
        }
    }
    // The longest header has one Read chunk and one Write chunk.
    assert_eq!(size::max_call(16), 28 + 16 * 24 + 8 + 16 * 16);
    assert_eq!(size::max_call(usize::MAX), usize::MAX);
}

#[test]
fn r8166_4_1_2_encoder_never_writes_past_its_buffer() {
    let encode = |buf: &mut [u8]| -> Result<usize, rpcrdma_core::wire::Overflow> {
        let mut header = HeaderWriter::nomsg(buf, XID, 32)?;
        header.read_segment(ReadSegment {
            position: 0,
            segment: A,
        })?;
        let mut writes = header.no_more_reads()?;
        writes.write_chunk([B])?;
        writes.no_more_writes()?.reply_chunk([C])
    };
    let needed = encode(&mut [0; 512]).unwrap();
    for len in 0..needed {
        let mut buf = [0xee; 512];
        assert!(encode(&mut buf[..len]).is_err());
        assert!(buf[len..].iter().all(|byte| *byte == 0xee));
    }
    assert_eq!(encode(&mut vec![0; needed]), Ok(needed));
    for len in 0..20 {
        assert!(ErrorReply::chunk(XID).encode(1, &mut vec![0; len]).is_err());
    }
}
