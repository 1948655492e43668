// SPDX-License-Identifier: GPL-2.0

//! Each rule of `nfsrdma doctor` finds what it is for, and nothing on a machine without faults.

mod bed;

use std::collections::BTreeSet;

use bed::{none, told, Bed};
use nfsrdma::{doctor::CHAPTERS, finding::Level};

/// What is done to a machine, and what a rule says of it.
struct Trial {
    rule: &'static str,
    change: fn(&mut Bed),
    level: Level,
    says: &'static str,
    next: &'static str,
}

/// nftables with a chain that drops.
const FILTER: &str = "table inet filter {\n chain input {\n  type filter hook input priority 0; \
    policy drop;\n  tcp dport 2049 accept\n }\n}\n";

const TRIALS: &[Trial] = &[
    Trial {
        rule: "module",
        change: |_| {},
        level: Level::Good,
        says: "the module in Rust, version 0.1.0",
        next: "",
    },
    Trial {
        rule: "module",
        change: |bed| {
            bed.remove("/proc/sys/sunrpc/svc_rdma/pulled_replies");
            bed.remove("/sys/module/rpcrdma/version");
        },
        level: Level::Limit,
        says: "the C module",
        next: "rpcrdma-check",
    },
    Trial {
        rule: "module",
        change: |bed| {
            bed.remove("/sys/module/rpcrdma");
            bed.remove("/proc/sys/sunrpc/svc_rdma");
        },
        level: Level::Fault,
        says: "no rpcrdma module is loaded",
        next: "modprobe rpcrdma",
    },
    Trial {
        rule: "foreign-core",
        change: |bed| bed.file("/sys/module/ib_core/taint", "OE\n"),
        level: Level::Fault,
        says: "ib_core was not built with this kernel",
        next: "vendor",
    },
    Trial {
        rule: "messages",
        change: |bed| {
            bed.log("cannot listen on 192.0.2.1:20049: no RDMA device (ENODEV); retrying")
        },
        level: Level::Fault,
        says: "cannot listen on 192.0.2.1:20049",
        next: "portlist",
    },
    Trial {
        rule: "messages",
        change: |bed| bed.log("something that a later version says"),
        level: Level::Fault,
        says: "something that a later version says",
        next: "Messages",
    },
    Trial {
        rule: "messages",
        change: |bed| bed.log("cannot connect to 192.0.2.1:20049: no RDMA device of this host"),
        level: Level::Fault,
        says: "no RDMA device of this host",
        next: "rdma link lists",
    },
    Trial {
        rule: "devices",
        change: |_| {},
        level: Level::Good,
        says: "rxe0 port 1 on veth0: RoCE",
        next: "",
    },
    Trial {
        rule: "devices",
        change: |bed| bed.remove("/sys/class/infiniband"),
        level: Level::Fault,
        says: "no RDMA device",
        next: "rdma link",
    },
    Trial {
        rule: "ports",
        change: |bed| {
            let port = "/sys/class/infiniband/rxe0/ports/1";
            bed.file(&format!("{port}/state"), "2: INIT\n");
            bed.file(&format!("{port}/link_layer"), "InfiniBand\n");
        },
        level: Level::Fault,
        says: "rxe0 port 1 is INIT, its link LinkUp",
        next: "subnet manager",
    },
    Trial {
        rule: "software-device",
        change: |_| {},
        level: Level::Note,
        says: "RDMA in software",
        next: "",
    },
    Trial {
        rule: "iwarp",
        change: |bed| bed.file("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n"),
        level: Level::Note,
        says: "no Remote Invalidation",
        next: "",
    },
    Trial {
        rule: "mtu",
        change: |bed| bed.file("/sys/class/net/veth0/mtu", "2200\n"),
        level: Level::Limit,
        says: "an MTU of 2200 bytes, so packets of RoCE carry 2048 bytes",
        next: "4200",
    },
    Trial {
        rule: "mtu",
        change: |_| {},
        level: Level::Note,
        says: "ping -M do -s 4172",
        next: "",
    },
    Trial {
        rule: "filter",
        change: |bed| bed.file("/commands/nft list ruleset", FILTER),
        level: Level::Limit,
        says: "no rule accepts UDP 4791",
        next: "udp dport 4791 accept",
    },
    Trial {
        rule: "iptables",
        change: |bed| bed.file("/proc/net/ip_tables_names", "filter\n"),
        level: Level::Note,
        says: "iptables filters packets",
        next: "",
    },
    Trial {
        rule: "listeners",
        change: |bed| bed.file("/proc/fs/nfsd/portlist", "tcp 2049\n"),
        level: Level::Limit,
        says: "does not listen for RDMA",
        next: "rdma 20049",
    },
    Trial {
        rule: "listeners",
        change: |bed| bed.file("/proc/fs/nfsd/portlist", "rdma 4444\n"),
        level: Level::Note,
        says: "port=4444",
        next: "",
    },
    Trial {
        rule: "listeners",
        change: |bed| bed.remove("/sys/class/infiniband"),
        level: Level::Fault,
        says: "listens for RDMA, but there is no RDMA device",
        next: "driver",
    },
    Trial {
        rule: "threads",
        change: |bed| bed.file("/proc/fs/nfsd/threads", "2\n"),
        level: Level::Limit,
        says: "nfsd has 2 threads",
        next: "threads",
    },
    Trial {
        rule: "threads",
        change: |bed| bed.file("/proc/fs/nfsd/threads", "0\n"),
        level: Level::Fault,
        says: "has no threads",
        next: "nfs-server",
    },
    Trial {
        rule: "rpcbind",
        change: |bed| {
            bed.file("/proc/net/tcp", "  sl local_address\n");
            bed.file("/proc/net/tcp6", "");
        },
        level: Level::Limit,
        says: "rpcbind does not listen",
        next: "rpcbind",
    },
    Trial {
        rule: "counters",
        change: |bed| bed.sysctl("svc_rdma/rdma_stat_stalled", 3),
        level: Level::Fault,
        says: "3 connections were closed because nothing completed",
        next: "MTU",
    },
    Trial {
        rule: "counters",
        change: |bed| bed.sysctl("svc_rdma/rdma_stat_held_back", 500),
        level: Level::Limit,
        says: "500 Calls waited for pages",
        next: "max_pulled_pages",
    },
    Trial {
        rule: "no-effect",
        change: |bed| bed.sysctl("rdma_memreg_strategy", 6),
        level: Level::Note,
        says: "rdma_memreg_strategy is 6: it has no effect",
        next: "",
    },
    Trial {
        rule: "client-memory",
        change: |bed| bed.sysctl("rdma_max_inline_read", 262_144),
        level: Level::Limit,
        says: "each connection of the client takes 44 MiB",
        next: "rdma_max_inline_read",
    },
    Trial {
        rule: "server-memory",
        change: |bed| bed.sysctl("svc_rdma/max_requests", 16_384),
        level: Level::Limit,
        says: "each connection of the server takes",
        next: "max_requests",
    },
    Trial {
        rule: "pages-of-calls",
        change: |bed| bed.sysctl("svc_rdma/max_pulled_pages", 1_000_000),
        level: Level::Limit,
        says: "max_pulled_pages allows 3906 MiB",
        next: "max_pulled_pages=",
    },
    Trial {
        rule: "reply-size",
        change: |bed| bed.sysctl("svc_rdma/max_reply_size", 1024),
        level: Level::Limit,
        says: "sends 1024 bytes inline, and takes 4096",
        next: "max_reply_size to 0",
    },
    Trial {
        rule: "slots-without-credits",
        change: |bed| bed.sysctl("rdma_slot_table_entries", 1024),
        level: Level::Note,
        says: "rdma_slot_table_entries is 1024",
        next: "",
    },
    Trial {
        rule: "short-stall",
        change: |bed| bed.sysctl("svc_rdma/stall_seconds", 5),
        level: Level::Limit,
        says: "stall_seconds is 5",
        next: "stall_seconds=90",
    },
    Trial {
        rule: "turned-off",
        change: |bed| bed.sysctl("svc_rdma/remote_invalidation", 0),
        level: Level::Limit,
        says: "sunrpc.svc_rdma.remote_invalidation is off",
        next: "remote_invalidation=1",
    },
];

