// SPDX-License-Identifier: GPL-2.0

//! From an encoded Reply to a message that can be posted.
//!
//! Results with a Write chunk, or the whole Reply if it needs the Reply chunk, go by RDMA Write.
//! The Writes are posted in front of the Send, in one chain: when the Send completes, so have they,
//! and the client has all of it when the Send arrives.

use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    connection::Connection,
    ep::ServerEp,
    exposed::Exposing,
    post::{
        NotServed,
        Posted, //
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
            Form,
            Plan,
            ReplyShape,
            Sink, //
        }, //
    },
    lib::{
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
        Responder, //
        SendCtxt,
    },
    wire::{
        ChunkLists,
        ErrorReply,
        Segment, //
    }, //
};

/// Messages shorter than this are copied together: cheaper than to map what they consist of.
const PULL_UP: u32 = 512;

/// A message that is ready to be posted.
struct Ready {
    /// How much of its buffer is to be sent.
    bytes: usize,
    /// The handle to invalidate.
    invalidate: Option<u32>,
    /// What of its pages the client is to pull.
    exposing: Option<Exposing>,
}

impl Connection {
    /// Sends a Reply, or else an error, or else closes the connection.
    pub(super) fn send_reply(&self, buffer: &mut Buffer, reply: Reply<'_>) -> Result {
        let ctx = self.ep.context();
        let sent = if ctx.is_closing() {
            Err(ENODEV)
        } else {
            self.try_send_reply(buffer, reply)
        };
        sent.inspect_err(|error| {
            trace!(svcrdma_send_err(
                self.ep.peer_addr(),
                buffer.user().call.xid,
                error.to_errno()
            ));
            ctx.close();
        })
    }

    fn try_send_reply(&self, buffer: &mut Buffer, reply: Reply<'_>) -> Result {
        let sending = self.ep.context().sending();
        let mut message = sending.message(&self.ep)?;
        let outcome = match self.prepare_reply(&mut message, buffer, reply) {
            Ok(ready) => match self.post_reply(message, ready) {
                Ok(()) => return Ok(()),
                Err((back, why)) => (back, why),
            },
            Err(why) => (Some(message), why),
        };
        match outcome {
            (Some(mut message), NotServed::Refused) => {
                // The pages stay with the message; some of them may be in nobody else's hands.
                message.unmap(&self.ep);
                let error = ErrorReply::chunk(buffer.user().call.xid);
                self.post_error(message, &error)
            }
            (message, _) => {
                if let Some(message) = message {
                    sending.put(&self.ep, message);
                }
                Err(EIO)
            }
        }
    }

    /// Adds the Writes, header and content of a Reply to `message`.
    #[inline]
    fn prepare_reply(
        &self,
        message: &mut SendCtxt,
        buffer: &mut Buffer,
        reply: Reply<'_>,
    ) -> Result<Ready, NotServed> {
        let protected = reply.is_protected();
        let reply = reply.locate()?;
        let received = buffer.user().call.bytes;
        let (bytes, ctxt) = buffer.split(received);
        let (call, noted) = ctxt.parts();
        let call = &*call;
        let chunks = call.chunks(bytes);
        let serial = message.serial();
        let plan = self.plan_reply(serial, call, chunks, reply.body().len(), protected)?;
        let (bytes, exposing) = if is_copied(&plan, reply.body(), message) {
            (
                self.copy_reply(message, call.xid, &plan, reply, noted)?,
                None,
            )
        } else {
            self.map_reply(message, call.xid, &plan, reply)?
        };
        let invalidate = if self.agreement.remote_invalidation {
            remote_inv::handle_to_invalidate(&chunks)
        } else {
            None
        };
        Ok(Ready {
            bytes,
            invalidate,
            exposing,
        })
    }

