// SPDX-License-Identifier: GPL-2.0

//! The listening end: executes what the engine decides, and lets the world check it.

use crate::app::serve;
use crate::app::Answer;
use crate::backchannel::Caller;
use crate::backchannel::Conveyed;
use crate::client::Verdict;
use crate::end::Op;
use crate::end::Queues;
use crate::end::Received;
use crate::memory::Access;
use crate::memory::Memory;
use crate::memory::Place as Where;
use crate::rng::Rng;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::responder::exposed::ExposedSlot;
use rpcrdma_core::engine::responder::exposed::ExposedSlots;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::engine::responder::remote_inv::handle_to_invalidate;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_core::engine::responder::reply::Sink;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Outline;
use rpcrdma_core::wire::Segment;
use std::collections::BTreeMap;

/// What the server pulls for one Call.
const BOUNDS: Bounds = Bounds {
    message: 1 << 14,
    max_inline: 4096,
    chunks: 4,
    segments: 64,
};

/// An RDMA Read that has not completed.
#[derive(Clone, Copy, Debug)]
struct Read {
    job: u64,
    from: Segment,
    sink: usize,
    /// Whether it is on the Send Queue, or waits for room there.
    posted: bool,
}

/// A Call that is being assembled or served.
#[derive(Debug)]
struct Job {
    xid: u32,
    credits: u32,
    received: Vec<u8>,
    outline: Outline,
    call: Vec<u8>,
    reads: usize,
}

/// A Reply that is exposed.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    handles: Vec<u32>,
}

/// The listening end of one connection after another.
#[derive(Debug)]
pub struct Server {
    /// Queues of the connection.
    pub queues: Queues,
    agreement: Agreement,
    extensions: Extensions,
    max_requests: u32,
    /// What the client can reach.
    pub memory: Memory,
    places: ExposedSlots<Vec<ExposedSlot>>,
    held: Vec<Held>,
    /// Places whose handles are being invalidated.
    releasing: Vec<usize>,
    /// How long a Reply is exposed, and the time.
    patience: u64,
    now: u64,
    jobs: BTreeMap<u64, Job>,
    next_job: u64,
    reads: Vec<Read>,
    /// Reverse Calls.
    pub backchannel: Caller,
    /// Whether the client is taken for one that refuses a Reply chunk that comes back unused.
    refuses_unused: bool,
    /// Whether the client follows the protocol.
    honest_client: bool,
    /// Calls answered with an RDMA_ERROR.
    pub refused: u32,
    /// Replies that were exposed.
    pub exposed: u32,
    /// Replies that took the Reply chunk although they were short enough without.
    pub chunked: u32,
}

impl Server {
    /// A server on a fresh connection.
    pub fn new(
        rng: &mut Rng,
        agreement: Agreement,
        extensions: Extensions,
        max_requests: u32,
        backchannel: Caller,
    ) -> Self {
        let places = match extensions.pulled_replies {
            true => rng.range(1, 6),
            false => 0,
        };
        // RFC 8167 Section 4.3.2: one Receive for each Call granted, and one for each reverse
        // Reply. And one for each RDMA_DONE that may come.
        let needed = max_requests + backchannel.receives() + places;
        Self {
            // The longest chain: a Reply in a Reply chunk, in as many pieces as it has segments.
            queues: Queues::new(rng.range(64, 100), needed, rng.range(0, 4)),
            agreement,
            extensions,
            max_requests,
            memory: Memory::default(),
            places: ExposedSlots::new(vec![ExposedSlot::Free; places as usize]),
            held: (0..places).map(|_| Held::default()).collect(),
            releasing: Vec::new(),
            patience: u64::MAX,
            now: 0,
            jobs: BTreeMap::new(),
            next_job: 0,
            reads: Vec::new(),
            backchannel,
            refuses_unused: rng.once_in(3),
            honest_client: true,
            refused: 0,
            exposed: 0,
            chunked: 0,
        }
    }

    /// Whether to believe that the client follows the protocol.
    pub fn trust(&mut self, honest: bool) {
        self.honest_client = honest;
    }

