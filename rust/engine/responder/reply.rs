// SPDX-License-Identifier: GPL-2.0

//! The responder's choice: how a Reply travels, given what its Call offered.
//!
//! RFC 8166 Section 3.5.3: first the results that may be reduced go to the Write chunks, then what
//! is left goes inline if it fits the requester's inline threshold, else to the Reply chunk if it
//! fits that, else it is exposed for the requester to pull if both ends know how, else the
//! requester is told by ERR_CHUNK. All of it is checked before the first byte is written (RFC 8267
//! Section 3.1).

use crate::wire::{
    pad,
    size,
    ChunkLists,
    HeaderWriter,
    Overflow,
    ReadSegment,
    Segment,
    Segments,
    WriteChunk,
    WriteChunks,
    FIXED_LEN,
    WORD, //
};

/// A result item that may be reduced: where it is in the Reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Where its first byte is in the unreduced Reply.
    pub offset: u32,
    /// Its bytes, without roundup.
    pub length: u32,
}

/// A Reply to be conveyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyShape {
    /// Bytes of the unreduced Reply.
    pub length: u32,
    /// GSS integrity or privacy is in use: nothing may be reduced (RFC 8166 Section 8.2.2.3).
    pub protected: bool,
}

/// What the connection and its requester allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes in a message to the requester, transport header included.
    pub threshold: u32,
    /// The requester may refuse a Reply chunk that it gets back unused: old ones do.
    pub refuses_unused: bool,
    /// Most segments in which what is left could be exposed; 0 if it cannot be, or was not agreed
    /// on.
    pub exposed_segments: u32,
}

/// Which message conveys the Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// RDMA_MSG: what is left of the Reply follows the header.
    Inline,
    /// RDMA_NOMSG: what is left of the Reply goes to the Reply chunk.
    ReplyChunk,
    /// RDMA_NOMSG: what is left of the Reply is exposed as a Position-zero Read chunk.
    Exposed,
}

/// Why a Reply cannot be conveyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotReply {
    /// A Write chunk is too small for its result: ERR_CHUNK.
    WriteChunk {
        /// The chunk's segments.
        segments: u32,
        /// Bytes of the result that have no room there.
        excess: u32,
    },
    /// What is left is too long for a Send and for the Reply chunk, if any: ERR_CHUNK.
    NoRoom,
    /// The results are not in the Reply, or not in order: a defect on this side.
    Results,
}

/// The `results` that are still in a Reply of `length` bytes: what the service has taken back is
/// behind its end.
#[inline]
pub fn remaining(results: &[Payload], length: u32) -> &[Payload] {
    let there = results.iter().take_while(|item| item.end(length).is_some());
    results.get(..there.count()).unwrap_or(&[])
}

/// How a Reply travels.
///
/// # Invariants
///
/// What [`plan`] checks: results are within the Reply, in order and apart; each fits its
/// chunk; header and inline bytes fit the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    chunks: ChunkLists<'a>,
    results: &'a [Payload],
    length: u32,
    form: Form,
    header: u32,
    left: u32,
}

