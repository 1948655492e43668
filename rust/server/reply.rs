// SPDX-License-Identifier: GPL-2.0

//! From an encoded Reply to a posted Send.
//!
//! Results with a Write chunk, or the whole Reply if it needs the Reply chunk, are sent by RDMA
//! Write. The Writes and the Send are posted as one chain, the Send last. When the Send completes,
//! the Writes have completed; when the Send arrives, the client has the whole Reply.
//!
//! C: svc_rdma_sendto.c, svc_rdma_sendto(), svc_rdma_send_reply_msg()
//! C: svc_rdma_rw.c, svc_rdma_prepare_write_list(), svc_rdma_prepare_reply_chunk()

use core::iter;

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use super::{
    call::{
        BufferMut,
        Call, //
    },
    connection::Connection,
    error,
    exposed::Exposing,
    post::{
        self,
        NotServed,
        PostResult, //
    },
    traces,
    tunables, //
};
use crate::{
    engine::responder::{
        remote_inv,
        reply::{
            self,
            CannotReply,
            ChunkWriter,
            Form,
            Payload,
            Plan,
            ReplyShape, //
        }, //
    },
    lib::{
        close_reason::CloseReason,
        displaced_pages::CtxtPages,
        pages::Span, //
    },
    sunrpc::svc::{
        Body,
        Located,
        Reply, //
    },
    trace::trace,
    verbs::{
        Exposed,
        Remote,
        SendCtxt, //
    },
    wire::{
        ChunkLists,
        ErrorReply,
        Segment,
        WriteChunk, //
    }, //
};

/// Messages shorter than this are copied into one buffer: copying is cheaper than mapping.
const PULL_UP: u32 = 512;

/// Sends a Reply, or else an error, or else closes the connection.
pub(super) fn send_reply(
    conn: &Connection,
    buffer: &mut BufferMut<'_>,
    reply: Reply<'_>,
) -> Result {
    let ctx = conn.ep.context();
    let sent = if ctx.is_closing() {
        Err(ENODEV)
    } else {
        try_send_reply(conn, buffer, reply)
    };
    sent.inspect_err(|error| {
        trace!(svcrdma_send_err(
            conn.ep.peer_addr(),
            buffer.user().call.xid,
            error.to_errno()
        ));
        ctx.close(CloseReason::NotPosted);
    })
}

fn try_send_reply(conn: &Connection, buffer: &mut BufferMut<'_>, reply: Reply<'_>) -> Result {
    let sender = conn.ep.sender();
    let ctxt = sender.get(&conn.ep)?;
    match post_reply(conn, ctxt, buffer, reply) {
        Ok(()) => Ok(()),
        Err((returned, why)) => not_sent(conn, buffer, returned, why),
    }
}

/// Sends an error in place of a Reply that is refused.
#[cold]
fn not_sent(
    conn: &Connection,
    buffer: &BufferMut<'_>,
    returned: Option<SendCtxt>,
    why: NotServed,
) -> Result {
    match (returned, why) {
        (Some(mut ctxt), NotServed::Refused) => {
            // The pages stay with the Send context, which may hold the last reference.
            ctxt.unmap(&conn.ep);
            let error = ErrorReply::chunk(buffer.user().call.xid);
            error::post_error(conn, ctxt, &error)
        }
        (returned, _) => {
            if let Some(ctxt) = returned {
                conn.ep.sender().put(&conn.ep, ctxt);
            }
            Err(EIO)
        }
    }
}

