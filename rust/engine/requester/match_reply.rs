// SPDX-License-Identifier: GPL-2.0

//! Compares the chunks of a Reply with the chunks that its Call offered.
//!
//! C: rpc_rdma.c, rpcrdma_decode_msg(), rpcrdma_decode_nomsg()
//!
//! A responder returns each chunk of the Call, with each length set to the number of bytes written
//! (RFC 8166 Sections 3.4.6 and 4.3.3). The requester must not pass unwritten memory to the
//! consumer as data. Therefore a returned chunk must have the offered handles and offsets, no
//! length may exceed the offered one, and only the last used segment may be partly filled. Some
//! responders (Linux before 4.12, illumos) return only the segments that they have used. A segment
//! to which nothing was written names no memory, so its handle and its offset do not matter.

use crate::{
    engine::inbound::RpcMsg,
    wire::{
        ReadList,
        Segment,
        WriteChunk,
        MIN_LEN,
        WORD, //
    }, //
};

/// The chunks that a Call offered: their segments, in the order of the header. A chunk that was not
/// offered has no segments.
#[derive(Clone, Copy, Debug)]
pub struct OfferedChunks<W, R> {
    /// Segments of the Write chunk.
    pub write: W,
    /// Segments of the Reply chunk.
    pub reply: R,
}

/// Location of the bytes of a Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyLocation<'a> {
    /// Inline, except the data item if it is in the Write chunk.
    Inline {
        /// The reduced Payload stream, in the Receive buffer.
        payload: &'a [u8],
        /// Bytes written to the Write chunk.
        by_write: u32,
    },
    /// In the Reply chunk, except the data item if it is in the Write chunk.
    InReplyChunk {
        /// Bytes written to the Reply chunk.
        length: u32,
        /// Bytes written to the Write chunk.
        by_write: u32,
    },
    /// In memory that the responder exposes, for the requester to pull.
    Exposed {
        /// Bytes to pull: at least a word.
        length: u32,
        /// Bytes written to the Write chunk.
        by_write: u32,
    },
}

impl ReplyLocation<'_> {
    /// Whether the Reply did not fit a Send of `threshold` bytes without chunks. A responder may
    /// use the Reply chunk for a short Reply, too.
    #[inline]
    pub fn is_long(&self, threshold: u32) -> bool {
        match *self {
            Self::Inline { .. } => false,
            Self::InReplyChunk { length, .. } | Self::Exposed { length, .. } => {
                length as usize + MIN_LEN > threshold as usize
            }
        }
    }
}

/// The Reply does not match the Call with its XID. The caller drops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

/// Locates the bytes of a Reply to a Call that offered `offered`.
///
/// If the Reply returns no Write list, an empty chunk, or no Reply chunk, no bytes were written to
/// that chunk.
///
/// # Errors
///
/// [`Mismatch`] if a returned chunk is not the one offered, or if the form of the Reply contradicts
/// its chunks.
#[inline(always)]
pub fn locate<'a, W, R>(
    message: &RpcMsg<'a>,
    offered: OfferedChunks<W, R>,
) -> Result<ReplyLocation<'a>, Mismatch>
where
    W: IntoIterator<Item = Segment>,
    R: IntoIterator<Item = Segment>,
{
    match message.payload {
        // Fast path: most Replies return no chunks.
        Some(payload) if message.chunks.is_empty() => Ok(ReplyLocation::Inline {
            payload,
            by_write: 0,
        }),
        _ => locate_by_chunks(message, offered),
    }
}

#[inline(always)]
fn locate_by_chunks<'a, W, R>(
    message: &RpcMsg<'a>,
    offered: OfferedChunks<W, R>,
) -> Result<ReplyLocation<'a>, Mismatch>
where
    W: IntoIterator<Item = Segment>,
    R: IntoIterator<Item = Segment>,
{
    let mut writes = message.chunks.writes.chunks();
    let by_write = match writes.next() {
        None => 0,
        Some(chunk) if chunk.is_empty() => 0,
        Some(chunk) => bytes_written(chunk, offered.write)?,
    };
    if writes.next().is_some() {
        return Err(Mismatch);
    }
    let in_reply_chunk = match message.chunks.reply {
        None => 0,
        Some(chunk) => bytes_written(chunk, offered.reply)?,
    };
    if !message.chunks.reads.is_empty() {
        return match (message.payload, in_reply_chunk) {
            (None, 0) => exposed(message.chunks.reads)
                .map(|length| ReplyLocation::Exposed { length, by_write }),
            _ => Err(Mismatch),
        };
    }
    match (message.payload, in_reply_chunk) {
        (Some(payload), 0) => Ok(ReplyLocation::Inline { payload, by_write }),
        (None, length @ 1..) => Ok(ReplyLocation::InReplyChunk { length, by_write }),
        _ => Err(Mismatch),
    }
}

/// Number of bytes in a returned chunk.
///
/// # Errors
///
/// [`Mismatch`] if `returned` is not the chunk `offered`, filled in array order.
#[inline]
fn bytes_written<I>(returned: WriteChunk<'_>, offered: I) -> Result<u32, Mismatch>
where
    I: IntoIterator<Item = Segment>,
{
    let mut offered = offered.into_iter();
    let mut sum: u32 = 0;
    let mut full = true;
    for segment in returned.segments() {
        let own = offered.next();
        if segment.is_empty() {
            full &= own.is_none_or(|own| own.is_empty());
            continue;
        }
        let own = own.ok_or(Mismatch)?;
        let same = segment.handle == own.handle && segment.offset == own.offset;
        if !same || !full || segment.length > own.length {
            return Err(Mismatch);
        }
        full &= segment.length == own.length;
        sum = sum.checked_add(segment.length).ok_or(Mismatch)?;
    }
    // Old responders do not return unused segments at the end.
    Ok(sum)
}

/// Number of bytes that the Read list of a Reply exposes.
///
/// The list must be one Position-zero chunk: reduced data items of a Reply are in Write chunks. An
/// RPC message has at least one word.
///
/// # Errors
///
/// [`Mismatch`] if it is not.
fn exposed(reads: ReadList<'_>) -> Result<u32, Mismatch> {
    let mut sum: u32 = 0;
    for read in reads.segments() {
        if read.position != 0 {
            return Err(Mismatch);
        }
        sum = sum.checked_add(read.segment.length).ok_or(Mismatch)?;
    }
    match usize::try_from(sum) {
        Ok(len) if len >= WORD => Ok(sum),
        _ => Err(Mismatch),
    }
}
