// SPDX-License-Identifier: GPL-2.0

//! `/proc/self/mountstats`: the NFS mounts, their connections, and their operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mountinfo;

/// A mount of NFS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The server and its export, as `mount` was given them.
    pub device: String,
    /// The directory.
    pub target: String,
    /// `nfs` or `nfs4`.
    pub fstype: String,
    /// The options with values. Those without have an empty one.
    pub options: BTreeMap<String, String>,
    /// Seconds since the mount.
    pub age: u64,
    /// One for each connection over RDMA. Connections share the numbers of their place only.
    pub xprts: Vec<XprtStats>,
    /// The operations that were used.
    pub ops: Vec<Op>,
}

/// The 27 numbers of an `xprt: rdma` line, by the names that `mountstats(8)` gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct XprtStats {
    pub local_port: i64,
    pub binds: i64,
    pub connects: i64,
    pub connect_seconds: i64,
    pub idle_seconds: i64,
    pub sends: i64,
    pub replies: i64,
    pub bad_xids: i64,
    pub outstanding: i64,
    pub backlog: i64,
    pub read_segments: i64,
    pub write_segments: i64,
    pub reply_segments: i64,
    pub offered_bytes: i64,
    pub received_bytes: i64,
    pub pulled_up_bytes: i64,
    pub fixed_up_bytes: i64,
    pub grown_bytes: i64,
    pub failed_marshals: i64,
    pub bad_replies: i64,
    pub nomsg_calls: i64,
    pub mrs_recycled: i64,
    pub mrs_orphaned: i64,
    pub mrs_allocated: i64,
    pub local_invalidations: i64,
    pub empty_send_ring: i64,
    pub replies_waiting: i64,
}

/// An operation. Times are sums in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Op {
    pub name: String,
    pub operations: u64,
    pub transmissions: u64,
    pub timeouts: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub queue_ms: u64,
    pub rtt_ms: u64,
    pub total_ms: u64,
    pub errors: u64,
}

/// Parses the file. Returns the mounts of NFS over any transport.
pub fn parse(text: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    // Whether the lines belong to the last mount of NFS.
    let mut inside = false;
    let mut ops = false;
    for line in text.lines() {
        if let Some(mount) = line.strip_prefix("device ") {
            let mount = header(mount);
            inside = mount.is_some();
            ops = false;
            mounts.extend(mount);
            continue;
        }
        let Some(mount) = mounts.last_mut().filter(|_| inside) else {
            continue;
        };
        let line = line.trim();
        if line == "per-op statistics" {
            ops = true;
        } else if ops {
            mount.ops.extend(op(line));
        } else if let Some(list) = line.strip_prefix("opts:") {
            mount.options = mountinfo::options(list);
        } else if let Some(age) = line.strip_prefix("age:") {
            mount.age = age.trim().parse().unwrap_or(0);
        } else if let Some(xprt) = line.strip_prefix("xprt:") {
            mount.xprts.extend(xprt_stats(xprt));
        }
    }
    mounts
}

/// Parses `DEVICE mounted on DIRECTORY with fstype TYPE statvers=VERSION`. Other file systems have
/// no statistics.
fn header(line: &str) -> Option<Mount> {
    let (device, rest) = line.split_once(" mounted on ")?;
    let (target, rest) = rest.rsplit_once(" with fstype ")?;
    let fstype = rest.split_whitespace().next()?;
    matches!(fstype, "nfs" | "nfs4").then(|| Mount {
        device: mountinfo::unescape(device),
        target: mountinfo::unescape(target),
        fstype: fstype.to_string(),
        ..Mount::default()
    })
}

/// Numbers that a later kernel adds are ignored, and missing ones are zero.
fn xprt_stats(line: &str) -> Option<XprtStats> {
    let mut words = line.split_whitespace();
    if words.next()? != "rdma" {
        return None;
    }
    let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Some(XprtStats {
        local_port: next(),
        binds: next(),
        connects: next(),
        connect_seconds: next(),
        idle_seconds: next(),
        sends: next(),
        replies: next(),
        bad_xids: next(),
        outstanding: next(),
        backlog: next(),
        read_segments: next(),
        write_segments: next(),
        reply_segments: next(),
        offered_bytes: next(),
        received_bytes: next(),
        pulled_up_bytes: next(),
        fixed_up_bytes: next(),
        grown_bytes: next(),
        failed_marshals: next(),
        bad_replies: next(),
        nomsg_calls: next(),
        mrs_recycled: next(),
        mrs_orphaned: next(),
        mrs_allocated: next(),
        local_invalidations: next(),
        empty_send_ring: next(),
        replies_waiting: next(),
    })
}