    /// Will call back; `false` if a Call of this XID has not been answered.
    pub(crate) fn call_back(&mut self, xid: u32, form: Conveyed) -> bool {
        let fresh = self.backchannel.call(xid, form);
        self.push_backchannel();
        fresh
    }

    /// Sends reverse Calls while there are credits.
    fn push_backchannel(&mut self) {
        while let Some(bytes) = self.backchannel.next(self.extensions.pulled_replies) {
            self.send(Vec::new(), bytes, None);
        }
    }

    fn send(&mut self, writes: Vec<Op>, bytes: Vec<u8>, invalidated: Option<u32>) {
        assert!(
            bytes.len() <= self.agreement.send as usize,
            "over the inline threshold"
        );
        let message = Received { bytes, invalidated };
        self.queues.post(writes, message);
    }

    fn refuse(&mut self, rng: &mut Rng, error: ErrorReply) {
        self.refused += 1;
        let mut bytes = vec![0; 28];
        let credits = self.grant(rng, u32::MAX);
        let length = error.encode(credits, &mut bytes).expect("28 bytes suffice");
        bytes.truncate(length);
        self.send(Vec::new(), bytes, None);
    }

    /// Grants change at any time, but never exceed the Receives that stand for them.
    fn grant(&mut self, rng: &mut Rng, wanted: u32) -> u32 {
        let done = self.places.as_slice().len() as u32;
        let standing = self
            .queues
            .posted
            .saturating_sub(done)
            .min(self.max_requests);
        wanted.clamp(1, rng.range(1, standing.max(1)))
    }

    /// Looks at the oldest Receive completion.
    pub fn receive(&mut self, rng: &mut Rng) -> Verdict {
        let Some(Received { bytes, invalidated }) = self.queues.received.pop_front() else {
            return Verdict::Go;
        };
        self.queues.refill();
        let done = match from_client(&bytes, self.extensions) {
            Ok(FromClient::Done { xid }) => Some(xid),
            _ => None,
        };
        match (done, invalidated) {
            (Some(xid), _) => self.done(xid, invalidated),
            // Only RDMA_DONE invalidates; this may have hit any Reply.
            (None, Some(_)) => Verdict::Disconnect,
            (None, None) => {
                self.take(rng, bytes);
                Verdict::Go
            }
        }
    }

    /// The client has pulled a Reply, and has invalidated that handle: one of that Reply's.
    fn done(&mut self, xid: u32, invalidated: Option<u32>) -> Verdict {
        let mut own = invalidated.is_none();
        if let Some(place) = self.places.done(xid) {
            let handles = &mut self.held[place].handles;
            let before = handles.len();
            handles.retain(|handle| Some(*handle) != invalidated);
            own |= handles.len() != before;
            self.releasing.push(place);
        }
        match own {
            true => Verdict::Go,
            false => Verdict::Disconnect,
        }
    }

    /// Takes any other message.
    fn take(&mut self, rng: &mut Rng, bytes: Vec<u8>) {
        let call = match from_client(&bytes, self.extensions) {
            Ok(FromClient::Call(call)) => call,
            Ok(FromClient::BackchannelReply(message)) => {
                self.backchannel.reply(&message, self.honest_client);
                return self.push_backchannel();
            }
            Ok(FromClient::BackchannelError(refused)) => {
                self.backchannel.error(&refused, self.honest_client);
                return self.push_backchannel();
            }
            Ok(FromClient::Done { .. }) => unreachable!("looked at before"),
            Err(Response::Answer(error)) => return self.refuse(rng, error),
            Err(Response::Drop) => return,
        };
        let inline = call.payload.map(<[u8]>::len);
        let mut job = Job {
            xid: call.xid,
            credits: call.credits,
            outline: call.chunks.outline(),
            call: Vec::new(),
            reads: 0,
            received: Vec::new(),
        };
        let id = self.next_job;
        self.next_job += 1;
        match Assembly::plan(inline, call.chunks.reads, &BOUNDS) {
            Err(_) => return self.refuse(rng, ErrorReply::chunk(call.xid)),
            Ok(None) => job.call.extend(call.payload.into_iter().flatten()),
            Ok(Some(assembly)) => {
                let inline = call.payload.unwrap_or_default();
                for part in assembly.parts() {
                    let sink = job.call.len();
                    match part {
                        Part::Inline { offset, length } => {
                            let run = offset as usize..(offset + length) as usize;
                            job.call.extend(&inline[run]);
                        }
                        Part::Pad { length } => job.call.resize(sink + length as usize, 0),
                        Part::Read(from) => {
                            job.call.resize(sink + from.length as usize, 0);
                            job.reads += 1;
                            self.reads.push(Read {
                                job: id,
                                from,
                                sink,
                                posted: false,
                            });
                        }
                    }
                }
                assert!(job.call.len() <= BOUNDS.message as usize);
            }
        }
        job.received = bytes;
        let ready = job.reads == 0;
        self.jobs.insert(id, job);
        match ready {
            true => self.serve(rng, id),
            false => self.post_reads(),
        }
    }

