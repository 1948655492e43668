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
//! There is no form for RDMA_MSGP (RFC 8166 Section 4.6.1); RDMA_ERROR is written by
//! [`ErrorReply::encode`](super::ErrorReply::encode).

use super::Overflow;
use super::ReadSegment;
use super::Segment;
use super::WriteChunk;
use super::Writer;
use super::RDMA_DONE;
use super::RDMA_MSG;
use super::RDMA_NOMSG;
use super::VERSION;

/// A header whose fixed fields are written; the Read list is next.
#[derive(Debug)]
pub struct HeaderWriter<'b> {
    out: Writer<'b>,
}

impl<'b> HeaderWriter<'b> {
    #[inline]
    fn start(
        octets: &'b mut [u8],
        xid: u32,
        credits: u32,
        procedure: u32,
    ) -> Result<Writer<'b>, Overflow> {
        let mut out = Writer::new(octets);
        out.word(xid)?;
        out.word(VERSION)?;
        out.word(credits)?;
        out.word(procedure)?;
        Ok(out)
    }

    /// Starts an RDMA_MSG: the Payload stream follows the header.
    #[inline]
    pub fn msg(octets: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(octets, xid, credits, RDMA_MSG)?;
        Ok(Self { out })
    }

    /// Starts an RDMA_NOMSG: the Payload stream is in a chunk.
    #[inline]
    pub fn nomsg(octets: &'b mut [u8], xid: u32, credits: u32) -> Result<Self, Overflow> {
        let out = Self::start(octets, xid, credits, RDMA_NOMSG)?;
        Ok(Self { out })
    }

    /// Writes a whole RDMA_MSG header without chunks; returns its length.
    #[inline]
    pub fn plain(octets: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let mut out = Self::start(octets, xid, credits, RDMA_MSG)?;
        out.array([0; 12])?;
        Ok(out.len())
    }

    /// Writes a whole RDMA_DONE; returns its length. Only for connections that have negotiated it.
    pub fn done(octets: &'b mut [u8], xid: u32, credits: u32) -> Result<usize, Overflow> {
        let out = Self::start(octets, xid, credits, RDMA_DONE)?;
        Ok(out.len())
    }

    /// Appends a segment to the Read list.
    #[inline]
    pub fn read_segment(&mut self, read: ReadSegment) -> Result<(), Overflow> {
        debug_assert!(read.position % 4 == 0);
        self.out.word(1)?;
        self.out.word(read.position)?;
        self.out.array(read.segment.to_octets())
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
        let mut chunk = self.open()?;
        for segment in segments {
            chunk.push(segment)?;
        }
        Ok(())
    }

    #[inline]
    fn open(&mut self) -> Result<ChunkWriter<'_, 'b>, Overflow> {
        self.out.word(1)?;
        ChunkWriter::start(&mut self.out)
    }

    /// Appends a Write chunk as returned in a Reply: the segments of the Call, with lengths that
    /// add up to the `written` octets that fill them in array order.
    #[inline]
    pub fn return_chunk(&mut self, chunk: &WriteChunk<'_>, written: u32) -> Result<(), Overflow> {
        self.open()?.fill(chunk, written)
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
        let mut chunk = self.open()?;
        for segment in segments {
            chunk.push(segment)?;
        }
        Ok(self.out.len())
    }

    #[inline]
    fn open(&mut self) -> Result<ChunkWriter<'_, 'b>, Overflow> {
        self.out.word(1)?;
        ChunkWriter::start(&mut self.out)
    }

    /// Ends the header with the Reply chunk of the Call, of which `written` octets were used;
    /// returns the header's length.
    #[inline]
    pub fn return_chunk(mut self, chunk: &WriteChunk<'_>, written: u32) -> Result<usize, Overflow> {
        self.open()?.fill(chunk, written)?;
        Ok(self.out.len())
    }
}

/// A Write or Reply chunk under construction; the count in front of it is right after every push.
struct ChunkWriter<'w, 'b> {
    out: &'w mut Writer<'b>,
    count_at: usize,
    count: u32,
}

impl<'w, 'b> ChunkWriter<'w, 'b> {
    #[inline]
    fn start(out: &'w mut Writer<'b>) -> Result<Self, Overflow> {
        let count_at = out.len();
        out.word(0)?;
        Ok(Self {
            out,
            count_at,
            count: 0,
        })
    }

    #[inline]
    fn push(&mut self, segment: Segment) -> Result<(), Overflow> {
        self.out.array(segment.to_octets())?;
        self.count = self.count.checked_add(1).ok_or(Overflow)?;
        self.out.replace_word(self.count_at, self.count)
    }

    #[inline]
    fn fill(mut self, chunk: &WriteChunk<'_>, written: u32) -> Result<(), Overflow> {
        let mut left = written;
        for segment in chunk.segments() {
            let length = left.min(segment.length);
            left -= length;
            self.push(segment.with_length(length))?;
        }
        Ok(())
    }
}
