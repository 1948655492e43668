// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 Sections 4.5 and 7: errors.

use crate::support::*;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::RdmaError;

const CHUNK: Response = Response::Answer(ErrorReply {
    xid: XID,
    vers: 1,
    error: RdmaError::Chunk,
});

/// Calls with a malformed header.
fn malformed() -> Vec<Vec<u8>> {
    let a = [7, 64, 0, 0x1000];
    vec![
        // Unknown and obsolete procedures.
        message(5, &[&[0, 0, 0], &rpc(CALL)]),
        message(u32::MAX, &[&[0, 0, 0], &rpc(CALL)]),
        message(2, &[&[0, 0, 0, 0, 0], &rpc(CALL)]),
        // Lists that run past the end.
        message(0, &[&[1, 8], &a]),
        message(0, &[&[1, 8], &a, &[1, 8]]),
        message(0, &[&[0, 1, 2], &a, &[0]]),
        message(0, &[&[0, 0, 1, 3], &a, &a]),
        message(0, &[&[0, 0, 1]]),
        // Counts that exceed the message.
        message(0, &[&[0, 1, 1 << 31], &a, &[0, 0]]),
        message(0, &[&[0, 1, 1 << 28], &a, &[0, 0]]),
        message(0, &[&[0, 1, u32::MAX], &a, &[0, 0]]),
        message(0, &[&[0, 0, 1, u32::MAX], &a]),
        message(1, &[&[0, 0, 1, 0x1000_0001], &a]),
        // RDMA_NOMSG without a chunk.
        message(1, &[&[0, 0, 0]]),
    ]
}

#[test]
fn r8166_4_5_1_short_messages_are_dropped_unparsed() {
    for len in 0..28 {
        for fill in [0, 1, 0xff] {
            let bytes = vec![fill; len];
            assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), Response::Drop);
            assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
        }
        for procedure in [0, 1, 2, 5] {
            let bytes = &message(procedure, &[&[0, 0, 0]])[..len];
            assert_eq!(from_client(bytes, PLAIN).unwrap_err(), Response::Drop);
        }
    }
}

#[test]
fn r8166_4_5_3_reply_without_an_rpc_message_has_no_header_error() {
    for payload in [&[][..], &[XID], &[0]] {
        let bytes = message(0, &[&[0, 1, 1], &hloo(7, 0, 0), &[0, 0], payload]);
        for cut in 0..4.min(payload.len() + 1) {
            match from_server(&bytes[..bytes.len() - cut], PLAIN) {
                Ok(FromServer::Empty {
                    xid: XID,
                    credits: 32,
                }) => {}
                other => panic!("{other:?}"),
            }
        }
        // A Call without an RPC message is refused.
        assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), CHUNK);
    }
    // An RPC message with another XID is no such Reply, however short.
    for payload in [&[XID + 1, REPLY][..], &[XID + 1, REPLY, 0]] {
        let bytes = message(0, &[&[0, 0, 0], payload]);
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
    }
    // A Reply has no Read list.
    let bytes = message(0, &[&[1, 8], &hloo(7, 4, 0), &[0, 0, 0]]);
    assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
}

#[test]
fn r8166_4_5_2_header_errors_in_calls_are_answered() {
    for call in malformed() {
        assert_eq!(from_client(&call, PLAIN).unwrap_err(), CHUNK, "{call:?}");
    }
}

#[test]
fn r8166_4_5_3_header_errors_in_replies_are_dropped() {
    for reply in malformed() {
        assert_eq!(
            from_server(&reply, PLAIN).unwrap_err(),
            Response::Drop,
            "{reply:?}"
        );
    }
}

#[test]
fn r8166_4_5_4_error_has_the_xid_of_the_call() {
    for xid in [0, 1, u32::MAX] {
        let bytes = words(&[xid, 1, 32, 5, 0, 0, 0]);
        let Err(Response::Answer(error)) = from_client(&bytes, PLAIN) else {
            panic!();
        };
        let mut answer = [0; 64];
        error.encode(32, &mut answer).unwrap();
        assert_eq!(answer[..4], xid.to_be_bytes());
    }
}

#[test]
fn r8166_4_5_5_error_has_the_version_of_the_call() {
    for vers in [0, 2, 7, u32::MAX] {
        let bytes = words(&[XID, vers, 32, 0, 0, 0, 0, XID, CALL]);
        let Err(Response::Answer(error)) = from_client(&bytes, PLAIN) else {
            panic!();
        };
        let mut answer = [0; 64];
        error.encode(32, &mut answer).unwrap();
        assert_eq!(answer[4..8], vers.to_be_bytes());
    }
}

