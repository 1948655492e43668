// SPDX-License-Identifier: GPL-2.0

//! Malformed headers, and the RDMA_ERROR messages that answer them (RFC 8166 Section 4.5).
//!
//! C: svc_rdma_sendto.c, svc_rdma_send_error_msg()

use super::{
    Overflow,
    Truncated,
    Writer,
    ERR_CHUNK,
    ERR_VERS,
    FIXED_LEN,
    RDMA_ERROR,
    VERSION,
    WORD, //
};

/// The content of an RDMA_ERROR message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaError {
    /// ERR_VERS: the responder supports the versions `low` to `high`, inclusive.
    Vers {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// ERR_CHUNK: the responder cannot parse the header or use its chunks.
    Chunk,
}

impl RdmaError {
    /// Bytes in an RDMA_ERROR message with this content.
    #[inline]
    pub const fn message_len(&self) -> usize {
        match self {
            Self::Vers { .. } => FIXED_LEN + 3 * WORD,
            Self::Chunk => FIXED_LEN + WORD,
        }
    }
}

/// An RDMA_ERROR message that answers a Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// XID of the Call.
    pub xid: u32,
    /// Version of the Call, copied even if it is not supported.
    pub vers: u32,
    /// The reason.
    pub error: RdmaError,
}

impl ErrorReply {
    /// ERR_CHUNK for a Call of version 1.
    #[inline]
    pub const fn chunk(xid: u32) -> Self {
        Self {
            xid,
            vers: VERSION,
            error: RdmaError::Chunk,
        }
    }

    /// Encodes the message; returns its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if `buf` is shorter than [`RdmaError::message_len`].
    pub fn encode(&self, credits: u32, buf: &mut [u8]) -> Result<usize, Overflow> {
        let mut out = Writer::new(buf);
        out.word(self.xid)?;
        out.word(self.vers)?;
        out.word(credits)?;
        out.word(RDMA_ERROR)?;
        match self.error {
            RdmaError::Vers { low, high } => {
                out.word(ERR_VERS)?;
                out.word(low)?;
                out.word(high)?;
            }
            RdmaError::Chunk => out.word(ERR_CHUNK)?,
        }
        debug_assert!(out.len() == self.error.message_len());
        Ok(out.len())
    }
}

/// Why a received message is not a well-formed message of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short to be parsed. No field of the message is meaningful.
    Short,
    /// A version other than 1.
    Version {
        /// `rdma_xid` of the message.
        xid: u32,
        /// `rdma_vers` of the message.
        vers: u32,
    },
    /// An unknown or obsolete procedure.
    Procedure {
        /// `rdma_xid` of the message.
        xid: u32,
        /// `rdma_proc` of the message.
        procedure: u32,
    },
    /// Chunk lists that break the grammar of RFC 8166 Section 4.1.2.
    Lists {
        /// `rdma_xid` of the message.
        xid: u32,
    },
    /// An RDMA_ERROR with an unknown code, or truncated.
    Error {
        /// `rdma_xid` of the message.
        xid: u32,
        /// `rdma_err` of the message, if it is unknown.
        code: Option<u32>,
    },
}

impl Malformed {
    /// The RDMA_ERROR with which a responder answers the message, or `None` if it drops the
    /// message silently.
    ///
    /// RFC 8166 Sections 4.5, 4.5.1 and 4.5.2. A responder never answers an RDMA_ERROR.
    #[inline]
    pub const fn answer(&self) -> Option<ErrorReply> {
        match *self {
            Self::Short | Self::Error { .. } => None,
            Self::Version { xid, vers } => Some(ErrorReply {
                xid,
                vers,
                error: RdmaError::Vers {
                    low: VERSION,
                    high: VERSION,
                },
            }),
            Self::Procedure { xid, .. } | Self::Lists { xid } => Some(ErrorReply::chunk(xid)),
        }
    }
}

/// The chunk lists break the grammar, or the message ends within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadList;

impl From<Truncated> for BadList {
    #[inline]
    fn from(_: Truncated) -> Self {
        Self
    }
}
