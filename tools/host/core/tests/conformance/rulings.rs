// SPDX-License-Identifier: GPL-2.0

//! The rulings of `Documentation/rulings.rst` that pure functions implement.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::ReplyLimits;

use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::ErrorReply;

#[test]
fn x1_pulled_replies_only_if_negotiated() {
    let bytes = nomsg_with_reads(&[(0, segment(1, 9000, 0))]);
    // Without extensions, only a Call has a Read list, so this is a backchannel Call. It is
    // refused.
    assert_eq!(
        from_server(&bytes, PLAIN).unwrap_err(),
        Response::Answer(ErrorReply::chunk(XID))
    );
    let Ok(FromServer::Reply(reply)) = from_server(&bytes, PULLED) else {
        panic!();
    };
    assert!(reply.payload.is_none());
    assert_eq!(reply.chunks.reads.len(), 1);
    // With another Position it is a Reply as well, which `match_reply` refuses. A backchannel Call
    // cannot be an RDMA_NOMSG.
    let bytes = nomsg_with_reads(&[(8, segment(1, 9000, 0))]);
    assert!(matches!(
        from_server(&bytes, PULLED),
        Ok(FromServer::Reply(_))
    ));
    assert_eq!(
        from_server(&bytes, PLAIN).unwrap_err(),
        Response::Answer(ErrorReply::chunk(XID))
    );
}

#[test]
fn x2_minimum_length_is_for_calls_and_replies() {
    // RDMA_ERROR and RDMA_DONE are shorter than 28 bytes by definition.
    for len in 16..28 {
        let error = &message(4, &[&[2, 0, 0]])[..len];
        assert_eq!(from_server(error, PLAIN).is_ok(), len >= 20);
        let done = &message(3, &[&[0, 0, 0]])[..len];
        assert!(from_client(done, PULLED).is_ok());
        for procedure in [0, 1, 2, 5, u32::MAX] {
            let bytes = &message(procedure, &[&[0, 0, 0]])[..len];
            assert_eq!(from_client(bytes, PLAIN).unwrap_err(), Response::Drop);
        }
        // The minimum holds for other versions, too.
        let bytes = &words(&[XID, 2, 1, 3, 0, 0, 0])[..len];
        assert_eq!(from_client(bytes, PLAIN).unwrap_err(), Response::Drop);
    }
}

#[test]
fn x3_header_and_rpc_xids_must_agree() {
    let call = message(0, &[&[0, 0, 0], &[XID ^ 1, CALL, 2]]);
    assert_eq!(
        from_client(&call, PLAIN).unwrap_err(),
        Response::Answer(ErrorReply::chunk(XID))
    );
    let reply = message(0, &[&[0, 0, 0], &[XID ^ 1, REPLY, 0]]);
    assert_eq!(from_server(&reply, PLAIN).unwrap_err(), Response::Drop);
}

#[test]
fn x4_error_at_the_server_is_for_backchannel_calls() {
    assert!(matches!(
        from_client(&message(4, &[&[2]]), PLAIN),
        Ok(FromClient::BackchannelError(refused)) if refused.xid == XID
    ));
}

/// A Call with a Write chunk of each capacity in `writes`.
fn call(writes: &[u32]) -> Vec<u8> {
    let mut body = vec![0];
    for length in writes {
        body.extend([1, 1]);
        body.extend(hloo(1, *length, 0));
    }
    body.extend([0, 0]);
    message(0, &[&body, &rpc(CALL)])
}

const REPLY_LIMITS: ReplyLimits = ReplyLimits {
    threshold: 4096,
    refuses_unused: false,
    exposed_segments: 0,
};

/// Offset and length of each result in a Write chunk.
fn written(call: &[u8], results: &[Payload]) -> Vec<(u32, u32)> {
    let chunks = call_at_server(call).chunks;
    let reply = reply::plan(&chunks, results, &reply_shape(1000), &REPLY_LIMITS).unwrap();
    reply.writes().map(|(_, p)| (p.offset, p.length)).collect()
}

#[test]
fn x5_no_result_returns_an_unused_chunk() {
    let call = call(&[100]);
    let chunks = call_at_server(&call).chunks;
    let reply = reply::plan(&chunks, &[], &reply_shape(100), &REPLY_LIMITS).unwrap();
    let mut buf = [0; 128];
    reply.encode(XID, 1, [], &mut buf).unwrap();
    // The chunk is unused: it has one segment, of length 0. It is not empty.
    assert_eq!(buf[16..32], words(&[0, 1, 1, 1]));
    assert_eq!(buf[32..36], [0; 4]);
}

#[test]
fn x6_results_and_chunks_pair_one_to_one() {
    let two = call(&[100, 100]);
    // A failed READ has no result. The next result takes the first chunk.
    assert_eq!(written(&two, &[item(200, 50)]), [(200, 50)]);
    // A READ of no bytes has a result of length 0, which takes a chunk.
    assert_eq!(written(&two, &[item(200, 0), item(300, 50)]), [(300, 50)]);
    let results = [item(200, 0), item(300, 50), item(400, 8)];
    assert_eq!(written(&two, &results), [(300, 50)]);
}

#[test]
fn x7_flag_is_the_lowest_bit_of_its_byte() {
    let mut bytes = PrivateData {
        remote_invalidation: true,
        send_size: 4096,
        receive_size: 4096,
    }
    .encode();
    assert_eq!(bytes[bytes.len() - 3], 0x01);
    bytes[5] = 0x80;
    assert!(!PrivateData::of_peer(&bytes).remote_invalidation);
}

#[test]
fn x8_padding_after_the_eight_bytes() {
    let mut area = [0; 56];
    area[..8].copy_from_slice(&PrivateData::default().encode());
    assert!(PrivateData::find(&area).is_some());
}

#[test]
fn x12_every_mix_of_lists_is_parsed() {
    let a = [1, 64, 0, 0];
    for reads in [&[0][..], &[&[1, 8][..], &a, &[0]].concat()] {
        for writes in [&[0][..], &[&[1, 1][..], &a, &[1, 0, 0]].concat()] {
            for reply in [&[0][..], &[&[1, 1][..], &a].concat(), &[1, 0]] {
                let bytes = message(0, &[reads, writes, reply, &rpc(CALL)]);
                assert!(from_client(&bytes, PLAIN).is_ok());
                let mut zero = vec![1, 0];
                zero.extend(a);
                let bytes = message(1, &[&zero, reads, writes, reply]);
                assert!(from_client(&bytes, PLAIN).is_ok());
            }
        }
    }
}
