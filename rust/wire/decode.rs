// SPDX-License-Identifier: GPL-2.0

//! The parser of received headers: one pass, no state, no memory.

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
    /// `rdma_xid`: the XID of the RPC, in the direction of the Call.
    pub xid: u32,
    /// `rdma_vers`: 1, or anything at all in an RDMA_ERROR with ERR_VERS.
    #[allow(
        dead_code,
        reason = "nothing depends on it; a test encodes the header again"
    )]
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
    /// What is shorter than 28 bytes is not parsed (RFC 8166 Section 4.5), except that RDMA_ERROR
    /// and RDMA_DONE are by their definition shorter. Bytes after the lists of RDMA_NOMSG, or
    /// after RDMA_ERROR and RDMA_DONE, carry no meaning and are not looked at.
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, Malformed> {
        // Whatever has chunk lists has at least their three discriminators.
        let Some((start, rest)) = message.split_first_chunk::<MIN_LEN>() else {
            return Self::decode_short(message);
        };
        let [xid, vers, credits, procedure, lists @ ..] = words(start);
        if vers != VERSION || procedure > RDMA_NOMSG {
            return Self::decode_rare(message);
        }
        let (chunks, payload) = match lists {
            // Messages without chunks are the common ones.
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

    /// Only RDMA_ERROR and RDMA_DONE are shorter than a header with chunk lists.
    #[cold]
    fn decode_short(message: &'a [u8]) -> Result<Self, Malformed> {
        match Self::decode_rare(message) {
            Err(Malformed::Error { xid }) => Err(Malformed::Error { xid }),
            Err(_) => Err(Malformed::Short),
            Ok(header) => Ok(header),
        }
    }

    /// Parses all that is neither RDMA_MSG nor RDMA_NOMSG, or of another version.
    #[cold]
    fn decode_rare(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(message);
        let mut word = || reader.word().map_err(|Truncated| Malformed::Short);
        let (xid, vers, credits, procedure) = (word()?, word()?, word()?, word()?);
        let body = match (vers, procedure) {
            // ERR_VERS has the same layout in every version (RFC 8166 Section 7); of what else
            // another version may have to say nothing is known.
            (_, RDMA_ERROR) => match decode_error(reader) {
                Some(error @ RdmaError::Vers { .. }) => Body::Error(error),
                Some(error) if vers == VERSION => Body::Error(error),
                _ => return Err(Malformed::Error { xid }),
            },
            (VERSION, RDMA_DONE) => Body::Done,
            (VERSION, _) => return Err(Malformed::Procedure { xid, procedure }),
            _ => return Err(Malformed::Version { xid, vers }),
        };
        Ok(Self {
            xid,
            vers,
            credits,
            body,
        })
    }
}

/// The words at the front of a message.
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

/// Decodes what follows the fixed fields of an RDMA_ERROR.
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
