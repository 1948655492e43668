// SPDX-License-Identifier: GPL-2.0

//! Everything that can happen, one thing at a time, in an order that chance decides.
//!
//! Kept from real networks: what one end posts arrives in order, or not at all and then the
//! connection is lost. Everything else is free: which end acts next, which completion is looked at
//! first, how long a Read takes, when a consumer loses patience, when the link goes down.

use crate::app::Rpc;
use crate::backchannel::Caller;
use crate::backchannel::Conveyed;
use crate::client::Client;
use crate::client::Verdict;
use crate::end::Op;
use crate::end::Queues;
use crate::end::Received;
use crate::hostile::deface;
use crate::marshal::Outcome;
use crate::memory::Access;
use crate::memory::AccessError;
use crate::rng::Rng;
use crate::server::Server;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::agreement::ReadDepths;
use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::PrivateData;
use rpcrdma_core::wire::Segment;

/// Reverse Calls the client takes at once, unless the weather says otherwise.
const REVERSE: u32 = 3;

/// What kind of world it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// How many RPCs the consumer wants.
    pub rpcs: u32,
    /// How many reverse Calls the server makes.
    pub calls: u32,
    /// One in so many of those is in a form that the client does not take; 0: none.
    pub odd: usize,
    /// Credits that are asked for, in either direction; 0: any number.
    pub credits: u32,
    /// The link goes down once in so many steps; 0: never.
    pub loss: usize,
    /// The consumer gives up on an RPC once in so many steps; 0: never.
    pub cancel: usize,
    /// The server lets Replies be exposed for so many steps; 0: for ever.
    pub patience: u64,
    /// One in so many messages of the server is defaced; 0: none.
    pub hostile_server: usize,
    /// One in so many messages of the client is defaced; 0: none.
    pub hostile_client: usize,
}

impl Weather {
    fn hostile(&self) -> bool {
        self.hostile_client != 0 || self.hostile_server != 0
    }
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// RPCs that got their Reply.
    pub replies: u32,
    /// RPCs that were refused.
    pub refused: u32,
    /// RPCs given up.
    pub cancelled: u32,
    /// Connections lost.
    pub losses: u32,
    /// Handles invalidated by a Send.
    pub invalidated: u32,
    /// Replies that were exposed to be pulled.
    pub exposed: u32,
    /// Replies that took the Reply chunk for it to be used.
    pub chunked: u32,
    /// Bytes moved by RDMA Read and Write.
    pub moved: u64,
    /// Reverse Calls served.
    pub backchannel: u32,
    /// Reverse Calls refused.
    pub backchannel_refused: u32,
    /// Messages defaced.
    pub defaced: u32,
    /// Steps taken.
    pub steps: u64,
}

/// Two ends, and what is between them.
#[derive(Debug)]
struct World {
    rng: Rng,
    weather: Weather,
    client: Client,
    server: Server,
    sizes: [PrivateData; 2],
    next_xid: u32,
    submitted: u32,
    called: u32,
    history: History,
    overheard: Vec<Vec<u8>>,
}

/// Lives through a seed's whole story; panics if anything happens that must not.
pub fn live(seed: u64, weather: Weather) -> History {
    let mut rng = Rng::new(seed);
    let sizes = [any_sizes(&mut rng), any_sizes(&mut rng)];
    let (to_server, to_client) = agree(&sizes);
    let extensions = any_extensions(&mut rng, &sizes);
    let (wanted, requests) = any_credits(&mut rng, &weather);
    let backchannel = match weather.credits {
        0 => REVERSE,
        credits => credits,
    };
    let caller = Caller::new(backchannel);
    let mut world = World {
        client: Client::new(&mut rng, to_server, extensions, wanted, backchannel),
        server: Server::new(&mut rng, to_client, extensions, requests, caller),
        next_xid: rng.any() as u32,
        rng,
        weather,
        sizes,
        submitted: 0,
        called: 0,
        history: History::default(),
        overheard: Vec::new(),
    };
    world.be_patient();
    world.trust();
    world.run();
    world.calm_down();
    world.history
}

fn agree(sizes: &[PrivateData; 2]) -> (Agreement, Agreement) {
    let [client, server] = sizes;
    (
        Agreement::between(client, server),
        Agreement::between(server, client),
    )
}

