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

use core::mem;

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
    /// The first Write chunk. Most Calls have one at most, so that it is decoded once.
    first: Option<Returned<'a>>,
    /// Offset of the end of its result in the unreduced Reply.
    behind_first: u32,
    /// The other Write chunks.
    rest: Pairs<'a>,
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
    let mut rest = pair(chunks, results);
    let first = rest.next();
    let mut placed = Placed {
        end: 0,
        left: shape.length,
    };
    if let Some(first) = &first {
        placed.place(first, shape.length)?;
    }
    let behind_first = placed.end;
    if !rest.is_empty() {
        placed = place_all(placed, rest, shape.length)?;
    }
    let left = placed.left;
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
    // INVARIANT: `place` has checked the results, and `form` follows from the threshold.
    Ok(Plan {
        chunks,
        first,
        behind_first,
        rest,
        len: shape.length,
        form,
        header,
        left,
    })
}

/// What is known of the bytes of a Reply when some results are placed in Write chunks.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Offset of the end of the last result.
    end: u32,
    /// Bytes that are not in Write chunks.
    left: u32,
}

impl Placed {
    /// Places the result of `returned`, if there is one. The Reply has `length` bytes.
    #[inline]
    fn place(&mut self, returned: &Returned<'_>, length: u32) -> Result<(), CannotReply> {
        let Some(payload) = returned.payload else {
            return Ok(());
        };
        let capacity = returned.chunk.total();
        if u64::from(payload.length) > capacity {
            // CAST: a message has fewer than 2^32 segments, and `capacity` is less than `length`.
            return Err(CannotReply::WriteChunk {
                segments: returned.chunk.len() as u32,
                excess: payload.length - capacity as u32,
            });
        }
        let end = payload
            .end(length)
            .filter(|_| payload.offset >= self.end)
            .ok_or(CannotReply::Results)?;
        // NO-OVERFLOW: the results are within the Reply and do not overlap.
        self.left -= end - payload.offset;
        self.end = end;
        Ok(())
    }
}

/// Places the results of all `pairs`.
#[cold]
#[inline(never)]
fn place_all(mut placed: Placed, pairs: Pairs<'_>, length: u32) -> Result<Placed, CannotReply> {
    for returned in pairs {
        placed.place(&returned, length)?;
    }
    Ok(placed)
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
        self.first_write().into_iter().chain(self.more_writes())
    }

    /// The result that goes to the first Write chunk, unless it is empty.
    #[inline]
    pub fn first_write(&self) -> Option<(WriteChunk<'a>, Payload)> {
        self.first.and_then(Returned::write)
    }

    /// Whether there is more than one Write chunk.
    #[inline]
    pub fn has_more_chunks(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The results that go to other Write chunks than the first one.
    #[inline]
    pub fn more_writes(&self) -> impl Iterator<Item = (WriteChunk<'a>, Payload)> + Clone + 'a {
        self.rest.filter_map(Returned::write)
    }

    /// Whether any result goes to a Write chunk.
    #[inline]
    pub const fn has_writes(&self) -> bool {
        self.left < self.len
    }

    /// The ranges of the unreduced Reply that are not in Write chunks, in order.
    #[inline]
    pub fn runs(&self) -> Runs<'a> {
        let first = self.first.and_then(|returned| returned.payload);
        Runs {
            front: first.map_or(0, |payload| payload.offset),
            at: self.behind_first,
            rest: self.rest,
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
    // Out of line, the result would be in memory.
    #[inline(always)]
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
        if self.form == Form::Inline && self.chunks.reply.is_none() && self.rest.is_empty() {
            return match &self.first {
                None => HeaderWriter::plain(buf, xid, credits),
                Some(Returned { chunk, payload }) => {
                    let written = payload.map_or(0, |payload| payload.length);
                    HeaderWriter::returning_write_chunk(buf, xid, credits, chunk, written)
                }
            };
        }
        self.encode_lists(xid, credits, exposed, buf)
    }

    /// [`Self::encode`], for any lists.
    #[inline(never)]
    fn encode_lists<I>(
        &self,
        xid: u32,
        credits: u32,
        exposed: I,
        buf: &mut [u8],
    ) -> Result<usize, Overflow>
    where
        I: IntoIterator<Item = Segment>,
    {
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
        for returned in self.first.into_iter().chain(self.rest) {
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
    // NO-OVERFLOW: the lists are parts of one message.
    let lists = chunks.writes.encoded_len().wrapping_add(reply);
    u32::try_from(lists.wrapping_add(FIXED_LEN + 2 * WORD)).ok()
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

impl<'a> Returned<'a> {
    /// The chunk and its result, unless there is none or it is empty.
    #[inline]
    fn write(self) -> Option<(WriteChunk<'a>, Payload)> {
        let payload = self.payload.filter(|payload| payload.length > 0)?;
        Some((self.chunk, payload))
    }
}

/// Pairs Write chunks with results.
#[inline]
fn pair<'a>(chunks: &ChunkLists<'a>, results: &'a [Payload]) -> Pairs<'a> {
    Pairs {
        chunks: chunks.writes.chunks(),
        results,
    }
}

/// Iterator over all Write chunks of the Call.
///
/// The n-th result goes to the n-th chunk (RFC 8166 Section 4.3.2). The result of an empty chunk is
/// not reduced, and the chunk is returned empty (Section 4.3.2.3). Chunks after the last result are
/// returned unused. Results after the last chunk are not reduced.
#[derive(Clone, Copy, Debug)]
struct Pairs<'a> {
    chunks: WriteChunks<'a>,
    results: &'a [Payload],
}

impl Pairs<'_> {
    /// Whether no chunk is left.
    #[inline]
    const fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Returned<'a>;

    #[inline]
    fn next(&mut self) -> Option<Returned<'a>> {
        let chunk = self.chunks.next()?;
        let payload = self.results.split_first().map(|(payload, rest)| {
            self.results = rest;
            *payload
        });
        Some(Returned {
            chunk,
            payload: payload.filter(|_| !chunk.is_empty()),
        })
    }
}

/// Iterator over the ranges of a Reply that are not in Write chunks.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Length of the range in front of the first result, or 0.
    front: u32,
    /// Offset of the next byte behind that.
    at: u32,
    /// The other results.
    rest: Pairs<'a>,
    /// Bytes in the unreduced Reply.
    len: u32,
}

impl Iterator for Runs<'_> {
    /// Offset and length in the unreduced Reply. The length is not zero.
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.front > 0 {
            return Some((0, mem::take(&mut self.front)));
        }
        if !self.rest.is_empty() {
            // By value: `self` need not be in memory for this.
            let (next, rest) = next_behind_first(*self);
            *self = rest;
            return next;
        }
        let start = mem::replace(&mut self.at, self.len);
        match self.len.saturating_sub(start) {
            0 => None,
            len => Some((start, len)),
        }
    }
}

/// The next range behind the first result, and those after it.
#[cold]
#[inline(never)]
fn next_behind_first(mut runs: Runs<'_>) -> (Option<(u32, u32)>, Runs<'_>) {
    while runs.at < runs.len {
        let start = runs.at;
        let stop = match runs.rest.find_map(|returned| returned.payload) {
            Some(payload) => {
                runs.at = payload.end(runs.len).unwrap_or(runs.len);
                payload.offset
            }
            None => {
                runs.at = runs.len;
                runs.len
            }
        };
        match stop.saturating_sub(start) {
            0 => {}
            len => return (Some((start, len)), runs),
        }
    }
    (None, runs)
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
