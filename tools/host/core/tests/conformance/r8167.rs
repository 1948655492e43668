// SPDX-License-Identifier: GPL-2.0

//! RFC 8167: forward channel and backchannel on one connection.

use crate::support::*;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::RdmaError;

#[test]
fn r8167_1_1_one_codec_for_both_directions() {
    let mut buf = [0; 64];
    let end = HeaderWriter::plain(&mut buf, XID, 16).unwrap();
    buf[end..end + 8].copy_from_slice(&words(&[XID, CALL]));
    assert!(from_client(&buf, PLAIN).is_ok());
    assert!(from_server(&buf, PLAIN).is_ok());
}

#[test]
fn r8167_2_4_1_same_xid_in_both_directions() {
    // A forward Call with this XID may be outstanding at the client. The classification of
    // a backchannel Call does not depend on outstanding Calls.
    let call = message(0, &[&[0, 0, 0], &rpc(CALL)]);
    let reply = message(0, &[&[0, 0, 0], &rpc(REPLY)]);
    assert!(matches!(
        from_server(&call, PLAIN),
        Ok(FromServer::BackchannelCall(message)) if message.xid == XID
    ));
    assert!(matches!(
        from_server(&reply, PLAIN),
        Ok(FromServer::Reply(message)) if message.xid == XID
    ));
}

#[test]
fn r8167_4_1_4_each_direction_has_its_credits() {
    let mut forward = Window::FRESH;
    let mut backchannel = Window::FRESH;
    forward.grant(128, 128);
    // A backchannel Call requests 2 credits of the client. Neither window changes.
    let bytes = words(&[XID, 1, 2, 0, 0, 0, 0, XID, CALL]);
    match from_server(&bytes, PLAIN).unwrap() {
        FromServer::Reply(message) => assert!(forward.grant(message.credits, 128)),
        FromServer::BackchannelCall(message) => assert_eq!(message.credits, 2),
        other => panic!("{other:?}"),
    }
    assert_eq!(forward.granted(), 128);
    // A backchannel Reply grants 2 credits to the server. The backchannel window changes.
    let bytes = words(&[XID, 1, 2, 0, 0, 0, 0, XID, REPLY]);
    match from_client(&bytes, PLAIN).unwrap() {
        FromClient::BackchannelReply(message) => assert!(backchannel.grant(message.credits, 16)),
        other => panic!("{other:?}"),
    }
    assert_eq!((forward.granted(), backchannel.granted()), (128, 2));
}

#[test]
fn r8167_4_3_1_1_receives_for_both_directions() {
    let mut forward = Window::FRESH;
    assert_eq!(forward.receives(32), 33);
    forward.grant(128, 128);
    assert_eq!(forward.receives(32), 160);
}

#[test]
fn r8167_5_3_2_backchannel_messages_are_inline() {
    let agreement = Agreement {
        send: 4096,
        receive: 1024,
        remote_invalidation: false,
    };
    assert_eq!(agreement.backchannel_payload(), 1024 - 28);
}

#[test]
fn r8167_5_3_3_backchannel_calls_with_chunks_are_refused() {
    let refused = Response::Answer(ErrorReply::chunk(XID));
    let a = [1, 64, 0, 0];
    for bytes in [
        msg_with_reads(&[(8, segment(1, 4, 0))], CALL, 6),
        message(0, &[&[0, 1, 1], &a, &[0, 0], &rpc(CALL)]),
        message(0, &[&[0, 1, 0, 0, 0], &rpc(CALL)]),
        message(0, &[&[0, 0, 1, 1], &a, &rpc(CALL)]),
        nomsg_with_reads(&[(0, segment(1, 64, 0))]),
        nomsg_with_reads(&[(8, segment(1, 64, 0))]),
    ] {
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), refused);
    }
}

#[test]
fn r8167_5_3_4_backchannel_error_is_classified() {
    let bytes = message(4, &[&[2]]);
    let Ok(FromClient::BackchannelError(refused)) = from_client(&bytes, PLAIN) else {
        panic!();
    };
    assert_eq!((refused.xid, refused.error), (XID, RdmaError::Chunk));
}

#[test]
fn r8167_5_3_backchannel_replies_with_chunks_are_dropped() {
    let a = [1, 64, 0, 0];
    for bytes in [
        message(0, &[&[0, 1, 1], &a, &[0, 0], &rpc(REPLY)]),
        message(0, &[&[0, 0, 1, 1], &a, &rpc(REPLY)]),
        msg_with_reads(&[(8, segment(1, 4, 0))], REPLY, 6),
    ] {
        assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), Response::Drop);
    }
}

#[test]
fn r8167_5_1_2_calls_of_another_version_get_a_range() {
    for vers in [0, 2, 77, u32::MAX] {
        let bytes = words(&[XID, vers, 1, 0, 0, 0, 0, XID, CALL]);
        let Err(Response::Answer(error)) = from_server(&bytes, PLAIN) else {
            panic!();
        };
        assert_eq!((error.xid, error.vers), (XID, vers));
        assert_eq!(error.error, RdmaError::Vers { low: 1, high: 1 });
        // Only Calls are answered: not a Reply, an unknown message, or an error.
        for bytes in [
            words(&[XID, vers, 1, 0, 0, 0, 0, XID, REPLY]),
            words(&[XID, vers, 1, 0, 0, 0, 0, XID + 1, CALL]),
            words(&[XID, vers, 1, 0, 0, 0, 0]),
            words(&[XID, vers, 1, 4, 2, 0, 0, XID, CALL]),
        ] {
            assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
        }
    }
}
