// SPDX-License-Identifier: GPL-2.0

//! The parser of received headers. It is stateless and takes one pass.
//!
//! C: rpc_rdma.c, rpcrdma_decode_error()
//! C: svc_rdma_recvfrom.c, svc_rdma_xdr_decode_req()

use super::{
    chunks::ChunkLists,
    error::{
        BadList,
        Malformed,
        RdmaError, //
    },
    Reader,
    Truncated,
    ERR_CHUNK,
    ERR_VERS,
    FIXED_LEN,
    MIN_LEN,
    RDMA_DONE,
    RDMA_ERROR,
    RDMA_MSG,
    RDMA_NOMSG,
    VERSION,
    WORD, //
};

/// A received transport header.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// `rdma_xid`: the XID of the RPC.
    pub xid: u32,
    /// `rdma_vers`: 1, or any version in an RDMA_ERROR with ERR_VERS.
    #[allow(dead_code, reason = "host tests encode the header again")]
    pub vers: u32,
    /// `rdma_credit`: credits requested by a Call, or granted by a Reply.
    pub credits: u32,
    /// The content, by `rdma_proc`.
    pub body: Body<'a>,
}

/// The content of a message, by procedure.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// RDMA_MSG: chunk lists, then the Payload stream.
    Msg {
        /// The chunk lists.
        chunks: ChunkLists<'a>,
        /// The inline part of the Payload stream.
        payload: &'a [u8],
    },
    /// RDMA_NOMSG: chunk lists only. A Read chunk or the Reply chunk holds the Payload stream.
    NoMsg {
        /// The chunk lists.
        chunks: ChunkLists<'a>,
    },
    /// RDMA_DONE: the requester has pulled a Reply.
    Done,
    /// RDMA_ERROR: the peer's transport refuses the Call with this XID.
    Error(RdmaError),
}

impl<'a> Header<'a> {
    /// Parses a received message.
    ///
    /// Messages of less than 28 bytes are not parsed (RFC 8166 Section 4.5), except RDMA_ERROR and
    /// RDMA_DONE, which are shorter by definition. Bytes after the lists of RDMA_NOMSG, after
    /// RDMA_ERROR and after RDMA_DONE are ignored.
    ///
    /// # Errors
    ///
    /// See [`Malformed`].
    // Out of line, the header would be copied twice: to memory, and to what the caller makes of it.
    #[inline(always)]
    pub fn decode(message: &'a [u8]) -> Result<Self, Malformed> {
        // A message with chunk lists has at least their three discriminators.
        let Some((start, rest)) = message.split_first_chunk::<MIN_LEN>() else {
            return Self::decode_short(message).map(Rare::into_header);
        };
        let [xid, vers, credits, procedure, lists @ ..] = words(start);
        if vers != VERSION || procedure > RDMA_NOMSG {
            return Self::decode_rare(message).map(Rare::into_header);
        }
        let (chunks, payload) = match lists {
            // Fast path: most messages have no chunks.
            [0, 0, 0] => (ChunkLists::default(), rest),
            _ => {
                let mut reader = Reader::new(message.get(FIXED_LEN..).unwrap_or_default());
                let chunks = ChunkLists::decode(&mut reader);
                let chunks = chunks.map_err(|BadList| Malformed::Lists { xid })?;
                (chunks, reader.rest())
            }
        };
        let body = match procedure {
            RDMA_MSG => Body::Msg { chunks, payload },
            _ => Body::NoMsg { chunks },
        };
        Ok(Self {
            xid,
            vers,
            credits,
            body,
        })
    }

    /// Parses a message that is shorter than a header with chunk lists: RDMA_ERROR or RDMA_DONE.
    #[cold]
    fn decode_short(message: &'a [u8]) -> Result<Rare, Malformed> {
        match Self::decode_rare(message) {
            Err(error @ Malformed::Error { .. }) => Err(error),
            Err(_) => Err(Malformed::Short),
            Ok(rare) => Ok(rare),
        }
    }

    /// Parses a message that is neither RDMA_MSG nor RDMA_NOMSG, or not of version 1.
    #[cold]
    fn decode_rare(message: &'a [u8]) -> Result<Rare, Malformed> {
        let mut reader = Reader::new(message);
        let mut word = || reader.word().map_err(|Truncated| Malformed::Short);
        let (xid, vers, credits, procedure) = (word()?, word()?, word()?, word()?);
        let error = match (vers, procedure) {
            // ERR_VERS has the same layout in every version (RFC 8166 Section 7). The layout of
            // other messages is known for version 1 only.
            (_, RDMA_ERROR) => match decode_error(reader) {
                Ok(error @ RdmaError::Vers { .. }) => Some(error),
                Ok(error) if vers == VERSION => Some(error),
                Ok(_) => return Err(Malformed::Error { xid, code: None }),
                Err(code) => return Err(Malformed::Error { xid, code }),
            },
            (VERSION, RDMA_DONE) => None,
            (VERSION, _) => return Err(Malformed::Procedure { xid, procedure }),
            _ => return Err(Malformed::Version { xid, vers }),
        };
        Ok(Rare {
            xid,
            vers,
            credits,
            error,
        })
    }
}

/// A header without chunk lists. If a function that is not inlined returned a [`Header`], all
/// headers would be in memory.
struct Rare {
    xid: u32,
    vers: u32,
    credits: u32,
    /// `None` if it is an RDMA_DONE.
    error: Option<RdmaError>,
}

impl Rare {
    #[inline(always)]
    fn into_header<'a>(self) -> Header<'a> {
        Header {
            xid: self.xid,
            vers: self.vers,
            credits: self.credits,
            body: self.error.map_or(Body::Done, Body::Error),
        }
    }
}

/// The words of a minimal header.
#[inline]
fn words(bytes: &[u8; MIN_LEN]) -> [u32; MIN_LEN / WORD] {
    let mut words = [0; MIN_LEN / WORD];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
        if let Some(bytes) = bytes.first_chunk() {
            *word = u32::from_be_bytes(*bytes);
        }
    }
    words
}

/// Decodes the words after the fixed fields of an RDMA_ERROR.
///
/// # Errors
///
/// The code if it is unknown, `None` if the message is truncated.
fn decode_error(mut reader: Reader<'_>) -> Result<RdmaError, Option<u32>> {
    let mut word = || reader.word().map_err(|Truncated| None);
    match word()? {
        ERR_VERS => Ok(RdmaError::Vers {
            low: word()?,
            high: word()?,
        }),
        ERR_CHUNK => Ok(RdmaError::Chunk),
        unknown => Err(Some(unknown)),
    }
}

/// The words of the fixed fields, for trace events. Words past the end of `bytes` are zero.
pub fn fixed_words(bytes: &[u8]) -> [u32; 4] {
    let mut reader = Reader::new(bytes);
    [(); 4].map(|()| reader.word().unwrap_or(0))
}
