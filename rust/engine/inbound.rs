// SPDX-License-Identifier: GPL-2.0

//! What a received message is: a Call or a Reply, in which direction, or nothing to act on.
//!
//! Direction is a property of the message alone: of its `msg_type` word if the payload is inline,
//! else of the chunk that holds the payload. XIDs play no part, because the same XID may be live in
//! both directions at once (RFC 8167 Section 2.4.1). The caller looks the XID up afterwards, among
//! the Calls of that direction only.
//!
//! There are two entry points, one for each end of a connection: the roles differ in what they
//! refuse, and in whether they may say so (RFC 8166 Section 4.5: a responder answers, a requester
//! is silent).

use crate::wire::{
    Body,
    ChunkLists,
    ErrorReply,
    Header,
    Malformed,
    RdmaError,
    Reader,
    MIN_LEN, //
};

use super::agreement::Extensions;

/// `msg_type` of an RPC Call (RFC 5531 Section 9).
pub const CALL: u32 = 0;
/// `msg_type` of an RPC Reply.
const REPLY: u32 = 1;

/// A Call or a Reply that may be acted on.
#[derive(Clone, Copy, Debug)]
pub struct RpcMsg<'a> {
    /// The XID of the RPC, in the direction of its Call.
    pub xid: u32,
    /// In a Call the credits requested, in a Reply those granted; of that direction.
    pub credits: u32,
    /// The chunk lists.
    pub chunks: ChunkLists<'a>,
    /// The Payload stream, if it is inline: then this is RDMA_MSG, else RDMA_NOMSG.
    pub payload: Option<&'a [u8]>,
}

/// What the listening end received.
#[derive(Clone, Copy, Debug)]
pub enum FromClient<'a> {
    /// A forward Call. If it is a Long Call, its lists have a Position-zero Read chunk.
    Call(RpcMsg<'a>),
    /// A Reply to a reverse Call: inline, without chunks. To be matched among reverse Calls only.
    BackchannelReply(RpcMsg<'a>),
    /// The client refused a reverse Call. To be matched among reverse Calls; if there is none, the
    /// message is dropped and its credits are not looked at.
    BackchannelError(Refused),
    /// The client has pulled the Reply of this XID. Only if that was negotiated.
    Done {
        /// The XID of the Reply.
        xid: u32,
    },
}

/// What the connecting end received.
#[derive(Clone, Copy, Debug)]
pub enum FromServer<'a> {
    /// A Reply to a forward Call. If it is a Long Reply, its lists have a Reply chunk (or, if that
    /// was negotiated, a Read list, which should be a Position-zero Read chunk).
    Reply(RpcMsg<'a>),
    /// The server refused a forward Call. If its XID is unknown, the message is dropped and its
    /// credits are not looked at.
    Error(Refused),
    /// A reverse Call: inline, without chunks.
    BackchannelCall(RpcMsg<'a>),
}

/// A received RDMA_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The XID of the Call that was refused.
    pub xid: u32,
    /// Credits granted; meaningful only if the XID is known.
    pub credits: u32,
    /// The reason.
    pub error: RdmaError,
}

/// What is done about a message that is not acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Drop it in silence. The Receive has to be posted again all the same.
    Drop,
    /// Send this back.
    Answer(ErrorReply),
}

/// What a responder makes of it (RFC 8166 Section 4.5).
impl From<Malformed> for Response {
    #[inline]
    fn from(malformed: Malformed) -> Self {
        malformed.answer().map_or(Self::Drop, Self::Answer)
    }
}

