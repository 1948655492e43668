// SPDX-License-Identifier: GPL-2.0

//! From a Receive to a Call that the service can decode.
//!
//! A Call without Read chunks is delivered where it was received. Otherwise a first thread posts
//! the RDMA Reads, into pages of its request, and goes; when they have completed, another one
//! delivers.

use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

use crate::{
    admin::{
        self,
        trace::trace, //
    },
    engine::{
        assembly::{
            Assembly,
            Layout,
            Piece, //
        },
        header,
        inbound::{
            self,
            FromClient,
            Response, //
        }, //
    },
    sunrpc::svc::{
        Answer,
        Arriving,
        Received,
        Receiving, //
    },
    verbs::{
        NoRoom,
        NotPulling,
        PageArray,
        Pull,
        Pulled,
        Reads,
        Remote,
        Responder,
        Span, //
    },
    wire::{
        ErrorReply,
        Segment, //
    }, //
};

use super::{
    call::{
        Buffer,
        Call,
        MAX_RESULTS, //
    },
    channel::Channel,
    connection::Connection,
    traces, //
};

/// What a thread finds to do.
enum Next {
    Fresh(Buffer),
    /// It has waited for regions.
    Again(Buffer),
    Pulled(Pulled<Call>),
}

/// Why a Call is not pulled.
enum NotPulled {
    /// The client is told, and may go on.
    Refused,
    /// The connection is at its end.
    Lost,
}

impl From<Error> for NotPulled {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

impl Connection {
    /// Receives one Call, if there is one.
    #[inline]
    pub(super) fn receive_call(&self, mut rqst: Arriving<'_, Self>) -> Received {
        let channel = self.ep.context();
        let mut incoming = channel.incoming().lock();
        // What was pulled came first.
        let next = match incoming.pulled.pop() {
            Some(pulled) => Some(Next::Pulled(pulled)),
            None => match incoming.regions.next() {
                Some(buffer) => Some(Next::Again(buffer)),
                None => incoming.fresh.pop().map(Next::Fresh),
            },
        };
        if next.is_none() {
            rqst.clear_data();
        }
        drop(incoming);
        let rqst = rqst.let_others_in();
        if channel.exposed().is_due() {
            channel.exposed().expire(&self.ep);
        }
        match next {
            Some(Next::Fresh(buffer)) => self.begin(rqst, buffer),
            Some(Next::Again(buffer)) => self.pull(rqst, buffer),
            Some(Next::Pulled(pulled)) => self.finish(rqst, pulled.finish(&self.ep)),
            None => rqst.nothing(),
        }
    }

    /// Parses what was received.
    #[inline]
    fn begin(&self, rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        admin::server::RECEIVES.inc();
        let received = buffer.user().call.octets;
        let serial = buffer.serial();
        let (octets, parcel) = buffer.split(received);
        let invalidated = parcel.call.invalidated;
        match inbound::from_client(octets, self.extensions) {
            Ok(FromClient::Done { xid }) => {
                self.ep.context().exposed().done(&self.ep, xid, invalidated);
                self.drop_call(rqst, buffer)
            }
            // Only RDMA_DONE invalidates; any other message that does may have hit any Reply's
            // region.
            _ if invalidated.is_some() => {
                self.ep.context().close();
                self.drop_call(rqst, buffer)
            }
            Ok(FromClient::Call(message)) => {
                let inline = message.payload.map_or(0, <[u8]>::len);
                let start = received - inline;
                traces::call(&self.ep, serial, octets, start, &message.chunks);
                let (xid, long) = (message.xid, message.payload.is_none());
                parcel
                    .call
                    .begin(xid, start, long, message.chunks.outline());
                // A list of nothing but empty segments is legal, and there is nothing to pull.
                let mut reads = message.chunks.reads.segments();
                if message.chunks.writes.chunks().nth(MAX_RESULTS).is_some() {
                    self.refuse_call(rqst, buffer, xid)
                } else if !long && reads.all(|read| read.segment.is_empty()) {
                    rqst.deliver(buffer, start..received)
                } else {
                    self.pull(rqst, buffer)
                }
            }
            Err(response @ Response::Answer(error)) => {
                traces::refused(&self.ep, serial, octets, &response);
                self.send_error(&error);
                self.drop_call(rqst, buffer)
            }
            Ok(FromClient::ReverseReply(message)) => {
                let answer = Answer::Reply(message.payload.unwrap_or(&[]));
                if !self.reverse_answer(&rqst, message.xid, message.credits, answer) {
                    traces::dropped(&self.ep, serial, octets);
                }
                self.drop_call(rqst, buffer)
            }
            Ok(FromClient::ReverseError(refused)) => {
                if !self.reverse_answer(&rqst, refused.xid, refused.credits, Answer::Refused) {
                    traces::dropped(&self.ep, serial, octets);
                }
                self.drop_call(rqst, buffer)
            }
            Err(response @ Response::Drop) => {
                traces::refused(&self.ep, serial, octets, &response);
                self.drop_call(rqst, buffer)
            }
        }
    }

