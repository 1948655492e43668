// SPDX-License-Identifier: GPL-2.0

//! The parser of received headers: one pass, no state, no memory.

use super::chunks::ChunkLists;
use super::error::BadList;
use super::error::Malformed;
use super::error::RdmaError;
use super::Reader;
use super::Truncated;
use super::ERR_CHUNK;
use super::ERR_VERS;
use super::MIN_LEN;
use super::RDMA_DONE;
use super::RDMA_ERROR;
use super::RDMA_MSG;
use super::RDMA_NOMSG;
use super::VERSION;

/// A received transport header.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// `rdma_xid`: the XID of the RPC, in the direction of the Call.
    pub xid: u32,
    /// `rdma_vers`: 1, or anything at all in an RDMA_ERROR with ERR_VERS.
    pub vers: u32,
    /// `rdma_credit`: a request in a Call, a grant in a Reply.
    pub credits: u32,
    /// What `rdma_proc` says the message is.
    pub body: Body<'a>,
}

/// The body of a message, by procedure.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// RDMA_MSG: chunk lists, then the Payload stream.
    Msg {
        /// The chunk lists.
        chunks: ChunkLists<'a>,
        /// The Payload stream, as far as it is inline.
        payload: &'a [u8],
    },
    /// RDMA_NOMSG: chunk lists only; one of them holds the Payload stream.
    NoMsg {
        /// The chunk lists.
        chunks: ChunkLists<'a>,
    },
    /// RDMA_DONE: a Read chunk of a Reply has been pulled.
    Done,
    /// RDMA_ERROR: the Call of this XID was refused by the transport.
    Error(RdmaError),
}

impl<'a> Header<'a> {
    /// Parses a received message.
    ///
    /// What is shorter than 28 octets is not parsed (RFC 8166 Section 4.5), except that RDMA_ERROR
    /// and RDMA_DONE are by their definition shorter. Octets after the lists of RDMA_NOMSG, or
    /// after RDMA_ERROR and RDMA_DONE, carry no meaning and are not looked at.
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(message);
        let fixed = |_: Truncated| Malformed::Short;
        let xid = reader.word().map_err(fixed)?;
        let vers = reader.word().map_err(fixed)?;
        let credits = reader.word().map_err(fixed)?;
        let procedure = reader.word().map_err(fixed)?;

        if message.len() < MIN_LEN && !matches!(procedure, RDMA_DONE | RDMA_ERROR) {
            return Err(Malformed::Short);
        }
        if vers != VERSION {
            return Self::other_version(xid, vers, credits, procedure, reader);
        }
        let lists = |_: BadList| Malformed::Lists { xid };
        let body = match procedure {
            RDMA_MSG => {
                let chunks = ChunkLists::decode(&mut reader).map_err(lists)?;
                let payload = reader.rest();
                Body::Msg { chunks, payload }
            }
            RDMA_NOMSG => {
                let chunks = ChunkLists::decode(&mut reader).map_err(lists)?;
                Body::NoMsg { chunks }
            }
            RDMA_DONE => Body::Done,
            RDMA_ERROR => Body::Error(decode_error(reader).ok_or(Malformed::Error { xid })?),
            _ => return Err(Malformed::Procedure { xid, procedure }),
        };
        Ok(Self {
            xid,
            vers,
            credits,
            body,
        })
    }

    /// Only one thing is readable in a message of another version: ERR_VERS, whose layout never
    /// changes (RFC 8166 Section 7).
    #[cold]
    fn other_version(
        xid: u32,
        vers: u32,
        credits: u32,
        procedure: u32,
        reader: Reader<'a>,
    ) -> Result<Self, Malformed> {
        if procedure != RDMA_ERROR {
            // The floor of 28 octets protects from answering what may not be a header at all.
            return match reader.remaining() < MIN_LEN - super::FIXED_LEN {
                true => Err(Malformed::Short),
                false => Err(Malformed::Version { xid, vers }),
            };
        }
        match decode_error(reader) {
            Some(error @ RdmaError::Vers { .. }) => Ok(Self {
                xid,
                vers,
                credits,
                body: Body::Error(error),
            }),
            _ => Err(Malformed::Error { xid }),
        }
    }
}

/// Decodes what follows the fixed fields of an RDMA_ERROR.
#[cold]
fn decode_error(mut reader: Reader<'_>) -> Option<RdmaError> {
    match reader.word().ok()? {
        ERR_VERS => Some(RdmaError::Vers {
            low: reader.word().ok()?,
            high: reader.word().ok()?,
        }),
        ERR_CHUNK => Some(RdmaError::Chunk),
        _ => None,
    }
}
