// SPDX-License-Identifier: GPL-2.0

//! Everything that the sources say at one moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use super::{
    address::Address,
    connection::{Connection, End},
};
use crate::source::{
    debugfs::{self, Debug, Ended},
    devices::{self, Device},
    log::{self, Message},
    module::{self, Module},
    mountinfo,
    mountstats::{self, Mount},
    network::{self, Network},
    nfsd::{self, Nfsd},
    root::{Root, Unreadable},
    switches, sysctls,
};

/// A source that could not be read, and how to change that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// What is not known.
    pub what: String,
    /// The cause.
    pub why: String,
    /// The next step.
    pub next: String,
}

/// What the sources say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Seconds since the boot.
    pub uptime: f64,
    /// The release of the kernel.
    pub kernel: String,
    /// Bytes of memory of the machine.
    pub memory: u64,
    /// The module that is loaded.
    pub module: Module,
    /// Whether the RDMA core is a vendor's.
    pub foreign_core: bool,
    /// The RDMA devices.
    pub devices: Vec<Device>,
    /// Interfaces, sockets and filters.
    pub network: Network,
    /// The mounts over RDMA.
    pub mounts: Vec<Mount>,
    /// The connections of the client.
    pub connections: Vec<Connection>,
    /// The server.
    pub nfsd: Option<Nfsd>,
    /// The connections of the server.
    pub served: Vec<Connection>,
    /// The connections of the server that ended last.
    pub ended: Vec<Ended>,
    /// Settings and counters of the module.
    pub sysctls: BTreeMap<String, u64>,
    /// What the module wrote to the kernel log.
    pub log: Vec<Message>,
    /// What could not be read.
    pub missing: Vec<Missing>,
}

impl Snapshot {
    /// Reads all sources.
    pub fn take(root: &Root) -> Self {
        let mut missing = Vec::new();
        let module = module::read(root);
        let devices = devices::read(root).unwrap_or_default();
        let debug = debug(root, &module, &mut missing);
        let (nfsd, hidden) = nfsd::read(root);
        if let Some(why) = hidden {
            missing.push(Missing {
                what: "the server's listeners".to_string(),
                why: format!("/proc/fs/nfsd/portlist: {why}"),
                next: "run this as root".to_string(),
            });
        }
        let log = match root.read("/dev/kmsg") {
            Ok(text) => log::parse(&text),
            Err(why) => {
                missing.push(Missing {
                    what: "the kernel log".to_string(),
                    why: format!("/dev/kmsg: {why}"),
                    next: "run this as root".to_string(),
                });
                Vec::new()
            }
        };
        Self {
            time_ms: now(root),
            uptime: uptime(root),
            kernel: root.value("/proc/sys/kernel/osrelease").unwrap_or_default(),
            memory: memory(root),
            foreign_core: module::has_foreign_core(root),
            network: network::read(root, &interfaces(&devices)),
            mounts: mounts(root, &mut missing),
            connections: client(root, &debug, &mut missing),
            served: served(&debug),
            ended: debug.ended,
            sysctls: sysctls::read(root),
            module,
            devices,
            nfsd,
            log,
            missing,
        }
    }

    /// The connections of a mount: those to its server, and its port.
    pub fn connections_of(&self, mount: &Mount) -> Vec<&Connection> {
        let server = mount_address(mount);
        let ours = |connection: &&Connection| {
            !connection.is_backchannel() && connection.address().matches(&server)
        };
        self.connections.iter().filter(ours).collect()
    }

    /// The mount that a directory lies on.
    pub fn mount_at(&self, root: &Root, path: &str) -> Option<&Mount> {
        let named = self
            .mounts
            .iter()
            .find(|mount| mount.target == path.trim_end_matches('/'));
        named.or_else(|| {
            let points = mountinfo::parse(&root.read("/proc/self/mountinfo").ok()?);
            let point = mountinfo::holding(&points, path)?;
            let found = |mount: &&Mount| mount.target == point.target;
            self.mounts.iter().find(found)
        })
    }

    /// A setting or counter of the module.
    pub fn sysctl(&self, name: &str) -> Option<u64> {
        self.sysctls.get(name).copied()
    }

    /// Whether the module is the one in Rust.
    pub fn is_rust(&self) -> bool {
        matches!(self.module, Module::Rust { .. })
    }

    /// Seconds since a message of the kernel log.
    pub fn seconds_since(&self, message: &Message) -> u64 {
        (self.uptime as u64).saturating_sub(message.at / 1_000_000)
    }
}