/// What the two ends make of each other's private data: the same, whatever it is.
fn any_extensions(rng: &mut Rng, sizes: &[PrivateData; 2]) -> Extensions {
    let mut offer = || Offer {
        pulled_replies: !rng.once_in(4),
    };
    let [client, server] = [offer(), offer()];
    let depths = ReadDepths {
        initiator_depth: rng.range(0, 9),
        responder_resources: rng.range(0, 9),
    };
    let heard = |own, offer| Offer::of_peer(Announcement::new(own, offer).as_bytes());
    let at_client = Extensions::between(&client, &heard(&sizes[1], &server), &depths);
    let at_server = Extensions::between(&server, &heard(&sizes[0], &client), &depths);
    assert_eq!(at_client, at_server);
    at_client
}

/// Credits that the client asks for, and those that the server is ready to grant.
fn any_credits(rng: &mut Rng, weather: &Weather) -> (u32, u32) {
    match weather.credits {
        0 => (rng.range(1, 12), rng.range(1, 12)),
        credits => (credits, credits),
    }
}

fn any_sizes(rng: &mut Rng) -> PrivateData {
    PrivateData {
        remote_invalidation: !rng.once_in(3),
        send_size: rng.pick(&[1024, 1024, 2048, 4096, 8192]),
        receive_size: rng.pick(&[1024, 1024, 2048, 4096, 8192]),
    }
}

impl World {
    /// Lets things happen until all RPCs have been submitted and most have ended.
    fn run(&mut self) {
        let enough = 400 * u64::from(self.weather.rpcs + self.weather.calls) + 2_000;
        while self.history.steps < enough && !self.quiet() {
            self.step();
        }
    }

    /// Ends all hostility, and then every RPC must end too, and nothing must be left over.
    fn calm_down(&mut self) {
        if self.weather.hostile() {
            self.weather.hostile_client = 0;
            self.weather.hostile_server = 0;
            self.trust();
            self.lose();
        }
        self.weather.loss = 0;
        self.weather.cancel = 0;
        self.weather.patience = 0;
        self.be_patient();
        let start = self.history.steps;
        while !self.quiet() {
            self.step();
            assert!(self.history.steps - start < 200_000, "stuck: {self:?}");
        }
        assert_eq!(self.client.unanswered, 0, "credits lost");
        assert!(
            self.client.memory.handles().is_empty(),
            "registrations lost"
        );
        assert!(
            self.server.memory.handles().is_empty(),
            "exposed Replies lost"
        );
        for queues in [&self.client.queues, &self.server.queues] {
            assert_eq!(queues.send.free(), queues.send.depth(), "entries lost");
            assert!(queues.posted >= queues.needed, "Receives lost");
        }
        let ended = self.history.replies + self.history.refused + self.history.cancelled;
        assert_eq!(ended, self.submitted, "each RPC ends once");
        let ended = self.history.backchannel + self.history.backchannel_refused;
        assert_eq!(ended, self.called, "each reverse Call ends once");
    }

    /// Whether nothing is under way and nothing more will be asked for.
    fn quiet(&self) -> bool {
        let idle = |queues: &Queues| {
            queues.wire.is_empty()
                && queues.received.is_empty()
                && queues.done.is_empty()
                && queues.waiting.is_empty()
        };
        self.submitted == self.weather.rpcs
            && self.called == self.weather.calls
            && self.server.backchannel.quiet()
            && self.client.backchannel.quiet()
            && self.client.under_way().is_empty()
            && self.server.reads() == 0
            && !self.server.is_exposing()
            && self.client.unanswered == 0
            && idle(&self.client.queues)
            && idle(&self.server.queues)
    }

    fn step(&mut self) {
        self.history.steps += 1;
        if self.weather.patience != 0 {
            self.server.tick();
        }
        match self.rng.below(16) {
            0 => self.submit(),
            1 => self.send(),
            2 | 3 => self.deliver_to_server(),
            4 | 5 => self.deliver_to_client(),
            6 => self.server_receives(),
            7 => self.client_receives(),
            8 => self.read_completes(),
            9 => self.fence_completes(),
            10 => self.send_completes(),
            11 => self.client_pulls(),
            12 => self.server.release(&mut self.rng),
            13 => self.call_back(),
            14 => self.client.serve_backchannel(&mut self.rng),
            _ => self.rarely(),
        }
        self.account();
    }

