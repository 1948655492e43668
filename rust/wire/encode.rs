// SPDX-License-Identifier: GPL-2.0

//! The builder of headers to be sent.
//!
//! The three lists come in a fixed order, so the builder has one type per place: a Read list can
//! be written only where a Read list belongs, and a header cannot be finished half-way.
//!
//! ```text
//! HeaderWriter --no_more_reads--> WriteListPlace --no_more_writes--> ReplyChunkPlace --> length
//! ```
//!
//! Everything here fails with [`Overflow`] alone: the header does not fit the buffer, whose content
//! is then unspecified.
//!
//! There is no form for RDMA_MSGP (RFC 8166 Section 4.6.1); RDMA_ERROR is written by
//! [`ErrorReply::encode`](super::ErrorReply::encode).

use super::{
    Overflow,
    ReadSegment,
    Segment,
    WriteChunk,
    Writer,
    RDMA_DONE,
    RDMA_MSG,
    RDMA_NOMSG,
    VERSION, //
};

/// A header whose fixed fields are written; the Read list is next.
#[derive(Debug)]
pub struct HeaderWriter<'b> {
    out: Writer<'b>,
}

impl<'b> HeaderWriter<'b> {
    #[inline]
    fn start(
        bytes: &'b mut [u8],
        xid: u32,
        credits: u32,
        procedure: u32,
    ) -> Result<Writer<'b>, Overflow> {
        let mut out = Writer::new(bytes);
        out.words([xid, VERSION, credits, procedure])?;
        Ok(out)
    }

    /// Starts an RDMA_MSG: the Payload stream follows the header.
    #[inline]
    pub fn msg(bytes: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(bytes, xid, credits, RDMA_MSG)?;
        Ok(Self { out })
    }

    /// Starts an RDMA_NOMSG: the Payload stream is in a chunk.
    #[inline]
    pub fn nomsg(bytes: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(bytes, xid, credits, RDMA_NOMSG)?;
        Ok(Self { out })
    }

    /// Writes a whole RDMA_MSG header without chunks; returns its length.
    #[inline]
    pub fn plain(bytes: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let mut out = Writer::new(bytes);
        out.words([xid, VERSION, credits, RDMA_MSG, 0, 0, 0])?;
        Ok(out.len())
    }

    /// Writes a whole RDMA_DONE; returns its length. Only for connections that have negotiated it.
    pub fn done(bytes: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let out = Self::start(bytes, xid, credits, RDMA_DONE)?;
        Ok(out.len())
    }

    /// Appends a segment to the Read list.
    #[inline]
    pub fn read_segment(&mut self, read: ReadSegment) -> Result<(), Overflow> {
        debug_assert!(read.position % 4 == 0);
        self.out.words([1, read.position])?;
        self.out.array(read.segment.to_bytes())
    }

    /// Closes the Read list.
    #[inline]
    pub fn no_more_reads(mut self) -> Result<WriteListPlace<'b>, Overflow> {
        self.out.word(0)?;
        Ok(WriteListPlace { out: self.out })
    }
}

/// A header whose Read list is closed; the Write list is next.
#[derive(Debug)]
pub struct WriteListPlace<'b> {
    out: Writer<'b>,
}

impl<'b> WriteListPlace<'b> {
    /// Appends a Write chunk of `segments`.
    #[inline]
    pub fn write_chunk<I>(&mut self, segments: I) -> Result<(), Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        self.out.word(1)?;
        put_chunk(&mut self.out, segments)
    }

    /// Appends a Write chunk as returned in a Reply: the segments of the Call, with lengths that
    /// add up to the `written` bytes that fill them in array order.
    #[inline]
    pub fn return_chunk(&mut self, chunk: &WriteChunk<'_>, written: u32) -> Result<(), Overflow> {
        self.write_chunk(filled(chunk, written))
    }

    /// Closes the Write list.
    #[inline]
    pub fn no_more_writes(mut self) -> Result<ReplyChunkPlace<'b>, Overflow> {
        self.out.word(0)?;
        Ok(ReplyChunkPlace { out: self.out })
    }
}

/// A header whose Write list is closed; the Reply chunk is next and last.
#[derive(Debug)]
pub struct ReplyChunkPlace<'b> {
    out: Writer<'b>,
}

impl<'b> ReplyChunkPlace<'b> {
    /// Ends the header without a Reply chunk; returns the header's length.
    #[inline]
    pub fn no_reply_chunk(mut self) -> Result<usize, Overflow> {
        self.out.word(0)?;
        Ok(self.out.len())
    }

    /// Ends the header with a Reply chunk of `segments`; returns the header's length.
    #[inline]
    pub fn reply_chunk<I>(mut self, segments: I) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        self.out.word(1)?;
        put_chunk(&mut self.out, segments)?;
        Ok(self.out.len())
    }

    /// Ends the header with the Reply chunk of the Call, of which `written` bytes were used;
    /// returns the header's length.
    #[inline]
    pub fn return_chunk(self, chunk: &WriteChunk<'_>, written: u32) -> Result<usize, Overflow> {
        self.reply_chunk(filled(chunk, written))
    }
}

/// Writes a counted array of segments. How many there are may be known only afterwards.
#[inline]
fn put_chunk<I>(out: &mut Writer<'_>, segments: I) -> Result<(), Overflow>
where
    I: IntoIterator<Item = Segment>,
{
    let count_at = out.len();
    out.word(0)?;
    let mut count: u32 = 0;
    for segment in segments {
        out.array(segment.to_bytes())?;
        count = count.checked_add(1).ok_or(Overflow)?;
    }
    out.replace_word(count_at, count)
}

/// The segments of `chunk` with the lengths that `written` bytes fill in array order.
#[inline]
fn filled<'a>(chunk: &WriteChunk<'a>, written: u32) -> impl Iterator<Item = Segment> + 'a {
    chunk.segments().scan(written, |left, segment| {
        let length = segment.length.min(*left);
        // NO-OVERFLOW: not more than is left.
        *left -= length;
        Some(segment.with_length(length))
    })
}
