// SPDX-License-Identifier: GPL-2.0

//! The event loop: executes one random event per step.
//!
//! As on a reliable connection, the operations of an end arrive in order, or the connection is
//! lost. All else is random: which end acts next, which completion is handled first, when a Read
//! completes, when the consumer cancels an RPC, and when the connection is lost.

use crate::app::Rpc;
use crate::backchannel::CallForm;
use crate::backchannel::Caller;
use crate::client::Action;
use crate::client::Client;
use crate::hostile::mutate;
use crate::marshal::Outcome;
use crate::memory::Access;
use crate::memory::AccessError;
use crate::negotiation::random_ends;
use crate::negotiation::Ends;
use crate::negotiation::Negotiated;
use crate::queues::Op;
use crate::queues::Queues;
use crate::queues::Received;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::scenario::Stats;
use crate::server::Server;
use rpcrdma_core::wire::Segment;

/// Backchannel credits, unless the scenario has a number of credits.
const BACKCHANNEL_CREDITS: u32 = 3;

/// Both ends and the state of the simulation.
#[derive(Debug)]
struct World {
    rng: Rng,
    scenario: Scenario,
    client: Client,
    server: Server,
    ends: Ends,
    next_xid: u32,
    /// Number of RPCs that the consumer has submitted.
    submitted: u32,
    /// Number of backchannel Calls that the server has made.
    called: u32,
    stats: Stats,
    /// Messages that a hostile peer may replay.
    seen: Vec<Vec<u8>>,
}

/// Runs the simulation with a seed. Panics if a check fails.
pub fn run(seed: u64, scenario: Scenario) -> Stats {
    let mut rng = Rng::new(seed);
    let ends = random_ends(&mut rng);
    let conn = Negotiated::new(&mut rng, &ends, &scenario);
    let backchannel = match scenario.credits {
        0 => BACKCHANNEL_CREDITS,
        credits => credits,
    };
    let caller = Caller::new(backchannel);
    let mut world = World {
        client: Client::new(&mut rng, &conn, backchannel),
        server: Server::new(&mut rng, &conn, caller),
        next_xid: rng.any() as u32,
        rng,
        scenario,
        ends,
        submitted: 0,
        called: 0,
        stats: Stats::default(),
        seen: Vec::new(),
    };
    world.set_expiry();
    world.set_honesty();
    world.run();
    world.settle();
    world.stats
}

impl World {
    /// Runs steps until all RPCs have ended, or up to a limit.
    fn run(&mut self) {
        let enough = 400 * u64::from(self.scenario.rpcs + self.scenario.backchannel_calls) + 2_000;
        while self.stats.steps < enough && !self.is_idle() {
            self.step();
        }
    }

    /// Runs steps without faults until all RPCs have ended, and checks that no resource is lost.
    fn settle(&mut self) {
        if self.scenario.hostile() {
            self.scenario.hostile_client = 0;
            self.scenario.hostile_server = 0;
            self.set_honesty();
            self.reconnect();
        }
        self.scenario.disconnect = 0;
        self.scenario.cancel = 0;
        self.scenario.expiry = 0;
        self.set_expiry();
        let start = self.stats.steps;
        while !self.is_idle() {
            self.step();
            assert!(self.stats.steps - start < 200_000, "stuck: {self:?}");
        }
        assert_eq!(self.client.unanswered, 0, "credits lost");
        assert!(
            self.client.memory.handles().is_empty(),
            "registrations lost"
        );
        assert!(
            self.server.exposed_replies.memory.handles().is_empty(),
            "exposed Replies lost"
        );
        for queues in [&self.client.queues, &self.server.queues] {
            assert_eq!(queues.send.free(), queues.send.depth(), "entries lost");
            assert!(queues.posted >= queues.needed, "Receives lost");
        }
        let ended = self.stats.replies + self.stats.refused + self.stats.cancelled;
        assert_eq!(ended, self.submitted, "an RPC has not ended exactly once");
        let ended = self.stats.backchannel + self.stats.backchannel_refused;
        assert_eq!(
            ended, self.called,
            "a backchannel Call has not ended exactly once"
        );
    }

    /// Whether all RPCs and backchannel Calls have ended, and no work is pending.
    fn is_idle(&self) -> bool {
        let idle = |queues: &Queues| {
            queues.wire.is_empty()
                && queues.received.is_empty()
                && queues.done.is_empty()
                && queues.waiting.is_empty()
        };
        self.submitted == self.scenario.rpcs
            && self.called == self.scenario.backchannel_calls
            && self.server.backchannel.is_idle()
            && self.client.backchannel.is_idle()
            && self.client.pending().is_empty()
            && self.server.reads() == 0
            && self.server.exposed_replies.is_empty()
            && self.client.unanswered == 0
            && idle(&self.client.queues)
            && idle(&self.server.queues)
    }