    /// Puts together a message that has what is left of the Reply behind its header; returns how
    /// long it is.
    ///
    /// The first page, where most of a Reply is encoded, stays with the service's thread, unless
    /// the device is to write from it: a page that is given away is replaced by one that has to be
    /// found and cleared.
    #[inline]
    fn copy_reply(
        &self,
        message: &mut SendCtxt,
        xid: u32,
        plan: &Plan<'_>,
        reply: Located<'_>,
        noted: &mut CtxtPages,
    ) -> Result<usize, NotServed> {
        let header = self.write_header(message, xid, plan, None)?;
        let mut end = header;
        for span in left(plan, reply.body()) {
            // The buffer is as long as the longest message that may be sent.
            let rest = message.buffer_mut().get_mut(end..);
            if !rest.is_some_and(|rest| reply.read(span, rest)) {
                return Err(NotServed::Lost);
            }
            end += span.len as usize;
        }
        let body = if is_written_from_first(plan, reply.body()) {
            reply.move_into(message.page_sink())?
        } else {
            let spare = &self.spare.replies;
            let (body, displaced) = reply.move_rest_into(message.page_sink(), noted, spare)?;
            // Most Replies change nothing, and other threads read this.
            if plan.writes().next().is_some() && self.displaces.load(Relaxed) != displaced {
                self.displaces.store(displaced, Relaxed);
            }
            body
        };
        self.add_writes(message, &body, plan)?;
        if end > header {
            trace!(svcrdma_send_pullup(
                self.ep.send_cid(message.serial()),
                header as u32,
                plan.left()
            ));
        }
        Ok(end)
    }

    /// Puts together a message that refers to the Reply's pages; returns how long its header is,
    /// and what of them the client is to pull.
    #[inline]
    fn map_reply(
        &self,
        message: &mut SendCtxt,
        xid: u32,
        plan: &Plan<'_>,
        reply: Located<'_>,
    ) -> Result<(usize, Option<Exposing>), NotServed> {
        let body = reply.move_into(message.page_sink())?;
        self.add_writes(message, &body, plan)?;
        let exposing = match plan.form() {
            Form::Inline | Form::ReplyChunk => None,
            Form::Exposed => Some(self.expose(xid, message, &body, plan)?),
        };
        let header = self.write_header(message, xid, plan, exposing.as_ref())?;
        if plan.form() == Form::Inline {
            for span in left(plan, &body) {
                message.gather(span)?;
            }
        }
        Ok((header, exposing))
    }