#[test]
fn each_rule_of_doctor_finds_what_it_is_for() {
    for trial in TRIALS {
        let mut bed = Bed::new();
        (trial.change)(&mut bed);
        let found = bed.examined();
        let finding = told(&found, trial.rule, trial.says, trial.next);
        assert_eq!(finding.level, trial.level, "{finding:#?}");
    }
}

#[test]
fn doctor_finds_no_fault_where_there_is_none() {
    let mut found = Bed::new().examined();
    found.retain(|finding| finding.level > Level::Note);
    assert_eq!(found, []);
}

#[test]
fn each_rule_of_doctor_has_a_trial() {
    let tried: BTreeSet<_> = TRIALS.iter().map(|trial| trial.rule).collect();
    let rules = CHAPTERS.iter().flat_map(|(_, rules)| rules.iter());
    assert_eq!(tried, rules.map(|rule| rule.name).collect());
}

#[test]
fn a_listener_that_has_recovered_is_no_fault() {
    let mut bed = Bed::new();
    bed.file(
        "/dev/kmsg",
        "3,1,1000000,-;rpcrdma: cannot listen on 192.0.2.1:20049: no RDMA device; retrying\n\
            6,2,2000000,-;rpcrdma: listening on 192.0.2.1:20049 again\n",
    );
    none(&bed.examined(), |finding| finding.rule == "messages");
}

#[test]
fn a_rule_of_the_filter_that_accepts_roce_is_enough() {
    let mut bed = Bed::new();
    bed.file(
        "/commands/nft list ruleset",
        &FILTER.replace("tcp dport 2049", "udp dport 4791"),
    );
    none(&bed.examined(), |finding| finding.rule == "filter");
}
