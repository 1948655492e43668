// SPDX-License-Identifier: GPL-2.0

//! The encoder of headers.
//!
//! C: rpc_rdma.c, encode_read_segment()
//! C: svc_rdma_sendto.c, svc_rdma_encode_write_chunk(), svc_rdma_encode_write_segment()
//!
//! The encoder has one type for each of the three lists, which a header has in this order. Only
//! the type for the last list returns the length of the header, so a caller cannot swap lists or
//! leave one out:
//!
//! ```text
//! HeaderWriter --no_more_reads--> WriteListWriter --no_more_writes--> ReplyChunkWriter --> length
//! ```
//!
//! # Errors
//!
//! All functions fail with [`Overflow`] if the header does not fit the buffer. The content of the
//! buffer is then unspecified.
//!
//! RDMA_MSGP has no encoder: it is never sent (RFC 8166 Section 4.6.1). RDMA_ERROR is encoded by
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

/// Encodes the Read list. The fixed fields have been written.
#[derive(Debug)]
pub struct HeaderWriter<'b> {
    out: Writer<'b>,
}

impl<'b> HeaderWriter<'b> {
    #[inline]
    fn start(
        buf: &'b mut [u8],
        xid: u32,
        credits: u32,
        procedure: u32,
    ) -> Result<Writer<'b>, Overflow> {
        let mut out = Writer::new(buf);
        out.words([xid, VERSION, credits, procedure])?;
        Ok(out)
    }

    /// Starts an RDMA_MSG: the Payload stream follows the header.
    #[inline]
    pub fn msg(buf: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(buf, xid, credits, RDMA_MSG)?;
        Ok(Self { out })
    }

    /// Starts an RDMA_NOMSG: the Payload stream is in a chunk.
    #[inline]
    pub fn nomsg(buf: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(buf, xid, credits, RDMA_NOMSG)?;
        Ok(Self { out })
    }

    /// Writes an RDMA_MSG header without chunks; returns its length in bytes.
    #[inline]
    pub fn plain(buf: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let mut out = Writer::new(buf);
        out.words([xid, VERSION, credits, RDMA_MSG, 0, 0, 0])?;
        Ok(out.len())
    }

    /// Writes an RDMA_MSG header whose only chunk is a Write chunk of the first `count` of
    /// `segments`; returns its length in bytes. Fails also if there are fewer segments.
    #[inline]
    pub fn with_write_chunk<I>(
        buf: &'b mut [u8],
        xid: u32,
        credits: u32,
        count: u32,
        segments: I,
    ) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        let mut out = Writer::new(buf);
        out.words([xid, VERSION, credits, RDMA_MSG, 0, 1, count])?;
        // CAST: u32 to usize is lossless.
        out.arrays(count as usize, segments.into_iter().map(Segment::to_bytes))?;
        out.words([0, 0])?;
        Ok(out.len())
    }

    /// The same for a Reply that returns `chunk`, with the lengths that `written` bytes fill in
    /// array order.
    #[inline]
    pub fn returning_write_chunk(
        buf: &'b mut [u8],
        xid: u32,
        credits: u32,
        chunk: &WriteChunk<'_>,
        written: u32,
    ) -> Result<usize, Overflow> {
        // CAST: a message has fewer than 2^28 segments.
        let count = chunk.len() as u32;
        Self::with_write_chunk(buf, xid, credits, count, filled(chunk, written))
    }

    /// Writes an RDMA_DONE; returns its length in bytes.
    ///
    /// Legal only on a connection that has negotiated pulled Replies.
    pub fn done(buf: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let out = Self::start(buf, xid, credits, RDMA_DONE)?;
        Ok(out.len())
    }

    /// Appends a segment to the Read list.
    #[inline]
    pub fn read_segment(&mut self, read: ReadSegment) -> Result<(), Overflow> {
        debug_assert!(read.position % 4 == 0);
        self.out.words([1, read.position])?;
        self.out.array(read.segment.to_bytes())
    }

    /// Ends the Read list.
    #[inline]
    pub fn no_more_reads(mut self) -> Result<WriteListWriter<'b>, Overflow> {
        self.out.word(0)?;
        Ok(WriteListWriter { out: self.out })
    }
}

/// Encodes the Write list. The Read list has been written.
#[derive(Debug)]
pub struct WriteListWriter<'b> {
    out: Writer<'b>,
}

impl<'b> WriteListWriter<'b> {
    /// Appends a Write chunk of `segments`.
    #[inline]
    pub fn write_chunk<I>(&mut self, segments: I) -> Result<(), Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        self.out.word(1)?;
        put_chunk(&mut self.out, segments)
    }

    /// Appends a Write chunk to a Reply: the segments of `chunk`, a chunk of the Call, with the
    /// lengths that `written` bytes fill in array order.
    #[inline]
    pub fn return_chunk(&mut self, chunk: &WriteChunk<'_>, written: u32) -> Result<(), Overflow> {
        self.write_chunk(filled(chunk, written))
    }

    /// Ends the Write list.
    #[inline]
    pub fn no_more_writes(mut self) -> Result<ReplyChunkWriter<'b>, Overflow> {
        self.out.word(0)?;
        Ok(ReplyChunkWriter { out: self.out })
    }
}

/// Encodes the Reply chunk, which is last. The Read list and the Write list have been written.
#[derive(Debug)]
pub struct ReplyChunkWriter<'b> {
    out: Writer<'b>,
}

impl<'b> ReplyChunkWriter<'b> {
    /// Ends the header without a Reply chunk; returns the length of the header in bytes.
    #[inline]
    pub fn no_reply_chunk(mut self) -> Result<usize, Overflow> {
        self.out.word(0)?;
        Ok(self.out.len())
    }

    /// Ends the header with a Reply chunk of `segments`; returns the length of the header in bytes.
    #[inline]
    pub fn reply_chunk<I>(mut self, segments: I) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        self.out.word(1)?;
        put_chunk(&mut self.out, segments)?;
        Ok(self.out.len())
    }

    /// Ends the header of a Reply with the segments of `chunk`, the Reply chunk of the Call, with
    /// the lengths that `written` bytes fill in array order; returns the length of the header in
    /// bytes.
    #[inline]
    pub fn return_chunk(self, chunk: &WriteChunk<'_>, written: u32) -> Result<usize, Overflow> {
        self.reply_chunk(filled(chunk, written))
    }
}

/// Writes a counted array of segments. The count is written last, since an iterator need not know
/// its length.
#[inline]
fn put_chunk<I>(out: &mut Writer<'_>, segments: I) -> Result<(), Overflow>
where
    I: IntoIterator<Item = Segment>,
{
    let counted = out.later_word()?;
    let mut count: u32 = 0;
    for segment in segments {
        out.array(segment.to_bytes())?;
        // NO-OVERFLOW: a buffer has fewer than 2^32 segments.
        count = count.wrapping_add(1);
    }
    counted.set(count);
    Ok(())
}

/// The segments of `chunk` with the lengths that `written` bytes fill in array order.
#[inline]
fn filled<'a>(chunk: &WriteChunk<'a>, written: u32) -> impl Iterator<Item = Segment> + 'a {
    chunk.segments().scan(written, |left, segment| {
        let length = segment.length.min(*left);
        // NO-OVERFLOW: `length` is at most `left`.
        *left -= length;
        Some(segment.with_length(length))
    })
}