/// Operations that were never used are left out.
fn op(line: &str) -> Option<Op> {
    let (name, numbers) = line.split_once(':')?;
    let mut words = numbers.split_whitespace();
    let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let op = Op {
        name: name.trim().to_string(),
        operations: next(),
        transmissions: next(),
        timeouts: next(),
        bytes_sent: next(),
        bytes_received: next(),
        queue_ms: next(),
        rtt_ms: next(),
        total_ms: next(),
        errors: next(),
    };
    (op.operations > 0 || op.transmissions > 0).then_some(op)
}

impl XprtStats {
    /// The segments of all chunks.
    pub fn segments(&self) -> i64 {
        self.read_segments
            .saturating_add(self.write_segments)
            .saturating_add(self.reply_segments)
    }
}

impl Op {
    /// Calls that were sent again, and those that are outstanding.
    pub fn sent_again(&self) -> u64 {
        self.transmissions.saturating_sub(self.operations)
    }
}

impl Mount {
    /// The value of an option, unless it is missing or has none.
    pub fn option(&self, name: &str) -> Option<&str> {
        let value = self.options.get(name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The value of an option as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.option(name)?.parse().ok()
    }

    /// Whether the mount is over RDMA.
    pub fn is_rdma(&self) -> bool {
        let proto = self.option("proto").unwrap_or("");
        proto.starts_with("rdma") || !self.xprts.is_empty()
    }

    /// The sum of a number over all connections.
    pub fn sum(&self, number: impl Fn(&XprtStats) -> i64) -> u64 {
        let sum: i64 = self.xprts.iter().map(number).fold(0, i64::saturating_add);
        u64::try_from(sum).unwrap_or(0)
    }

    /// The sum of a number over all operations.
    pub fn total(&self, number: impl Fn(&Op) -> u64) -> u64 {
        self.ops.iter().map(number).fold(0, u64::saturating_add)
    }

    /// The server as `mount` was given it, without brackets.
    pub fn server(&self) -> &str {
        let (server, _) = self.device.split_once(":/").unwrap_or((&self.device, ""));
        server.trim_start_matches('[').trim_end_matches(']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "device proc mounted on /proc with fstype proc\n\
        device 192.0.2.1:/a\\040b mounted on /mnt\\040x with fstype nfs4 statvers=1.1\n\
        \topts:\trw,vers=4.2,proto=rdma,port=20049,addr=192.0.2.1\n\
        \tage:\t34\n\
        \txprt:\trdma 0 0 1 0 3 574 573 0 14005 0 512 511 0 67108864 6710 0 3104 \
        242172 12 0 0 0 0 156 510 7 0\n\
        \txprt:\ttcp 1 2 3\n\
        \tper-op statistics\n\
        \t        NULL: 1 1 0 44 24 0 0 1 0\n\
        \t        READ: 512 513 1 100 67108864 10 20 35 2\n\
        \t       WRITE: 0 0 0 0 0 0 0 0 0\n\
        device tmpfs mounted on /run with fstype tmpfs\n\
        \tage:\t99\n";

    #[test]
    fn a_mount_has_its_options_connections_and_operations() {
        let mounts = parse(TEXT);
        let [mount] = &mounts[..] else {
            panic!("{mounts:?}");
        };
        assert_eq!(mount.device, "192.0.2.1:/a b");
        assert_eq!(mount.target, "/mnt x");
        assert_eq!(mount.age, 34);
        assert_eq!(mount.option("addr"), Some("192.0.2.1"));
        assert_eq!(mount.option("rw"), None);
        assert_eq!(mount.server(), "192.0.2.1");
        assert_eq!(mount.xprts.len(), 1);
        assert_eq!(mount.xprts[0].connects, 1);
        assert_eq!(mount.xprts[0].failed_marshals, 12);
        assert_eq!(mount.xprts[0].empty_send_ring, 7);
        assert_eq!(mount.xprts[0].local_invalidations, 510);
        assert_eq!(mount.ops.len(), 2);
        assert_eq!(mount.ops[1].name, "READ");
        assert_eq!(mount.ops[1].errors, 2);
        assert_eq!(mount.ops[1].total_ms, 35);
    }

    #[test]
    fn a_short_or_long_line_of_a_connection_is_taken_as_far_as_it_goes() {
        let text = TEXT.replace(" 156 510 7 0\n", "\n");
        assert_eq!(parse(&text)[0].xprts[0].local_invalidations, 0);
        let text = TEXT.replace(" 156 510 7 0\n", " 156 510 7 0 28 29\n");
        assert_eq!(parse(&text)[0].xprts[0].empty_send_ring, 7);
    }
}
