// SPDX-License-Identifier: GPL-2.0

//! A play with peers that are accepted over iWARP, and send nothing.

use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::hostile_plays;
use super::nfsd::Nfsd;
use super::outcome::Seen;
use super::peer::{Manners, Peer};
use super::peer_steps::PeerSteps;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::cm::{self, End, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric_peer as queue;

/// Silent peers, at least as many as nfsd has threads, do not keep the server from serving another
/// peer, nor from being stopped. Only the module is in use until they have gone.
pub(super) fn server_meets_silent_peers(config: &Config) -> Result<Seen, String> {
    let nfsd = Rc::new(Nfsd::default());
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let payload = pick(&[8192, 65_536]);
    let threads = pick(&[1, 2, 5]) as usize;
    let mut device = hostile_plays::device();
    device.iwarp = true;
    let world = World {
        device,
        tunables: Vec::new(),
        threads,
        payload,
    };
    let manners = Manners {
        credits: pick(&[1, 3, 16]),
        breaks_off: 0,
        leaves: 0,
        errors: false,
    };
    let rpcs = (0..pick(&[3, 10])).map(|n| Rpc::any(n + 1, payload));
    let other = Rc::new(Peer::new(manners, nfsd.clone(), rpcs.collect()));
    world::begin(config, world, nfsd)?;
    let silent: Vec<u32> = (0..threads + below(3)).map(|_| connect()).collect();
    let heard = || silent.iter().all(|qp| cm_peer::has_peer_message(*qp));
    sched::run_until("the silent peers", heard)?;
    let mut servers: Vec<(u32, End)> = Vec::new();
    for qp in silent {
        let message = cm_peer::peer_message(qp);
        let Some((server, Message::Accept { qp: own, .. })) = message else {
            return Err(format!("a peer is told {message:?}"));
        };
        cm::connect(qp, own);
        servers.push((qp, server));
    }
    sched::add_source(Rc::new(PeerSteps(other.clone())));
    sched::run_until("another peer", || other.is_done())?;
    other.close();
    world::stop()?;
    for (qp, server) in servers {
        if below(2) == 0 {
            cm_peer::peer_tells(qp, server, Message::Ready);
        } else {
            cm_peer::peer_tells(qp, server, Message::Disconnect);
        }
        queue::peer_end(qp);
    }
    let seen = Seen {
        replies: u64::from(other.replies.get()),
        connections: u64::from(other.connections.get()),
        ..Seen::default()
    };
    world::end()?;
    Ok(Seen {
        steps: sched::steps(),
        ..seen
    })
}

/// Asks for a connection.
fn connect() -> u32 {
    let qp = queue::peer_qp(2);
    let param = Param {
        private_data: Vec::new(),
        responder_resources: 8,
        initiator_depth: 8,
    };
    assert!(cm_peer::peer_connect(qp, param), "there is a listener");
    qp
}
