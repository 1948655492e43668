// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 2: terms.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::wire::pad;
use rpcrdma_core::wire::whole_words;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::RdmaError;
use rpcrdma_core::wire::Segment;

#[test]
fn r8166_2_2_2_1_msg_type_determines_direction() {
    let call = message(0, &[&[0, 0, 0], &rpc(CALL)]);
    let reply = message(0, &[&[0, 0, 0], &rpc(REPLY)]);
    assert!(matches!(from_client(&call, PLAIN), Ok(FromClient::Call(_))));
    assert!(matches!(
        from_client(&reply, PLAIN),
        Ok(FromClient::BackchannelReply(_))
    ));
    assert!(matches!(
        from_server(&call, PLAIN),
        Ok(FromServer::BackchannelCall(_))
    ));
    assert!(matches!(
        from_server(&reply, PLAIN),
        Ok(FromServer::Reply(_))
    ));

    // Neither credits nor XID nor the rest of the payload has an influence.
    for credits in [0, 1, u32::MAX] {
        for xid in [0, 1, u32::MAX] {
            let bytes = words(&[xid, 1, credits, 0, 0, 0, 0, xid, CALL, 9, 9, 9]);
            assert!(matches!(
                from_client(&bytes, PLAIN),
                Ok(FromClient::Call(_))
            ));
        }
    }
}

#[test]
fn r8166_2_2_2_1_unknown_msg_type_is_refused() {
    for msg_type in [2, 3, 0x0100_0000, u32::MAX] {
        let bytes = message(0, &[&[0, 0, 0], &rpc(msg_type)]);
        assert_eq!(
            from_client(&bytes, PLAIN).unwrap_err(),
            Response::Answer(ErrorReply::chunk(XID))
        );
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
    }
    // A payload that ends before its msg_type is refused as well. For a client it is a Reply, whose
    // Call fails.
    for bytes in [
        message(0, &[&[0, 0, 0]]),
        message(0, &[&[0, 0, 0], &[XID]]),
        message(0, &[&[0, 0, 0], &[XID, CALL]])[..35].to_vec(),
    ] {
        assert!(from_client(&bytes, PLAIN).is_err());
        assert!(matches!(
            from_server(&bytes, PLAIN),
            Ok(FromServer::Empty { xid: XID, .. })
        ));
    }
}

#[test]
fn r8166_2_2_4_1_headers_are_big_endian_words() {
    let bytes = [
        0x01, 0x02, 0x03, 0x04, 0, 0, 0, 1, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, // fixed
        0, 0, 0, 1, 0, 0, 0x01, 0x00, // a Read segment at Position 256
        0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // end of three lists
    ];
    let header = Header::decode(&bytes).unwrap();
    assert_eq!(header.xid, 0x0102_0304);
    assert_eq!(header.vers, 1);
    assert_eq!(header.credits, 0x0a0b_0c0d);
    let Body::Msg { chunks, payload } = header.body else {
        panic!("{header:?}");
    };
    assert!(payload.is_empty());
    let read = chunks.reads.segments().next().unwrap();
    assert_eq!(read.position, 256);
    assert_eq!(
        read.segment,
        segment(0xdead_beef, 0x0001_0203, 0x1020_3040_5060_7080)
    );
}

#[test]
fn r8166_2_2_4_1_errors_and_done_are_big_endian_words() {
    let vers = words(&[7, 9, 1, 4, 1, 1, 2]);
    assert!(matches!(
        Header::decode(&vers).unwrap().body,
        Body::Error(RdmaError::Vers { low: 1, high: 2 })
    ));
    let chunk = words(&[7, 1, 1, 4, 2]);
    assert!(matches!(
        Header::decode(&chunk).unwrap().body,
        Body::Error(RdmaError::Chunk)
    ));
    let done = words(&[7, 1, 1, 3]);
    assert!(matches!(Header::decode(&done).unwrap().body, Body::Done));
}

#[test]
fn r8166_2_2_4_2_1_roundup() {
    let expected = [0, 3, 2, 1, 0, 3, 2, 1, 0];
    for (length, expected) in (0..).zip(expected) {
        assert_eq!(pad(length), expected);
    }
    assert_eq!(pad(u32::MAX), 1);
    assert_eq!(pad(u32::MAX - 3), 0);
}

#[test]
fn r8166_2_2_4_2_1_lengths_in_whole_words() {
    let expected = [0, 4, 4, 4, 4, 8, 8, 8, 8, 12];
    for (length, expected) in (0..).zip(expected) {
        assert_eq!(whole_words(length), expected);
    }
    // The next multiple of four is 2^32.
    for length in u32::MAX - 3..=u32::MAX {
        assert_eq!(whole_words(length), u32::MAX - 3);
    }
}

#[test]
fn r8166_2_3_2_1_segment_fields_are_unchanged() {
    for handle in [0, 1, 0x8000_0000, u32::MAX] {
        for length in [0, 1, 0x8000_0000, u32::MAX] {
            for offset in [0, 1, 1 << 32, u64::from(u32::MAX), u64::MAX] {
                let segment = segment(handle, length, offset);
                assert_eq!(Segment::from_bytes(&segment.to_bytes()), segment);
                assert_eq!(
                    segment.to_bytes().to_vec(),
                    words(&hloo(handle, length, offset))
                );
            }
        }
    }
}

#[test]
fn r8166_2_3_2_1_parts_wrap_as_offsets_do() {
    let mut rest = segment(7, 100, u64::MAX - 9);
    assert_eq!(rest.take(30), segment(7, 30, u64::MAX - 9));
    assert_eq!(rest, segment(7, 70, 20));
    assert_eq!(rest.part(10, 5), segment(7, 5, 30));
}
