// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Sections 3.4.6 and 4.3.3: a requester checks the chunks that a Reply returns.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::requester::match_reply::locate;
use rpcrdma_core::engine::requester::match_reply::Mismatch;
use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
use rpcrdma_core::wire::Segment;

/// A Reply with Write and Reply chunks of one segment each.
fn reply(procedure: u32, write: Option<Segment>, chunk: Option<Segment>) -> Vec<u8> {
    let mut body = vec![0];
    if let Some(Segment {
        handle,
        length,
        offset,
    }) = write
    {
        body.extend([1, 1]);
        body.extend(hloo(handle, length, offset));
    }
    body.push(0);
    match chunk {
        Some(Segment {
            handle,
            length,
            offset,
        }) => {
            body.extend([1, 1]);
            body.extend(hloo(handle, length, offset));
        }
        None => body.push(0),
    }
    match procedure {
        0 => message(0, &[&body, &rpc(REPLY)]),
        _ => message(1, &[&body]),
    }
}

const OWN: Segment = Segment {
    handle: 7,
    length: 4096,
    offset: 0x7000,
};

#[test]
fn r8166_4_3_3_4_short_reply_with_unused_reply_chunk() {
    let bytes = reply(0, None, Some(OWN.with_length(0)));
    let offered = OfferedChunks {
        write: NO_CHUNK,
        reply: [OWN],
    };
    assert_eq!(
        locate(&reply_at_client(&bytes), offered),
        Ok(ReplyLocation::Inline {
            payload: &words(&rpc(REPLY)),
            by_write: 0
        })
    );
    // An inline Reply with a used Reply chunk is a mismatch.
    let bytes = reply(0, None, Some(OWN.with_length(1)));
    assert_eq!(locate(&reply_at_client(&bytes), offered), Err(Mismatch));
}

#[test]
fn r8166_3_4_6_requester_checks_what_is_returned() {
    let offered = OfferedChunks {
        write: [OWN],
        reply: NO_CHUNK,
    };
    let written = |segment| {
        let bytes = reply(0, Some(segment), None);
        match locate(&reply_at_client(&bytes), offered) {
            Ok(ReplyLocation::Inline { by_write, .. }) => Some(by_write),
            Ok(other) => panic!("{other:?}"),
            Err(Mismatch) => None,
        }
    };
    assert_eq!(written(OWN), Some(4096));
    assert_eq!(written(OWN.with_length(0)), Some(0));
    assert_eq!(written(OWN.with_length(5)), Some(5));
    for wrong in [
        OWN.with_length(4097),
        OWN.with_length(u32::MAX),
        Segment { handle: 8, ..OWN },
        Segment { offset: 0, ..OWN },
    ] {
        assert_eq!(written(wrong), None, "{wrong:?}");
    }
}

#[test]
fn r8166_3_4_6_unused_segments_need_no_handle() {
    let zeroed = segment(0, 0, 0);
    let write = |segments: &[Segment]| {
        let mut body = vec![0, 1, segments.len() as u32];
        for s in segments {
            body.extend(hloo(s.handle, s.length, s.offset));
        }
        body.extend([0, 0]);
        let bytes = message(0, &[&body, &rpc(REPLY)]);
        let offered = OfferedChunks {
            write: [OWN, OWN],
            reply: NO_CHUNK,
        };
        match locate(&reply_at_client(&bytes), offered) {
            Ok(ReplyLocation::Inline { by_write, .. }) => Some(by_write),
            _ => None,
        }
    };
    assert_eq!(write(&[zeroed]), Some(0));
    // One more than was offered.
    assert_eq!(write(&[zeroed, zeroed, zeroed]), Some(0));
    assert_eq!(write(&[OWN, zeroed]), Some(4096));
    assert_eq!(write(&[OWN.with_length(9), zeroed]), Some(9));
    // A hole, and a segment that was not offered.
    assert_eq!(write(&[zeroed, OWN]), None);
    assert_eq!(write(&[OWN, OWN, OWN.with_length(1)]), None);
}

#[test]
fn r8166_3_4_6_requester_checks_count_and_order() {
    let own = [(1, 100), (2, 200), (3, 300)].map(|(n, length)| segment(n, length, 0));
    let written = |lengths: &[u32]| {
        let mut body = vec![0, 1, lengths.len() as u32];
        for (n, length) in (1..).zip(lengths) {
            body.extend(hloo(n, *length, 0));
        }
        body.extend([0, 0]);
        let bytes = message(0, &[&body, &rpc(REPLY)]);
        let offered = OfferedChunks {
            write: own,
            reply: NO_CHUNK,
        };
        match locate(&reply_at_client(&bytes), offered) {
            Ok(ReplyLocation::Inline { by_write, .. }) => Some(by_write),
            _ => None,
        }
    };
    assert_eq!(written(&[100, 200, 300]), Some(600));
    assert_eq!(written(&[100, 1, 0]), Some(101));
    assert_eq!(written(&[0, 0, 0]), Some(0));
    // An empty chunk: no bytes were written.
    assert_eq!(written(&[]), Some(0));
    // Old responders return only the used segments.
    assert_eq!(written(&[100, 200]), Some(300));
    assert_eq!(written(&[99]), Some(99));
    assert_eq!(written(&[99, 1]), None);
    assert_eq!(written(&[100, 200, 300, 0]), Some(600));
    assert_eq!(written(&[100, 200, 300, 1]), None);
    // Holes: no segment after a partly filled one may have bytes.
    assert_eq!(written(&[99, 200, 300]), None);
    assert_eq!(written(&[0, 0, 1]), None);
    assert_eq!(written(&[100, 0, 1]), None);
}

#[test]
fn r8166_3_4_6_requester_refuses_chunks_it_did_not_offer() {
    let nothing = OfferedChunks {
        write: NO_CHUNK,
        reply: NO_CHUNK,
    };
    for bytes in [
        reply(0, Some(OWN), None),
        reply(0, Some(OWN.with_length(1)), None),
        reply(0, None, Some(OWN.with_length(1))),
        reply(1, None, Some(OWN)),
        reply(1, None, Some(OWN.with_length(0))),
    ] {
        assert_eq!(locate(&reply_at_client(&bytes), nothing), Err(Mismatch));
    }
    // A second Write chunk.
    let both = [&hloo(7, 4096, 0x7000)[..], &[1, 1], &hloo(7, 0, 0x7000)].concat();
    let bytes = message(0, &[&[0, 1, 1], &both, &[0, 0], &rpc(REPLY)]);
    let offered = OfferedChunks {
        write: [OWN],
        reply: NO_CHUNK,
    };
    assert_eq!(locate(&reply_at_client(&bytes), offered), Err(Mismatch));
}

#[test]
fn r8166_4_3_3_long_reply_needs_bytes_in_the_reply_chunk() {
    let offered = OfferedChunks {
        write: NO_CHUNK,
        reply: [OWN],
    };
    let bytes = reply(1, None, Some(OWN.with_length(120)));
    assert_eq!(
        locate(&reply_at_client(&bytes), offered),
        Ok(ReplyLocation::InReplyChunk {
            length: 120,
            by_write: 0
        })
    );
    let bytes = reply(1, None, Some(OWN.with_length(0)));
    assert_eq!(locate(&reply_at_client(&bytes), offered), Err(Mismatch));
}

#[test]
fn r8166_4_3_3_long_reply_is_recognised() {
    let bytes = reply(1, None, Some(OWN.with_length(120)));
    assert!(matches!(
        from_server(&bytes, PLAIN),
        Ok(FromServer::Reply(message)) if message.payload.is_none()
    ));
}
