// SPDX-License-Identifier: GPL-2.0

//! `nfsrdma explain`: what was agreed on a mount or with a peer, what limits it, and what went
//! wrong. Each rule looks at the [`Case`] and says what it finds.

use serde::Serialize;

use crate::{
    doctor::address_of_message,
    error::Error,
    finding::{apply, Finding, Level},
    model::{
        address::Address,
        connection::Connection,
        snapshot::{mount_address, Snapshot},
    },
    source::{debugfs::Ended, mountstats::Mount, root::Root, values::Values},
};

mod agreed;
mod causes;
mod faults;
mod limits;
mod served;

pub use agreed::RULES as AGREED;
pub use faults::RULES as FAULTS;
pub use limits::RULES as LIMITS;
pub use served::RULES as SERVED;

/// What is explained.
#[derive(Clone, Debug)]
pub struct Case {
    /// All facts.
    pub all: Snapshot,
    /// The mount, if one was named, or mounts of the peer.
    pub mounts: Vec<Mount>,
    /// The client's connections.
    pub connections: Vec<Connection>,
    /// The server's connections with the peer.
    pub served: Vec<Connection>,
    /// Those that ended.
    pub ended: Vec<Ended>,
    /// The addresses of the peer.
    pub peers: Vec<Address>,
}

impl Case {
    /// Whether an address is one of the peer's.
    pub fn is_about(&self, address: &Address) -> bool {
        self.peers.iter().any(|peer| peer.matches(address))
    }

    /// Whether nothing is known of the peer.
    fn is_empty(&self) -> bool {
        let addresses = self
            .all
            .log
            .iter()
            .filter_map(|message| address_of_message(&message.text));
        let is_named = addresses
            .map(Address::parse)
            .any(|address| self.is_about(&address));
        self.mounts.is_empty()
            && self.connections.is_empty()
            && self.served.is_empty()
            && self.ended.is_empty()
            && !is_named
    }
}

/// An explanation.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The mount or peer.
    pub subject: String,
    /// What was agreed.
    pub agreed: Vec<Finding>,
    /// What limits it.
    pub limits: Vec<Finding>,
    /// What went wrong.
    pub faults: Vec<Finding>,
    /// All that the module shows of each connection.
    pub details: Vec<Detail>,
}

/// All that the module shows of a connection.
#[derive(Debug, Serialize)]
pub struct Detail {
    /// The connection.
    pub title: String,
    /// Names and values, also those that no rule knows.
    pub values: Values,
}

/// Finds the mount or peer that `subject` names.
///
/// # Errors
///
/// If there is none.
pub fn case(all: &Snapshot, root: &Root, subject: &str) -> Result<Case, Error> {
    if let Some(mount) = all.mount_at(root, subject) {
        return Ok(of_mount(all, mount));
    }
    if subject.starts_with('/') {
        return Err(Error::NoMount {
            path: subject.to_string(),
            mounts: all
                .mounts
                .iter()
                .map(|mount| mount.target.clone())
                .collect(),
        });
    }
    let case = of_peer(all, subject);
    if case.is_empty() {
        return Err(Error::NoPeer {
            peer: subject.to_string(),
            peers: peers(all),
        });
    }
    Ok(case)
}

fn of_mount(all: &Snapshot, mount: &Mount) -> Case {
    Case {
        all: all.clone(),
        mounts: vec![mount.clone()],
        connections: all.connections_of(mount).into_iter().cloned().collect(),
        served: Vec::new(),
        ended: Vec::new(),
        peers: vec![mount_address(mount)],
    }
}

fn of_peer(all: &Snapshot, peer: &str) -> Case {
    let address = Address::parse(peer);
    let is_peer = |text: &str| Address::parse(text).matches(&address);
    let is_server = |mount: &&Mount| {
        let named = mount.device == peer || mount.server() == peer;
        named || mount_address(mount).matches(&address)
    };
    let mounts: Vec<_> = all.mounts.iter().filter(is_server).cloned().collect();
    // The port of a connection that is closed may not be known.
    let is_named = |each: &&Connection| {
        let other = each.address();
        let known = other.port.is_some() || address.port.is_none();
        !each.is_backchannel() && known && other.matches(&address)
    };
    let mut connections: Vec<_> = all.connections.iter().filter(is_named).collect();
    // A server that is named, not numbered, is that of its mounts.
    if connections.is_empty() {
        connections = mounts
            .iter()
            .flat_map(|mount| all.connections_of(mount))
            .collect();
        connections.sort_by_key(|connection| connection.id);
        connections.dedup_by_key(|connection| connection.id);
    }
    // A name stands for the addresses of its mounts.
    let peers = mounts
        .iter()
        .map(mount_address)
        .chain([address.clone()])
        .collect();
    let is_client = |each: &&Connection| each.address().matches(&address);
    Case {
        all: all.clone(),
        connections: connections.into_iter().cloned().collect(),
        mounts,
        served: all.served.iter().filter(is_client).cloned().collect(),
        ended: all
            .ended
            .iter()
            .filter(|each| is_peer(&each.peer))
            .cloned()
            .collect(),
        peers,
    }
}

/// The peers that could have been named.
fn peers(all: &Snapshot) -> Vec<String> {
    let both = all.connections.iter().chain(&all.served);
    let live = both
        .filter(|each| !each.is_backchannel())
        .map(Connection::peer);
    let ended = all.ended.iter().map(|ended| ended.peer.clone());
    let mut peers: Vec<_> = live.chain(ended).filter(|peer| !peer.is_empty()).collect();
    peers.sort();
    peers.dedup();
    peers
}

/// Applies all rules.
pub fn explain(subject: &str, case: &Case) -> Explanation {
    let agreed = apply(AGREED, case);
    let mut limits = apply(LIMITS, case);
    let mut faults = apply(FAULTS, case);
    for finding in apply(SERVED, case) {
        if finding.level == Level::Limit {
            limits.push(finding);
        } else {
            faults.push(finding);
        }
    }
    Explanation {
        subject: subject.to_string(),
        agreed,
        limits,
        faults,
        details: details(case),
    }
}

fn details(case: &Case) -> Vec<Detail> {
    let all = case.connections.iter().chain(&case.served);
    let shown = all.filter(|connection| !connection.detail.is_empty());
    shown
        .map(|connection| Detail {
            title: connection.title(),
            values: connection.detail.clone(),
        })
        .collect()
}