#[test]
fn r8166_4_5_6_error_is_rdma_error_with_a_reason() {
    let mut answer = [0; 64];
    ErrorReply::chunk(XID).encode(32, &mut answer).unwrap();
    assert_eq!(answer[12..20], words(&[4, 2]));
}

#[test]
fn r8166_4_5_7_error_completes_the_transaction() {
    let bytes = message(4, &[&[2]]);
    let Ok(FromServer::Error(refused)) = from_server(&bytes, PLAIN) else {
        panic!();
    };
    assert_eq!(refused.xid, XID);
    assert_eq!(refused.error, RdmaError::Chunk);
}

#[test]
fn r8166_4_5_8_undecodable_errors_are_dropped() {
    for bytes in [
        message(4, &[]),
        message(4, &[&[9]]),
        message(4, &[&[0, 1, 1]]),
        message(4, &[&[1]]),
        message(4, &[&[1, 1]]),
        message(4, &[&[1, 1, 1]])[..27].to_vec(),
    ] {
        assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
        assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), Response::Drop);
    }
}

#[test]
fn r8166_4_5_1_1_unsupported_versions_get_a_range() {
    for vers in [0, 2, 3, u32::MAX] {
        for procedure in [0, 1, 2, 3, 5, 9] {
            let bytes = words(&[XID, vers, 32, procedure, 0, 0, 0]);
            assert_eq!(
                from_client(&bytes, PLAIN).unwrap_err(),
                Response::Answer(ErrorReply {
                    xid: XID,
                    vers,
                    error: RdmaError::Vers { low: 1, high: 1 }
                })
            );
            assert_eq!(from_server(&bytes, PLAIN).unwrap_err(), Response::Drop);
        }
    }
}

#[test]
fn r8166_4_5_2_1_xdr_errors_get_err_chunk() {
    // The XID of the header is not that of the message.
    let bytes = message(0, &[&[0, 0, 0], &[XID + 1, CALL, 2]]);
    assert_eq!(from_client(&bytes, PLAIN).unwrap_err(), CHUNK);
    for call in malformed() {
        assert_eq!(from_client(&call, PLAIN).unwrap_err(), CHUNK);
    }
}

#[test]
fn r8166_7_1_err_vers_is_readable_in_any_version() {
    for vers in [0, 1, 2, 77, u32::MAX] {
        let bytes = words(&[XID, vers, 32, 4, 1, 1, 2]);
        let Ok(FromServer::Error(refused)) = from_server(&bytes, PLAIN) else {
            panic!();
        };
        assert_eq!(refused.error, RdmaError::Vers { low: 1, high: 2 });
        // In another version, code 2 need not be ERR_CHUNK.
        let bytes = words(&[XID, vers, 32, 4, 2, 0, 0]);
        assert_eq!(from_server(&bytes, PLAIN).is_ok(), vers == 1);
    }
}

#[test]
fn r8166_4_5_every_truncation_of_a_good_call_is_refused() {
    let a = [7, 64, 0, 0x1000];
    let whole = message(
        0,
        &[&[1, 16], &a, &[0, 1, 2], &a, &a, &[0, 1, 1], &a, &rpc(CALL)],
    );
    let header = whole.len() - 40;
    assert!(from_client(&whole, PLAIN).is_ok());
    for len in 0..header + 8 {
        assert!(from_client(&whole[..len], PLAIN).is_err(), "{len}");
    }
    for len in header + 8..whole.len() {
        assert!(from_client(&whole[..len], PLAIN).is_ok(), "{len}");
    }
}

#[test]
fn r8166_4_5_3_every_truncation_of_a_good_reply_header_is_dropped() {
    let a = [7, 64, 0, 0x1000];
    let whole = message(0, &[&[0, 1, 2], &a, &a, &[0, 1, 1], &a, &rpc(REPLY)]);
    let header = whole.len() - words(&rpc(REPLY)).len();
    assert!(from_server(&whole, PLAIN).is_ok());
    for len in 0..header {
        assert_eq!(
            from_server(&whole[..len], PLAIN).unwrap_err(),
            Response::Drop,
            "{len}"
        );
    }
    for len in header..header + 8 {
        let truncated = from_server(&whole[..len], PLAIN);
        assert!(matches!(truncated, Ok(FromServer::Empty { .. })), "{len}");
    }
    // The RPC layer detects a truncated payload.
    for len in header + 8..whole.len() {
        assert!(from_server(&whole[..len], PLAIN).is_ok(), "{len}");
    }
}
