// SPDX-License-Identifier: GPL-2.0

//! A play in which the module is unloaded as soon as nothing uses it, while clients mount and
//! unmount, the server stops and starts, and devices are removed.

use core::cell::Cell;
use std::rc::Rc;

use kernel::error::code::EIO;
use kernel::sched::{self, below, one_in, pick, Config};

use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::fabric::{fabric, Device};
use crate::bindings::rpc::{Client, Manner};
use crate::bindings::{hotplug, nfsd_threads, UNUSED};

/// What the programs do.
#[derive(Clone, Copy)]
struct Plan {
    payload: u32,
    threads: usize,
    /// How often a program mounts, and how many RPCs it begins then.
    mounts: u32,
    calls: u32,
    /// How often the server is started.
    starts: u32,
    /// The milliseconds that a mount and the server last at most.
    lasts: u32,
    /// One in so many mounts ends with a connection that breaks off.
    breaks: u32,
}

/// What the programs have seen.
#[derive(Default)]
struct Outcome {
    replies: Rc<Cell<u64>>,
    killed: Cell<u64>,
    refused: Cell<u64>,
    /// The programs that have not ended.
    programs: Cell<usize>,
}

/// A key that nothing wakes.
const PAUSE: usize = 17;

/// Waits for up to so many milliseconds, or not at all.
fn pause(most: u32) {
    if one_in(2) {
        let later = sched::now() + below(most as usize * 1_000_000) as u64;
        while sched::wait_until(PAUSE, later) {}
    }
}

pub(super) fn both_ends_unload(config: &Config) -> Result<Seen, String> {
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let plan = Plan {
        payload: pick(&[8192, 65_536]),
        threads: pick(&[1, 2]) as usize,
        mounts: pick(&[1, 4, 8]),
        calls: pick(&[0, 1, 5, 20]),
        starts: pick(&[0, 0, 1, 3]),
        lasts: pick(&[5, 50, 1000, 20_000]),
        breaks: pick(&[0, 2, 4]),
    };
    let programs = pick(&[1, 1, 2, 3]);
    let unplugs = pick(&[0, 1, 3, 20, 100]);
    let moves = pick(&[0, 0, 5]);
    let mut device = Device::default();
    device.refuses = pick(&[0, 0, 100]);
    let tunables = vec![
        ("sunrpc/svc_rdma/max_requests", pick(&[4, 32])),
        ("sunrpc/svc_rdma/remote_invalidation", pick(&[0, 1])),
        ("sunrpc/svc_rdma/pulled_replies", pick(&[0, 1])),
        ("sunrpc/rdma_slot_table_entries", pick(&[4, 128])),
    ];
    let nfsd = Rc::new(Nfsd::default());
    let world = World {
        device,
        tunables,
        threads: plan.threads,
        payload: plan.payload,
    };
    world::begin(config, world, nfsd.clone())?;
    let outcome = Rc::new(Outcome::default());
    outcome.programs.set(programs as usize + 2);
    for number in 0..programs {
        let (outcome, first) = (outcome.clone(), number << 24);
        sched::spawn(format!("program {number}"), move || {
            for round in 0..plan.mounts {
                if !mount(first | round << 16, &plan, &outcome) {
                    break;
                }
                pause(plan.lasts);
            }
            outcome.programs.set(outcome.programs.get() - 1);
        });
    }
    let ended = outcome.clone();
    sched::spawn("nfsdctl", move || {
        let later = sched::now() + below(plan.lasts as usize * 1_000_000) as u64;
        while sched::wait_until(PAUSE, later) {}
        nfsd_threads::stop();
        for _ in 0..plan.starts {
            pause(plan.lasts);
            nfsd_threads::start(plan.threads, plan.payload, nfsd.clone());
            pause(plan.lasts);
            nfsd_threads::stop();
        }
        ended.programs.set(ended.programs.get() - 1);
    });
    let ended = outcome.clone();
    sched::spawn("rmmod", move || {
        // It is tried again when there is no reference left, and now and then.
        while !world::rmmod() {
            sched::wait_until(UNUSED, sched::now() + 50_000_000);
        }
        ended.programs.set(ended.programs.get() - 1);
    });
    let is_done = || outcome.programs.get() == 0 && !hotplug::is_busy();
    let mut lost = 0;
    for _ in 0..1000 {
        if is_done() {
            break;
        }
        sched::run(1 + below(60) as u64, is_done)?;
        if one_in(unplugs) && !hotplug::is_busy() {
            lost += 1;
            hotplug::unplug(below(2));
        }
        if one_in(moves) {
            hotplug::move_address();
        }
    }
    fabric(|f| f.device.refuses = 0);
    sched::run_until("the programs", is_done)?;
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        replies: outcome.replies.get(),
        killed: outcome.killed.get(),
        refused: outcome.refused.get(),
        connections: lost,
        ..Seen::default()
    })
}

/// Mounts, begins RPCs, and unmounts, whether or not they have ended; `false` if the module is
/// being unloaded.
fn mount(first_xid: u32, plan: &Plan, outcome: &Outcome) -> bool {
    let client = match Client::new(first_xid, Manner::PATIENT) {
        Ok(client) => Rc::new(client),
        Err(error) => {
            if error != EIO || !world::is_unloading() {
                sched::fail(format_args!("a mount fails: {error:?}"));
            }
            outcome.refused.set(outcome.refused.get() + 1);
            return false;
        }
    };
    let may = May { fail: true };
    for _ in 0..plan.calls {
        let shape = Rpc::any(0, plan.payload).with_words();
        client.start(to_call(shape, may, &outcome.replies));
    }
    if one_in(2) {
        let most = sched::now() + below(plan.lasts as usize * 1_000_000) as u64;
        while client.tasks.get() > 0 && sched::now() < most {
            sched::wait_until(PAUSE, sched::now() + 1_000_000);
        }
    } else if nfsd_threads::runs() {
        // All of them, unless the server is stopped.
        while client.tasks.get() > 0 && nfsd_threads::runs() {
            sched::wait_until(PAUSE, sched::now() + 20_000_000);
        }
    }
    if one_in(plan.breaks) {
        client.inject_disconnect();
    }
    while client.tasks.get() > 0 {
        client.kill();
        sched::wait_until(PAUSE, sched::now() + 100_000);
    }
    outcome
        .killed
        .set(outcome.killed.get() + client.killed.get());
    client.put();
    true
}
