// SPDX-License-Identifier: GPL-2.0

//! Fetches Read chunks by RDMA Read, reassembles the Call, and delivers it.
//!
//! One thread posts RDMA Reads into pages of its request, and is then free. When the Reads have
//! completed, another thread puts these pages into its own request and delivers the Call.
//!
//! C: svc_rdma_recvfrom.c, svc_rdma_read_complete()
//! C: svc_rdma_rw.c, svc_rdma_process_read_list(), svc_rdma_read_data_item()
//! C: svc_rdma_rw.c, svc_rdma_read_multiple_chunks(), svc_rdma_read_call_chunk()

use kernel::page::PAGE_SIZE;

use super::{
    call::{
        Buffer,
        Call, //
    },
    connection::Connection,
    ep::ServerEp,
    error,
    post::{
        self,
        NotServed, //
    },
    read_admission,
    tunables, //
};
use crate::{
    engine::{
        inbound,
        responder::{
            call_header,
            eligible,
            reassembly::{
                Assembly,
                Layout,
                Part, //
            }, //
        }, //
    },
    lib::close_reason::CloseReason,
    lib::pages::{
        PageArray,
        Span, //
    },
    sunrpc::svc::{
        Received,
        Receiving, //
    },
    trace::trace,
    verbs::{
        CallRead,
        Reads,
        Remote, //
    },
    wire::{
        ReadList,
        Segment, //
    }, //
};

/// Fetches the Read chunks of a Call, now or after other Calls have fetched theirs.
#[inline]
pub(super) fn read(
    conn: &Connection,
    rqst: Receiving<'_, Connection>,
    mut buffer: Buffer,
) -> Received {
    let ctx = conn.ep.context();
    let call = &mut buffer.user_mut().call;
    // `prepare` refuses a longer Call.
    let len = call.parts.min(conn.bounds.message);
    let pages = len.div_ceil(PAGE_SIZE as u32) as usize;
    if !read_admission::begin(ctx, call, pages) {
        read_admission::defer(ctx, buffer);
        return rqst.leave_empty();
    }
    if conn.read_mr_budget.total() == 0 {
        return start_read(conn, rqst, buffer);
    }
    read_into_mrs(conn, rqst, buffer)
}

/// [`read`] on iWARP, where RDMA Reads need MRs.
#[cold]
fn read_into_mrs(
    conn: &Connection,
    rqst: Receiving<'_, Connection>,
    mut buffer: Buffer,
) -> Received {
    let len = buffer.user().call.len;
    let (bytes, ctxt) = buffer.split(len);
    let call = &ctxt.call;
    let (xid, reads) = (call.xid, call.chunks(bytes).reads);
    let needed = conn.read_mr_budget.needed(reads, call.long);
    if needed > conn.read_mr_budget.total() {
        end_read(conn, &mut buffer);
        return error::refuse_call(conn, rqst, buffer, xid);
    }
    match read_admission::take_mrs(conn.ep.context(), buffer, needed) {
        Some(buffer) => start_read(conn, rqst, buffer),
        None => rqst.leave_empty(),
    }
}

/// Releases the page charge and the MRs of a Call.
#[inline]
fn end_read(conn: &Connection, buffer: &mut Buffer) {
    read_admission::end(conn.ep.context(), &mut buffer.user_mut().call);
}

/// Posts the RDMA Reads of a Call.
fn start_read(conn: &Connection, mut rqst: Receiving<'_, Connection>, buffer: Buffer) -> Received {
    let call = &buffer.user().call;
    let (xid, len, long) = (call.xid, call.len, call.long);
    let mut read = CallRead::new(buffer);
    let posted = match prepare(conn, &mut rqst, &mut read, len, long) {
        // The completion of the Reads wakes a thread for `finish`.
        Ok(()) => post::post_read(&conn.ep, read),
        Err(why) => Err((Some(read), why)),
    };
    let Err((returned, why)) = posted else {
        return rqst.leave_empty();
    };
    if let Some(read) = returned {
        post::release_read(&conn.ep, read);
    }
    match why {
        NotServed::Refused => error::refuse(conn, xid),
        NotServed::Lost => conn.ep.context().close(CloseReason::NotPosted),
    }
    rqst.leave_empty()
}

