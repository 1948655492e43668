// SPDX-License-Identifier: GPL-2.0

//! Calls with Read chunks: pulled, put together, and delivered.
//!
//! A first thread posts the RDMA Reads, into pages of its request, and goes; when they have
//! completed, another one puts those pages into its own request and delivers.

use kernel::page::PAGE_SIZE;

use super::{
    call::{
        Buffer,
        Call, //
    },
    connection::Connection,
    ep::ServerEp,
    post::{
        lost,
        NotServed,
        Posted, //
    },
    tunables, //
};
use crate::{
    engine::{
        inbound,
        responder::{
            call_header,
            reassembly::{
                Assembly,
                Layout,
                Part, //
            }, //
        }, //
    },
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

impl Connection {
    /// Pulls the Read chunks of a Call, if there is room for that.
    #[inline]
    pub(super) fn pull(&self, rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        let ctx = self.ep.context();
        let call = &mut buffer.user_mut().call;
        // More than that is refused.
        let bytes = call.parts.min(self.bounds.message);
        let pages = bytes.div_ceil(PAGE_SIZE as u32) as usize;
        if !ctx.begin_read(call, pages) {
            ctx.hold_back(buffer);
            return rqst.nothing();
        }
        if self.read_mr_budget.total() == 0 {
            return self.start_read(rqst, buffer);
        }
        self.read_into_mrs(rqst, buffer)
    }

    #[cold]
    fn read_into_mrs(&self, rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        let received = buffer.user().call.bytes;
        let (bytes, ctxt) = buffer.split(received);
        let call = &ctxt.call;
        let (xid, reads) = (call.xid, call.chunks(bytes).reads);
        let wanted = self.read_mr_budget.of(reads, call.long);
        if wanted > self.read_mr_budget.total() {
            self.end_read(&mut buffer);
            return self.refuse_call(rqst, buffer, xid);
        }
        match self.ep.context().take_mrs(buffer, wanted) {
            Some(buffer) => self.start_read(rqst, buffer),
            None => rqst.nothing(),
        }
    }

    /// Gives back what it took to pull a Call.
    #[inline]
    fn end_read(&self, buffer: &mut Buffer) {
        self.ep.context().end_read(&mut buffer.user_mut().call);
    }

    /// Starts to pull the Read chunks of a Call.
    fn start_read(&self, mut rqst: Receiving<'_, Self>, buffer: Buffer) -> Received {
        let call = &buffer.user().call;
        let (xid, received, long) = (call.xid, call.bytes, call.long);
        let mut pull = CallRead::new(buffer);
        let pulling = match self.prepare(&mut rqst, &mut pull, received, long) {
            Ok(()) => self.post_read(pull),
            Err(why) => Err((Some(pull), why)),
        };
        let Err((pull, why)) = pulling else {
            return rqst.nothing();
        };
        let buffer = pull.map(|pull| pull.abandon(&self.ep));
        match why {
            NotServed::Refused => self.refuse(xid),
            NotServed::Lost => self.ep.context().close(),
        }
        if let Some(mut buffer) = buffer {
            self.end_read(&mut buffer);
            self.ep.context().receives().recycle(buffer);
        }
        rqst.nothing()
    }

    /// Adds the RDMA Reads that a Call needs, and what of it is inline.
    fn prepare(
        &self,
        rqst: &mut Receiving<'_, Self>,
        pull: &mut CallRead<Call>,
        received: usize,
        long: bool,
    ) -> Result<(), NotServed> {
        let serial = pull.serial();
        let (bytes, call, mut reads) = pull.parts(received);
        let payload = bytes.get(call.payload..).unwrap_or(&[]);
        let inline = (!long).then_some(payload.len());
        let list = call.chunks(bytes).reads;
        if !long && !call_header::allows_reads(payload, list) {
            return Err(NotServed::Refused);
        }
        let assembly = Assembly::plan(inline, list, &self.bounds)
            .map_err(|_| NotServed::Refused)?
            .ok_or(NotServed::Refused)?;
        if !self.may_read {
            return Err(NotServed::Refused);
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

    /// Takes the pages of the request that `length` bytes are pulled to.
    #[inline]
    fn take_pages(
        &self,
        rqst: &mut Receiving<'_, Self>,
        reads: &mut Reads<'_>,
        serial: i32,
        length: u32,
    ) -> Result<(), NotServed> {
        let pages = length.div_ceil(PAGE_SIZE as u32) as usize;
        let taken = rqst.take_pages(pages, reads.page_sink(), &self.spare.calls);
        if taken < pages {
            trace!(svcrdma_page_overrun_err(
                self.ep.recv_cid(serial),
                taken as u32
            ));
            return Err(NotServed::Refused);
        }
        Ok(())
    }

    /// Adds the Reads of the one data item, and clears its roundup if that does not travel.
    #[inline]
    fn add_item(
        &self,
        reads: &mut Reads<'_>,
        assembly: &Assembly<'_>,
        data: u32,
    ) -> Result<(), NotServed> {
        let lengths = assembly.reads().map(|segment| segment.length);
        let bytes = lengths.fold(0, u32::saturating_add);
        // Pages that are mapped are the device's, down to the last cache line: so this is first.
        if bytes < data {
            clear(reads, bytes, data - bytes)?;
        }
        let mut at = 0;
        for segment in assembly.reads() {
            self.add_read(reads, &mut at, segment)?;
        }
        Ok(())
    }

    /// Adds all that a Call is put together from.
    fn add_whole(
        &self,
        reads: &mut Reads<'_>,
        assembly: &Assembly<'_>,
        payload: &[u8],
    ) -> Result<(), NotServed> {
        // As in `add_item`, Reads go to pages that nothing is copied to any more.
        let mut at = 0;
        for part in assembly.parts() {
            match part {
                Part::Read(segment) => at += segment.length,
                Part::Inline { offset, length } => {
                    let range = offset as usize..offset.saturating_add(length) as usize;
                    let source = payload.get(range).ok_or(NotServed::Lost)?;
                    if !reads.write(at, source) {
                        return Err(NotServed::Lost);
                    }
                    at += length;
                }
                Part::Pad { length } => {
                    clear(reads, at, length)?;
                    at += length;
                }
            }
        }
        let mut at = 0;
        for part in assembly.parts() {
            match part {
                Part::Read(segment) => self.add_read(reads, &mut at, segment)?,
                Part::Inline { length, .. } | Part::Pad { length } => at += length,
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
    ) -> Result<(), NotServed> {
        let sink = Span {
            start: *at,
            len: segment.length,
        };
        let from = Remote {
            handle: segment.handle,
            offset: segment.offset,
        };
        reads.add::<ServerEp>(&self.ep, sink, from)?;
        tunables::READS.inc();
        *at = at.saturating_add(segment.length);
        Ok(())
    }

    /// Posts the Reads. The completion hands the Call to a thread again.
    fn post_read(&self, pull: CallRead<Call>) -> Posted<CallRead<Call>> {
        let permit = match self.reserve(pull.entries(), pull.serial()) {
            Ok(permit) => permit,
            Err(why) => return Err((Some(pull), why)),
        };
        pull.post(&self.ep, permit).map_err(lost)
    }

    /// Delivers a Call whose chunks have been pulled.
    pub(super) fn finish(&self, mut rqst: Receiving<'_, Self>, mut buffer: Buffer) -> Received {
        trace!(svcrdma_read_finished(self.ep.recv_cid(buffer.serial())));
        self.end_read(&mut buffer);
        let end = buffer.user().call.bytes;
        let (bytes, ctxt) = buffer.split(end);
        let call = &ctxt.call;
        let (xid, start, layout) = (call.xid, call.payload, call.layout);
        let reads = call.chunks(bytes).reads;
        let pages = ctxt.pages_mut().own();
        if matches!(layout, Some(Layout::Whole { length }) if !is_call(pages, length, xid, reads)) {
            return self.refuse_call(rqst, buffer, xid);
        }
        if !rqst.put_pages(pages, &self.spare.calls) {
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

/// Whether `length` bytes of `pages` are the Call of that number, put together from what it may
/// lack.
///
/// If not, header and payload speak of different RPCs, or of none (RFC 8166 Section 4.5.2), or a
/// Long Call had something taken out that has to stay (Section 8.2.2).
fn is_call(pages: &PageArray, length: u32, xid: u32, reads: ReadList<'_>) -> bool {
    let mut start = [0; call_header::MAX_LEN];
    let call = (u64::from(xid) << 32 | u64::from(inbound::CALL)).to_be_bytes();
    let len = length.min(start.len() as u32);
    start.get_mut(..len as usize).is_some_and(|start| {
        pages.read(Span { start: 0, len }, start)
            && start.starts_with(&call)
            && call_header::allows_reads(start, reads)
    })
}

/// Clears up to 3 bytes of roundup, so that nothing of the page's past is in the Call.
#[inline]
fn clear(reads: &mut Reads<'_>, at: u32, len: u32) -> Result<(), NotServed> {
    match [0; 3].get(..len as usize) {
        Some(zeroes) if reads.write(at, zeroes) => Ok(()),
        _ => Err(NotServed::Lost),
    }
}
