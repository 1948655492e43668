// SPDX-License-Identifier: GPL-2.0

//! The plays.
//!
//! A play draws a world, its peers and their faults from a seed, lets all of it happen, and checks
//! the laws: most of them in each step, the others at the end.

use core::cell::{Cell, RefCell};
use std::rc::Rc;

use kernel::memory;
use kernel::sched::{self, below, Config};

#[path = "more_plays.rs"]
mod more_plays;

use super::callbacks::{self, CallbackProgram, Calls};
use super::files;
use super::hostile_plays;
use super::illegal_calls;
use super::nfsd::{Habits, Nfsd};
use super::peer::{Manners, Peer, PeerSteps};
use super::rpc::Rpc;
use super::unload;
use super::world::{self, World};
use crate::bindings::fabric::{fabric, Device};
use crate::bindings::rpc::{Call, Client, Manner};
use crate::bindings::{
    dma, end_callbacks, hotplug, rqst, start_callbacks, svc, RPC_TASK_NO_RETRANS_TIMEOUT,
    RPC_TASK_SOFT, RPC_TASK_SOFTCONN,
};

/// What a play has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The steps.
    pub steps: u64,
    /// Replies that were checked.
    pub replies: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Connections.
    pub connections: u64,
    /// Allocations that have failed.
    pub failed: u64,
    /// What hostile peers have done.
    pub hostile: u64,
    /// Replies to backchannel Calls.
    pub backward: u64,
    /// RPCs that a signal has killed.
    pub killed: u64,
}