/// Chooses how a Reply travels.
///
/// `chunks` are those of the Call, `results` the items that may be reduced, in the order of the
/// Reply.
///
/// # Errors
///
/// See [`CannotReply`].
#[inline]
pub fn plan<'a>(
    chunks: ChunkLists<'a>,
    results: &'a [Payload],
    shape: &ReplyShape,
    limits: &ReplyLimits,
) -> Result<Plan<'a>, CannotReply> {
    let results = if shape.protected { &[] } else { results };
    let mut left = shape.length;
    let mut end: u32 = 0;
    for returned in pair(chunks, results) {
        let Some(payload) = returned.payload else {
            continue;
        };
        let total = returned.chunk.total();
        if u64::from(payload.length) > total {
            // CAST: A message has fewer segments, and `total` is less than the length.
            return Err(CannotReply::WriteChunk {
                segments: returned.chunk.len() as u32,
                excess: payload.length - total as u32,
            });
        }
        let next = payload
            .end(shape.length)
            .filter(|_| payload.offset >= end)
            .ok_or(CannotReply::Results)?;
        // NO-OVERFLOW: the items are apart, so that they sum up to at most the Reply.
        left -= next - payload.offset;
        end = next;
    }
    let header = header_len(&chunks).ok_or(CannotReply::NoRoom)?;
    let room = limits.threshold.checked_sub(header);
    let inline = room.ok_or(CannotReply::NoRoom)? >= left;
    // They refuse a Write list beside a used one, too.
    let takes_chunk = || {
        let chunk = chunks.reply.filter(|_| limits.refuses_unused && left > 0);
        chunk.is_some_and(|chunk| chunk.total() >= u64::from(left) && chunks.writes.is_empty())
    };
    let form = match chunks.reply {
        _ if inline && !takes_chunk() => Form::Inline,
        Some(chunk) if chunk.total() >= u64::from(left) => Form::ReplyChunk,
        _ if fits_exposed(limits, header) => Form::Exposed,
        _ => return Err(CannotReply::NoRoom),
    };
    // INVARIANT: checked above.
    Ok(Plan {
        chunks,
        results,
        length: shape.length,
        form,
        header,
        left,
    })
}

impl<'a> Plan<'a> {
    /// Which message conveys the Reply.
    #[inline]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Bytes of the transport header, without the segments of what is exposed.
    #[inline]
    pub const fn header(&self) -> u32 {
        self.header
    }

    /// Bytes that are left, to go inline or to the Reply chunk, or to be exposed.
    #[inline]
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// The results that go to Write chunks, each with its chunk.
    #[inline]
    pub fn writes(&self) -> impl Iterator<Item = (WriteChunk<'a>, Payload)> + Clone + 'a {
        pair(self.chunks, self.results)
            .filter_map(|returned| Some((returned.chunk, returned.payload?)))
            .filter(|(_, payload)| payload.length > 0)
    }

    /// The runs of the unreduced Reply that are left, in order.
    #[inline]
    pub fn runs(&self) -> Runs<'a> {
        Runs {
            returned: pair(self.chunks, self.results),
            at: 0,
            length: self.length,
        }
    }

    /// The Reply chunk as a place to write [`Self::left`] bytes to, if that is where they go.
    #[inline]
    pub fn reply_chunk(&self) -> Option<Sink<'a>> {
        match self.form {
            Form::Inline | Form::Exposed => None,
            Form::ReplyChunk => self.chunks.reply.as_ref().map(Sink::new),
        }
    }

    /// Writes the transport header, with every chunk returned as the Call offered it and the
    /// lengths that were written; returns its length. `exposed` are the segments of what is
    /// exposed, if that is how the Reply travels.
    #[inline]
    pub fn encode<I>(
        &self,
        xid: u32,
        credits: u32,
        exposed: I,
        bytes: &mut [u8],
    ) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        let (mut header, written) = match self.form {
            Form::Inline => (HeaderWriter::msg(bytes, xid, credits)?, 0),
            Form::ReplyChunk => (HeaderWriter::nomsg(bytes, xid, credits)?, self.left),
            Form::Exposed => (HeaderWriter::nomsg(bytes, xid, credits)?, 0),
        };
        // RFC 8166 Section 4.3.1: no Read list in a Reply, but for the one that was agreed on.
        if self.form == Form::Exposed {
            for segment in exposed {
                let position = 0;
                header.read_segment(ReadSegment { position, segment })?;
            }
        }
        let mut writes = header.no_more_reads()?;
        for returned in pair(self.chunks, self.results) {
            let length = returned.payload.map_or(0, |payload| payload.length);
            writes.return_chunk(&returned.chunk, length)?;
        }
        let end = writes.no_more_writes()?;
        match &self.chunks.reply {
            Some(chunk) => end.return_chunk(chunk, written),
            None => end.no_reply_chunk(),
        }
    }
}