    /// How a Reply of `length` bytes travels.
    #[inline]
    fn plan_reply<'a>(
        &self,
        serial: i32,
        call: &'a Call,
        chunks: ChunkLists<'a>,
        length: u32,
        protected: bool,
    ) -> Result<Plan<'a>, NotServed> {
        let shape = ReplyShape { length, protected };
        let results = reply::remaining(call.results(), length);
        let limits = &self.reply_limits;
        let plan = match reply::plan(chunks, results, &shape, limits) {
            // The service took back some of what it had encoded; what is left can travel with the
            // rest.
            Err(CannotReply::Results) => reply::plan(chunks, &[], &shape, limits),
            plan => plan,
        };
        plan.map_err(|why| {
            if let CannotReply::WriteChunk { segments, excess } = why {
                traces::too_small(&self.ep, serial, segments, excess);
            }
            NotServed::Refused
        })
    }

    /// Adds the Writes to the client's chunks.
    #[inline]
    fn add_writes(
        &self,
        message: &mut SendCtxt,
        body: &Body,
        plan: &Plan<'_>,
    ) -> Result<(), NotServed> {
        let serial = message.serial();
        for (chunk, payload) in plan.writes() {
            let before = message.entries();
            let mut sink = Sink::new(&chunk);
            for span in body.spans(payload.offset, payload.length) {
                self.write(message, span, &mut sink)?;
            }
            let entries = message.entries() - before;
            trace!(svcrdma_post_write_chunk(
                self.ep.send_cid(serial),
                entries.cast_signed()
            ));
        }
        if let Some(mut sink) = plan.reply_chunk() {
            let before = message.entries();
            for span in left(plan, body) {
                self.write(message, span, &mut sink)?;
            }
            let entries = message.entries() - before;
            trace!(svcrdma_post_reply_chunk(
                self.ep.send_cid(serial),
                entries.cast_signed()
            ));
        }
        Ok(())
    }

    /// Writes the transport header; returns its length.
    #[inline]
    fn write_header(
        &self,
        message: &mut SendCtxt,
        xid: u32,
        plan: &Plan<'_>,
        exposing: Option<&Exposing>,
    ) -> Result<usize, NotServed> {
        let serial = message.serial();
        let exposing = exposing.into_iter();
        let exposed = exposing.flat_map(|exposing| exposing.mrs.exposed().map(segment));
        // The plan has seen to it that there is room.
        let header = plan
            .encode(xid, self.credits, exposed, message.buffer_mut())
            .map_err(|_| NotServed::Lost)?;
        if let Some(header) = message.buffer_mut().get(..header) {
            traces::reply(&self.ep, serial, header);
        }
        Ok(header)
    }

    /// Finds a place for what is left of a Reply, and maps it.
    #[cold]
    fn expose(
        &self,
        xid: u32,
        message: &SendCtxt,
        body: &Body,
        plan: &Plan<'_>,
    ) -> Result<Exposing, NotServed> {
        let exposed = self.ep.context().exposed();
        exposed
            .expose(xid, message, || left(plan, body))
            .ok_or(NotServed::Refused)
    }

    /// Adds Writes of `span` to where `sink` is in the client's memory.
    #[inline]
    fn write(
        &self,
        message: &mut SendCtxt,
        mut span: Span,
        sink: &mut Sink<'_>,
    ) -> Result<(), NotServed> {
        let most = self.ep.context().sending().queue().depth();
        while span.len > 0 {
            // The plan has seen to it that there is room.
            let segment = sink.next_part(span.len).ok_or(NotServed::Refused)?;
            let to = Remote {
                handle: segment.handle,
                offset: segment.offset,
            };
            message.write::<ServerEp>(&self.ep, span.part(0, segment.length), to)?;
            // It will never be posted: the client's segments are too many.
            if message.entries() > most {
                return Err(NotServed::Refused);
            }
            tunables::WRITES.inc();
            span = span.part(segment.length, u32::MAX);
        }
        Ok(())
    }

    /// Posts a Reply.
    #[inline]
    fn post_reply(&self, message: SendCtxt, ready: Ready) -> Posted {
        match ready.exposing {
            None => self.post(message, ready.bytes, ready.invalidate),
            Some(exposing) => self.post_exposing(message, ready.bytes, ready.invalidate, exposing),
        }
    }
}

/// A region, as a header names it.
fn segment(exposed: Exposed) -> Segment {
    Segment {
        handle: exposed.handle,
        length: exposed.length,
        offset: exposed.offset,
    }
}

/// What is left of a Reply to go inline, or to be exposed.
#[inline]
fn left<'a>(plan: &'a Plan<'_>, body: &'a Body) -> impl Iterator<Item = Span> + use<'a> {
    plan.runs()
        .flat_map(|(offset, length)| body.spans(offset, length))
}

/// Whether what travels inline is copied behind the header.
#[inline]
fn is_copied(plan: &Plan<'_>, body: &Body, message: &SendCtxt) -> bool {
    let elements = || left(plan, body).fold(0, |sum: usize, span| sum + span.pages() as usize);
    plan.form() == Form::Inline
        && (plan.header() + plan.left() < PULL_UP || elements() > message.elements_left())
}

/// Whether any of what goes to the client's Write chunks lies in the first page.
#[inline]
fn is_written_from_first(plan: &Plan<'_>, body: &Body) -> bool {
    plan.writes()
        .any(|(_, payload)| body.is_in_first(payload.offset, payload.length))
}
