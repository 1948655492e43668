// SPDX-License-Identifier: GPL-2.0

//! Classifies received messages: Call, Reply or error, forward or backchannel.
//!
//! C: rpc_rdma.c, rpcrdma_is_bcall()
//! C: svc_rdma_recvfrom.c, svc_rdma_xdr_decode_req(), svc_rdma_is_reverse_direction_reply()
//!
//! The message alone determines its direction: by `msg_type` if the payload is inline, otherwise by
//! the chunk that holds the payload. The XID does not, because the same XID may be in use in both
//! directions at once (RFC 8167 Section 2.4.1). The caller then looks up the XID among the Calls of
//! that direction only.
//!
//! Each end of a connection has its own entry point, [`from_client`] or [`from_server`]. They
//! refuse different messages. A responder answers a malformed message with an error; a requester
//! drops it silently (RFC 8166 Section 4.5).

use crate::wire::{
    Body,
    ChunkLists,
    ErrorReply,
    Header,
    Malformed,
    RdmaError,
    Reader,
    MIN_LEN,
    WORD, //
};

use super::agreement::Extensions;

/// `msg_type` of an RPC Call (RFC 5531 Section 9).
pub const CALL: u32 = 0;
/// `msg_type` of an RPC Reply.
const REPLY: u32 = 1;
/// Bytes of an RPC message up to the end of its `msg_type`.
const MSG_TYPE_END: usize = 2 * WORD;

/// A Call or a Reply whose header is valid.
#[derive(Clone, Copy, Debug)]
pub struct RpcMsg<'a> {
    /// The XID of the RPC.
    pub xid: u32,
    /// Credits requested by a Call, or granted by a Reply. Each direction has its own credits.
    pub credits: u32,
    /// The chunk lists.
    pub chunks: ChunkLists<'a>,
    /// The inline part of the Payload stream in an RDMA_MSG; `None` in an RDMA_NOMSG.
    pub payload: Option<&'a [u8]>,
}

/// A message that the server has received.
#[derive(Clone, Copy, Debug)]
pub enum FromClient<'a> {
    /// A Call. If it is a Long Call, its lists have a Position-zero Read chunk.
    Call(RpcMsg<'a>),
    /// A Reply to a backchannel Call: inline, without chunks.
    BackchannelReply(RpcMsg<'a>),
    /// The client refuses a backchannel Call. If no backchannel Call has this XID, the caller drops
    /// the message and ignores its credits.
    BackchannelError(Refused),
    /// The client has pulled the Reply with this XID. Only if pulled Replies were negotiated.
    Done {
        /// The XID of the Reply.
        xid: u32,
    },
}

/// A message that the client has received.
#[derive(Clone, Copy, Debug)]
pub enum FromServer<'a> {
    /// A Reply. If it is a Long Reply, its lists have a Reply chunk, or, if pulled Replies were
    /// negotiated, a Read list. `match_reply` checks the Positions in the Read list.
    Reply(RpcMsg<'a>),
    /// The server refuses a Call. If no Call has this XID, the caller drops the message and ignores
    /// its credits.
    Error(Refused),
    /// A Reply whose payload is too short for an RPC message. The Call with this XID fails, because
    /// no other Reply follows.
    Empty {
        /// The XID of the transport header.
        xid: u32,
        /// Credits granted. Meaningful only if the XID is known.
        credits: u32,
    },
    /// A backchannel Call: inline, without chunks.
    BackchannelCall(RpcMsg<'a>),
}

/// A received RDMA_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The XID of the refused Call.
    pub xid: u32,
    /// Credits granted. Meaningful only if the XID is known.
    pub credits: u32,
    /// The reason.
    pub error: RdmaError,
}

/// The response to a message that cannot be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Drop the message. The caller still posts a Receive in place of the one consumed.
    Drop,
    /// Send this RDMA_ERROR.
    Answer(ErrorReply),
}

/// The response of a responder (RFC 8166 Section 4.5).
impl From<Malformed> for Response {
    #[inline]
    fn from(malformed: Malformed) -> Self {
        malformed.answer().map_or(Self::Drop, Self::Answer)
    }
}

/// Classifies a message that the server has received.
///
/// # Errors
///
/// The [`Response`] to a message that cannot be processed.
#[inline]
pub fn from_client(message: &[u8], ext: Extensions) -> Result<FromClient<'_>, Response> {
    // A malformed message counts as a Call, which is what a client normally sends.
    let header = Header::decode(message)?;
    let xid = header.xid;
    let refuse = Response::Answer(ErrorReply::chunk(xid));
    match header.body {
        Body::Msg { chunks, payload } => {
            let message = RpcMsg::inline(&header, chunks, payload);
            match msg_type(payload, xid) {
                // The payload of RDMA_MSG is inline, so a Position-zero chunk is an error.
                Some(CALL) if !has_position_zero(&chunks) => Ok(FromClient::Call(message)),
                Some(REPLY) if chunks.is_empty() => Ok(FromClient::BackchannelReply(message)),
                // Backchannel Calls offer no chunks, so their Replies cannot return any.
                Some(REPLY) => Err(Response::Drop),
                _ => Err(refuse),
            }
        }
        Body::NoMsg { chunks } if has_position_zero(&chunks) => {
            Ok(FromClient::Call(RpcMsg::long(&header, chunks)))
        }
        // RFC 8166 Section 4.2.4: a chunk must hold the payload of RDMA_NOMSG.
        Body::NoMsg { .. } => Err(refuse),
        Body::Done if ext.pulled_replies => Ok(FromClient::Done { xid }),
        Body::Done => Err(Response::Drop),
        Body::Error(error) => Ok(FromClient::BackchannelError(Refused::new(&header, error))),
    }
}