/// Adds the Writes, header and payload of a Reply to `ctxt`, and posts it.
#[inline]
fn post_reply(
    conn: &Connection,
    mut ctxt: SendCtxt,
    buffer: &mut BufferMut<'_>,
    reply: Reply<'_>,
) -> PostResult {
    let protected = reply.is_protected();
    let reply = match reply.locate() {
        Ok(reply) => reply,
        Err(error) => return Err((Some(ctxt), error.into())),
    };
    let received = buffer.user().call.len;
    let (bytes, recv_ctxt) = buffer.split(received);
    let (call, recorded) = recv_ctxt.parts();
    let (call, xid) = (&*call, call.xid);
    let chunks = call.chunks(bytes);
    let shape = ReplyShape {
        length: reply.body().len(),
        protected,
    };
    // Borrow the result: moving the plan out would copy it.
    let planned = reply::plan(&chunks, call.results(), &shape, &conn.reply_limits);
    let second;
    let plan = match &planned {
        Ok(plan) => plan,
        Err(_) => {
            second = plan_again(conn, ctxt.serial(), call, &chunks, &shape);
            match &second {
                Ok(plan) => plan,
                Err(why) => return Err((Some(ctxt), *why)),
            }
        }
    };
    let invalidate = if conn.agreement.remote_invalidation {
        remote_inv::handle_to_invalidate(&chunks)
    } else {
        None
    };
    if plan.form() == Form::Exposed {
        return post_exposed_reply(conn, ctxt, xid, plan, reply, invalidate);
    }
    let len = if is_copied(plan, reply.body(), &ctxt) {
        copy_reply(conn, &mut ctxt, xid, plan, reply, recorded)
    } else {
        map_reply(conn, &mut ctxt, xid, plan, reply)
    };
    match len {
        Ok(len) => post::post(conn, ctxt, len, invalidate),
        Err(why) => Err((Some(ctxt), why)),
    }
}

/// Builds a Send with the inline part of the Reply copied behind the header; returns its length.
///
/// The first page of the Reply, which holds most of the encoded Reply, stays with the nfsd thread
/// unless the device sends from it. A page that is given away must be replaced by a newly allocated
/// page, which `init_on_alloc` clears.
///
/// C: svc_rdma_sendto.c, svc_rdma_pull_up_reply_msg()
#[inline]
fn copy_reply(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    xid: u32,
    plan: &Plan<'_>,
    reply: Located<'_>,
    recorded: &mut CtxtPages,
) -> Result<usize, NotServed> {
    let header = write_header(
        conn,
        ctxt.serial(),
        ctxt.buffer_mut(),
        xid,
        plan,
        iter::empty(),
    )?;
    let mut end = header;
    for (offset, length) in plan.runs() {
        // The buffer has room for the longest message that may be sent.
        let rest = ctxt.buffer_mut().get_mut(end..);
        if !rest.is_some_and(|rest| reply.read(offset, length, rest)) {
            return Err(NotServed::Lost);
        }
        end += length as usize;
    }
    let pages = ctxt.page_sink(reply.pages())?;
    let body = if is_written_from_first(plan, reply.body()) {
        reply.move_into(pages)?
    } else {
        let spare = &conn.spare.replies;
        let (body, displaced) = reply.move_rest_into(pages, recorded, spare)?;
        // Few Replies change this flag, which other threads read: avoid dirtying its cache line.
        if plan.has_writes() && conn.displaces.load(Relaxed) != displaced {
            conn.displaces.store(displaced, Relaxed);
        }
        body
    };
    if plan.has_writes() {
        add_writes(conn, ctxt, &body, plan)?;
    }
    if end > header {
        trace!(svcrdma_send_pullup(
            conn.ep.send_cid(ctxt.serial()),
            header as u32,
            plan.left()
        ));
    }
    Ok(end)
}

/// Builds a Send that gathers the inline part of the Reply from its pages; returns the length of
/// the header.
///
/// C: svc_rdma_sendto.c, svc_rdma_map_reply_msg()
#[inline]
fn map_reply(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    xid: u32,
    plan: &Plan<'_>,
    reply: Located<'_>,
) -> Result<usize, NotServed> {
    let pages = ctxt.page_sink(reply.pages())?;
    let body = reply.move_into(pages)?;
    add_writes(conn, ctxt, &body, plan)?;
    let header = write_header(
        conn,
        ctxt.serial(),
        ctxt.buffer_mut(),
        xid,
        plan,
        iter::empty(),
    )?;
    if plan.form() == Form::Inline {
        for (offset, length) in plan.runs() {
            for span in body.spans(offset, length) {
                ctxt.gather(&conn.ep, span)?;
            }
        }
    }
    Ok(header)
}

