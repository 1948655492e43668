// SPDX-License-Identifier: GPL-2.0

//! The plays.
//!
//! A play draws a world, its peers and their faults from a seed, lets all of it happen, and checks
//! the laws: most of them in each step, the others at the end.

use kernel::sched::{below, pick, Config};

use super::outcome::Seen;
use super::serve::serve;
use super::talk::talk;
use super::{
    away, hostile_plays, illegal_calls, long_calls, more_plays, silent_peers, spare_pages,
    stalled_reads, suspended, unanswered, unload, world,
};

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
        name: "server_meets_hostile_iwarp_clients",
        run: hostile_plays::server_meets_hostile_iwarp_clients,
    },
    Play {
        name: "server_meets_stalled_iwarp_reads",
        run: stalled_reads::server_meets_stalled_iwarp_reads,
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
        name: "client_refuses_long_calls",
        run: long_calls::client_refuses_long_calls,
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
        name: "both_ends_stall",
        run: more_plays::both_ends_stall,
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
        name: "server_meets_silent_peers",
        run: silent_peers::server_meets_silent_peers,
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
        name: "both_ends_bounce",
        run: more_plays::both_ends_bounce,
    },
    Play {
        name: "both_ends_lack_local_inv",
        run: more_plays::both_ends_lack_local_inv,
    },
    Play {
        name: "both_ends_unload",
        run: unload::both_ends_unload,
    },
    Play {
        name: "server_is_suspended",
        run: suspended::server_is_suspended,
    },
    Play {
        name: "server_keeps_spare_pages",
        run: spare_pages::server_keeps_spare_pages,
    },
    Play {
        name: "client_waits_for_server",
        run: away::client_waits_for_server,
    },
    Play {
        name: "client_is_not_answered",
        run: unanswered::client_is_not_answered,
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
    talk(config, |faults| {
        // Messages longer than a buffer, whose pages are gathered.
        if below(3) == 0 {
            let bytes = pick(&[8192, 32_768]);
            faults.tunables = vec![
                ("sunrpc/rdma_max_inline_write", bytes),
                ("sunrpc/svc_rdma/max_req_size", bytes),
            ];
        }
        faults.device.reports_all = below(4) == 0;
        faults.device.begins_by_address = below(4) == 0;
    })
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
        faults.device.bounces = faults.mappings > 0 && below(2) == 0;
        faults.device.few_queues = pick(&[0, 0, 2]);
    })
}
