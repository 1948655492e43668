// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Section 4.6: obsolete procedures.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::wire::ErrorReply;

/// An RDMA_MSGP with alignment, threshold and a payload.
fn msgp(msg_type: u32) -> Vec<u8> {
    message(2, &[&[4, 512], &[0, 0, 0], &rpc(msg_type)])
}

#[test]
fn r8166_4_6_1_1_no_encoder_for_msgp() {
    for (procedure, header) in headers(9) {
        assert_eq!(header[12..16], procedure.to_be_bytes());
        assert_ne!(procedure, 2);
    }
}

#[test]
fn r8166_4_6_1_2_responder_answers_msgp() {
    assert_eq!(
        from_client(&msgp(CALL), PLAIN).unwrap_err(),
        Response::Answer(ErrorReply::chunk(XID))
    );
}

#[test]
fn r8166_4_6_1_3_requester_drops_msgp() {
    assert_eq!(
        from_server(&msgp(REPLY), PLAIN).unwrap_err(),
        Response::Drop
    );
}

#[test]
fn r8166_4_6_2_2_done_is_dropped_unless_negotiated() {
    for bytes in [message(3, &[]), message(3, &[&[0, 0, 0, 0]])] {
        assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), Response::Drop);
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
        assert!(matches!(
            from_client(&bytes, PULLED),
            Ok(FromClient::Done { xid: XID })
        ));
        // Only servers expose Replies.
        assert_eq!(from_server(&bytes, PULLED).unwrap_err(), Response::Drop);
    }
}