    /// Posts Reads while there is room on the Send Queue.
    pub fn post_reads(&mut self) {
        for read in self.reads.iter_mut().filter(|read| !read.posted) {
            read.posted = self.queues.take_one();
        }
    }

    /// How many Reads may complete now.
    pub fn reads(&self) -> usize {
        self.reads.iter().filter(|read| read.posted).count()
    }

    /// The segment of Read number `index` of those that may complete.
    pub fn read_from(&self, index: usize) -> Segment {
        let mut posted = self.reads.iter().filter(|read| read.posted);
        posted.nth(index).expect("one of those").from
    }

    /// A Read completes.
    pub fn read_done(&mut self, rng: &mut Rng, index: usize, data: &[u8]) {
        let posted = (0..self.reads.len()).filter(|n| self.reads[*n].posted);
        let index = posted.clone().nth(index).expect("one of those");
        let read = self.reads.remove(index);
        self.queues.give_one();
        self.post_reads();
        let Some(job) = self.jobs.get_mut(&read.job) else {
            return;
        };
        job.call[read.sink..read.sink + data.len()].copy_from_slice(data);
        job.reads -= 1;
        if job.reads == 0 {
            self.serve(rng, read.job);
        }
    }

    /// Serves an assembled Call and conveys the Reply.
    fn serve(&mut self, rng: &mut Rng, id: u64) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        let Some(answer) = serve(&job.call) else {
            return self.refuse(rng, ErrorReply::chunk(job.xid));
        };
        let Answer { reply, results, .. } = answer;
        let chunks = job.outline.lists(&job.received).expect("taken from there");
        let shape = ReplyShape {
            length: reply.len() as u32,
            protected: answer.protected,
        };
        let limits = ReplyLimits {
            threshold: self.agreement.send,
            refuses_unused: self.refuses_unused,
            exposed_segments: 4 * u32::from(self.extensions.pulled_replies),
        };
        let Ok(plan) = reply::plan(chunks, &results, &shape, &limits) else {
            return self.refuse(rng, ErrorReply::chunk(job.xid));
        };
        let short = plan.header() + plan.left() <= self.agreement.send;
        self.chunked += u32::from(short && plan.form() == Form::ReplyChunk);
        let take = |at: u32, length: u32| &reply[at as usize..(at + length) as usize];
        let mut writes = Vec::new();
        for (chunk, payload) in plan.writes() {
            let data = take(payload.offset, payload.length);
            write(&mut writes, &mut Sink::new(&chunk), data);
        }
        let mut bytes = vec![0; self.agreement.send as usize];
        let credits = self.grant(rng, job.credits);
        let exposed = match plan.form() {
            Form::Exposed => {
                let runs = plan.runs().flat_map(|(at, length)| take(at, length));
                let left: Vec<u8> = runs.copied().collect();
                match self.expose(rng, job.xid, left) {
                    Some(segments) => segments,
                    None => return self.refuse(rng, ErrorReply::chunk(job.xid)),
                }
            }
            Form::Inline | Form::ReplyChunk => Vec::new(),
        };
        let header = plan
            .encode(job.xid, credits, exposed, &mut bytes)
            .expect("planned to fit");
        bytes.truncate(header);
        match plan.reply_chunk() {
            Some(mut sink) => {
                for (at, length) in plan.runs() {
                    write(&mut writes, &mut sink, take(at, length));
                }
            }
            None if plan.form() == Form::Inline => plan
                .runs()
                .for_each(|(at, length)| bytes.extend(take(at, length))),
            None => {}
        }
        if writes.len() >= self.queues.send.depth() as usize {
            return self.refuse(rng, ErrorReply::chunk(job.xid));
        }
        let invalidate = match self.agreement.remote_invalidation {
            true => handle_to_invalidate(&chunks),
            false => None,
        };
        self.send(writes, bytes, invalidate);
    }

    /// Registers what is left of a Reply, if there is a place for it.
    fn expose(&mut self, rng: &mut Rng, xid: u32, bytes: Vec<u8>) -> Option<Vec<Segment>> {
        let place = self.places.expose(xid).ok()?;
        let mut segments = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let rest = (bytes.len() - start) as u32;
            let length = match segments.len() {
                3 => rest,
                _ => rng.range(1, rest),
            };
            let at = Where {
                xid: place as u32,
                start,
            };
            segments.push(self.memory.register(rng, Access::Read, at, length));
            start += length as usize;
        }
        self.exposed += 1;
        self.places
            .set_deadline(place, self.now.saturating_add(self.patience));
        self.held[place] = Held {
            bytes,
            handles: segments.iter().map(|segment| segment.handle).collect(),
        };
        Some(segments)
    }

    /// How long Replies are exposed from now on.
    pub fn set_patience(&mut self, patience: u64) {
        self.patience = patience;
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.now += 1;
        while let Some(place) = self.places.expired(self.now) {
            self.releasing.push(place);
        }
    }

    /// Local invalidation of what was exposed completes, of one Reply.
    pub fn release(&mut self, rng: &mut Rng) {
        if self.releasing.is_empty() {
            return;
        }
        let index = rng.below(self.releasing.len());
        let place = self.releasing.swap_remove(index);
        for handle in std::mem::take(&mut self.held[place]).handles {
            // The client may have invalidated it since; doing so again does no harm.
            self.memory.invalidate(handle);
        }
        self.places.released(place);
    }

    /// Whether a Reply is exposed, or an RDMA_DONE owed.
    pub fn is_exposing(&self) -> bool {
        self.places
            .as_slice()
            .iter()
            .any(|place| *place != ExposedSlot::Free)
    }

    /// The client's device reads what is exposed.
    pub fn device_reads(&self, at: Where, length: u32) -> Vec<u8> {
        let held = &self.held[at.xid as usize].bytes;
        held[at.start..at.start + length as usize].to_vec()
    }

    /// The connection is lost, and all that was under way with it.
    pub fn reconnect(
        &mut self,
        rng: &mut Rng,
        agreement: Agreement,
        extensions: Extensions,
        requests: u32,
    ) {
        self.queues.flush();
        let mut backchannel = Caller::new(0);
        std::mem::swap(&mut backchannel, &mut self.backchannel);
        backchannel.reconnect();
        let (refused, exposed, chunked) = (self.refused, self.exposed, self.chunked);
        let honest = self.honest_client;
        *self = Self::new(rng, agreement, extensions, requests, backchannel);
        self.refused = refused;
        self.exposed = exposed;
        self.chunked = chunked;
        self.honest_client = honest;
        self.push_backchannel();
    }
}

/// Adds the RDMA Writes that put `data` where the chunk has room.
fn write(writes: &mut Vec<Op>, sink: &mut Sink<'_>, mut data: &[u8]) {
    while !data.is_empty() {
        let to = sink.next_part(data.len() as u32).expect("planned to fit");
        let (now, later) = data.split_at(to.length as usize);
        writes.push(Op::Write {
            to,
            data: now.to_vec(),
        });
        data = later;
    }
}
