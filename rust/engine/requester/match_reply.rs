// SPDX-License-Identifier: GPL-2.0

//! Whether the chunks of a Reply are those that were offered, and how much they received.
//!
//! A responder returns each chunk as it got it, with lengths set to what it wrote (RFC 8166
//! Sections 3.4.6 and 4.3.3). Believing more than that would pass memory that nobody wrote as
//! data; so what is returned must name the same memory, no more of it, and without holes. Some
//! responders (Linux before 4.12, illumos) return only the segments that they have used.

use crate::{
    engine::inbound::RpcMsg,
    wire::{
        ReadList,
        Segment,
        WriteChunk,
        WORD, //
    }, //
};

/// What the Call offered: the segments of its Write chunk and of its Reply chunk, in the order of
/// the header. No segments stand for no chunk.
#[derive(Clone, Copy, Debug)]
pub struct Offered<W, R> {
    /// Segments of the Write chunk.
    pub write: W,
    /// Segments of the Reply chunk.
    pub reply: R,
}

/// Where the bytes of a Reply have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived<'a> {
    /// Inline, except for the data item if that came by RDMA Write.
    Inline {
        /// The reduced Payload stream, in the Receive buffer.
        payload: &'a [u8],
        /// Bytes in the Write chunk.
        by_write: u32,
    },
    /// In the Reply chunk, except for the data item if that came by the Write chunk.
    InReplyChunk {
        /// Bytes in the Reply chunk.
        length: u32,
        /// Bytes in the Write chunk.
        by_write: u32,
    },
    /// Nowhere yet: the responder exposes it, to be pulled.
    Exposed {
        /// Bytes to pull: at least a word.
        length: u32,
        /// Bytes in the Write chunk.
        by_write: u32,
    },
}

/// The Reply is not one to the Call it claims to answer; it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch;

/// Compares a Reply's chunks with what its Call offered.
///
/// A responder that returns no Write list, an empty chunk or no Reply chunk claims to have written
/// nothing, and is believed.
#[inline]
pub fn arrived<'a, W, R>(
    message: &RpcMsg<'a>,
    offered: Offered<W, R>,
) -> Result<Arrived<'a>, Mismatch>
where
    W: IntoIterator<Item = Segment>,
    R: IntoIterator<Item = Segment>,
{
    let mut writes = message.chunks.writes.chunks();
    let by_write = match writes.next() {
        None => 0,
        Some(chunk) if chunk.is_empty() => 0,
        Some(chunk) => bytes_written(&chunk, offered.write)?,
    };
    if writes.next().is_some() {
        return Err(Mismatch);
    }
    let in_reply_chunk = match &message.chunks.reply {
        None => 0,
        Some(chunk) => bytes_written(chunk, offered.reply)?,
    };
    if !message.chunks.reads.is_empty() {
        return match (message.payload, in_reply_chunk) {
            (None, 0) => {
                exposed(&message.chunks.reads).map(|length| Arrived::Exposed { length, by_write })
            }
            _ => Err(Mismatch),
        };
    }
    match (message.payload, in_reply_chunk) {
        (Some(payload), 0) => Ok(Arrived::Inline { payload, by_write }),
        (None, length @ 1..) => Ok(Arrived::InReplyChunk { length, by_write }),
        _ => Err(Mismatch),
    }
}

/// How many bytes a returned chunk holds, if it is the one offered.
///
/// Segments are filled in array order: after one that is not full, all others are unused.
#[inline]
fn bytes_written<I>(returned: &WriteChunk<'_>, offered: I) -> Result<u32, Mismatch>
where
    I: IntoIterator<Item = Segment>,
{
    let mut offered = offered.into_iter();
    let mut sum: u32 = 0;
    let mut full = true;
    for segment in returned.segments() {
        let own = offered.next().ok_or(Mismatch)?;
        let same = segment.handle == own.handle && segment.offset == own.offset;
        let hole = !full && segment.length != 0;
        if !same || hole || segment.length > own.length {
            return Err(Mismatch);
        }
        full &= segment.length == own.length;
        sum = sum.checked_add(segment.length).ok_or(Mismatch)?;
    }
    // Those at the end that are not returned were not used: old responders leave them out.
    Ok(sum)
}

/// How many bytes a Read list of a Reply exposes.
///
/// All of it is one chunk, at Position zero: a Reply's data items go to Write chunks, if anywhere.
/// Less than a word is no RPC message.
fn exposed(reads: &ReadList<'_>) -> Result<u32, Mismatch> {
    let mut sum: u32 = 0;
    for read in reads.segments() {
        if read.position != 0 {
            return Err(Mismatch);
        }
        sum = sum.checked_add(read.segment.length).ok_or(Mismatch)?;
    }
    match usize::try_from(sum) {
        Ok(bytes) if bytes >= WORD => Ok(sum),
        _ => Err(Mismatch),
    }
}
