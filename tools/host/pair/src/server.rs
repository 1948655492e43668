// SPDX-License-Identifier: GPL-2.0

//! The server: executes the decisions of the engine.

use crate::app::serve;
use crate::app::Answer;
use crate::backchannel::CallForm;
use crate::backchannel::Caller;
use crate::client::Action;
use crate::exposed::ExposedReplies;
use crate::exposed::MAX_SEGMENTS;
use crate::negotiation::Negotiated;
use crate::queues::Op;
use crate::queues::Queues;
use crate::queues::Received;
use crate::rng::Rng;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::inbound::from_client;
use rpcrdma_core::engine::inbound::FromClient;
use rpcrdma_core::engine::inbound::Response;
use rpcrdma_core::engine::responder::reassembly::Assembly;
use rpcrdma_core::engine::responder::reassembly::Bounds;
use rpcrdma_core::engine::responder::reassembly::Part;
use rpcrdma_core::engine::responder::remote_inv::handle_to_invalidate;
use rpcrdma_core::engine::responder::reply;
use rpcrdma_core::engine::responder::reply::ChunkWriter;
use rpcrdma_core::engine::responder::reply::Form;
use rpcrdma_core::engine::responder::reply::ReplyLimits;
use rpcrdma_core::engine::responder::reply::ReplyShape;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Outline;
use rpcrdma_core::wire::Segment;
use std::collections::BTreeMap;

/// Limits on the Read chunks of a Call.
const BOUNDS: Bounds = Bounds {
    message: 1 << 14,
    max_inline: 4096,
    chunks: 4,
    segments: 64,
};

/// An RDMA Read that has not completed.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// The Call that the Read belongs to.
    job: u64,
    from: Segment,
    /// Offset in the reassembled Call.
    sink: usize,
    /// The Read is posted. Otherwise it waits for a Send Queue entry.
    posted: bool,
}

/// A Call that is being reassembled.
#[derive(Debug)]
struct Job {
    xid: u32,
    /// Credits that the Call requests.
    credits: u32,
    /// The received message.
    received: Vec<u8>,
    outline: Outline,
    /// The reassembled Call.
    call: Vec<u8>,
    /// Number of Reads that have not completed.
    reads: usize,
}

/// The server, over all its connections.
#[derive(Debug)]
pub struct Server {
    /// Queues of the connection.
    pub queues: Queues,
    agreement: Agreement,
    extensions: Extensions,
    max_requests: u32,
    /// Exposed Replies.
    pub exposed_replies: ExposedReplies,
    /// Calls that are being reassembled, by number.
    jobs: BTreeMap<u64, Job>,
    next_job: u64,
    /// RDMA Reads that have not completed.
    reads: Vec<Read>,
    /// Backchannel Calls.
    pub backchannel: Caller,
    /// The client refuses a Reply that returns its Reply chunk unused.
    refuses_unused: bool,
    /// Whether the client follows the protocol.
    honest_client: bool,
    /// Number of Calls answered with an RDMA_ERROR.
    pub refused: u32,
    /// Number of Replies that were exposed.
    pub exposed: u32,
    /// Number of Replies in the Reply chunk that would have fit inline.
    pub reply_chunks: u32,
}

impl Server {
    /// A server with a new connection.
    pub(crate) fn new(rng: &mut Rng, conn: &Negotiated, backchannel: Caller) -> Self {
        let slots = match conn.extensions.pulled_replies {
            true => rng.range(1, 6),
            false => 0,
        };
        // RFC 8167 Section 4.3.2: one Receive for each Call granted, and one for each backchannel
        // Reply. Also one for each RDMA_DONE.
        let needed = conn.max_requests + backchannel.receives() + slots;
        Self {
            // The longest chain is a Reply in a Reply chunk: an RDMA Write for each segment.
            queues: Queues::new(rng.range(64, 100), needed, rng.range(0, 4)),
            agreement: conn.server,
            extensions: conn.extensions,
            max_requests: conn.max_requests,
            exposed_replies: ExposedReplies::new(slots),
            jobs: BTreeMap::new(),
            next_job: 0,
            reads: Vec::new(),
            backchannel,
            refuses_unused: rng.once_in(3),
            honest_client: true,
            refused: 0,
            exposed: 0,
            reply_chunks: 0,
        }
    }