impl Payload {
    /// Where the item and its roundup end in a Reply of `length` bytes.
    #[inline]
    fn end(&self, length: u32) -> Option<u32> {
        let end = self.offset.checked_add(self.length)?;
        if end > length {
            return None;
        }
        Some(end.saturating_add(pad(self.length)).min(length))
    }
}

/// Bytes in the header of a Reply that returns `chunks`.
#[inline]
fn header_len(chunks: &ChunkLists<'_>) -> Option<u32> {
    let reply = match &chunks.reply {
        Some(chunk) => chunk.encoded_len(),
        None => 0,
    };
    let lists = chunks.writes.encoded_len().checked_add(reply)?;
    u32::try_from(lists.checked_add(FIXED_LEN + 2 * WORD)?).ok()
}

/// Whether a header of `header` bytes, and the segments of what is exposed, fit a message.
///
/// A fixed bound on the segments, known before any memory is registered, ends the recursion between
/// what is exposed and the header that says so.
#[cold]
fn fits_exposed(limits: &ReplyLimits, header: u32) -> bool {
    let reads = usize::try_from(limits.exposed_segments).map(size::reads);
    let reads = reads.ok().and_then(|bytes| u32::try_from(bytes).ok());
    let length = reads.and_then(|bytes| bytes.checked_add(header));
    limits.exposed_segments > 0 && length.is_some_and(|length| length <= limits.threshold)
}

/// A Write chunk of the Call, and the result that goes there.
#[derive(Clone, Copy, Debug)]
struct Returned<'a> {
    chunk: WriteChunk<'a>,
    payload: Option<Payload>,
}

/// Pairs Write chunks with results.
#[inline]
fn pair<'a>(chunks: ChunkLists<'a>, results: &'a [Payload]) -> Pairs<'a> {
    Pairs {
        chunks: chunks.writes.chunks(),
        results: results.iter(),
    }
}

/// Iterator over all Write chunks of the Call.
///
/// The n-th result goes with the n-th chunk (RFC 8166 Section 4.3.2). An empty chunk takes its
/// result out of turn: it stays inline, and the chunk is returned empty (Section 4.3.2.3). Chunks
/// beyond the last result are returned unused. Results beyond the last chunk stay inline.
#[derive(Clone, Debug)]
struct Pairs<'a> {
    chunks: WriteChunks<'a>,
    results: core::slice::Iter<'a, Payload>,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Returned<'a>;

    #[inline]
    fn next(&mut self) -> Option<Returned<'a>> {
        let chunk = self.chunks.next()?;
        let payload = self.results.next().copied();
        Some(Returned {
            chunk,
            payload: payload.filter(|_| !chunk.is_empty()),
        })
    }
}

/// Iterator over the runs of a Reply that do not go to Write chunks.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    returned: Pairs<'a>,
    at: u32,
    length: u32,
}

impl Iterator for Runs<'_> {
    /// Offset and length in the unreduced Reply; the length is not zero.
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        while self.at < self.length {
            let start = self.at;
            let next = self.returned.find_map(|returned| returned.payload);
            let stop = match next {
                Some(payload) => {
                    self.at = payload.end(self.length).unwrap_or(self.length);
                    payload.offset
                }
                None => {
                    self.at = self.length;
                    self.length
                }
            };
            match stop.saturating_sub(start) {
                0 => {}
                length => return Some((start, length)),
            }
        }
        None
    }
}

/// A Write or Reply chunk being filled, segment after segment in array order.
#[derive(Clone, Debug)]
pub struct Sink<'a> {
    segments: Segments<'a>,
    current: Segment,
}

impl<'a> Sink<'a> {
    /// Starts at the front of `chunk`.
    #[inline]
    pub fn new(chunk: &WriteChunk<'a>) -> Self {
        Self {
            segments: chunk.segments(),
            current: Segment::default(),
        }
    }

    /// The next place to write to, of at most `most` bytes and at least one; `None` when the chunk
    /// is full. Empty segments are passed over.
    #[inline]
    pub fn next_part(&mut self, most: u32) -> Option<Segment> {
        while self.current.is_empty() {
            self.current = self.segments.next()?;
        }
        Some(self.current.take(most))
    }
}
