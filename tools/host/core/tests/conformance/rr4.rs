// SPDX-License-Identifier: GPL-2.0

//! The draft on reliable replies: pulled Replies.

use crate::support::*;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::agreement::ReadDepths;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::requester::call::plan as plan_call;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::ReplyPlan;
use rpcrdma_core::engine::requester::match_reply::locate;
use rpcrdma_core::engine::requester::match_reply::Mismatch;
use rpcrdma_core::engine::requester::match_reply::OfferedChunks;
use rpcrdma_core::engine::requester::match_reply::ReplyLocation;
use rpcrdma_core::engine::requester::reply_history::ReplyHistory;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::CannotReply;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::Plan;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::Segment;

const YES: Offer = Offer {
    pulled_replies: true,
};
const NO: Offer = Offer {
    pulled_replies: false,
};
const DEPTHS: ReadDepths = ReadDepths {
    initiator_depth: 1,
    responder_resources: 1,
};

/// Limits of a connection on which a Reply may be exposed in `exposed_segments` segments.
fn reply_limits(exposed_segments: u32) -> ReplyLimits {
    ReplyLimits {
        threshold: 4096,
        refuses_unused: false,
        exposed_segments,
    }
}

/// A Call with these words as chunk lists.
fn call(lists: &[&[u32]]) -> Vec<u8> {
    let mut all: Vec<&[u32]> = lists.to_vec();
    let payload = rpc(CALL);
    all.push(&payload);
    message(0, &all)
}