    /// Executes a random event.
    fn step(&mut self) {
        self.stats.steps += 1;
        if self.scenario.expiry != 0 {
            self.server.exposed_replies.tick();
        }
        match self.rng.below(16) {
            0 => self.submit(),
            1 => self.send(),
            2 | 3 => self.deliver_to_server(),
            4 | 5 => self.deliver_to_client(),
            6 => self.server_receives(),
            7 => self.client_receives(),
            8 => self.server_read_completes(),
            9 => self.fence_completes(),
            10 => self.send_completes(),
            11 => self.client_read_completes(),
            12 => self.server.exposed_replies.release(&mut self.rng),
            13 => self.call_back(),
            14 => self.client.serve_backchannel(&mut self.rng),
            _ => self.rare_event(),
        }
        self.check_finished();
    }

    /// The consumer submits an RPC.
    fn submit(&mut self) {
        if self.submitted < self.scenario.rpcs {
            self.submitted += 1;
            let rpc = Rpc::new(&mut self.rng, self.next_xid);
            self.next_xid = self.next_xid.wrapping_add(1);
            self.client.submit(rpc);
        }
    }

    /// The client sends a queued Call.
    fn send(&mut self) {
        let sendable = self.client.sendable();
        if !sendable.is_empty() {
            let xid = self.rng.pick(&sendable);
            self.client.send(&mut self.rng, xid);
        }
    }

    /// Takes the next operation from a wire, and mutates it if the sender is hostile.
    fn take_op(&mut self, from_client: bool) -> Option<Op> {
        let (queues, rate) = match from_client {
            true => (&mut self.client.queues, self.scenario.hostile_client),
            false => (&mut self.server.queues, self.scenario.hostile_server),
        };
        let mut op = queues.wire.pop_front()?;
        if rate != 0 {
            // The handles that the operation can access are those of the other end.
            let handles = match from_client {
                true => self.server.exposed_replies.memory.handles(),
                false => self.client.memory.handles(),
            };
            if let Op::Send { message, .. } = &op {
                self.seen.push(message.bytes.clone());
            }
            if self.rng.once_in(rate) {
                self.stats.mutated += 1;
                mutate(&mut self.rng, &mut op, &self.seen, &handles);
            }
        }
        Some(op)
    }

    /// The next operation of the client arrives.
    fn deliver_to_server(&mut self) {
        let Some(Op::Send { message, entries }) = self.take_op(true) else {
            return;
        };
        self.client.queues.done.push(entries);
        if let Some(handle) = message.invalidated {
            if !self.server.exposed_replies.memory.invalidate(handle) {
                return self.access_error(&Segment {
                    handle,
                    ..Segment::default()
                });
            }
        }
        self.arrive(message, true);
    }

    /// The next operation of the server arrives.
    fn deliver_to_client(&mut self) {
        match self.take_op(false) {
            None => {}
            Some(Op::Write { to, data }) => {
                let location = match self.client.memory.access(Access::Write, &to) {
                    Ok(location) => location,
                    Err(AccessError) => return self.access_error(&to),
                };
                self.stats.rdma_bytes += data.len() as u64;
                self.client.device_writes(location, &data);
            }
            Some(Op::Send { message, entries }) => {
                self.server.queues.done.push(entries);
                if let Some(handle) = message.invalidated {
                    self.stats.invalidated += 1;
                    if !self.client.device_invalidates(handle) {
                        let part = Segment {
                            handle,
                            ..Segment::default()
                        };
                        return self.access_error(&part);
                    }
                }
                self.arrive(message, false);
            }
        }
    }

    /// A message arrives and consumes a Receive.
    fn arrive(&mut self, message: Received, at_server: bool) {
        let (queues, end) = match at_server {
            true => (&mut self.server.queues, &self.ends[1]),
            false => (&mut self.client.queues, &self.ends[0]),
        };
        let fits = message.bytes.len() <= end.receive_size as usize;
        if queues.posted == 0 || !fits {
            assert!(self.scenario.hostile(), "no Receive for {message:?}");
            return self.reconnect();
        }
        queues.posted -= 1;
        queues.received.push_back(message);
    }

    /// The client handles a Receive completion.
    fn client_receives(&mut self) {
        if self.client.receive() == Action::Disconnect {
            assert!(self.scenario.hostile(), "a foreign handle was invalidated");
            self.reconnect();
        }
    }

    /// The server handles a Receive completion.
    fn server_receives(&mut self) {
        if self.server.receive(&mut self.rng) == Action::Disconnect {
            // A Reply may expire before its RDMA_DONE arrives.
            let expected = self.scenario.hostile() || self.scenario.expiry != 0;
            assert!(expected, "a foreign handle was invalidated");
            self.reconnect();
        }
    }

    /// An RDMA Read of the client completes.
    fn client_read_completes(&mut self) {
        let pulling = self.client.pulling();
        if pulling.is_empty() {
            return;
        }
        let (xid, from) = self.rng.pick(&pulling);
        match self
            .server
            .exposed_replies
            .memory
            .access(Access::Read, &from)
        {
            Ok(location) => {
                self.stats.rdma_bytes += u64::from(from.length);
                let data = self
                    .server
                    .exposed_replies
                    .device_reads(location, from.length);
                self.client.pulled(xid, &data);
            }
            Err(AccessError) => self.access_error(&from),
        }
    }

