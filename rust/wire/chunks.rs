// SPDX-License-Identifier: GPL-2.0

//! Chunk lists as borrowed views: parsed once, iterated any number of times.
//!
//! The views keep the encoded bytes; the iterators decode on the fly. As every length was checked
//! when the view was made, iteration neither fails nor needs memory.

use core::slice::ChunksExact;

use super::{
    error::BadList,
    size::READ_SEGMENT,
    ReadSegment,
    Reader,
    Segment,
    FIXED_LEN,
    WORD, //
};

/// Reads the word that says whether a list entry or a Reply chunk follows.
///
/// XDR knows only 0 and 1 there; anything else is malformed.
#[inline]
fn present(reader: &mut Reader<'_>) -> Result<bool, BadList> {
    match reader.word()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadList),
    }
}

/// The three lists of an RDMA_MSG or RDMA_NOMSG header.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkLists<'a> {
    /// Memory the responder may read.
    pub reads: ReadList<'a>,
    /// Memory the responder may write single result items to.
    pub writes: WriteList<'a>,
    /// Memory the responder may write a whole Reply to.
    pub reply: Option<WriteChunk<'a>>,
}

impl<'a> ChunkLists<'a> {
    /// Parses and validates the lists at the front of `reader`.
    #[inline]
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

    /// Whether there is no chunk of any kind.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply.is_none()
    }

    /// Notes where the lists are in the message, for a later [`Outline::lists`].
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

/// Where the chunk lists of a message are, without borrowing it.
///
/// For a caller that keeps a received message and looks at its lists again later: cheaper than to
/// parse again, and without a reference into the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    reads: usize,
    writes: usize,
    reply: Option<usize>,
}

impl Outline {
    /// The lists of `message`, which is the message that the outline was taken from.
    ///
    /// With any other message the result is meaningless, or `None`; it is still safe to use.
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
            Some(length) => {
                reader.array::<{ 2 * WORD }>().ok()?;
                Some(WriteChunk {
                    bytes: reader.take(length).ok()?,
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

/// A Read list: segments in the order of the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadList<'a> {
    /// Whole entries, without the closing discriminator.
    bytes: &'a [u8],
}

impl<'a> ReadList<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        let start = reader.rest();
        while present(reader)? {
            let position = reader.word()?;
            // RFC 8166 Section 3.4.5: chunks start where XDR items start.
            if position % 4 != 0 {
                return Err(BadList);
            }
            reader.array::<{ Segment::LEN }>()?;
        }
        let length = start.len() - reader.remaining() - WORD;
        let bytes = start.get(..length).ok_or(BadList)?;
        Ok(Self { bytes })
    }

    /// How many segments there are, empty ones included.
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len() / READ_SEGMENT
    }

    /// Whether the list is absent.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The segments in the order of the message.
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

/// A Write list: chunks in the order of the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteList<'a> {
    /// Whole entries, without the closing discriminator.
    bytes: &'a [u8],
}

impl<'a> WriteList<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, BadList> {
        let start = reader.rest();
        while present(reader)? {
            WriteChunk::decode(reader)?;
        }
        let length = start.len() - reader.remaining() - WORD;
        let bytes = start.get(..length).ok_or(BadList)?;
        Ok(Self { bytes })
    }

    /// Whether the list is absent.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Encoded length of the list, its closing discriminator included.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        self.bytes.len() + WORD
    }

    /// The chunks in the order of the message.
    #[inline]
    pub const fn chunks(&self) -> WriteChunks<'a> {
        WriteChunks(Reader::new(self.bytes))
    }
}

/// Iterator over the chunks of a Write list.
#[derive(Clone, Debug)]
pub struct WriteChunks<'a>(Reader<'a>);

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
        let length = count.checked_mul(Segment::LEN).ok_or(BadList)?;
        let bytes = reader.take(length)?;
        Ok(Self { bytes })
    }

    /// How many segments there are; with 0 the chunk is *empty* (RFC 8166 Section 3.4.6).
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len() / Segment::LEN
    }

    /// Whether the chunk is *empty*: it has no segments.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes in all segments together: what the chunk can take, or what was written to it.
    ///
    /// Fewer than 2^28 segments fit a message, so that the sum of their lengths fits 64 bits.
    #[inline]
    pub fn total(&self) -> u64 {
        self.segments().fold(0, |sum, segment| {
            sum.saturating_add(u64::from(segment.length))
        })
    }

    /// Encoded length of the chunk, its count included.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        self.bytes.len() + WORD
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