/// Plans a Reply of `length` bytes to the Call in `bytes`, and calls `then` with the plan.
fn with_plan<R>(
    bytes: &[u8],
    results: &[Payload],
    length: u32,
    exposed_segments: u32,
    then: impl FnOnce(Result<Plan<'_>, CannotReply>) -> R,
) -> R {
    let shape = reply_shape(length);
    let limits = reply_limits(exposed_segments);
    match from_client(bytes, PULLED) {
        Ok(FromClient::Call(call)) => then(reply::plan(&call.chunks, results, &shape, &limits)),
        other => panic!("{other:?}"),
    }
}

/// A Reply with a Read list of these Positions and lengths.
fn exposed_reply(segments: &[(u32, u32)]) -> Vec<u8> {
    let mut lists = Vec::new();
    for (position, length) in segments {
        lists.extend([1, *position]);
        lists.extend(hloo(9, *length, 0x1000));
    }
    lists.extend([0, 0, 0]);
    message(1, &[&lists])
}

/// The location of a Reply to a Call that offered no chunks.
fn reply_arrived(bytes: &[u8]) -> Result<ReplyLocation<'_>, Mismatch> {
    match from_server(bytes, PULLED) {
        Ok(FromServer::Reply(reply)) => locate(
            &reply,
            OfferedChunks {
                write: NO_CHUNK,
                reply: NO_CHUNK,
            },
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rr4_4_1_1_reply_as_a_read_chunk_of_several_segments() {
    let parts: [Segment; 2] = [segment(7, 60_000, 1 << 40), segment(8, 5_536, 3)];
    let bytes = call(&[&[0, 0, 0]]);
    let mut header = vec![0; 4096];
    let end = with_plan(&bytes, &[], 65_536, 4, |reply| {
        let reply = reply.unwrap();
        assert_eq!((reply.form(), reply.left()), (Form::Exposed, 65_536));
        assert!(reply.reply_chunk().is_none());
        reply.encode(XID, 32, parts, &mut header).unwrap()
    });
    header.truncate(end);
    let mut lists = vec![1, 0];
    lists.extend(hloo(7, 60_000, 1 << 40));
    lists.extend([1, 0]);
    lists.extend(hloo(8, 5_536, 3));
    lists.extend([0, 0, 0]);
    assert_eq!(header, message(1, &[&lists]));
}

#[test]
fn rr4_4_1_2_exposed_reply_is_rdma_nomsg() {
    // A Reply in an RDMA_MSG has no Read list, even with the extension.
    let mut lists = vec![1, 0];
    lists.extend(hloo(9, 64, 0));
    lists.extend([0, 0, 0]);
    let msg = message(0, &[&lists, &rpc(REPLY)]);
    assert!(from_server(&msg, PULLED).is_err());
    let nomsg = exposed_reply(&[(0, 64)]);
    assert!(matches!(
        reply_arrived(&nomsg),
        Ok(ReplyLocation::Exposed {
            length: 64,
            by_write: 0
        })
    ));
}

#[test]
fn rr4_4_1_3_results_still_go_to_write_chunks() {
    let mut lists = vec![0, 1, 1];
    lists.extend(hloo(5, 1000, 0));
    lists.extend([0, 0]);
    let bytes = call(&[&lists]);
    let item = [Payload {
        offset: 100,
        length: 1000,
    }];
    with_plan(&bytes, &item, 9_100, 4, |reply| {
        let reply = reply.unwrap();
        assert_eq!(reply.form(), Form::Exposed);
        assert_eq!((by_write(&reply), reply.left()), (1000, 8_100));
        let runs: Vec<_> = reply.runs().collect();
        assert_eq!(runs, [(0, 100), (1100, 8000)]);
    });
}

#[test]
fn rr4_4_1_1_1_exposed_if_it_fits_no_other_form() {
    let nothing = call(&[&[0, 0, 0]]);
    let form =
        |bytes: &[u8], length| with_plan(bytes, &[], length, 4, |reply| reply.unwrap().form());
    assert_eq!(form(&nothing, 4096 - 28), Form::Inline);
    assert_eq!(form(&nothing, 4096 - 27), Form::Exposed);
    // The Reply chunk is used if it is large enough. Otherwise it is returned unused.
    let mut lists = vec![0, 0, 1, 1];
    lists.extend(hloo(5, 8192, 0));
    let chunk = call(&[&lists]);
    assert_eq!(form(&chunk, 8192), Form::ReplyChunk);
    assert_eq!(form(&chunk, 8193), Form::Exposed);
    let mut header = vec![0; 4096];
    let end = with_plan(&chunk, &[], 8193, 4, |reply| {
        let part = [segment(6, 8193, 0)];
        let reply = reply.unwrap();
        reply.encode(XID, 32, part, &mut header).unwrap()
    });
    let mut expected = vec![1, 0];
    expected.extend(hloo(6, 8193, 0));
    expected.extend([0, 0, 1, 1]);
    expected.extend(hloo(5, 0, 0));
    assert_eq!(header[..end], message(1, &[&expected]));
}

#[test]
fn rr4_4_1_1_2_err_chunk_without_support() {
    let bytes = call(&[&[0, 0, 0]]);
    with_plan(&bytes, &[], 65_536, 0, |reply| {
        assert_eq!(reply.unwrap_err(), CannotReply::NoRoom);
    });
}

#[test]
fn rr4_4_1_2_1_requester_accepts_position_zero_only() {
    let bytes = exposed_reply(&[(0, 60_000), (0, 0), (0, 5_536)]);
    assert_eq!(
        reply_arrived(&bytes),
        Ok(ReplyLocation::Exposed {
            length: 65_536,
            by_write: 0
        })
    );
    // Mismatches: another Position, no bytes, less than a word, a sum of more than 32 bits.
    for bad in [
        &[(0, 64), (4, 64)][..],
        &[(4, 64)],
        &[(0, 0)],
        &[(0, 3)],
        &[(0, u32::MAX), (0, 1)],
    ] {
        assert_eq!(reply_arrived(&exposed_reply(bad)), Err(Mismatch), "{bad:?}");
    }
}

#[test]
fn rr4_4_1_3_1_done_has_the_xid_of_the_reply() {
    let mut bytes = [0; 16];
    assert_eq!(HeaderWriter::done(&mut bytes, XID, 32), Ok(16));
    assert_eq!(bytes[..], words(&[XID, 1, 32, 3]));
    assert!(matches!(
        from_client(&bytes, PULLED),
        Ok(FromClient::Done { xid: XID })
    ));
}

#[test]
fn rr4_5_3_1_1_reply_chunk_only_if_replies_are_usually_long() {
    let narrow = limits();
    let pulled = CallLimits {
        pulled_replies: true,
        ..narrow
    };
    let offer = |long_reply, limits: &CallLimits| {
        let shape = CallShape {
            long_reply,
            ..small_call(100, 60_000)
        };
        plan_call(&shape, limits).unwrap().reply
    };
    assert_eq!(offer(false, &narrow), ReplyPlan::ReplyChunk);
    assert_eq!(offer(false, &pulled), ReplyPlan::Pull);
    assert_eq!(offer(true, &pulled), ReplyPlan::ReplyChunk);
    // A Reply that always fits needs no chunk. A data item goes to a Write chunk.
    let fits = plan_call(&small_call(100, 200), &pulled).unwrap().reply;
    assert_eq!(fits, ReplyPlan::Inline);
    let read = plan_call(&read_call(60_000), &pulled).unwrap().reply;
    assert_eq!(read, ReplyPlan::WriteChunk);
}

#[test]
fn rr4_5_2_2_1_reply_chunk_after_a_refusal() {
    let mut history = ReplyHistory::default();
    for long in [false, true, true, true, false] {
        let refused = history.after_refusal();
        assert!(refused.is_long());
        assert_eq!(refused.after_refusal(), refused);
        assert!(refused.to_bits() >= history.to_bits());
        // An NFSv4.1 session may first answer with a short error.
        assert!(refused.after(false).is_long());
        history = history.after(long);
    }
}

#[test]
fn rr4_5_2_2_1_history_predicts_long_replies() {
    let after = |replies: &[bool]| {
        let history = ReplyHistory::default();
        replies
            .iter()
            .fold(history, |history, long| history.after(*long))
    };
    assert!(!after(&[]).is_long());
    assert!(!after(&[true]).is_long());
    assert!(after(&[true, true]).is_long());
    assert!(!after(&[true, true, false, false]).is_long());
    // Three short Replies end the offers after three long ones, and four from the highest score.
    assert!(after(&[true, true, true, false, false]).is_long());
    assert!(!after(&[true, true, true, false, false, false]).is_long());
    assert!(after(&[true, true, true, true, false, false, false]).is_long());
    assert!(!after(&[true, true, true, true, false, false, false, false]).is_long());
    // One long Reply in two starts the offers. One in four does not.
    assert!(after(&[true, false, true, false, true, false, true, false, true, false]).is_long());
    assert!(!after(&[true, false, false, false, true, false, false, false]).is_long());
    let steady = after(&[true; 9]);
    assert_eq!(steady.after(true), steady);
    assert_eq!(after(&[false]), after(&[]));
}

#[test]
fn rr4_5_2_2_1_history_is_restored_from_bits() {
    let mut history = ReplyHistory::default();
    let mut most = history;
    for long in [true, false, true, true, true, true, false, false] {
        history = history.after(long);
        assert_eq!(ReplyHistory::from_bits(history.to_bits()), history);
        if history.to_bits() > most.to_bits() {
            most = history;
        }
    }
    assert!(most.is_long());
    // No number makes a score that long Replies do not reach.
    for bits in [most.to_bits() + 1, 100, u32::MAX] {
        assert_eq!(ReplyHistory::from_bits(bits), most);
    }
}

#[test]
fn rr4_5_2_2_1_short_reply_in_a_reply_chunk_is_not_long() {
    let in_chunk = |length| ReplyLocation::InReplyChunk {
        length,
        by_write: 0,
    };
    let exposed = |length| ReplyLocation::Exposed {
        length,
        by_write: 0,
    };
    // The header has 28 bytes.
    for (length, long) in [(4, false), (996, false), (997, true), (u32::MAX, true)] {
        assert_eq!(in_chunk(length).is_long(1024), long, "{length}");
        assert_eq!(exposed(length).is_long(1024), long, "{length}");
    }
    let inline = ReplyLocation::Inline {
        payload: &[0; 2000],
        by_write: 0,
    };
    assert!(!inline.is_long(1024));
}

#[test]
fn rr4_6_3_only_if_both_ends_support_it() {
    let agreed = |own, peer, depths| Extensions::between(own, peer, depths);
    assert_eq!(agreed(&YES, &YES, &DEPTHS), PULLED);
    for (own, peer) in [(&YES, &NO), (&NO, &YES), (&NO, &NO)] {
        assert_eq!(agreed(own, peer, &DEPTHS), PLAIN);
    }
    // Without the extension, a Read list in a Reply is refused, and RDMA_DONE is dropped.
    let bytes = exposed_reply(&[(0, 64)]);
    assert!(from_server(&bytes, PLAIN).is_err());
    let done = words(&[XID, 1, 32, 3]);
    assert_eq!(from_client(&done, PLAIN).unwrap_err(), Response::Drop);
}

#[test]
fn rr4_x_1_both_read_depths_are_needed() {
    for (initiator_depth, responder_resources) in [(0, 1), (1, 0), (0, 0)] {
        let depths = ReadDepths {
            initiator_depth,
            responder_resources,
        };
        assert_eq!(Extensions::between(&YES, &YES, &depths), PLAIN);
    }
}

#[test]
fn rr4_6_1_offer_is_ignored_by_other_implementations() {
    let own = PrivateData {
        remote_invalidation: true,
        send_size: 4096,
        receive_size: 8192,
    };
    // Without an offer, only the eight bytes of RFC 8797 are sent.
    assert_eq!(Announcement::new(&own, &NO).as_bytes(), own.encode());
    let bytes = Announcement::new(&own, &YES);
    let bytes = bytes.as_bytes();
    assert_eq!(bytes[..8], own.encode());
    assert_eq!(bytes[8..], [0xd3, 0x97, 0x1e, 0xa4, 1, 1, 0, 0]);
    assert_eq!(PrivateData::find(bytes), Some(own));
    assert_eq!(Offer::of_peer(bytes), YES);
}

#[test]
fn rr4_6_2_offer_is_found_at_any_offset() {
    let block = [0xd3, 0x97, 0x1e, 0xa4, 1, 1, 0, 0];
    for before in 0..9 {
        let mut bytes = vec![0xd3; before];
        bytes.extend(block);
        bytes.extend([0; 40]);
        assert_eq!(Offer::of_peer(&bytes), YES);
    }
    // Reserved flags and bytes are ignored. A block with another version or identifier, or
    // a truncated one, is ignored as a whole.
    assert_eq!(
        Offer::of_peer(&[0xd3, 0x97, 0x1e, 0xa4, 1, 0xff, 9, 9]),
        YES
    );
    assert_eq!(Offer::of_peer(&[0xd3, 0x97, 0x1e, 0xa4, 1, 0xfe, 9, 9]), NO);
    assert_eq!(Offer::of_peer(&[0xd3, 0x97, 0x1e, 0xa4, 2, 1, 0, 0]), NO);
    assert_eq!(Offer::of_peer(&[0xd3, 0x97, 0x1e, 0xa5, 1, 1, 0, 0]), NO);
    assert_eq!(Offer::of_peer(&block[..7]), NO);
    assert_eq!(Offer::of_peer(&[]), NO);
}
