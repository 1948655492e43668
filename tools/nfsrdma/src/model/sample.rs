// SPDX-License-Identifier: GPL-2.0

//! The counters of a moment, as `nfsrdma record` keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;
use crate::source::mountstats::Op;

/// Counters and gauges at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The operations of each mount, by its directory.
    pub mounts: BTreeMap<String, Vec<Op>>,
    /// The credits of each connection of the client, by its title.
    pub client: BTreeMap<String, Credits>,
    /// The same of the server.
    pub server: BTreeMap<String, Credits>,
    /// Totals of the server, by the name of the counter.
    pub totals: BTreeMap<String, u64>,
}

/// The credits of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credits {
    /// How many Calls may be outstanding.
    pub granted: u64,
    /// How many are.
    pub used: u64,
    /// How many Calls wait for a credit.
    pub waiting: u64,
    /// How often the connection was made.
    pub connects: u64,
}

impl Sample {
    /// Takes the counters out of a snapshot.
    pub fn of(all: &Snapshot) -> Self {
        let mounts = all.mounts.iter();
        let client = all.connections.iter().filter(|each| !each.is_backchannel());
        let mut totals: BTreeMap<_, _> = all
            .sysctls
            .iter()
            .filter_map(|(name, &value)| {
                Some((name.strip_prefix("svc_rdma/rdma_stat_")?.to_string(), value))
            })
            .collect();
        if let Some(nfsd) = &all.nfsd {
            let (read, written) = nfsd.bytes.unwrap_or_default();
            totals.insert("nfsd_read_bytes".to_string(), read);
            totals.insert("nfsd_written_bytes".to_string(), written);
            totals.insert("nfsd_rpcs".to_string(), nfsd.rpcs.unwrap_or_default().0);
        }
        Self {
            time_ms: all.time_ms,
            mounts: mounts
                .map(|mount| (mount.target.clone(), mount.ops.clone()))
                .collect(),
            client: client.map(credits).collect(),
            server: all.served.iter().map(credits).collect(),
            totals,
        }
    }
}

fn credits(connection: &super::connection::Connection) -> (String, Credits) {
    let waiting = connection.detail.number("credits_waiting");
    let credits = Credits {
        granted: connection.granted().unwrap_or(0),
        used: connection.used().unwrap_or(0),
        waiting: waiting.or(connection.info("sending_q_len")).unwrap_or(0),
        connects: connection.detail.number("connects").unwrap_or(0),
    };
    (format!("{} {}", connection.id, connection.peer()), credits)
}
