// SPDX-License-Identifier: GPL-2.0

//! What a thread finds to do: a message that was received, or a Call that was pulled.
//!
//! A Call without Read chunks is delivered where it was received. The others are pulled first.

use core::ops::Range;

use kernel::{
    page::PAGE_SIZE,
    sync::atomic::ordering::Relaxed, //
};

use super::{
    call::{
        Buffer,
        Call,
        MAX_RESULTS, //
    },
    connection::Connection,
    traces,
    tunables, //
};
use crate::{
    engine::inbound::{
        self,
        FromClient,
        Response, //
        RpcMsg,
    },
    lib::displaced_pages::CtxtPages,
    sunrpc::svc::{
        Answer,
        Arriving,
        Received,
        Receiving, //
    },
    verbs::{
        CallReadDone, //
        RecvCtxt,
    },
    wire::ChunkLists, //
};

/// Bytes of a Reply whose pages are noted at most: if its Call is put off, they are kept until it
/// is taken up again.
const MOST_NOTED: usize = 1 << 20;

/// What a thread finds to do.
enum Next {
    Fresh(Buffer),
    /// It has waited to be pulled.
    Again(Buffer),
    CallReadDone(CallReadDone<Call>),
}

/// What is done with a message that was received.
enum Step {
    /// These bytes of it are a Call.
    Deliver(Range<usize>),
    /// Some of its Call is still to be pulled.
    CallRead,
    /// The chunks of the Call of that number cannot be used.
    Refuse(u32),
    /// No more than was done with it.
    Drop,
}

impl Connection {
    /// Receives one Call, if there is one.
    #[inline]
    pub(super) fn receive_call(&self, mut rqst: Arriving<'_, Self>) -> Received {
        let ctx = self.ep.context();
        let mut incoming = ctx.incoming().lock();
        // What was pulled came first.
        let next = match incoming.pulled.pop() {
            Some(pulled) => Some(Next::CallReadDone(pulled)),
            None => match ctx.next_read(&mut incoming) {
                Some(buffer) => Some(Next::Again(buffer)),
                None => incoming.fresh.pop().map(Next::Fresh),
            },
        };
        if next.is_none() {
            rqst.clear_data();
        }
        drop(incoming);
        let rqst = rqst.let_others_in();
        if ctx.timer().take_due() {
            ctx.poll(&self.ep);
        }
        match next {
            Some(Next::Fresh(buffer)) => self.begin(rqst, buffer),
            Some(Next::Again(buffer)) => self.pull(rqst, buffer),
            Some(Next::CallReadDone(pulled)) => self.finish(rqst, pulled.finish(&self.ep)),
            None => rqst.nothing(),
        }
    }

    /// Does what is to be done with what was received.
    #[inline]
    fn begin(&self, rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        tunables::RECEIVES.inc();
        match self.parse(&rqst, &mut buffer) {
            Step::Deliver(call) => rqst.deliver(buffer, call),
            Step::CallRead => self.pull(rqst, buffer),
            Step::Refuse(xid) => self.refuse_call(rqst, buffer, xid),
            Step::Drop => self.drop_call(rqst, buffer),
        }
    }

    /// Parses what was received, and answers what wants no thread for longer than that.
    #[inline]
    fn parse(&self, rqst: &Receiving<'_, Self>, buffer: &mut Buffer) -> Step {
        let received = buffer.user().call.bytes;
        let serial = buffer.serial();
        let (bytes, ctxt) = buffer.split(received);
        let invalidated = ctxt.call.invalidated;
        match inbound::from_client(bytes, self.extensions) {
            Ok(FromClient::Done { xid }) => {
                self.ep.context().exposed().done(&self.ep, xid, invalidated);
            }
            // Only RDMA_DONE invalidates; any other message that does may have hit any Reply's
            // region.
            _ if invalidated.is_some() => self.ep.context().close(),
            Ok(FromClient::Call(message)) => {
                let start = received - message.payload.map_or(0, <[u8]>::len);
                traces::call(&self.ep, serial, bytes, start, &message.chunks);
                return self.begin_call(rqst, &message, ctxt, start..received);
            }
            Ok(FromClient::BackchannelReply(message)) => {
                let answer = Answer::Reply(message.payload.unwrap_or(&[]));
                if !self.backchannel_answer(rqst, message.xid, message.credits, answer) {
                    traces::dropped(&self.ep, serial, bytes);
                }
            }
            Ok(FromClient::BackchannelError(refused)) => {
                if !self.backchannel_answer(rqst, refused.xid, refused.credits, Answer::Refused) {
                    traces::dropped(&self.ep, serial, bytes);
                }
            }
            Err(response) => {
                traces::refused(&self.ep, serial, bytes, &response);
                if let Response::Answer(error) = response {
                    self.send_error(&error);
                }
            }
        }
        Step::Drop
    }

    /// Notes what is to be known of a Call, whose inline part is `inline`.
    #[inline]
    fn begin_call(
        &self,
        rqst: &Receiving<'_, Self>,
        message: &RpcMsg<'_>,
        ctxt: &mut RecvCtxt<Call>,
        inline: Range<usize>,
    ) -> Step {
        let (chunks, long) = (&message.chunks, message.payload.is_none());
        let lengths = chunks.reads.segments().map(|read| read.segment.length);
        let reads = lengths.fold(0, u32::saturating_add);
        // CAST: No longer than a message.
        let parts = reads.saturating_add(inline.len() as u32);
        ctxt.call
            .begin(message.xid, inline.start, long, parts, chunks.outline());
        // No room for so many results, or for a Call longer than what the service takes.
        if chunks.writes.chunks().nth(MAX_RESULTS).is_some()
            || inline.len() > self.bounds.message as usize
        {
            Step::Refuse(message.xid)
        } else if !long && reads == 0 {
            // A list of nothing but empty segments is legal, and there is nothing to pull.
            self.note_reply_pages(rqst, chunks, ctxt.pages_mut());
            Step::Deliver(inline)
        } else {
            Step::CallRead
        }
    }

    /// Notes the pages that a file's may displace in the Reply, if there is a Write chunk for that:
    /// all of them where the last Reply saw some displaced, else one, to see.
    #[inline]
    fn note_reply_pages(
        &self,
        rqst: &Receiving<'_, Self>,
        chunks: &ChunkLists<'_>,
        pages: &mut CtxtPages,
    ) {
        let Some(chunk) = chunks.writes.chunks().next() else {
            return;
        };
        let most = if self.displaces.load(Relaxed) {
            usize::try_from(chunk.total()).unwrap_or(usize::MAX)
        } else {
            1
        };
        rqst.note_reply_pages(most.min(MOST_NOTED).div_ceil(PAGE_SIZE), pages);
    }

    /// Keeps the buffer for another Call.
    pub(super) fn drop_call(&self, rqst: Receiving<'_, Self>, buffer: Buffer) -> Received {
        self.ep.context().receives().recycle(buffer);
        rqst.nothing()
    }

    /// Tells the client that the chunks of a Call cannot be used, and drops it.
    #[cold]
    pub(super) fn refuse_call(
        &self,
        rqst: Receiving<'_, Self>,
        buffer: Buffer,
        xid: u32,
    ) -> Received {
        self.refuse(xid);
        self.drop_call(rqst, buffer)
    }
}