impl Seen {
    /// The numbers, with their names.
    pub fn numbers(&self) -> [(&'static str, u64); 8] {
        [
            ("steps", self.steps),
            ("replies", self.replies),
            ("refused", self.refused),
            ("connections", self.connections),
            ("failed_allocations", self.failed),
            ("hostile_acts", self.hostile),
            ("backward", self.backward),
            ("killed", self.killed),
        ]
    }
}

/// A play.
pub struct Play {
    /// Its name.
    pub name: &'static str,
    pub(super) run: fn(&Config) -> Result<Seen, String>,
}

/// All plays.
pub const PLAYS: &[Play] = &[
    Play {
        name: "server_answers",
        run: server_answers,
    },
    Play {
        name: "server_loses_connections",
        run: server_loses_connections,
    },
    Play {
        name: "server_lacks_memory",
        run: server_lacks_memory,
    },
    Play {
        name: "server_is_refused",
        run: server_is_refused,
    },
    Play {
        name: "both_ends_talk",
        run: both_ends_talk,
    },
    Play {
        name: "both_ends_lose_connections",
        run: both_ends_lose_connections,
    },
    Play {
        name: "both_ends_lack_memory",
        run: both_ends_lack_memory,
    },
    Play {
        name: "server_meets_hostile_clients",
        run: hostile_plays::server_meets_hostile_clients,
    },
    Play {
        name: "client_meets_hostile_server",
        run: hostile_plays::client_meets_hostile_server,
    },
    Play {
        name: "client_refuses_illegal_calls",
        run: illegal_calls::client_refuses_illegal_calls,
    },
    Play {
        name: "both_ends_call",
        run: more_plays::both_ends_call,
    },
    Play {
        name: "both_ends_give_up",
        run: more_plays::both_ends_give_up,
    },
    Play {
        name: "both_ends_pull",
        run: more_plays::both_ends_pull,
    },
    Play {
        name: "both_ends_lose_devices",
        run: more_plays::both_ends_lose_devices,
    },
    Play {
        name: "server_uses_iwarp",
        run: more_plays::server_uses_iwarp,
    },
    Play {
        name: "both_ends_use_iwarp",
        run: more_plays::both_ends_use_iwarp,
    },
    Play {
        name: "both_ends_unload",
        run: unload::both_ends_unload,
    },
];

/// Runs a play, with the story if `story` is set.
///
/// # Errors
///
/// The law that does not hold. The process can run no other play.
pub fn run(play: &Play, seed: u64, story: bool) -> Result<Seen, String> {
    let config = Config {
        seed,
        preempt: [0, 200, 20, 5][(seed % 4) as usize],
        priorities: seed / 4 % 3 == 0,
        traces: seed / 12 % 2 != 0,
        reads: seed / 24 % 2 != 0,
        story,
    };
    let result = (play.run)(&config);
    if result.is_err() {
        for line in sched::story() {
            println!("{line}");
        }
        world::abandon();
    }
    result
}

struct Faults {
    manners: Manners,
    device: Device,
    allocations: u32,
    mappings: u32,
    /// The backchannel Calls of the server.
    calls: Option<Calls>,
    /// Each client has one RPC, and none while the server calls it.
    idle: bool,
    /// How the client's tasks behave.
    tasks: Manner,
    /// A signal kills a task at one in so many looks.
    kills: u32,
    /// One kills one in so many tasks when its Reply is taken.
    signals: u32,
    /// A device is removed at one in so many looks, and an address moves.
    unplugs: u32,
    moves: u32,
    /// A device is removed when one in so many connections is opened.
    openings: u32,
    /// One in so many nfsd threads stands still when it has taken a message.
    stands: u32,
    habits: Habits,
    /// Tunables that are not drawn.
    tunables: Vec<(&'static str, u32)>,
}

/// What may become of an RPC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    pub(crate) fail: bool,
}

impl Faults {
    fn none() -> Self {
        Self {
            manners: Manners {
                credits: 1,
                breaks_off: 0,
                leaves: 0,
                errors: false,
            },
            device: Device::default(),
            allocations: 0,
            mappings: 0,
            calls: None,
            idle: false,
            tasks: Manner::PATIENT,
            kills: 0,
            signals: 0,
            unplugs: 0,
            moves: 0,
            openings: 0,
            stands: 0,
            habits: Habits::default(),
            tunables: Vec::new(),
        }
    }
}

pub(super) fn pick(numbers: &[u32]) -> u32 {
    numbers[below(numbers.len())]
}

/// Peers that keep to the protocol talk to the server.
fn serve(config: &Config, draw: impl FnOnce(&mut Faults)) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let credits = pick(&[4, 5, 8, 32, 128]);
    let size = pick(&[1024, 2048, 4096, 8192]);
    let mut faults = Faults::none();
    draw(&mut faults);
    let tunables = vec![
        ("sunrpc/svc_rdma/max_requests", credits),
        ("sunrpc/svc_rdma/max_req_size", size),
        ("sunrpc/svc_rdma/max_reply_size", pick(&[0, 0, 1024, 4096])),
        ("sunrpc/svc_rdma/short_replies", pick(&[0, 1])),
        ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1, 1])),
        ("sunrpc/svc_rdma/max_pulled_pages", pick(&[1, 40, 65_536])),
    ];
    // Each Read may need many regions, with three entries each.
    let least = if faults.device.attrs.max_fast_reg_page_list_len < 4 {
        200
    } else {
        0
    };
    faults.device.attrs.max_qp_wr = pick(&[48, 200, 16_384]).max(least) as i32;
    faults.device.attrs.max_send_sge = pick(&[2, 5, 16]) as i32;
    faults.device.attrs.max_sge_rd = pick(&[1, 5, 16]) as i32;
    let world = World {
        device: faults.device,
        tunables,
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let peers: Vec<Rc<Peer>> = (0..pick(&[1, 1, 2, 3]))
        .map(|number| {
            let rpcs = (0..pick(&[3, 10, 40])).map(|n| {
                let xid = (number << 24) + n;
                Rpc::any(xid, payload)
            });
            let manners = Manners {
                credits: pick(&[1, 3, 16, 64]),
                ..faults.manners
            };
            Rc::new(Peer::new(manners, nfsd.clone(), rpcs.collect()))
        })
        .collect();
    world::begin(config, world, nfsd)?;
    for peer in &peers {
        sched::add_source(Rc::new(PeerSteps(peer.clone())));
    }
    memory::fail_one_in(faults.allocations);
    dma::fail_maps(faults.mappings);
    let failed = memory::failed();
    let is_done = || peers.iter().all(|peer| peer.is_done());
    // With faults, for a while; then all is well again, and everything has to come to an end.
    sched::run(20_000, is_done)?;
    memory::fail_one_in(0);
    dma::fail_maps(0);
    fabric(|f| {
        f.device.refuses = 0;
        f.device.few_queues = 0;
        f.device.late = 0;
    });
    for peer in &peers {
        peer.be_well();
    }
    world::run_until("the peers", is_done).map_err(|why| {
        let waits: Vec<String> = peers.iter().map(|peer| peer.waits_for()).collect();
        format!("{why}; peers wait for {waits:?}")
    })?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    if !denied.is_empty() {
        return Err(format!("the server was denied: {denied:?}"));
    }
    let failed = memory::failed() - failed;
    files::at_rest(false)?;
    let mut seen = Seen {
        failed,
        ..Seen::default()
    };
    for peer in &peers {
        peer.close();
        seen.replies += u64::from(peer.replies.get());
        seen.refused += u64::from(peer.refused.get());
        seen.connections += u64::from(peer.connections.get());
    }
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}

fn server_answers(config: &Config) -> Result<Seen, String> {
    serve(config, |_| ())
}

