// SPDX-License-Identifier: GPL-2.0

//! The plays.
//!
//! A play draws a world, its peers and their faults from a seed, lets all of it happen, and checks
//! the laws: most of them in each step, the others at the end.

use kernel::sched::{below, Config};

#[path = "more_plays.rs"]
mod more_plays;

use super::callbacks::Calls;
use super::hostile_plays;
use super::illegal_calls;
use super::nfsd::NfsdOptions;
use super::peer::Manners;
use super::serve::serve;
use super::talk::talk;
pub(crate) use super::talk::to_call;
use super::unload;
use super::world;
use crate::bindings::fabric::Device;
use crate::bindings::rpc::Manner;
use crate::bindings::{RPC_TASK_NO_RETRANS_TIMEOUT, RPC_TASK_SOFT, RPC_TASK_SOFTCONN};

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
        name: "both_ends_use_all_mrs",
        run: more_plays::both_ends_use_all_mrs,
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
        for line in kernel::sched::story() {
            println!("{line}");
        }
        world::abandon();
    }
    result
}

/// What a play draws.
pub(super) struct Faults {
    pub(super) manners: Manners,
    pub(super) device: Device,
    pub(super) allocations: u32,
    pub(super) mappings: u32,
    /// The backchannel Calls of the server.
    pub(super) calls: Option<Calls>,
    /// Each client has one RPC, and none while the server calls it.
    pub(super) idle: bool,
    /// Each client has twelve READs and WRITEs of nearly 1 MiB.
    pub(super) large: bool,
    /// How the client's tasks behave.
    pub(super) tasks: Manner,
    /// A signal kills a task at one in so many looks.
    pub(super) kills: u32,
    /// One kills one in so many tasks when its Reply is taken.
    pub(super) signals: u32,
    /// A device is removed at one in so many looks, and an address moves.
    pub(super) unplugs: u32,
    pub(super) moves: u32,
    /// A device is removed when one in so many connections is opened.
    pub(super) openings: u32,
    /// One in so many nfsd threads stands still when it has taken a message.
    pub(super) stands: u32,
    pub(super) nfsd: NfsdOptions,
    /// Tunables that are not drawn.
    pub(super) tunables: Vec<(&'static str, u32)>,
}

/// What may become of an RPC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    pub(crate) fail: bool,
}

impl Faults {
    pub(super) fn none() -> Self {
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
            large: false,
            tasks: Manner::PATIENT,
            kills: 0,
            signals: 0,
            unplugs: 0,
            moves: 0,
            openings: 0,
            stands: 0,
            nfsd: NfsdOptions::default(),
            tunables: Vec::new(),
        }
    }
}

pub(super) fn pick(numbers: &[u32]) -> u32 {
    numbers[below(numbers.len())]
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
        faults.allocations = pick(&[0, 20, 50]);
        faults.device.few_queues = pick(&[0, 3]);
        faults.manners.errors = true;
    })
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