/// Posts a Send that exposes the remaining part of the Reply to the client.
#[cold]
fn post_exposed_reply(
    conn: &Connection,
    ctxt: SendCtxt,
    xid: u32,
    plan: &Plan<'_>,
    reply: Located<'_>,
    invalidate: Option<u32>,
) -> PostResult {
    match expose_reply(conn, ctxt, xid, plan, reply) {
        Ok((exposing, len)) => post::post_exposing(conn, exposing, len, invalidate),
        Err((ctxt, why)) => Err((Some(ctxt), why)),
    }
}

/// Builds a Send that exposes the remaining part of the Reply to the client; also returns the
/// length of the header.
#[cold]
fn expose_reply(
    conn: &Connection,
    mut ctxt: SendCtxt,
    xid: u32,
    plan: &Plan<'_>,
    reply: Located<'_>,
) -> Result<(Exposing, usize), (SendCtxt, NotServed)> {
    let body = match move_body(conn, &mut ctxt, plan, reply) {
        Ok(body) => body,
        Err(why) => return Err((ctxt, why)),
    };
    let exposed = &conn.ep.context().exposed;
    let mut exposing = match exposed.expose(xid, ctxt, || remaining(plan, &body)) {
        Ok(exposing) => exposing,
        Err(ctxt) => return Err((ctxt, NotServed::Refused)),
    };
    let serial = exposing.ctxt.serial();
    let (buf, mrs) = exposing.ctxt.parts();
    match write_header(conn, serial, buf, xid, plan, mrs) {
        Ok(len) => Ok((exposing, len)),
        Err(why) => {
            exposed.withdraw(exposing.slot);
            Err((exposing.ctxt.into_ctxt(), why))
        }
    }
}

/// Moves the pages of the Reply to `ctxt`, and adds the Writes.
fn move_body(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    plan: &Plan<'_>,
    reply: Located<'_>,
) -> Result<Body, NotServed> {
    let pages = ctxt.page_sink(reply.pages())?;
    let body = reply.move_into(pages)?;
    add_writes(conn, ctxt, &body, plan)?;
    Ok(body)
}

/// Plans a Reply again, without the part of the results that the service has truncated.
#[cold]
fn plan_again<'a>(
    conn: &Connection,
    serial: i32,
    call: &'a Call,
    chunks: &'a ChunkLists<'a>,
    shape: &ReplyShape,
) -> Result<Plan<'a>, NotServed> {
    let within = reply::remaining(call.results(), shape.length);
    for results in [within, &[]] {
        match reply::plan(chunks, results, shape, &conn.reply_limits) {
            Ok(plan) => return Ok(plan),
            // The service has truncated its encoding. What is left of the results is sent with the
            // rest of the Reply.
            Err(CannotReply::Results) => {}
            Err(why) => {
                if let CannotReply::WriteChunk { segments, excess } = why {
                    traces::too_small(&conn.ep, serial, segments, excess);
                }
                break;
            }
        }
    }
    Err(NotServed::Refused)
}

/// Adds the Writes to the client's Write chunks, or to its Reply chunk.
#[inline]
fn add_writes(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    body: &Body,
    plan: &Plan<'_>,
) -> Result<(), NotServed> {
    if let Some((chunk, payload)) = plan.first_write() {
        add_result(conn, ctxt, body, &chunk, payload)?;
    }
    if plan.has_more_chunks() {
        add_more_writes(conn, ctxt, body, plan)?;
    }
    match plan.reply_chunk() {
        Some(writer) => fill_reply_chunk(conn, ctxt, body, plan, writer),
        None => Ok(()),
    }
}

/// Adds the Writes to the Write chunks after the first.
#[cold]
fn add_more_writes(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    body: &Body,
    plan: &Plan<'_>,
) -> Result<(), NotServed> {
    for (chunk, payload) in plan.more_writes() {
        add_result(conn, ctxt, body, &chunk, payload)?;
    }
    Ok(())
}

/// Adds the Writes of a result to its Write chunk.
#[inline(always)]
fn add_result(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    body: &Body,
    chunk: &WriteChunk<'_>,
    payload: Payload,
) -> Result<(), NotServed> {
    let before = ctxt.entries();
    let mut writer = ChunkWriter::new(chunk);
    for span in body.spans(payload.offset, payload.length) {
        add_write(conn, ctxt, span, &mut writer)?;
    }
    trace!(svcrdma_post_write_chunk(
        conn.ep.send_cid(ctxt.serial()),
        ctxt.entries().saturating_sub(before) as i32
    ));
    Ok(())
}