fn server_loses_connections(config: &Config) -> Result<Seen, String> {
    serve(config, |faults| {
        faults.manners.breaks_off = pick(&[0, 10, 50]);
        faults.manners.leaves = pick(&[0, 20, 50]);
    })
}

fn server_lacks_memory(config: &Config) -> Result<Seen, String> {
    serve(config, |faults| {
        faults.allocations = pick(&[0, 20, 100, 1000]);
        faults.mappings = pick(&[0, 20, 100]);
        faults.manners.errors = true;
    })
}

fn server_is_refused(config: &Config) -> Result<Seen, String> {
    serve(config, |faults| {
        faults.device.refuses = pick(&[5, 20, 100]);
        faults.device.few_queues = pick(&[0, 3]);
        faults.manners.errors = true;
    })
}

/// Clients of the module talk to its server.
fn talk(config: &Config, draw: impl FnOnce(&mut Faults)) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let mut faults = Faults::none();
    draw(&mut faults);
    let mut tunables = vec![
        ("sunrpc/svc_rdma/max_requests", pick(&[4, 8, 32, 128])),
        ("sunrpc/svc_rdma/max_req_size", pick(&[1024, 4096, 8192])),
        ("sunrpc/svc_rdma/short_replies", pick(&[0, 1])),
        ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1, 1])),
        ("sunrpc/svc_rdma/pulled_replies", pick(&[0, 1])),
        ("sunrpc/rdma_slot_table_entries", pick(&[4, 8, 128])),
    ];
    tunables.extend(&faults.tunables);
    faults.device.attrs.max_qp_wr = pick(&[200, 1000, 16_384]) as i32;
    faults.device.attrs.max_send_sge = pick(&[4, 16]) as i32;
    let world = World {
        device: faults.device,
        tunables,
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let shapes: Vec<Vec<Rpc>> = (0..pick(&[1, 1, 2]))
        .map(|_| {
            let count = if faults.idle { 1 } else { pick(&[3, 10, 40]) };
            (0..count)
                .map(|_| Rpc::any(0, payload).with_words())
                .collect()
        })
        .collect();
    world::begin(config, world, nfsd.clone())?;
    nfsd.set_habits(faults.habits);
    let manner = faults.tasks;
    let clients: Rc<RefCell<Vec<Rc<Client>>>> = Rc::default();
    let replies = Rc::new(Cell::new(0));
    let (all, counted) = (clients.clone(), replies.clone());
    let wanted = shapes.len();
    let may = May {
        fail: faults.mappings > 0
            || faults.allocations > 0
            || faults.habits.plain > 0
            || manner.flags & (RPC_TASK_SOFT | RPC_TASK_SOFTCONN) != 0,
    };
    let breaks_only = !may.fail
        && faults.unplugs == 0
        && faults.moves == 0
        && faults.device.refuses == 0
        && faults.device.few_queues == 0
        && faults.kills == 0;
    let calls = faults.calls;
    let program = calls.map(|calls| Rc::new(CallbackProgram::new(calls)));
    if let Some(program) = &program {
        start_callbacks(program.clone(), pick(&[1, 2, 4]) as usize);
    }
    sched::spawn("mount", move || {
        for (number, shapes) in (1..).zip(shapes) {
            let client = Rc::new(Client::new(number << 24, manner).expect("a transport"));
            client.patient.set(breaks_only);
            all.borrow_mut().push(client.clone());
            if calls.is_some() {
                assert_eq!(client.set_up_backchannel(), 0);
            }
            for shape in shapes {
                client.start(to_call(shape, may, &counted));
            }
        }
    });
    world::run_until("mount", || clients.borrow().len() == wanted)?;
    let is_idle = || {
        let all = clients.borrow();
        all.iter().all(|client| client.tasks.get() == 0)
    };
    if faults.idle {
        world::run_until("the first RPCs", is_idle)?;
    }
    memory::fail_one_in(faults.allocations);
    dma::fail_maps(faults.mappings);
    rqst::kill_answered(faults.signals);
    hotplug::unplug_opening(faults.openings);
    svc::stand_still(faults.stands);
    let failed = memory::failed();
    let loses = faults.unplugs > 0 || faults.moves > 0;
    // A Reply that is read too late is exposed no more.
    let late = faults.device.late > 0;
    let refuses = faults.device.refuses > 0 || faults.device.few_queues > 0;
    let breaks = loses || late || faults.manners.breaks_off > 0 || refuses;
    let outcome = calls.map(|calls| {
        let fail = may.fail || breaks || calls.drops > 0 || calls.late > 0;
        callbacks::call(calls, May { fail })
    });
    let is_done = || {
        let plugged = !hotplug::is_busy();
        is_idle() && plugged && outcome.as_ref().is_none_or(|outcome| outcome.done.get())
    };
    let lost = Rc::new(Cell::new(0));
    let (looks, steps) = if faults.kills > 0 || loses {
        (400, 50)
    } else {
        (40, 500)
    };
    for _ in 0..looks {
        if is_done() {
            break;
        }
        sched::run(steps, is_done)?;
        say!("{}", crate::bindings::xprt::describe());
        if sched::one_in(faults.unplugs) {
            lost.set(lost.get() + 1);
            hotplug::unplug(below(2));
        }
        if sched::one_in(faults.moves) {
            lost.set(lost.get() + 1);
            hotplug::move_address();
        }
        if sched::one_in(faults.kills) {
            clients.borrow()[below(wanted)].kill();
        }
        if sched::one_in(faults.manners.breaks_off) {
            lost.set(lost.get() + 1);
            clients.borrow()[below(wanted)].inject_disconnect();
        }
    }
    memory::fail_one_in(0);
    dma::fail_maps(0);
    fabric(|f| {
        f.device.refuses = 0;
        f.device.few_queues = 0;
        f.device.late = 0;
    });
    rqst::kill_answered(0);
    hotplug::unplug_opening(0);
    svc::stand_still(0);
    if let Some(program) = &program {
        program.be_well();
    }
    nfsd.set_habits(Habits {
        late: 0,
        ..faults.habits
    });
    world::run_until("the clients", is_done)
        .map_err(|why| format!("{}{why}", crate::bindings::xprt::describe()))?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    // A task that gives up takes its handles back, though the server may still use one.
    let gives_up = faults.kills > 0 || manner.timeout > 0;
    if !denied.is_empty() && lost.get() == 0 && !may.fail && !breaks && !gives_up {
        return Err(format!("an end was denied: {denied:?}"));
    }
    let is_patient = calls.is_none_or(|calls| calls.drops + calls.late + calls.gives_up == 0);
    let faultless = is_patient && !may.fail && !breaks && !gives_up && faults.signals == 0;
    files::at_rest(faultless)?;
    let all = clients.take();
    let failures = outcome.as_ref().map_or(0, |outcome| outcome.failures.get());
    let refused = failures + all.iter().map(|client| client.failures.get()).sum::<u64>();
    let killed = all.iter().map(|client| client.killed.get()).sum::<u64>()
        + outcome.as_ref().map_or(0, |outcome| outcome.killed.get());
    let calls_back = calls.is_some();
    sched::spawn("umount", move || {
        for client in all {
            if calls_back {
                client.end_backchannel();
            }
            client.put();
        }
        end_callbacks();
    });
    let backward = outcome.map_or(0, |outcome| outcome.replies.get());
    let mut seen = Seen {
        failed: memory::failed() - failed,
        replies: replies.get() + backward,
        backward,
        connections: lost.get(),
        refused,
        killed,
        ..Seen::default()
    };
    world::end()?;
    seen.steps = sched::steps();
    Ok(seen)
}