/// Adds the RDMA Reads that a Call of `len` bytes needs, and copies its inline part if this part
/// must be in pages, too.
fn prepare(
    conn: &Connection,
    rqst: &mut Receiving<'_, Connection>,
    read: &mut CallRead<Call>,
    len: usize,
    long: bool,
) -> Result<(), NotServed> {
    let serial = read.serial();
    let (bytes, call, mut reads) = read.parts(len);
    let payload = bytes.get(call.payload..).unwrap_or(&[]);
    let inline = (!long).then_some(payload.len());
    let list = call.chunks(bytes).reads;
    if !long && !call_header::allows_reads(payload, list) {
        return Err(NotServed::Refused);
    }
    let assembly = Assembly::plan(inline, list, &conn.bounds)
        .map_err(|_| NotServed::Refused)?
        .ok_or(NotServed::Refused)?;
    let layout = assembly.layout();
    let word_at = |at| eligible::word_at(payload, at);
    if !conn.may_read || (!long && !eligible::allows_reads(payload, list, layout.length(), word_at))
    {
        return Err(NotServed::Refused);
    }
    call.layout = Some(layout);
    match layout {
        Layout::DataItem { data, .. } => {
            take_pages(conn, rqst, &mut reads, serial, data)?;
            add_item(conn, &mut reads, &assembly, data)
        }
        Layout::Whole { length } => {
            take_pages(conn, rqst, &mut reads, serial, length)?;
            add_whole(conn, &mut reads, &assembly, payload)
        }
    }
}

/// Takes pages for `len` bytes from the request.
#[inline]
fn take_pages(
    conn: &Connection,
    rqst: &mut Receiving<'_, Connection>,
    reads: &mut Reads<'_>,
    serial: i32,
    len: u32,
) -> Result<(), NotServed> {
    let pages = len.div_ceil(PAGE_SIZE as u32) as usize;
    let taken = rqst.take_pages(pages, reads.page_sink(pages)?, &conn.spare.calls);
    if taken < pages {
        trace!(svcrdma_page_overrun_err(
            conn.ep.recv_cid(serial),
            taken as u32
        ));
        return Err(NotServed::Refused);
    }
    if conn.read_mr_budget.total() != 0 {
        zero_sinks(conn, reads);
    }
    Ok(())
}

/// Fills the pages that an iWARP device reads into with zeroes.
///
/// siw completes an RDMA Read as a success even if the peer's Read Response ends early. The rest of
/// the Call would be what the pages held before: often the data of other clients.
#[cold]
fn zero_sinks(conn: &Connection, reads: &mut Reads<'_>) {
    if conn.ep.registers_to_read() {
        reads.zero_pages();
    }
}

/// Adds the Reads of the one data item, and clears its roundup if the chunk lacks it.
#[inline]
fn add_item(
    conn: &Connection,
    reads: &mut Reads<'_>,
    assembly: &Assembly<'_>,
    data: u32,
) -> Result<(), NotServed> {
    let lengths = assembly.reads().map(|segment| segment.length);
    let len = lengths.fold(0, u32::saturating_add);
    // A mapped page belongs to the device, so clear the roundup before mapping.
    if len < data {
        clear(reads, len, data - len)?;
    }
    let mut offset = 0;
    for segment in assembly.reads() {
        add_read(conn, reads, &mut offset, segment)?;
    }
    Ok(())
}

