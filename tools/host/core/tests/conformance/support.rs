// SPDX-License-Identifier: GPL-2.0

//! Messages, shapes and limits for the tests.

use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::credit::Window;
use rpcrdma_core::engine::inbound::RpcMsg;
use rpcrdma_core::engine::requester::call::CallLimits;
use rpcrdma_core::engine::requester::call::CallShape;
use rpcrdma_core::engine::requester::call::XdrLens;
use rpcrdma_core::engine::responder::reply::Payload;
use rpcrdma_core::engine::responder::reply::Plan;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::Segment;
use rpcrdma_core::wire::WriteChunk;

/// XID of most messages.
pub(crate) const XID: u32 = 0x5a5a_0001;

/// `msg_type` of an RPC Call.
pub(crate) const CALL: u32 = 0;
/// `msg_type` of an RPC Reply.
pub(crate) const REPLY: u32 = 1;

/// No extensions of RFC 8166.
pub(crate) const PLAIN: Extensions = Extensions {
    pulled_replies: false,
};

/// Pulled Replies are negotiated.
pub(crate) const PULLED: Extensions = Extensions {
    pulled_replies: true,
};

/// The segments of a chunk that was not offered.
pub(crate) const NO_CHUNK: [Segment; 0] = [];

/// Number of Calls that may be sent while `outstanding` Calls are unanswered.
pub(crate) fn available(window: &Window, outstanding: u32) -> u32 {
    window.granted().saturating_sub(outstanding)
}

/// Bytes of a Reply in Write chunks.
pub(crate) fn by_write(reply: &Plan<'_>) -> u32 {
    reply.writes().map(|(_, payload)| payload.length).sum()
}

/// Words in big-endian order.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The four words of a segment.
pub(crate) fn hloo(handle: u32, length: u32, offset: u64) -> [u32; 4] {
    [handle, length, (offset >> 32) as u32, offset as u32]
}

/// A segment.
pub(crate) fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment {
        handle,
        length,
        offset,
    }
}

/// A message of words: the fixed fields of version 1, then `body`.
pub(crate) fn message(procedure: u32, body: &[&[u32]]) -> Vec<u8> {
    let mut all = vec![XID, 1, 32, procedure];
    all.extend(body.iter().copied().flatten());
    words(&all)
}

/// The start of a header from each constructor of [`HeaderWriter`], and its procedure.
pub(crate) fn headers(credits: u32) -> [(u32, [u8; 64]); 6] {
    let mut headers = [0, 1, 0, 0, 0, 3].map(|procedure| (procedure, [0xee; 64]));
    let [(_, msg), (_, nomsg), (_, plain), (_, with), (_, returning), (_, done)] = &mut headers;
    let chunk = [segment(1, 64, 0x1000)];
    HeaderWriter::msg(msg, XID, credits).unwrap();
    HeaderWriter::nomsg(nomsg, XID, credits).unwrap();
    HeaderWriter::plain(plain, XID, credits).unwrap();
    HeaderWriter::with_write_chunk(with, XID, credits, 1, chunk).unwrap();
    HeaderWriter::returning_write_chunk(returning, XID, credits, &WriteChunk::default(), 0)
        .unwrap();
    HeaderWriter::done(done, XID, credits).unwrap();
    headers
}

/// The payload of an RPC message.
pub(crate) fn rpc(msg_type: u32) -> [u32; 10] {
    [XID, msg_type, 2, 100_003, 3, 0, 0, 0, 0, 0]
}

/// An RDMA_NOMSG with a Read list only.
pub(crate) fn nomsg_with_reads(reads: &[(u32, Segment)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (position, segment) in reads {
        body.extend([1, *position]);
        body.extend(hloo(segment.handle, segment.length, segment.offset));
    }
    body.extend([0, 0, 0]);
    message(1, &[&body])
}

/// An RDMA_MSG with a Read list and an inline payload of `inline` words.
pub(crate) fn msg_with_reads(reads: &[(u32, Segment)], msg_type: u32, inline: usize) -> Vec<u8> {
    let mut bytes = nomsg_with_reads(reads);
    bytes[15] = 0;
    let mut payload: Vec<u32> = (0..inline as u32).collect();
    payload[0] = XID;
    payload[1] = msg_type;
    bytes.extend(words(&payload));
    bytes
}

/// Common limits: thresholds of 4096 bytes, pages of 4 KiB.
pub(crate) fn limits() -> CallLimits {
    CallLimits {
        send: 4096,
        receive: 4096,
        pull_up: 0,
        buf_len: 4096,
        sges: 19,
        segments: 16,
        segment_pages: 32,
        page_shift: 12,
        pulled_replies: false,
        room_for_roundup: false,
    }
}

/// A Call of `head` bytes without data item, with room for a Reply of `reply` bytes.
pub(crate) fn small_call(head: u32, reply: u32) -> CallShape {
    CallShape {
        call: XdrLens {
            head,
            ..XdrLens::default()
        },
        reply: XdrLens {
            head: reply,
            ..XdrLens::default()
        },
        ..CallShape::default()
    }
}

/// An NFS WRITE of `data` bytes.
pub(crate) fn write_call(data: u32) -> CallShape {
    CallShape {
        call: XdrLens {
            head: 160,
            data,
            page_offset: 0,
            tail: data.wrapping_neg() % 4,
        },
        call_eligible: true,
        ..small_call(160, 200)
    }
}

/// An NFS READ of `data` bytes.
pub(crate) fn read_call(data: u32) -> CallShape {
    CallShape {
        reply: XdrLens {
            head: 128,
            data,
            page_offset: 0,
            tail: 64,
        },
        reply_eligible: true,
        ..small_call(160, 0)
    }
}

/// A DDP-eligible result of a Reply.
pub(crate) fn item(offset: u32, length: u32) -> Payload {
    Payload { offset, length }
}

/// A Reply of `length` bytes that GSS does not protect.
pub(crate) fn reply_shape(length: u32) -> ReplyShape {
    ReplyShape {
        length,
        protected: false,
    }
}

/// The Call in `received`, which must be one.
#[track_caller]
pub(crate) fn call_at_server(received: &[u8]) -> RpcMsg<'_> {
    use rpcrdma_core::engine::inbound::from_client;
    use rpcrdma_core::engine::inbound::FromClient;
    match from_client(received, PLAIN) {
        Ok(FromClient::Call(message)) => message,
        other => panic!("not a Call: {other:?}"),
    }
}

/// The Reply in `received`, which must be one.
#[track_caller]
pub(crate) fn reply_at_client(received: &[u8]) -> RpcMsg<'_> {
    use rpcrdma_core::engine::inbound::from_server;
    use rpcrdma_core::engine::inbound::FromServer;
    match from_server(received, PLAIN) {
        Ok(FromServer::Reply(message)) => message,
        other => panic!("not a Reply: {other:?}"),
    }
}