    /// An RDMA Read of the server completes.
    fn server_read_completes(&mut self) {
        let reads = self.server.reads();
        if reads == 0 {
            return self.server.post_reads();
        }
        let index = self.rng.below(reads);
        let from = self.server.read_from(index);
        match self.client.memory.access(Access::Read, &from) {
            Ok(location) => {
                self.stats.rdma_bytes += u64::from(from.length);
                let data = self.client.device_reads(location, from.length);
                self.server.read_done(&mut self.rng, index, &data);
            }
            Err(AccessError) => self.access_error(&from),
        }
    }

    /// The peer has accessed memory that is not registered. That is expected if RPCs are cancelled,
    /// if Replies expire, or if the peer is hostile.
    fn access_error(&mut self, part: &Segment) {
        let expected =
            self.scenario.hostile() || self.scenario.cancel != 0 || self.scenario.expiry != 0;
        assert!(expected, "access to what is not exposed: {part:?}");
        self.reconnect();
    }

    /// The invalidation of an RPC's handles completes.
    fn fence_completes(&mut self) {
        let fencing = self.client.fencing();
        if !fencing.is_empty() {
            let xid = self.rng.pick(&fencing);
            self.client.fenced(xid);
        }
    }

    /// Each end handles a Send completion.
    fn send_completes(&mut self) {
        for queues in [&mut self.client.queues, &mut self.server.queues] {
            if !queues.done.is_empty() {
                let index = self.rng.below(queues.done.len());
                queues.complete(index);
            }
        }
        self.server.post_reads();
    }

    /// The connection is lost, or the consumer cancels an RPC, at the rates of the scenario.
    fn rare_event(&mut self) {
        let once_in = |rng: &mut Rng, rate: usize| rate != 0 && rng.once_in(rate.div_ceil(12));
        if once_in(&mut self.rng, self.scenario.disconnect) {
            self.reconnect();
        } else if once_in(&mut self.rng, self.scenario.cancel) {
            let pending = self.client.pending();
            if !pending.is_empty() {
                let xid = self.rng.pick(&pending);
                self.client.cancel(xid);
            }
        }
    }

    /// The server makes a backchannel Call. It has the XID of a pending RPC, if there is one.
    fn call_back(&mut self) {
        if self.called == self.scenario.backchannel_calls {
            return;
        }
        let illegal =
            self.scenario.illegal_calls != 0 && self.rng.once_in(self.scenario.illegal_calls);
        let form = match illegal {
            true => self
                .rng
                .pick(&[CallForm::ReadChunk, CallForm::Long, CallForm::Version]),
            false => CallForm::Inline,
        };
        let forward = self.client.pending();
        let xid = match forward.is_empty() {
            true => !self.called,
            false => self.rng.pick(&forward),
        };
        self.called += u32::from(self.server.call_back(xid, form));
    }

    /// Tells both ends whether the peer is honest.
    fn set_honesty(&mut self) {
        let honest = !self.scenario.hostile();
        self.client.set_honesty(honest);
        self.server.set_honesty(honest);
    }

    /// The connection is lost, and the ends connect again, perhaps with other private data.
    fn reconnect(&mut self) {
        self.stats.disconnects += 1;
        if self.rng.once_in(2) {
            self.ends = random_ends(&mut self.rng);
        }
        let conn = Negotiated::new(&mut self.rng, &self.ends, &self.scenario);
        self.client.reconnect(&mut self.rng, &conn);
        self.server.reconnect(&mut self.rng, &conn);
        self.set_expiry();
    }

    /// Tells the server when exposed Replies expire.
    fn set_expiry(&mut self) {
        let expiry = match self.scenario.expiry {
            0 => u64::MAX,
            steps => steps,
        };
        self.server.exposed_replies.set_expiry(expiry);
    }

    /// Checks the RPCs that have ended in this step, and updates the statistics.
    fn check_finished(&mut self) {
        self.stats.exposed = self.server.exposed;
        self.stats.reply_chunks = self.server.reply_chunks;
        self.stats.backchannel = self.server.backchannel.done;
        self.stats.backchannel_refused = self.server.backchannel.refused;
        for (rpc, outcome) in self.client.finished.drain(..) {
            match outcome {
                Outcome::Reply(stream) => {
                    self.stats.replies += 1;
                    if !self.scenario.hostile() {
                        assert_eq!(stream, rpc.expected(), "{rpc:?}");
                    }
                }
                Outcome::Refused => {
                    self.stats.refused += 1;
                    assert!(self.scenario.hostile(), "refused: {rpc:?}");
                }
                Outcome::Retry => unreachable!("such an RPC is sent again"),
                Outcome::Cancelled => self.stats.cancelled += 1,
            }
        }
    }
}
