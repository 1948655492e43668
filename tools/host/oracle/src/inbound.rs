// SPDX-License-Identifier: GPL-2.0

//! Classification of received messages, and responses to those that cannot be processed.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::from_server;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::FromServer;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::inbound::RpcMsg;

const CALL: u32 = 0;
const REPLY: u32 = 1;

/// Classifies a message at both ends.
pub fn inbound(bytes: &[u8], pulled_replies: bool) {
    let ext = Extensions { pulled_replies };
    match from_client(bytes, ext) {
        Ok(FromClient::Call(message)) => {
            check(bytes, &message, CALL);
            let mut reads = message.chunks.reads.segments();
            let zero = reads.any(|r| r.position == 0 && !r.segment.is_empty());
            assert_eq!(zero, message.payload.is_none());
        }
        Ok(FromClient::BackchannelReply(message)) => {
            check(bytes, &message, REPLY);
            assert!(message.chunks.is_empty() && message.payload.is_some());
        }
        Ok(FromClient::BackchannelError(refused)) => {
            assert_eq!(word(bytes, 0), Some(refused.xid));
            assert_eq!(word(bytes, 3), Some(4));
        }
        Ok(FromClient::Done { xid }) => {
            assert!(pulled_replies);
            assert_eq!(word(bytes, 0), Some(xid));
            assert_eq!(word(bytes, 3), Some(3));
        }
        Err(refusal) => refused(bytes, refusal),
    }
    match from_server(bytes, ext) {
        Ok(FromServer::Reply(message)) => {
            check(bytes, &message, REPLY);
            let pulled = !message.chunks.reads.is_empty();
            assert!(!pulled || (pulled_replies && message.payload.is_none()));
            assert!(message.payload.is_some() || pulled || message.chunks.reply.is_some());
        }
        Ok(FromServer::BackchannelCall(message)) => {
            check(bytes, &message, CALL);
            assert!(message.chunks.is_empty() && message.payload.is_some());
        }
        Ok(FromServer::Error(refused)) => {
            assert_eq!(word(bytes, 0), Some(refused.xid));
            assert_eq!(word(bytes, 3), Some(4));
        }
        Ok(FromServer::Empty { xid, credits }) => {
            let fixed = [Some(xid), Some(1), Some(credits), Some(0)];
            assert_eq!([0, 1, 2, 3].map(|n| word(bytes, n)), fixed);
            // The smallest RPC message has two words behind the smallest header.
            assert!(bytes.len() < 36 || [4, 5, 6].iter().any(|n| word(bytes, *n) != Some(0)));
        }
        Err(refusal) => {
            refused(bytes, refusal);
            // A client answers only a backchannel Call.
            if let Response::Answer(_) = refusal {
                match word(bytes, 1) {
                    Some(1) => assert!(matches!(word(bytes, 3), Some(0 | 1))),
                    _ => assert_eq!(
                        (word(bytes, 7), word(bytes, 8)),
                        (word(bytes, 0), Some(CALL))
                    ),
                }
            }
        }
    }
}

/// Checks the fields of a classified Call or Reply.
fn check(bytes: &[u8], message: &RpcMsg<'_>, msg_type: u32) {
    assert!(bytes.len() >= 28);
    assert_eq!(word(bytes, 0), Some(message.xid));
    assert_eq!(word(bytes, 1), Some(1));
    assert_eq!(word(bytes, 2), Some(message.credits));
    match message.payload {
        Some(payload) => {
            assert_eq!(word(bytes, 3), Some(0));
            assert!(bytes.ends_with(payload));
            assert_eq!(word(payload, 0), Some(message.xid));
            assert_eq!(word(payload, 1), Some(msg_type));
        }
        None => assert_eq!(word(bytes, 3), Some(1)),
    }
}

/// Checks the response to a message that cannot be processed.
fn refused(bytes: &[u8], refusal: Response) {
    let Response::Answer(answer) = refusal else {
        return;
    };
    assert!(bytes.len() >= 28, "a short message is answered");
    assert_ne!(word(bytes, 3), Some(4), "an RDMA_ERROR is answered");
    assert_eq!(word(bytes, 0), Some(answer.xid));
    assert_eq!(word(bytes, 1), Some(answer.vers));
    assert!(answer.encode(1, &mut [0; 28]).is_ok());
}

/// The word at this index.
fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..index * 4 + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