    fn submit(&mut self) {
        if self.submitted < self.weather.rpcs {
            self.submitted += 1;
            let rpc = Rpc::new(&mut self.rng, self.next_xid);
            self.next_xid = self.next_xid.wrapping_add(1);
            self.client.submit(rpc);
        }
    }

    fn send(&mut self) {
        let sendable = self.client.sendable();
        if !sendable.is_empty() {
            let xid = self.rng.pick(&sendable);
            self.client.send(&mut self.rng, xid);
        }
    }

    /// Takes what is next on a wire; a hostile sender has defaced some of it.
    fn next(&mut self, from_client: bool) -> Option<Op> {
        let (queues, rate) = match from_client {
            true => (&mut self.client.queues, self.weather.hostile_client),
            false => (&mut self.server.queues, self.weather.hostile_server),
        };
        let mut op = queues.wire.pop_front()?;
        if rate != 0 {
            // What it may invalidate, or write to, is the other end's.
            let handles = match from_client {
                true => self.server.memory.handles(),
                false => self.client.memory.handles(),
            };
            if let Op::Send { message, .. } = &op {
                self.overheard.push(message.bytes.clone());
            }
            if self.rng.once_in(rate) {
                self.history.defaced += 1;
                deface(&mut self.rng, &mut op, &self.overheard, &handles);
            }
        }
        Some(op)
    }

    fn deliver_to_server(&mut self) {
        let Some(Op::Send { message, entries }) = self.next(true) else {
            return;
        };
        self.client.queues.done.push(entries);
        if let Some(handle) = message.invalidated {
            if !self.server.memory.invalidate(handle) {
                return self.access_error(&Segment {
                    handle,
                    ..Segment::default()
                });
            }
        }
        self.arrive(message, true);
    }