/// The address and port of a mount's server.
pub fn mount_address(mount: &Mount) -> Address {
    let mut server = Address::parse(mount.option("addr").unwrap_or(mount.server()));
    let port = mount.number("port").filter(|&port| port > 0);
    server.port = port.and_then(|port| port.try_into().ok());
    server
}

fn debug(root: &Root, module: &Module, missing: &mut Vec<Missing>) -> Debug {
    let what = "sizes, credits and last errors of each connection".to_string();
    let (why, next) = match (debugfs::read(root), module) {
        (Ok(debug), _) => return debug,
        (_, Module::None) => return Debug::default(),
        (Err(Unreadable::Denied), _) => (
            "/sys/kernel/debug: only root may read it".to_string(),
            "run this as root".to_string(),
        ),
        (_, Module::C) => (
            "the C module does not show them".to_string(),
            "use the module in Rust, or the trace events (events/rpcrdma)".to_string(),
        ),
        (Err(why), Module::Rust { .. }) => (
            format!("{}: {why}", debugfs::PATH),
            "mount -t debugfs debugfs /sys/kernel/debug, or use a newer module".to_string(),
        ),
    };
    missing.push(Missing { what, why, next });
    Debug::default()
}

fn mounts(root: &Root, missing: &mut Vec<Missing>) -> Vec<Mount> {
    let points = mountinfo::parse(&root.read("/proc/self/mountinfo").unwrap_or_default());
    match root.read("/proc/self/mountstats") {
        Ok(text) => {
            let mut mounts = mountstats::parse(&text);
            mounts.retain(Mount::is_rdma);
            for mount in &mut mounts {
                // The server's address is not in mountstats.
                let point = points
                    .iter()
                    .rev()
                    .find(|point| point.target == mount.target);
                for (name, value) in point.iter().flat_map(|point| &point.options) {
                    mount.options.entry(name.clone()).or_insert(value.clone());
                }
            }
            mounts
        }
        Err(why) => {
            missing.push(Missing {
                what: "the mounts".to_string(),
                why: format!("/proc/self/mountstats: {why}"),
                next: "mount /proc".to_string(),
            });
            Vec::new()
        }
    }
}

/// Joins what SUNRPC and the module show of the client's connections.
fn client(root: &Root, debug: &Debug, missing: &mut Vec<Missing>) -> Vec<Connection> {
    let xprts = switches::read(root).unwrap_or_else(|why| {
        if root.exists("/proc/sys/sunrpc") {
            missing.push(Missing {
                what: "the client's connections".to_string(),
                why: format!("{}: {why}", switches::PATH),
                next: "mount -t sysfs sysfs /sys".to_string(),
            });
        }
        Vec::new()
    });
    let mut connections: BTreeMap<u32, Connection> = BTreeMap::new();
    for xprt in xprts {
        let connection = Connection {
            end: End::Client,
            id: xprt.id,
            detail: debug.client.get(&xprt.id).cloned().unwrap_or_default(),
            xprt: Some(xprt),
        };
        connections.insert(connection.id, connection);
    }
    // Those of other network namespaces are in debugfs only.
    for (&id, detail) in &debug.client {
        connections.entry(id).or_insert_with(|| Connection {
            end: End::Client,
            id,
            xprt: None,
            detail: detail.clone(),
        });
    }
    connections.into_values().collect()
}

fn served(debug: &Debug) -> Vec<Connection> {
    let each = debug.server.iter().map(|(&id, detail)| Connection {
        end: End::Server,
        id,
        xprt: None,
        detail: detail.clone(),
    });
    each.collect()
}

fn interfaces(devices: &[Device]) -> Vec<String> {
    let ports = devices.iter().flat_map(|device| &device.ports);
    let names: BTreeSet<_> = ports.flat_map(|port| port.netdevs.clone()).collect();
    names.into_iter().collect()
}

/// The time. A captured tree has the file `time`.
fn now(root: &Root) -> u64 {
    if !root.is_live() {
        return root
            .value("/time")
            .ok()
            .and_then(|time| time.parse().ok())
            .unwrap_or(0);
    }
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

fn uptime(root: &Root) -> f64 {
    let text = root.read("/proc/uptime").unwrap_or_default();
    let seconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    seconds
        .filter(|seconds: &f64| seconds.is_finite())
        .unwrap_or(0.0)
}

fn memory(root: &Root) -> u64 {
    let text = root.read("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> =
        total.and_then(|total| total.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}