    /// Keeps the buffer for another Call.
    fn drop_call(&self, rqst: Receiving<'_, Self>, buffer: Buffer) -> Received {
        self.ep.context().recycle(buffer);
        rqst.nothing()
    }

    /// Tells the client that the chunks of a Call cannot be used, and drops it.
    #[cold]
    fn refuse_call(&self, rqst: Receiving<'_, Self>, buffer: Buffer, xid: u32) -> Received {
        self.refuse(xid);
        self.drop_call(rqst, buffer)
    }

    /// Tells the client that its chunks cannot be used.
    #[cold]
    fn refuse(&self, xid: u32) {
        self.send_error(&ErrorReply::chunk(xid));
    }

    /// Pulls the Read chunks of a Call, if there are regions for that.
    #[inline]
    fn pull(&self, rqst: Receiving<'_, Self>, buffer: Buffer) -> Received {
        if self.demand.total() == 0 {
            return self.start_pull(rqst, buffer);
        }
        self.pull_to_regions(rqst, buffer)
    }

    #[cold]
    fn pull_to_regions(&self, rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        let received = buffer.user().call.octets;
        let (octets, parcel) = buffer.split(received);
        let call = &parcel.call;
        let (xid, reads) = (call.xid, call.chunks(octets).reads);
        let wanted = self.demand.of(reads, call.long);
        if wanted > self.demand.total() {
            return self.refuse_call(rqst, buffer, xid);
        }
        let taken = self
            .ep
            .context()
            .incoming()
            .lock()
            .regions
            .take(buffer, wanted);
        match taken {
            Some(buffer) => self.start_pull(rqst, buffer),
            None => rqst.nothing(),
        }
    }

    /// Gives back the regions that a Call was pulled to, or was to be.
    #[inline]
    fn give_regions(&self, buffer: &mut Buffer) {
        if self.demand.total() > 0 {
            self.ep.context().give_regions(&mut buffer.user_mut().call);
        }
    }

    /// Starts to pull the Read chunks of a Call.
    fn start_pull(&self, mut rqst: Receiving<'_, Self>, buffer: Buffer) -> Received {
        let call = &buffer.user().call;
        let (xid, received, long) = (call.xid, call.octets, call.long);
        let mut pull = Pull::new(buffer);
        let pulling = match self.prepare(&mut rqst, &mut pull, received, long) {
            Ok(()) => self.post_pull(pull),
            Err(why) => Err((Some(pull), why)),
        };
        let Err((pull, why)) = pulling else {
            return rqst.nothing();
        };
        let buffer = pull.map(|pull| pull.abandon(&self.ep));
        match why {
            NotPulled::Refused => self.refuse(xid),
            NotPulled::Lost => self.ep.context().close(),
        }
        if let Some(mut buffer) = buffer {
            self.give_regions(&mut buffer);
            self.ep.context().recycle(buffer);
        }
        rqst.nothing()
    }

    /// Adds the RDMA Reads that a Call needs, and what of it is inline.
    fn prepare(
        &self,
        rqst: &mut Receiving<'_, Self>,
        pull: &mut Pull<Call>,
        received: usize,
        long: bool,
    ) -> core::result::Result<(), NotPulled> {
        let serial = pull.serial();
        let (octets, call, mut reads) = pull.parts(received);
        let payload = octets.get(call.payload..).unwrap_or(&[]);
        let inline = (!long).then_some(payload.len());
        let list = call.chunks(octets).reads;
        if !long && !header::comes_before(payload, list) {
            return Err(NotPulled::Refused);
        }
        let assembly = Assembly::plan(inline, list, &self.bounds)
            .map_err(|_| NotPulled::Refused)?
            .ok_or(NotPulled::Refused)?;
        if !self.may_read {
            return Err(NotPulled::Refused);
        }
        let layout = assembly.layout();
        call.layout = Some(layout);
        match layout {
            Layout::DataItem { data, .. } => {
                self.take_pages(rqst, &mut reads, serial, data)?;
                self.add_item(&mut reads, &assembly, data)
            }
            Layout::Whole { length } => {
                self.take_pages(rqst, &mut reads, serial, length)?;
                self.add_whole(&mut reads, &assembly, payload)
            }
        }
    }

    /// Takes the pages of the request that `length` octets are pulled to.
    #[inline]
    fn take_pages(
        &self,
        rqst: &mut Receiving<'_, Self>,
        reads: &mut Reads<'_>,
        serial: i32,
        length: u32,
    ) -> core::result::Result<(), NotPulled> {
        let pages = length.div_ceil(PAGE_SIZE as u32) as usize;
        let taken = rqst.take_pages(pages, reads.page_sink());
        if taken < pages {
            trace!(svcrdma_page_overrun_err(
                self.ep.recv_cid(serial),
                taken as u32
            ));
            return Err(NotPulled::Refused);
        }
        Ok(())
    }

