// SPDX-License-Identifier: GPL-2.0

//! Listeners, threads, and the server's counters.

use crate::{
    finding::{Finding, Rule},
    model::snapshot::Snapshot,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[
    Rule {
        name: "listeners",
        check: listeners,
    },
    Rule {
        name: "threads",
        check: threads,
    },
    Rule {
        name: "rpcbind",
        check: rpcbind,
    },
    Rule {
        name: "counters",
        check: counters,
    },
];

/// The port that IANA has assigned to NFS over RDMA.
const PORT: u16 = 20049;

/// What nfsd listens on.
fn listeners(all: &Snapshot) -> Vec<Finding> {
    let Some(nfsd) = &all.nfsd else {
        return Vec::new();
    };
    let Some(listeners) = &nfsd.listeners else {
        return Vec::new();
    };
    if nfsd.threads == 0 && listeners.is_empty() {
        return vec![Finding::note(
            "nfsd is loaded and does not run: this machine serves nothing",
        )];
    }
    let mut ports: Vec<_> = nfsd
        .rdma_listeners()
        .map(|listener| listener.port)
        .collect();
    ports.dedup();
    if ports.is_empty() {
        return vec![Finding::limit(
            "nfsd runs, but does not listen for RDMA",
            "echo 'rdma 20049' > /proc/fs/nfsd/portlist, or rdma=y in /etc/nfs.conf",
        )];
    }
    let mut found: Vec<_> = ports
        .iter()
        .map(|port| Finding::good(format!("nfsd listens for RDMA on port {port}")))
        .collect();
    if !ports.contains(&PORT) {
        found.push(Finding::note(format!(
            "clients expect port {PORT}: they have to mount with port={}",
            ports[0]
        )));
    }
    if all.devices.is_empty() {
        found.push(Finding::fault(
            "nfsd listens for RDMA, but there is no RDMA device",
            "load the driver of the card; the listener then takes it without a restart",
        ));
    }
    found
}

/// How many Calls can be worked on at once.
fn threads(all: &Snapshot) -> Vec<Finding> {
    let Some(nfsd) = &all.nfsd else {
        return Vec::new();
    };
    let listens = nfsd.rdma_listeners().next().is_some();
    let needed = 8.max(all.served.len() as u64);
    if !listens {
        Vec::new()
    } else if nfsd.threads == 0 {
        vec![Finding::fault(
            "nfsd listens, but has no threads: it serves nothing",
            "systemctl start nfs-server, or echo 16 > /proc/fs/nfsd/threads",
        )]
    } else if nfsd.threads < needed {
        vec![Finding::limit(
            format!(
                "nfsd has {} threads, for {} connections",
                nfsd.threads,
                all.served.len()
            ),
            format!(
                "echo {} > /proc/fs/nfsd/threads, and threads= in /etc/nfs.conf",
                2 * needed
            ),
        )]
    } else {
        vec![Finding::good(format!("nfsd has {} threads", nfsd.threads))]
    }
}

/// NFSv3 needs rpcbind.
fn rpcbind(all: &Snapshot) -> Vec<Finding> {
    let serves = all
        .nfsd
        .as_ref()
        .is_some_and(|nfsd| nfsd.threads > 0 && nfsd.versions.iter().any(|version| version == "3"));
    match all.network.rpcbind {
        Some(false) if serves => vec![Finding::limit(
            "nfsd serves NFSv3, but rpcbind does not listen: mounts of NFSv3 fail",
            "systemctl start rpcbind, or turn NFSv3 off (vers3=n in /etc/nfs.conf)",
        )],
        _ => Vec::new(),
    }
}

/// Counters that tell of trouble: name, what it means, what to do.
const COUNTERS: &[(&str, &str, &str)] = &[
    (
        "stalled",
        "connections were closed because nothing completed on them",
        "clients hang, or packets of RDMA are lost: check the MTU along the path; nfsrdma explain \
            CLIENT has the reason for each",
    ),
    (
        "expired",
        "exposed Replies were not pulled in time",
        "clients hang, or are slower than sunrpc.svc_rdma.exposed_seconds allows",
    ),
    (
        "flooded",
        "connections were closed because the client exceeded its credits by far",
        "update these clients; nfsrdma explain CLIENT names them",
    ),
];

/// Counters of waits, which matter if they are many.
const WAITS: &[(&str, &str, &str)] = &[
    (
        "held_back",
        "Calls waited for pages to be read into",
        "raise sunrpc.svc_rdma.max_pulled_pages, or look for a slow client",
    ),
    (
        "sq_starve",
        "Replies and RDMA Reads waited for the Send Queue",
        "raise sunrpc.svc_rdma.max_requests, which makes the queue longer",
    ),
];

fn counters(all: &Snapshot) -> Vec<Finding> {
    let value = |name: &str| {
        all.sysctl(&format!("svc_rdma/rdma_stat_{name}"))
            .unwrap_or(0)
    };
    let received = value("recv");
    let faults = COUNTERS.iter().filter(|(name, ..)| value(name) > 0);
    let faults = faults.map(|&(name, what, next)| {
        Finding::fault(format!("{} {what} (rdma_stat_{name})", value(name)), next)
    });
    let waits = WAITS
        .iter()
        .filter(|(name, ..)| value(name).saturating_mul(100) > received);
    let waits = waits
        .filter(|(name, ..)| value(name) > 64)
        .map(|&(name, what, next)| {
            Finding::limit(format!("{} {what} (rdma_stat_{name})", value(name)), next)
        });
    faults.chain(waits).collect()
}