/// Adds the Writes to the Reply chunk.
#[inline(never)]
fn fill_reply_chunk(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    body: &Body,
    plan: &Plan<'_>,
    mut writer: ChunkWriter<'_>,
) -> Result<(), NotServed> {
    let before = ctxt.entries();
    for (offset, length) in plan.runs() {
        for span in body.spans(offset, length) {
            add_write(conn, ctxt, span, &mut writer)?;
        }
    }
    trace!(svcrdma_post_reply_chunk(
        conn.ep.send_cid(ctxt.serial()),
        ctxt.entries().saturating_sub(before) as i32
    ));
    Ok(())
}

/// Writes the transport header, which names the `exposed` MRs; returns its length.
#[inline(always)]
fn write_header(
    conn: &Connection,
    serial: i32,
    buf: &mut [u8],
    xid: u32,
    plan: &Plan<'_>,
    exposed: impl Iterator<Item = Exposed>,
) -> Result<usize, NotServed> {
    let segments = exposed.map(|mr| Segment::new(mr.handle, mr.length, mr.offset));
    let credits = conn.ep.context().recv_queue.granted();
    // The plan has checked that the header fits.
    let len = plan
        .encode(xid, credits, segments, buf)
        .map_err(|_| NotServed::Lost)?;
    if let Some(header) = buf.get(..len) {
        traces::reply(&conn.ep, serial, header);
    }
    Ok(len)
}

/// Adds Writes of `span` to the next free bytes of `writer`.
#[inline]
fn add_write(
    conn: &Connection,
    ctxt: &mut SendCtxt,
    mut span: Span,
    writer: &mut ChunkWriter<'_>,
) -> Result<(), NotServed> {
    let most = conn.ep.sender().queue().depth();
    while span.len > 0 {
        // The plan has checked that the result fits.
        let segment = writer.next_part(span.len).ok_or(NotServed::Refused)?;
        let target = Remote {
            handle: segment.handle,
            offset: segment.offset,
        };
        ctxt.write(&conn.ep, span.part(0, segment.length), target)?;
        // The client's chunks have more segments than the Send Queue can ever hold Writes.
        if ctxt.entries() > most {
            return Err(NotServed::Refused);
        }
        tunables::WRITES.inc();
        span = span.part(segment.length, u32::MAX);
    }
    Ok(())
}

/// The part of a Reply that is not sent in Write chunks.
#[inline]
fn remaining<'a>(plan: &'a Plan<'_>, body: &'a Body) -> impl Iterator<Item = Span> + use<'a> {
    plan.runs()
        .flat_map(|(offset, length)| body.spans(offset, length))
}

/// Whether the inline part is copied behind the header.
///
/// C: svc_rdma_sendto.c, svc_rdma_check_pull_up()
#[inline]
fn is_copied(plan: &Plan<'_>, body: &Body, ctxt: &SendCtxt) -> bool {
    plan.form() == Form::Inline
        && (plan.header().saturating_add(plan.left()) < PULL_UP
            || sges(plan, *body) > ctxt.sges_left())
}

/// The number of SGEs that gather the inline part.
#[inline(never)]
fn sges(plan: &Plan<'_>, body: Body) -> usize {
    remaining(plan, &body).fold(0, |sum, span| sum.saturating_add(span.pages() as usize))
}

/// Whether any result for the client's Write chunks lies in the first page.
#[inline]
fn is_written_from_first(plan: &Plan<'_>, body: &Body) -> bool {
    let is_in_first = |(_, payload): (_, Payload)| body.is_in_first(payload.offset, payload.length);
    plan.first_write().is_some_and(is_in_first)
        || plan.has_more_chunks() && is_any_written_from_first(plan, *body)
}

#[cold]
fn is_any_written_from_first(plan: &Plan<'_>, body: Body) -> bool {
    plan.writes()
        .any(|(_, payload)| body.is_in_first(payload.offset, payload.length))
}
