// SPDX-License-Identifier: GPL-2.0

//! Chunk lists as borrowed views: parsed once, iterated any number of times.
//!
//! C: rpc_rdma.c, decode_read_list(), decode_write_list(), decode_reply_chunk()
//! C: svc_rdma_recvfrom.c, xdr_check_read_list(), xdr_check_write_list(), xdr_check_write_chunk()
//! C: svc_rdma_pcl.h, struct svc_rdma_pcl, struct svc_rdma_chunk
//!
//! A view borrows the encoded bytes, and its iterators decode them. The parser has checked every
//! length, so iterators cannot fail. They allocate no memory.

use core::slice::ChunksExact;

use super::{
    error::BadList,
    size::{
        self,
        READ_SEGMENT, //
    },
    ReadSegment,
    Reader,
    Segment,
    FIXED_LEN,
    WORD, //
};

/// Reads a discriminator: whether a list entry or a Reply chunk follows.
///
/// # Errors
///
/// [`BadList`] if the word is neither 0 nor 1, or is missing.
#[inline]
fn present(reader: &mut Reader<'_>) -> Result<bool, BadList> {
    match reader.word()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadList),
    }
}

/// The bytes of a list that begins at `start`, without the final discriminator, which `reader` has
/// just read.
#[inline]
fn whole_entries<'a>(start: &'a [u8], reader: &Reader<'_>) -> Result<&'a [u8], BadList> {
    // NO-OVERFLOW: the reader has read from `start`, and at least the discriminator.
    let len = start
        .len()
        .wrapping_sub(reader.remaining())
        .wrapping_sub(WORD);
    start.get(..len).ok_or(BadList)
}

/// The three lists of an RDMA_MSG or RDMA_NOMSG header.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkLists<'a> {
    /// Read list: memory that the peer of the sender may read.
    pub reads: ReadList<'a>,
    /// Write list: one chunk for each data item of the Reply.
    pub writes: WriteList<'a>,
    /// Reply chunk: memory for a Reply that is too long for a Send.
    pub reply: Option<WriteChunk<'a>>,
}

impl<'a> ChunkLists<'a> {
    /// Parses and validates the lists at the front of `reader`.
    ///
    /// # Errors
    ///
    /// [`BadList`] if the lists break the grammar of RFC 8166 Section 4.1.2.
    #[inline(always)]
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        Ok(Self {
            reads: ReadList::decode(reader)?,
            writes: WriteList::decode(reader)?,
            reply: if present(reader)? {
                Some(WriteChunk::decode(reader)?)
            } else {
                None
            },
        })
    }

    /// Whether all three lists are empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply.is_none()
    }

    /// The positions of the lists in the message, for [`Outline::lists`].
    #[inline]
    pub const fn outline(&self) -> Outline {
        Outline {
            reads: self.reads.bytes.len(),
            writes: self.writes.bytes.len(),
            reply: match self.reply {
                Some(chunk) => Some(chunk.bytes.len()),
                None => None,
            },
        }
    }
}

/// Positions of the chunk lists in a message, without a borrow of the message.
///
/// A caller that keeps a received message stores its outline, to get the lists again later without
/// parsing them again. Members are lengths in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    reads: usize,
    writes: usize,
    reply: Option<usize>,
}

impl Outline {
    /// The lists of `message`, which must be the message of [`ChunkLists::outline`].
    ///
    /// For any other message the result is `None`, or lists of arbitrary content.
    #[inline]
    pub fn lists<'a>(&self, message: &'a [u8]) -> Option<ChunkLists<'a>> {
        let mut reader = Reader::new(message.get(FIXED_LEN..)?);
        let reads = ReadList {
            bytes: reader.take(self.reads).ok()?,
        };
        reader.word().ok()?;
        let writes = WriteList {
            bytes: reader.take(self.writes).ok()?,
        };
        reader.word().ok()?;
        let reply = match self.reply {
            Some(len) => {
                reader.array::<{ 2 * WORD }>().ok()?;
                Some(WriteChunk {
                    bytes: reader.take(len).ok()?,
                })
            }
            None => None,
        };
        Some(ChunkLists {
            reads,
            writes,
            reply,
        })
    }
}

/// A Read list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadList<'a> {
    /// Whole entries, without the final discriminator.
    bytes: &'a [u8],
}