    /// Adds the Reads of the one data item, and clears its roundup if that did not travel.
    #[inline]
    fn add_item(
        &self,
        reads: &mut Reads<'_>,
        assembly: &Assembly<'_>,
        data: u32,
    ) -> core::result::Result<(), NotPulled> {
        let mut at = 0;
        for segment in assembly.pulls() {
            self.add_read(reads, &mut at, segment)?;
        }
        clear(reads, at, data.saturating_sub(at))
    }

    /// Adds all that a Call is put together from.
    fn add_whole(
        &self,
        reads: &mut Reads<'_>,
        assembly: &Assembly<'_>,
        payload: &[u8],
    ) -> core::result::Result<(), NotPulled> {
        let mut at = 0;
        for piece in assembly.pieces() {
            match piece {
                Piece::Pull(segment) => self.add_read(reads, &mut at, segment)?,
                Piece::Inline { offset, length } => {
                    let range = offset as usize..offset.saturating_add(length) as usize;
                    let source = payload.get(range).ok_or(NotPulled::Lost)?;
                    if !reads.write(at, source) {
                        return Err(NotPulled::Lost);
                    }
                    at += length;
                }
                Piece::Pad { length } => {
                    clear(reads, at, length)?;
                    at += length;
                }
            }
        }
        Ok(())
    }

    /// Adds a Read of a whole segment to where `at` is in the pages.
    #[inline]
    fn add_read(
        &self,
        reads: &mut Reads<'_>,
        at: &mut u32,
        segment: Segment,
    ) -> core::result::Result<(), NotPulled> {
        let sink = Span {
            start: *at,
            len: segment.length,
        };
        let from = Remote {
            handle: segment.handle,
            offset: segment.offset,
        };
        reads.add::<Channel>(&self.ep, sink, from)?;
        admin::server::READS.inc();
        *at = at.saturating_add(segment.length);
        Ok(())
    }

    /// Posts the Reads. The completion hands the Call to a thread again.
    fn post_pull(
        &self,
        pull: Pull<Call>,
    ) -> core::result::Result<(), (Option<Pull<Call>>, NotPulled)> {
        let channel = self.ep.context();
        let queue = channel.sending().queue();
        let serial = pull.serial();
        match queue.reserve(pull.entries(), || self.starved(serial)) {
            Ok(permit) => {
                if permit.waited() {
                    traces::queue_has_room(&self.ep, serial);
                    channel.waited(&self.ep);
                }
                match pull.post(&self.ep, permit) {
                    Ok(()) => Ok(()),
                    Err(NotPulling::Refused(pull)) => Err((Some(pull), NotPulled::Lost)),
                    Err(NotPulling::Stranded) => Err((None, NotPulled::Lost)),
                }
            }
            Err(NoRoom::TooLong) => Err((Some(pull), NotPulled::Refused)),
            Err(NoRoom::Closed | NoRoom::Stalled) => Err((Some(pull), NotPulled::Lost)),
        }
    }

    /// Delivers a Call whose chunks have been pulled.
    fn finish(&self, mut rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        trace!(svcrdma_read_finished(self.ep.recv_cid(buffer.serial())));
        self.give_regions(&mut buffer);
        let parcel = buffer.user_mut();
        let call = &parcel.call;
        let (xid, start, end, layout) = (call.xid, call.payload, call.octets, call.layout);
        let pages = parcel.pages_mut();
        if matches!(layout, Some(Layout::Whole { length }) if !is_call(pages, length, xid)) {
            // RFC 8166 Section 4.5.2: header and payload speak of different RPCs, or of none.
            return self.refuse_call(rqst, buffer, xid);
        }
        if !rqst.put_pages(pages) {
            return self.drop_call(rqst, buffer);
        }
        match layout {
            Some(Layout::DataItem { head, data, .. }) => {
                let split = start + head as usize;
                rqst.deliver_with_item(buffer, start..split, data, split..end)
            }
            Some(Layout::Whole { length }) => rqst.deliver_pages(buffer, length),
            None => self.drop_call(rqst, buffer),
        }
    }
}

/// Whether the message of `length` octets in `pages` is the Call of that number.
fn is_call(pages: &PageArray, length: u32, xid: u32) -> bool {
    let mut words = [0; 8];
    let start = Span { start: 0, len: 8 };
    let call = u64::from(xid) << 32 | u64::from(inbound::CALL);
    length >= start.len && pages.read(start, &mut words) && u64::from_be_bytes(words) == call
}

/// Clears up to 3 octets of roundup, so that nothing of the page's past is in the Call.
#[inline]
fn clear(reads: &mut Reads<'_>, at: u32, len: u32) -> core::result::Result<(), NotPulled> {
    match [0; 3].get(..len as usize) {
        Some(zeroes) if reads.write(at, zeroes) => Ok(()),
        _ => Err(NotPulled::Lost),
    }
}
