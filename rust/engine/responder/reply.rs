// SPDX-License-Identifier: GPL-2.0

//! Chooses the form of a Reply by the chunks that its Call offered.
//!
//! C: svc_rdma_sendto.c, svc_rdma_encode_write_list(), svc_rdma_encode_reply_chunk()
//! C: svc_rdma_rw.c, svc_rdma_prepare_write_list(), svc_rdma_prepare_reply_chunk()
//! C: svc_rdma_pcl.c, pcl_process_region(), pcl_process_nonpayloads()
//!
//! RFC 8166 Section 3.5.3: DDP-eligible results go to the Write chunks. The rest of the Reply is
//! inline if it fits the threshold; otherwise in the Reply chunk, if it fits that; otherwise
//! exposed for the requester to pull, if the connection supports that. Otherwise the responder
//! answers with ERR_CHUNK. The choice precedes the first RDMA Write (RFC 8267 Section 3.1).

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

/// Location of a DDP-eligible result in the Reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Offset of the first byte in the unreduced Reply.
    pub offset: u32,
    /// Length in bytes, without roundup.
    pub length: u32,
}

/// A Reply to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyShape {
    /// Bytes in the unreduced Reply.
    pub length: u32,
    /// GSS integrity or privacy is in use, so no result may be reduced (RFC 8166 Section 8.2.2.3).
    pub protected: bool,
}

/// Limits of the connection and the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Inline threshold to the requester, in bytes, including the transport header.
    pub threshold: u32,
    /// The requester may refuse a Reply that returns its Reply chunk unused, as old ones do.
    pub refuses_unused: bool,
    /// Most segments of an exposed Reply. 0 if the connection does not support pulled Replies.
    pub exposed_segments: u32,
}

/// The form of a Reply. The rest of a Reply is all bytes that are not in Write chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// RDMA_MSG: the rest of the Reply follows the header.
    Inline,
    /// RDMA_NOMSG: the rest of the Reply is in the Reply chunk.
    ReplyChunk,
    /// RDMA_NOMSG: the rest of the Reply is exposed as a Position-zero Read chunk.
    Exposed,
}

/// Why a Reply cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotReply {
    /// A Write chunk is too small for its result. The Call is answered with ERR_CHUNK.
    WriteChunk {
        /// Number of segments in the chunk.
        segments: u32,
        /// Bytes of the result that do not fit the chunk.
        excess: u32,
    },
    /// The rest of the Reply fits no form. The Call is answered with ERR_CHUNK.
    NoRoom,
    /// The results are outside the Reply or not in order: a bug of the RPC service.
    Results,
}

/// The front part of `results`: those within a Reply of `length` bytes.
///
/// The service may truncate a Reply after it has recorded results. Later results are then beyond
/// the end of the Reply.
#[inline]
pub fn remaining(results: &[Payload], length: u32) -> &[Payload] {
    let within = results.iter().take_while(|item| item.end(length).is_some());
    results.get(..within.count()).unwrap_or(&[])
}

/// The form of a Reply, and the distribution of its bytes.
///
/// # Invariants
///
/// [`plan`] has checked that results are within the Reply, in order, and do not overlap; that each
/// fits its chunk; and that header and inline bytes fit the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    chunks: &'a ChunkLists<'a>,
    results: &'a [Payload],
    /// Bytes in the unreduced Reply.
    len: u32,
    form: Form,
    /// Bytes in the transport header, without Read segments.
    header: u32,
    /// Bytes in the rest of the Reply.
    left: u32,
}