impl<'a> ReadList<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        let start = reader.rest();
        while present(reader)? {
            let position = reader.word()?;
            // RFC 8166 Section 3.4.5: a chunk begins where an XDR item begins.
            if position % 4 != 0 {
                return Err(BadList);
            }
            reader.array::<{ Segment::LEN }>()?;
        }
        let bytes = whole_entries(start, reader)?;
        Ok(Self { bytes })
    }

    /// Number of segments, including empty segments.
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len() / READ_SEGMENT
    }

    /// Whether the list has no entries.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The segments in list order.
    #[inline]
    pub fn segments(&self) -> ReadSegments<'a> {
        ReadSegments(self.bytes.chunks_exact(READ_SEGMENT))
    }
}

/// Iterator over the segments of a Read list.
#[derive(Clone, Debug)]
pub struct ReadSegments<'a>(ChunksExact<'a, u8>);

impl Iterator for ReadSegments<'_> {
    type Item = ReadSegment;

    #[inline]
    fn next(&mut self) -> Option<ReadSegment> {
        let mut reader = Reader::new(self.0.next()?.get(WORD..)?);
        Some(ReadSegment {
            position: reader.word().ok()?,
            segment: Segment::from_bytes(reader.array().ok()?),
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for ReadSegments<'_> {}

/// A Write list.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteList<'a> {
    /// Whole entries, without the final discriminator.
    bytes: &'a [u8],
}

impl<'a> WriteList<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        let start = reader.rest();
        while present(reader)? {
            WriteChunk::decode(reader)?;
        }
        let bytes = whole_entries(start, reader)?;
        Ok(Self { bytes })
    }

    /// Whether the list has no entries.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the list has more than `count` chunks.
    #[inline]
    pub fn has_more_than(&self, count: usize) -> bool {
        // Most lists are too short for so many chunks, even if all of these were empty.
        self.bytes.len() > count.saturating_mul(size::write_chunk(0))
            && self.chunks().nth(count).is_some()
    }

    /// Bytes in the encoded list, including the final discriminator.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        // NO-OVERFLOW: the list is a part of a message.
        self.bytes.len().wrapping_add(WORD)
    }

    /// The chunks in list order.
    #[inline]
    pub const fn chunks(&self) -> WriteChunks<'a> {
        WriteChunks(Reader::new(self.bytes))
    }
}

/// Iterator over the chunks of a Write list.
#[derive(Clone, Copy, Debug)]
pub struct WriteChunks<'a>(Reader<'a>);

impl WriteChunks<'_> {
    /// Whether no chunk is left.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.remaining() == 0
    }
}

impl<'a> Iterator for WriteChunks<'a> {
    type Item = WriteChunk<'a>;

    #[inline]
    fn next(&mut self) -> Option<WriteChunk<'a>> {
        self.0.word().ok()?;
        WriteChunk::decode(&mut self.0).ok()
    }
}

/// A Write chunk or a Reply chunk: a counted array of segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteChunk<'a> {
    /// Whole segments, without the count.
    bytes: &'a [u8],
}

impl<'a> WriteChunk<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        let count = usize::try_from(reader.word()?).map_err(|_| BadList)?;
        let len = count.checked_mul(Segment::LEN).ok_or(BadList)?;
        let bytes = reader.take(len)?;
        Ok(Self { bytes })
    }

    /// Number of segments. A chunk with none is *empty* (RFC 8166 Section 3.4.6).
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len() / Segment::LEN
    }

    /// Whether the chunk has no segments.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sum of the segments' lengths: the capacity of the chunk in a Call, or the number of bytes
    /// written in a Reply.
    ///
    /// A message has fewer than 2^28 segments, so the sum fits 64 bits.
    #[inline]
    pub fn total(&self) -> u64 {
        self.segments().fold(0, |sum, segment| {
            sum.saturating_add(u64::from(segment.length))
        })
    }

    /// Bytes in the encoded chunk, including the count.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        // NO-OVERFLOW: the chunk is a part of a message.
        self.bytes.len().wrapping_add(WORD)
    }

    /// The segments in array order.
    #[inline]
    pub fn segments(&self) -> Segments<'a> {
        Segments(self.bytes.chunks_exact(Segment::LEN))
    }
}

/// Iterator over the segments of a Write or Reply chunk.
#[derive(Clone, Debug)]
pub struct Segments<'a>(ChunksExact<'a, u8>);

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let bytes = self.0.next()?.first_chunk()?;
        Some(Segment::from_bytes(bytes))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Segments<'_> {}