    /// Sets whether the client follows the protocol.
    pub fn set_honesty(&mut self, honest: bool) {
        self.honest_client = honest;
    }

    /// Makes a backchannel Call. Returns `false` if a Call with this XID is unanswered.
    pub(crate) fn call_back(&mut self, xid: u32, form: CallForm) -> bool {
        let fresh = self.backchannel.call(xid, form);
        self.push_backchannel();
        fresh
    }

    /// Sends backchannel Calls while there are credits.
    fn push_backchannel(&mut self) {
        while let Some(bytes) = self.backchannel.next(self.extensions.pulled_replies) {
            self.send(Vec::new(), bytes, None);
        }
    }

    /// Posts RDMA Writes and a Send, With Invalidate of a handle if there is one.
    fn send(&mut self, writes: Vec<Op>, bytes: Vec<u8>, invalidated: Option<u32>) {
        assert!(
            bytes.len() <= self.agreement.send as usize,
            "over the inline threshold"
        );
        let message = Received { bytes, invalidated };
        self.queues.post(writes, message);
    }

    /// Answers a Call with an RDMA_ERROR.
    fn refuse(&mut self, rng: &mut Rng, error: ErrorReply) {
        self.refused += 1;
        let mut buf = vec![0; 28];
        let credits = self.grant(rng, u32::MAX);
        let len = error.encode(credits, &mut buf).expect("28 bytes suffice");
        buf.truncate(len);
        self.send(Vec::new(), buf, None);
    }

    /// A random grant, at most the posted Receives for Calls.
    fn grant(&mut self, rng: &mut Rng, wanted: u32) -> u32 {
        let dones = self.exposed_replies.slot_count();
        let posted = self
            .queues
            .posted
            .saturating_sub(dones)
            .min(self.max_requests);
        wanted.clamp(1, rng.range(1, posted.max(1)))
    }

    /// Handles the oldest Receive completion.
    pub fn receive(&mut self, rng: &mut Rng) -> Action {
        let Some(Received { bytes, invalidated }) = self.queues.received.pop_front() else {
            return Action::Continue;
        };
        self.queues.refill();
        let done = match from_client(&bytes, self.extensions) {
            Ok(FromClient::Done { xid }) => Some(xid),
            _ => None,
        };
        match (done, invalidated) {
            (Some(xid), _) => match self.exposed_replies.done(xid, invalidated) {
                true => Action::Continue,
                false => Action::Disconnect,
            },
            // Only an RDMA_DONE may invalidate. This handle may belong to any Reply.
            (None, Some(_)) => Action::Disconnect,
            (None, None) => {
                self.receive_other(rng, bytes);
                Action::Continue
            }
        }
    }