/// An RPC of this shape, for SUNRPC.
pub(crate) fn to_call(shape: Rpc, may: May, replies: &Rc<Cell<u64>>) -> Call {
    let replies = replies.clone();
    let (head, data, tail) = shape.reply_parts();
    Call {
        encode: Box::new(move |xid, attempt| shape.with_xid(xid).call_parts(attempt)),
        is_write: shape.is_eligible(),
        // A consumer that reads to the end of a file gets less than it asks for.
        room: [
            head.len(),
            data.len() + pick(&[0, 0, 4, 500, 5000]) as usize,
            tail.len(),
        ],
        is_read: shape.is_eligible(),
        may_fail: may.fail,
        decode: Box::new(move |xid, reply| {
            let rpc = shape.with_xid(xid);
            let expected = rpc.reply();
            if reply != expected {
                let at = reply.iter().zip(&expected).position(|(a, b)| a != b);
                sched::fail(format_args!(
                    "the Reply to {rpc:?} has {} bytes, {} expected, the first other one at {at:?}",
                    reply.len(),
                    expected.len()
                ));
            }
            replies.set(replies.get() + 1);
        }),
    }
}

fn both_ends_talk(config: &Config) -> Result<Seen, String> {
    talk(config, |_| ())
}

fn both_ends_lose_connections(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.manners.breaks_off = pick(&[1, 2, 5])
    })
}

fn both_ends_lack_memory(config: &Config) -> Result<Seen, String> {
    talk(config, |faults| {
        faults.allocations = pick(&[0, 50, 300]);
        faults.mappings = pick(&[0, 50, 300]);
        faults.device.few_queues = pick(&[0, 0, 2]);
    })
}
