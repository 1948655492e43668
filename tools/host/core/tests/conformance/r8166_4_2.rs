// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 4.2: the fixed fields, and the procedures.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::RdmaError;
use rpcrdma_core::wire::VERSION;

#[test]
fn r8166_4_1_all_headers_have_the_fixed_fields() {
    for (procedure, header) in headers(9) {
        assert_eq!(header[..16], words(&[XID, 1, 9, procedure]));
    }
    let mut buf = [0; 64];
    ErrorReply::chunk(XID).encode(9, &mut buf).unwrap();
    assert_eq!(buf[..16], words(&[XID, 1, 9, 4]));
}

#[test]
fn r8166_4_2_1_fixed_fields_are_decoded() {
    let bytes = words(&[7, 1, 9, 3]);
    let header = Header::decode(&bytes).unwrap();
    assert_eq!((header.xid, header.vers, header.credits), (7, 1, 9));
    assert!(matches!(header.body, Body::Done));
}

#[test]
fn r8166_4_2_1_1_xid_is_that_of_the_rpc() {
    let mut buf = [0; 64];
    for xid in [0, 1, 0x8000_0000, u32::MAX] {
        HeaderWriter::plain(&mut buf, xid, 1).unwrap();
        assert_eq!(Header::decode(&buf).unwrap().xid, xid);
        assert_eq!(buf[..4], xid.to_be_bytes());
    }
}

#[test]
fn r8166_4_2_2_1_version_is_one() {
    assert_eq!(VERSION, 1);
    for (_, header) in headers(1) {
        assert_eq!(header[4..8], 1_u32.to_be_bytes());
    }
}

#[test]
fn r8166_4_2_3_1_credits_pass_unchanged() {
    for credits in [0, 1, 0xffff, 0x1_0000, u32::MAX] {
        let bytes = words(&[XID, 1, credits, 0, 0, 0, 0, XID, CALL]);
        assert_eq!(call_at_server(&bytes).credits, credits);
        let bytes = words(&[XID, 1, credits, 0, 0, 0, 0, XID, REPLY]);
        assert_eq!(reply_at_client(&bytes).credits, credits);
    }
}

#[test]
fn r8166_4_2_4_1_payload_follows_the_lists() {
    for (words, lists) in [(7, &[0, 0, 0][..]), (11 + 2, &[0, 1, 1, 1, 2, 3, 4, 0, 0])] {
        let bytes = message(0, &[lists, &rpc(CALL)]);
        let call = call_at_server(&bytes);
        assert_eq!(call.payload, Some(&bytes[words * 4..]));
        assert_eq!(call.payload.unwrap()[..4], XID.to_be_bytes());
    }
}

#[test]
fn r8166_4_2_4_2_nomsg_needs_a_list_that_holds_the_payload() {
    let refused = Response::Answer(ErrorReply::chunk(XID));
    let a = [1, 64, 0, 0];
    let none = message(1, &[&[0, 0, 0]]);
    let only_writes = message(1, &[&[0, 1, 1], &a, &[0, 0]]);
    let only_reply = message(1, &[&[0, 0, 1, 1], &a]);
    let only_item = message(1, &[&[1, 8], &a, &[0, 0, 0]]);
    for call in [&none, &only_writes, &only_reply, &only_item] {
        assert_eq!(from_client(call, PLAIN).unwrap_err(), refused);
    }
    // A Reply without a Reply chunk is dropped.
    for reply in [&none, &only_writes] {
        assert_eq!(from_server(reply, PLAIN).unwrap_err(), Response::Drop);
    }
    assert!(reply_at_client(&only_reply).payload.is_none());
}

#[test]
fn r8166_4_2_4_2_msg_with_a_position_zero_chunk_is_refused() {
    let call = msg_with_reads(&[(0, segment(1, 64, 0))], CALL, 6);
    assert_eq!(
        from_client(&call, PLAIN).unwrap_err(),
        Response::Answer(ErrorReply::chunk(XID))
    );
}

#[test]
fn r8166_4_2_4_3_errors_have_no_payload() {
    let mut buf = [0; 64];
    let chunk = ErrorReply::chunk(XID);
    assert_eq!(chunk.encode(1, &mut buf), Ok(20));
    let vers = ErrorReply {
        error: RdmaError::Vers { low: 1, high: 1 },
        ..chunk
    };
    assert_eq!(vers.encode(1, &mut buf), Ok(28));
}

#[test]
fn r8166_4_2_4_4_requester_never_sends_an_error() {
    // Malformed Replies are dropped.
    for bytes in [
        message(0, &[&[0, 0, 0], &rpc(2)]),
        message(0, &[&[2, 0, 0], &rpc(REPLY)]),
        message(2, &[&[0, 0, 0, 0, 0], &rpc(REPLY)]),
        message(5, &[&[0, 0, 0], &rpc(REPLY)]),
        words(&[XID, 2, 1, 0, 0, 0, 0, XID, REPLY]),
    ] {
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
    }
}

#[test]
fn r8166_4_2_4_5_responder_drops_errors() {
    // An RDMA_ERROR is for a backchannel Call. It is never answered.
    let bytes = message(4, &[&[2]]);
    assert!(matches!(
        from_client(&bytes, PLAIN),
        Ok(FromClient::BackchannelError(_))
    ));
    let bytes = message(4, &[&[9]]);
    assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), Response::Drop);
}