/// Chooses the form of a Reply.
///
/// `chunks` are the chunks of the Call, `results` the DDP-eligible results in the order of the
/// Reply.
///
/// # Errors
///
/// See [`CannotReply`].
#[inline]
pub fn plan<'a>(
    chunks: &'a ChunkLists<'a>,
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
        let capacity = returned.chunk.total();
        if u64::from(payload.length) > capacity {
            // CAST: a message has fewer than 2^32 segments, and `capacity` is less than `length`.
            return Err(CannotReply::WriteChunk {
                segments: returned.chunk.len() as u32,
                excess: payload.length - capacity as u32,
            });
        }
        let next = payload
            .end(shape.length)
            .filter(|_| payload.offset >= end)
            .ok_or(CannotReply::Results)?;
        // NO-OVERFLOW: the results are within the Reply and do not overlap.
        left -= next - payload.offset;
        end = next;
    }
    let header = header_len(chunks).ok_or(CannotReply::NoRoom)?;
    let room = limits.threshold.checked_sub(header);
    let inline = room.ok_or(CannotReply::NoRoom)? >= left;
    // A requester that refuses an unused Reply chunk also refuses a used one beside a Write list.
    let must_use_chunk = || {
        let chunk = chunks.reply.filter(|_| limits.refuses_unused && left > 0);
        chunk.is_some_and(|chunk| chunk.total() >= u64::from(left) && chunks.writes.is_empty())
    };
    let form = match chunks.reply {
        _ if inline && !must_use_chunk() => Form::Inline,
        Some(chunk) if chunk.total() >= u64::from(left) => Form::ReplyChunk,
        _ if fits_exposed(limits, header) => Form::Exposed,
        _ => return Err(CannotReply::NoRoom),
    };
    // INVARIANT: the loop has checked the results, and `form` follows from the threshold.
    Ok(Plan {
        chunks,
        results,
        len: shape.length,
        form,
        header,
        left,
    })
}

impl<'a> Plan<'a> {
    /// The form of the Reply.
    #[inline]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Bytes in the transport header, without the Read segments of an exposed Reply.
    #[inline]
    pub const fn header(&self) -> u32 {
        self.header
    }

    /// Bytes in the rest of the Reply, which are inline, in the Reply chunk, or exposed.
    #[inline]
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// The results that go to Write chunks, each with its chunk. Empty results are skipped.
    #[inline]
    pub fn writes(&self) -> impl Iterator<Item = (WriteChunk<'a>, Payload)> + Clone + 'a {
        pair(self.chunks, self.results)
            .filter_map(|returned| Some((returned.chunk, returned.payload?)))
            .filter(|(_, payload)| payload.length > 0)
    }

    /// Whether any result goes to a Write chunk.
    #[inline]
    pub const fn has_writes(&self) -> bool {
        self.left < self.len
    }

    /// The ranges of the unreduced Reply that are not in Write chunks, in order.
    #[inline]
    pub fn runs(&self) -> Runs<'a> {
        Runs {
            returned: pair(self.chunks, self.results),
            at: 0,
            len: self.len,
        }
    }

    /// The Reply chunk, to be filled with [`Self::left`] bytes, if the Reply has that form.
    #[inline]
    pub fn reply_chunk(&self) -> Option<ChunkWriter<'a>> {
        match self.form {
            Form::Inline | Form::Exposed => None,
            Form::ReplyChunk => self.chunks.reply.as_ref().map(ChunkWriter::new),
        }
    }

    /// Writes the transport header; returns its length in bytes.
    ///
    /// The header returns every chunk of the Call, with the lengths that were written. `exposed`
    /// are the segments of an exposed Reply.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if the header does not fit `buf`.
    #[inline]
    pub fn encode<I>(
        &self,
        xid: u32,
        credits: u32,
        exposed: I,
        buf: &mut [u8],
    ) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
        if self.form == Form::Inline && self.chunks.returns_none() {
            return HeaderWriter::plain(buf, xid, credits);
        }
        let (mut header, in_reply_chunk) = match self.form {
            Form::Inline => (HeaderWriter::msg(buf, xid, credits)?, 0),
            Form::ReplyChunk => (HeaderWriter::nomsg(buf, xid, credits)?, self.left),
            Form::Exposed => (HeaderWriter::nomsg(buf, xid, credits)?, 0),
        };
        // RFC 8166 Section 4.3.1: a Reply has no Read list, except by the extension.
        if self.form == Form::Exposed {
            for segment in exposed {
                let position = 0;
                header.read_segment(ReadSegment { position, segment })?;
            }
        }
        let mut writes = header.no_more_reads()?;
        for returned in pair(self.chunks, self.results) {
            let written = returned.payload.map_or(0, |payload| payload.length);
            writes.return_chunk(&returned.chunk, written)?;
        }
        let end = writes.no_more_writes()?;
        match &self.chunks.reply {
            Some(chunk) => end.return_chunk(chunk, in_reply_chunk),
            None => end.no_reply_chunk(),
        }
    }
}

