// SPDX-License-Identifier: GPL-2.0

//! What can be wrong with a received header, and what RFC 8166 Section 4.5 has a responder answer.

use super::{
    size,
    Overflow,
    Truncated,
    Writer,
    ERR_CHUNK,
    ERR_VERS,
    RDMA_ERROR,
    VERSION, //
};

/// The content of an RDMA_ERROR message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaError {
    /// ERR_VERS: the responder speaks the versions `low` to `high`, inclusive.
    Vers {
        /// Lowest version spoken.
        low: u32,
        /// Highest version spoken.
        high: u32,
    },
    /// ERR_CHUNK: the header could not be parsed or its chunks not used.
    Chunk,
}

/// An RDMA_ERROR message that answers a Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The XID of the failing Call.
    pub xid: u32,
    /// The version of the failing Call, copied even if it is not supported.
    pub vers: u32,
    /// The reason.
    pub error: RdmaError,
}

impl ErrorReply {
    /// ERR_CHUNK for a Call of a known version.
    #[inline]
    pub const fn chunk(xid: u32) -> Self {
        Self {
            xid,
            vers: VERSION,
            error: RdmaError::Chunk,
        }
    }

    /// Encodes the message; returns its length.
    pub fn encode(&self, credits: u32, bytes: &mut [u8]) -> Result<usize, Overflow> {
        let mut out = Writer::new(bytes);
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
        debug_assert!(out.len() == size::error(&self.error));
        Ok(out.len())
    }
}

/// Why a received message is not a well-formed version 1 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short to be parsed; nothing in it can be trusted.
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
    /// Chunk lists that are not what Section 4.1.2 describes.
    Lists {
        /// `rdma_xid` of the message.
        xid: u32,
    },
    /// An RDMA_ERROR that cannot be understood.
    Error {
        /// `rdma_xid` of the message.
        xid: u32,
    },
}

impl Malformed {
    /// What a responder sends back for a Call like this; `None` if it drops the message in silence.
    ///
    /// RFC 8166 Sections 4.5, 4.5.1 and 4.5.2. An error is never answered with an error.
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

/// Inside the lists, running out of bytes is one of the ways not to follow the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadList;

impl From<Truncated> for BadList {
    #[inline]
    fn from(_: Truncated) -> Self {
        Self
    }
}