/// Adds the Reads of all parts of a Call, and copies its inline parts.
fn add_whole(
    conn: &Connection,
    reads: &mut Reads<'_>,
    assembly: &Assembly<'_>,
    payload: &[u8],
) -> Result<(), NotServed> {
    // As in `add_item`, nothing is copied to a page after it is mapped.
    let mut end = 0;
    for part in assembly.parts() {
        match part {
            Part::Read(segment) => end += segment.length,
            Part::Inline { offset, length } => {
                let range = offset as usize..offset.saturating_add(length) as usize;
                let source = payload.get(range).ok_or(NotServed::Lost)?;
                if !reads.write(end, source) {
                    return Err(NotServed::Lost);
                }
                end += length;
            }
            Part::Pad { length } => {
                clear(reads, end, length)?;
                end += length;
            }
        }
    }
    let mut offset = 0;
    for part in assembly.parts() {
        match part {
            Part::Read(segment) => add_read(conn, reads, &mut offset, segment)?,
            Part::Inline { length, .. } | Part::Pad { length } => offset += length,
        }
    }
    Ok(())
}

/// Adds a Read of `segment` to `offset` in the pages, and advances `offset`.
#[inline]
fn add_read(
    conn: &Connection,
    reads: &mut Reads<'_>,
    offset: &mut u32,
    segment: Segment,
) -> Result<(), NotServed> {
    let sink = Span {
        start: *offset,
        len: segment.length,
    };
    let source = Remote {
        handle: segment.handle,
        offset: segment.offset,
    };
    reads.add::<ServerEp>(&conn.ep, sink, source)?;
    tunables::READS.inc();
    *offset = offset.saturating_add(segment.length);
    Ok(())
}

/// Delivers a Call whose Reads have completed.
pub(super) fn finish(
    conn: &Connection,
    mut rqst: Receiving<'_, Connection>,
    mut buffer: Buffer,
) -> Received {
    trace!(svcrdma_read_finished(conn.ep.recv_cid(buffer.serial())));
    end_read(conn, &mut buffer);
    let end = buffer.user().call.len;
    let (bytes, ctxt) = buffer.split(end);
    let call = &ctxt.call;
    let (xid, start, layout) = (call.xid, call.payload, call.layout);
    let reads = call.chunks(bytes).reads;
    let pages = ctxt.pages_mut().own();
    if matches!(layout, Some(Layout::Whole { length }) if !is_call(pages, length, xid, reads)) {
        return error::refuse_call(conn, rqst, buffer, xid);
    }
    if !rqst.put_pages(pages, &conn.spare.calls) {
        return error::drop_call(conn, rqst, buffer);
    }
    match layout {
        Some(Layout::DataItem { head, data, tail }) => {
            let head = start..start + head as usize;
            // Between head and tail there may be roundup, which is in the pages too.
            let tail = end.saturating_sub(tail as usize)..end;
            rqst.deliver_with_item(buffer, head, data, tail)
        }
        Some(Layout::Whole { length }) => rqst.deliver_pages(buffer, length),
        None => error::drop_call(conn, rqst, buffer),
    }
}

/// Whether the first `length` bytes of `pages` are a Call with this XID, reduced by eligible items
/// only.
///
/// If not, the header and the payload belong to different RPCs, the payload is not a Call (RFC 8166
/// Section 4.5.2), or a Long Call was reduced by an ineligible item (Sections 6.1 and 8.2.2).
fn is_call(pages: &PageArray, length: u32, xid: u32, reads: ReadList<'_>) -> bool {
    let mut start = [0; call_header::MAX_LEN];
    let call = (u64::from(xid) << 32 | u64::from(inbound::CALL)).to_be_bytes();
    let len = length.min(start.len() as u32);
    let word_at = |at| {
        let mut word = [0; 4];
        let span = Span { start: at, len: 4 };
        pages
            .read(span, &mut word)
            .then(|| u32::from_be_bytes(word))
    };
    start.get_mut(..len as usize).is_some_and(|start| {
        pages.read(Span { start: 0, len }, start)
            && start.starts_with(&call)
            && call_header::allows_reads(start, reads)
            && eligible::allows_reads(start, reads, length, word_at)
    })
}

/// Clears up to 3 bytes of roundup, so that the Call contains no stale bytes of the page.
#[inline]
fn clear(reads: &mut Reads<'_>, offset: u32, len: u32) -> Result<(), NotServed> {
    match [0; 3].get(..len as usize) {
        Some(zeroes) if reads.write(offset, zeroes) => Ok(()),
        _ => Err(NotServed::Lost),
    }
}