impl Payload {
    /// Offset of the end of the result and its roundup in a Reply of `length` bytes. `None` if the
    /// result is not within the Reply.
    #[inline]
    fn end(&self, length: u32) -> Option<u32> {
        let end = self.offset.checked_add(self.length)?;
        if end > length {
            return None;
        }
        Some(end.saturating_add(pad(self.length)).min(length))
    }
}

/// Whether a Reply to a Call with these chunks fits a Send of `threshold` bytes: its header returns
/// all of them. If not, the Call must not be executed (RFC 8267 Section 6.4.2).
#[inline]
pub fn can_return(chunks: &ChunkLists<'_>, threshold: u32) -> bool {
    header_len(chunks).is_some_and(|header| header <= threshold)
}

/// Bytes in the header of a Reply that returns `chunks`, without Read segments.
#[inline]
fn header_len(chunks: &ChunkLists<'_>) -> Option<u32> {
    let reply = match &chunks.reply {
        Some(chunk) => chunk.encoded_len(),
        None => 0,
    };
    let lists = chunks.writes.encoded_len().checked_add(reply)?;
    u32::try_from(lists.checked_add(FIXED_LEN + 2 * WORD)?).ok()
}

/// Whether a header of `header` bytes and the Read segments of an exposed Reply fit the threshold.
///
/// The number of segments is bounded before memory is registered, so the length of the header can
/// be computed first.
#[cold]
fn fits_exposed(limits: &ReplyLimits, header: u32) -> bool {
    let reads = usize::try_from(limits.exposed_segments).map(size::reads);
    let reads = reads.ok().and_then(|len| u32::try_from(len).ok());
    let total = reads.and_then(|len| len.checked_add(header));
    limits.exposed_segments > 0 && total.is_some_and(|total| total <= limits.threshold)
}

/// A Write chunk of the Call, and the result that goes to it.
#[derive(Clone, Copy, Debug)]
struct Returned<'a> {
    chunk: WriteChunk<'a>,
    payload: Option<Payload>,
}

/// Pairs Write chunks with results.
#[inline]
fn pair<'a>(chunks: &ChunkLists<'a>, results: &'a [Payload]) -> Pairs<'a> {
    Pairs {
        chunks: chunks.writes.chunks(),
        results: results.iter(),
    }
}

/// Iterator over all Write chunks of the Call.
///
/// The n-th result goes to the n-th chunk (RFC 8166 Section 4.3.2). The result of an empty chunk is
/// not reduced, and the chunk is returned empty (Section 4.3.2.3). Chunks after the last result are
/// returned unused. Results after the last chunk are not reduced.
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

/// Iterator over the ranges of a Reply that are not in Write chunks.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    returned: Pairs<'a>,
    /// Offset of the next byte.
    at: u32,
    /// Bytes in the unreduced Reply.
    len: u32,
}

impl Iterator for Runs<'_> {
    /// Offset and length in the unreduced Reply. The length is not zero.
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        while self.at < self.len {
            let start = self.at;
            let next = self.returned.find_map(|returned| returned.payload);
            let stop = match next {
                Some(payload) => {
                    self.at = payload.end(self.len).unwrap_or(self.len);
                    payload.offset
                }
                None => {
                    self.at = self.len;
                    self.len
                }
            };
            match stop.saturating_sub(start) {
                0 => {}
                len => return Some((start, len)),
            }
        }
        None
    }
}

/// A Write or Reply chunk that is filled segment by segment, in array order.
#[derive(Clone, Debug)]
pub struct ChunkWriter<'a> {
    segments: Segments<'a>,
    /// The rest of the current segment.
    current: Segment,
}

impl<'a> ChunkWriter<'a> {
    /// Starts at the front of `chunk`.
    #[inline]
    pub fn new(chunk: &WriteChunk<'a>) -> Self {
        Self {
            segments: chunk.segments(),
            current: Segment::default(),
        }
    }

    /// Takes the next contiguous part, of at most `max_len` bytes and at least one. `None` if the
    /// chunk is full. Empty segments are skipped.
    #[inline]
    pub fn next_part(&mut self, max_len: u32) -> Option<Segment> {
        while self.current.is_empty() {
            self.current = self.segments.next()?;
        }
        Some(self.current.take(max_len))
    }
}
