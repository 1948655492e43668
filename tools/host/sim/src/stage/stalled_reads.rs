// SPDX-License-Identifier: GPL-2.0

//! A play with a client that does not answer an RDMA Read over iWARP, and goes on to send Calls.

use std::rc::Rc;

use kernel::sched::{self, pick, Config};

use super::hostile_plays::device;
use super::nfsd::Nfsd;
use super::outcome::Seen;
use super::peer::{Manners, Peer};
use super::peer_steps::PeerSteps;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::fabric::fabric;

/// Half as much again as `stall_seconds`, and some seconds for the steps.
const MOST_SECONDS: u64 = 90 + 45 + 5;

const SECOND: u64 = 1_000_000_000;

/// Has the client send a short Call each 25 seconds, until it has a new connection.
fn keep_calling(peer: Rc<Peer>, xid: u32) {
    if peer.connections.get() == 1 {
        let call = Rpc::short().with_xid(xid);
        peer.queued.borrow_mut().push_back(call);
        sched::at(sched::now() + 25 * SECOND, move || {
            keep_calling(peer, xid + 1);
        });
    }
}

/// Sends complete before the Read. Law: the server closes the connection nevertheless.
pub(super) fn server_meets_stalled_iwarp_reads(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[16_384, 65_536]);
    let mut device = device();
    device.iwarp = true;
    let world = World {
        device,
        tunables: Vec::new(),
        threads: pick(&[1, 2, 5]) as usize,
        payload,
    };
    let manners = Manners {
        credits: 64,
        breaks_off: 0,
        leaves: 0,
        errors: false,
    };
    let first = vec![Rpc::short().with_xid(1)];
    let peer = Rc::new(Peer::new(manners, nfsd.clone(), first));
    world::begin(config, world, nfsd)?;
    sched::add_source(Rc::new(PeerSteps(peer.clone())));
    sched::run_until("the first Call", || peer.is_done())?;
    fabric(|f| f.device.stalls_reads = 1);
    let start = sched::now();
    peer.queued.borrow_mut().push_back(Rpc::write(2, payload));
    keep_calling(peer.clone(), 3);
    let is_late = || sched::now() > start + MOST_SECONDS * SECOND;
    sched::run_until("a stalled Read", || {
        peer.connections.get() == 2 || is_late()
    })?;
    if is_late() {
        return Err(format!(
            "a Read has not completed for {MOST_SECONDS} seconds"
        ));
    }
    fabric(|f| f.device.stalls_reads = 0);
    sched::run_until("all Calls", || peer.is_done())
        .map_err(|why| format!("{why}; it waits for {}", peer.waits_for()))?;
    let seen = Seen {
        replies: u64::from(peer.replies.get()),
        connections: u64::from(peer.connections.get()),
        ..Seen::default()
    };
    peer.close();
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}
