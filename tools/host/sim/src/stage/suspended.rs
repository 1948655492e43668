// SPDX-License-Identifier: GPL-2.0

//! A play in which the server is suspended: nfsd is frozen, and then its device is removed.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::hostile_plays;
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::rpc::{Client, Manner};
use crate::bindings::{hotplug, nfsd_threads};

/// A key that nothing wakes.
const TIME: usize = 26;
/// Longer than any timer of a connection runs.
const IDLE_NS: u64 = 300_000_000_000;
/// The server's device.
const SERVER: usize = 0;

/// Idle clients do not delay the removal of the device of a server whose threads are frozen.
pub(super) fn server_is_suspended(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let world = World {
        device: hostile_plays::device(),
        tunables: Vec::new(),
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let count = pick(&[1, 2, 5]);
    let calls = pick(&[1, 3, 10]);
    world::begin(config, world, nfsd)?;
    let (replies, connections) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (done, resumed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    for number in 1..=count {
        let (replies, connections) = (replies.clone(), connections.clone());
        let (done, is_resumed) = (done.clone(), resumed.clone());
        let calls = 1 + below(calls as usize);
        sched::spawn(format!("mount {number}"), move || {
            let client = Rc::new(Client::new(number << 24, Manner::PATIENT).expect("a transport"));
            let may = May { fail: false };
            let any = || Rpc::any(0, payload).with_words();
            let call = |_| client.start(to_call(any(), may, &replies));
            (0..calls).for_each(call);
            client.wait();
            done.set(done.get() + 1);
            // A Call that arrives while nfsd is frozen would keep the transport.
            while !is_resumed.get() {
                sched::wait_until(TIME, sched::now() + 1_000_000_000);
            }
            (0..calls).for_each(call);
            client.wait();
            connections.set(connections.get() + client.connects());
            client.put();
            done.set(done.get() + 1);
        });
    }
    sched::run_until("the clients", || done.get() == count)?;
    let is_resumed = resumed.clone();
    sched::spawn("suspend", move || {
        let idle = sched::now() + IDLE_NS;
        while sched::wait_until(TIME, idle) {}
        nfsd_threads::freeze();
        hotplug::unplug(SERVER);
        while hotplug::is_busy() {
            sched::wait_until(TIME, sched::now() + 1_000_000);
        }
        nfsd_threads::thaw();
        resumed.set(true);
    });
    sched::run_until("the resume", || is_resumed.get())?;
    sched::run_until("the clients of the resumed server", || {
        done.get() == 2 * count
    })?;
    let seen = Seen {
        replies: replies.get(),
        connections: connections.get(),
        ..Seen::default()
    };
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}