    fn deliver_to_client(&mut self) {
        match self.next(false) {
            None => {}
            Some(Op::Write { to, data }) => {
                let place = match self.client.memory.access(Access::Write, &to) {
                    Ok(place) => place,
                    Err(AccessError) => return self.access_error(&to),
                };
                self.history.moved += data.len() as u64;
                self.client.device_writes(place, &data);
            }
            Some(Op::Send { message, entries }) => {
                self.server.queues.done.push(entries);
                if let Some(handle) = message.invalidated {
                    self.history.invalidated += 1;
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

    /// A message meets a Receive.
    fn arrive(&mut self, message: Received, at_server: bool) {
        let (queues, sizes) = match at_server {
            true => (&mut self.server.queues, &self.sizes[1]),
            false => (&mut self.client.queues, &self.sizes[0]),
        };
        let fits = message.bytes.len() <= sizes.receive_size as usize;
        if queues.posted == 0 || !fits {
            assert!(self.weather.hostile(), "no Receive for {message:?}");
            return self.lose();
        }
        queues.posted -= 1;
        queues.received.push_back(message);
    }

    fn client_receives(&mut self) {
        if self.client.receive() == Verdict::Disconnect {
            assert!(self.weather.hostile(), "a foreign handle was invalidated");
            self.lose();
        }
    }

    fn server_receives(&mut self) {
        if self.server.receive(&mut self.rng) == Verdict::Disconnect {
            // The time of a Reply may be over when the client says that it has pulled it.
            let expected = self.weather.hostile() || self.weather.patience != 0;
            assert!(expected, "a foreign handle was invalidated");
            self.lose();
        }
    }

    fn client_pulls(&mut self) {
        let pulling = self.client.pulling();
        if pulling.is_empty() {
            return;
        }
        let (xid, from) = self.rng.pick(&pulling);
        match self.server.memory.access(Access::Read, &from) {
            Ok(place) => {
                self.history.moved += u64::from(from.length);
                let data = self.server.device_reads(place, from.length);
                self.client.pulled(xid, &data);
            }
            Err(AccessError) => self.access_error(&from),
        }
    }

    fn read_completes(&mut self) {
        let reads = self.server.reads();
        if reads == 0 {
            return self.server.post_reads();
        }
        let index = self.rng.below(reads);
        let from = self.server.read_from(index);
        match self.client.memory.access(Access::Read, &from) {
            Ok(place) => {
                self.history.moved += u64::from(from.length);
                let data = self.client.device_reads(place, from.length);
                self.server.read_done(&mut self.rng, index, &data);
            }
            Err(AccessError) => self.access_error(&from),
        }
    }

    /// The peer touched memory that is not registered: right if the RPC was given up, a defect if
    /// not.
    fn access_error(&mut self, part: &Segment) {
        let expected =
            self.weather.hostile() || self.weather.cancel != 0 || self.weather.patience != 0;
        assert!(expected, "access to what is not exposed: {part:?}");
        self.lose();
    }

    fn fence_completes(&mut self) {
        let fencing = self.client.fencing();
        if !fencing.is_empty() {
            let xid = self.rng.pick(&fencing);
            self.client.fenced(xid);
        }
    }

    fn send_completes(&mut self) {
        for queues in [&mut self.client.queues, &mut self.server.queues] {
            if !queues.done.is_empty() {
                let index = self.rng.below(queues.done.len());
                queues.complete(index);
            }
        }
        self.server.post_reads();
    }

    fn rarely(&mut self) {
        let once_in = |rng: &mut Rng, rate: usize| rate != 0 && rng.once_in(rate.div_ceil(12));
        if once_in(&mut self.rng, self.weather.loss) {
            self.lose();
        } else if once_in(&mut self.rng, self.weather.cancel) {
            let under_way = self.client.under_way();
            if !under_way.is_empty() {
                let xid = self.rng.pick(&under_way);
                self.client.cancel(xid);
            }
        }
    }

    /// The server calls; its XIDs are those of forward Calls on purpose, if there are any.
    fn call_back(&mut self) {
        if self.called == self.weather.calls {
            return;
        }
        let odd = self.weather.odd != 0 && self.rng.once_in(self.weather.odd);
        let form = match odd {
            true => self
                .rng
                .pick(&[Conveyed::Chunk, Conveyed::Long, Conveyed::Version]),
            false => Conveyed::Short,
        };
        let forward = self.client.under_way();
        let xid = match forward.is_empty() {
            true => !self.called,
            false => self.rng.pick(&forward),
        };
        self.called += u32::from(self.server.call_back(xid, form));
    }

    /// The ends check what an honest peer does.
    fn trust(&mut self) {
        let honest = !self.weather.hostile();
        self.client.trust(honest);
        self.server.trust(honest);
    }

    /// The connection is lost and made again; the ends may have changed their minds about sizes.
    fn lose(&mut self) {
        self.history.losses += 1;
        if self.rng.once_in(2) {
            self.sizes = [any_sizes(&mut self.rng), any_sizes(&mut self.rng)];
        }
        let (to_server, to_client) = agree(&self.sizes);
        let extensions = any_extensions(&mut self.rng, &self.sizes);
        let (wanted, requests) = any_credits(&mut self.rng, &self.weather);
        self.client
            .reconnect(&mut self.rng, to_server, extensions, wanted);
        self.server
            .reconnect(&mut self.rng, to_client, extensions, requests);
        self.be_patient();
    }

    fn be_patient(&mut self) {
        self.server.set_patience(match self.weather.patience {
            0 => u64::MAX,
            steps => steps,
        });
    }

    /// Checks what has ended since last time.
    fn account(&mut self) {
        self.history.exposed = self.server.exposed;
        self.history.chunked = self.server.chunked;
        self.history.backchannel = self.server.backchannel.done;
        self.history.backchannel_refused = self.server.backchannel.refused;
        for (rpc, outcome) in self.client.finished.drain(..) {
            match outcome {
                Outcome::Reply(stream) => {
                    self.history.replies += 1;
                    if !self.weather.hostile() {
                        assert_eq!(stream, rpc.expected(), "{rpc:?}");
                    }
                }
                Outcome::Refused => {
                    self.history.refused += 1;
                    assert!(self.weather.hostile(), "refused: {rpc:?}");
                }
                Outcome::Again => unreachable!("sent again, not finished"),
                Outcome::Cancelled => self.history.cancelled += 1,
            }
        }
    }
}