/// What the listening end makes of a message.
#[inline]
pub fn from_client(message: &[u8], ext: Extensions) -> Result<FromClient<'_>, Response> {
    // A malformed message is taken for a Call: those are what a server is sent.
    let header = Header::decode(message)?;
    let xid = header.xid;
    let refuse = Response::Answer(ErrorReply::chunk(xid));
    match header.body {
        Body::Msg { chunks, payload } => {
            let message = RpcMsg::inline(&header, chunks, payload);
            match msg_type(payload, xid) {
                // The payload of RDMA_MSG is inline; a chunk that says it were elsewhere lies.
                Some(CALL) if !has_position_zero(&chunks) => Ok(FromClient::Call(message)),
                Some(REPLY) if chunks.is_empty() => Ok(FromClient::BackchannelReply(message)),
                // Reverse Calls offer no chunks, hence a Reply cannot return any.
                Some(REPLY) => Err(Response::Drop),
                _ => Err(refuse),
            }
        }
        Body::NoMsg { chunks } if has_position_zero(&chunks) => {
            Ok(FromClient::Call(RpcMsg::long(&header, chunks)))
        }
        // RFC 8166 Section 4.2.4: some chunk must hold the payload of RDMA_NOMSG.
        Body::NoMsg { .. } => Err(refuse),
        Body::Done if ext.pulled_replies => Ok(FromClient::Done { xid }),
        Body::Done => Err(Response::Drop),
        Body::Error(error) => Ok(FromClient::BackchannelError(Refused::new(&header, error))),
    }
}

/// What the connecting end makes of a message.
#[inline]
pub fn from_server(message: &[u8], ext: Extensions) -> Result<FromServer<'_>, Response> {
    let header = match Header::decode(message) {
        Ok(header) => header,
        // Of another version nothing is known; but if this would be a Call in ours, it is one.
        Err(version @ Malformed::Version { xid, .. }) if is_call(message, xid) => {
            return Err(version.into());
        }
        // A malformed message is taken for a Reply: a requester is silent about those.
        Err(_) => return Err(Response::Drop),
    };
    let xid = header.xid;
    let refuse = Response::Answer(ErrorReply::chunk(xid));
    match header.body {
        Body::Msg { chunks, payload } => {
            let message = RpcMsg::inline(&header, chunks, payload);
            match msg_type(payload, xid) {
                // RFC 8166 Section 4.3.1: Replies have no Read list.
                Some(REPLY) if chunks.reads.is_empty() => Ok(FromServer::Reply(message)),
                Some(CALL) if chunks.is_empty() => Ok(FromServer::BackchannelCall(message)),
                // RFC 8167 Section 5.3: chunks are not supported in this direction.
                Some(CALL) => Err(refuse),
                _ => Err(Response::Drop),
            }
        }
        Body::NoMsg { chunks } if chunks.reads.is_empty() => match chunks.reply {
            Some(_) => Ok(FromServer::Reply(RpcMsg::long(&header, chunks))),
            None => Err(Response::Drop),
        },
        // Whatever the Positions: no Call of the reverse direction may look like this.
        Body::NoMsg { chunks } if ext.pulled_replies => {
            Ok(FromServer::Reply(RpcMsg::long(&header, chunks)))
        }
        // Only a Call has a Read list, so this is a Long Call of the reverse direction.
        Body::NoMsg { .. } => Err(refuse),
        // Only a server exposes Replies, so only a server is told that one has been pulled.
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

/// The `msg_type` of an RPC message, if it is one and has the XID of its transport header.
#[inline]
fn msg_type(payload: &[u8], xid: u32) -> Option<u32> {
    let mut reader = Reader::new(payload);
    if reader.word() == Ok(xid) {
        reader.word().ok()
    } else {
        None
    }
}

/// Whether an RPC Call stands where it would if there were no chunks.
#[cold]
fn is_call(message: &[u8], xid: u32) -> bool {
    let payload = message.get(MIN_LEN..).unwrap_or_default();
    msg_type(payload, xid) == Some(CALL)
}

#[inline]
fn has_position_zero(chunks: &ChunkLists<'_>) -> bool {
    let mut reads = chunks.reads.segments();
    reads.any(|read| read.position == 0 && !read.segment.is_empty())
}