    /// Handles a message that is not an RDMA_DONE.
    fn receive_other(&mut self, rng: &mut Rng, bytes: Vec<u8>) {
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
            Ok(FromClient::Done { .. }) => unreachable!("handled by the caller"),
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

    /// Posts Reads while Send Queue entries are free.
    pub fn post_reads(&mut self) {
        for read in self.reads.iter_mut().filter(|read| !read.posted) {
            read.posted = self.queues.reserve_one();
        }
    }

    /// Number of posted Reads.
    pub fn reads(&self) -> usize {
        self.reads.iter().filter(|read| read.posted).count()
    }

    /// The segment of the posted Read with this index.
    pub fn read_from(&self, index: usize) -> Segment {
        let mut posted = self.reads.iter().filter(|read| read.posted);
        posted.nth(index).expect("the index of a posted Read").from
    }

    /// The posted Read with this index completes.
    pub fn read_done(&mut self, rng: &mut Rng, index: usize, data: &[u8]) {
        let posted = (0..self.reads.len()).filter(|n| self.reads[*n].posted);
        let index = posted
            .clone()
            .nth(index)
            .expect("the index of a posted Read");
        let read = self.reads.remove(index);
        self.queues.release_one();
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

    /// Serves a reassembled Call and sends the Reply.
    fn serve(&mut self, rng: &mut Rng, id: u64) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        let Some(answer) = serve(&job.call) else {
            return self.refuse(rng, ErrorReply::chunk(job.xid));
        };
        let Answer { reply, results, .. } = answer;
        let chunks = job
            .outline
            .lists(&job.received)
            .expect("the outline of this message");
        let shape = ReplyShape {
            length: reply.len() as u32,
            protected: answer.protected,
        };
        let limits = ReplyLimits {
            threshold: self.agreement.send,
            refuses_unused: self.refuses_unused,
            exposed_segments: MAX_SEGMENTS * u32::from(self.extensions.pulled_replies),
        };
        let Ok(plan) = reply::plan(&chunks, &results, &shape, &limits) else {
            return self.refuse(rng, ErrorReply::chunk(job.xid));
        };
        let short = plan.header() + plan.left() <= self.agreement.send;
        self.reply_chunks += u32::from(short && plan.form() == Form::ReplyChunk);
        let take = |at: u32, length: u32| &reply[at as usize..(at + length) as usize];
        let mut writes = Vec::new();
        for (chunk, payload) in plan.writes() {
            let data = take(payload.offset, payload.length);
            write(&mut writes, &mut ChunkWriter::new(&chunk), data);
        }
        let mut bytes = vec![0; self.agreement.send as usize];
        let credits = self.grant(rng, job.credits);
        let exposed = match plan.form() {
            Form::Exposed => {
                let runs = plan.runs().flat_map(|(at, length)| take(at, length));
                let left: Vec<u8> = runs.copied().collect();
                let Some(segments) = self.exposed_replies.expose(rng, job.xid, left) else {
                    return self.refuse(rng, ErrorReply::chunk(job.xid));
                };
                self.exposed += 1;
                segments
            }
            Form::Inline | Form::ReplyChunk => Vec::new(),
        };
        let header = plan
            .encode(job.xid, credits, exposed, &mut bytes)
            .expect("the plan has checked the room");
        bytes.truncate(header);
        match plan.reply_chunk() {
            Some(mut writer) => {
                for (at, length) in plan.runs() {
                    write(&mut writes, &mut writer, take(at, length));
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

    /// Replaces a lost connection by a new one. Only backchannel Calls and statistics are kept.
    pub(crate) fn reconnect(&mut self, rng: &mut Rng, conn: &Negotiated) {
        self.queues.flush();
        let mut backchannel = Caller::new(0);
        std::mem::swap(&mut backchannel, &mut self.backchannel);
        backchannel.reconnect();
        let (refused, exposed, reply_chunks) = (self.refused, self.exposed, self.reply_chunks);
        let honest = self.honest_client;
        *self = Self::new(rng, conn, backchannel);
        self.refused = refused;
        self.exposed = exposed;
        self.reply_chunks = reply_chunks;
        self.honest_client = honest;
        self.push_backchannel();
    }
}

/// Adds RDMA Writes that fill a chunk with `data`.
fn write(writes: &mut Vec<Op>, writer: &mut ChunkWriter<'_>, mut data: &[u8]) {
    while !data.is_empty() {
        let to = writer
            .next_part(data.len() as u32)
            .expect("the plan has checked the room");
        let (now, later) = data.split_at(to.length as usize);
        writes.push(Op::Write {
            to,
            data: now.to_vec(),
        });
        data = later;
    }
}