/// Classifies a message that the client has received.
///
/// # Errors
///
/// The [`Response`] to a message that cannot be processed.
#[inline(always)]
pub fn from_server(message: &[u8], ext: Extensions) -> Result<FromServer<'_>, Response> {
    let header = match Header::decode(message) {
        Ok(header) => header,
        // A message of another version cannot be parsed. It counts as a Call, which is answered, if
        // it would be a Call without chunks in version 1.
        Err(version @ Malformed::Version { xid, .. }) if is_call(message, xid) => {
            return Err(version.into());
        }
        // Any other malformed message counts as a Reply, which a requester drops.
        Err(_) => return Err(Response::Drop),
    };
    let xid = header.xid;
    let refuse = Response::Answer(ErrorReply::chunk(xid));
    match header.body {
        Body::Msg { chunks, payload } => {
            let message = RpcMsg::inline(&header, chunks, payload);
            match msg_type(payload, xid) {
                // RFC 8166 Section 4.3.1: a Reply has no Read list.
                Some(REPLY) if chunks.reads.is_empty() => Ok(FromServer::Reply(message)),
                Some(CALL) if chunks.is_empty() => Ok(FromServer::BackchannelCall(message)),
                // RFC 8167 Section 5.3: backchannel Calls have no chunks.
                Some(CALL) => Err(refuse),
                // The header is valid. Some servers convey an error like this.
                None if payload.len() < MSG_TYPE_END && chunks.reads.is_empty() => {
                    Ok(FromServer::Empty {
                        xid,
                        credits: header.credits,
                    })
                }
                _ => Err(Response::Drop),
            }
        }
        Body::NoMsg { chunks } if chunks.reads.is_empty() => match chunks.reply {
            Some(_) => Ok(FromServer::Reply(RpcMsg::long(&header, chunks))),
            None => Err(Response::Drop),
        },
        // A pulled Reply, whatever its Positions: a backchannel Call cannot be an RDMA_NOMSG.
        Body::NoMsg { chunks } if ext.pulled_replies => {
            Ok(FromServer::Reply(RpcMsg::long(&header, chunks)))
        }
        // Without pulled Replies, only a Call has a Read list: this is a Long backchannel Call.
        Body::NoMsg { .. } => Err(refuse),
        // Only a server exposes Replies, so only a client sends RDMA_DONE.
        Body::Done => Err(Response::Drop),
        Body::Error(error) => Ok(FromServer::Error(Refused::new(&header, error))),
    }
}

impl<'a> RpcMsg<'a> {
    #[inline]
    fn inline(header: &Header<'a>, chunks: ChunkLists<'a>, payload: &'a [u8]) -> Self {
        Self {
            xid: header.xid,
            credits: header.credits,
            chunks,
            payload: Some(payload),
        }
    }

    #[inline]
    fn long(header: &Header<'a>, chunks: ChunkLists<'a>) -> Self {
        Self {
            xid: header.xid,
            credits: header.credits,
            chunks,
            payload: None,
        }
    }
}

impl Refused {
    #[inline]
    fn new(header: &Header<'_>, error: RdmaError) -> Self {
        Self {
            xid: header.xid,
            credits: header.credits,
            error,
        }
    }
}

/// The `msg_type` of an RPC message. `None` if `payload` is too short, or if its XID is not that of
/// the transport header.
#[inline]
fn msg_type(payload: &[u8], xid: u32) -> Option<u32> {
    let mut reader = Reader::new(payload);
    if reader.word() == Ok(xid) {
        reader.word().ok()
    } else {
        None
    }
}

/// Whether an RPC Call follows a header of minimal length.
#[cold]
fn is_call(message: &[u8], xid: u32) -> bool {
    let payload = message.get(MIN_LEN..).unwrap_or_default();
    msg_type(payload, xid) == Some(CALL)
}

/// Whether the Read list has a Position-zero chunk with bytes.
#[inline]
fn has_position_zero(chunks: &ChunkLists<'_>) -> bool {
    // Most messages have no Read list.
    if chunks.reads.is_empty() {
        return false;
    }
    let mut reads = chunks.reads.segments();
    reads.any(|read| read.position == 0 && !read.segment.is_empty())
}
