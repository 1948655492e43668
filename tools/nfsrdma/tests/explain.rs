// SPDX-License-Identifier: GPL-2.0

//! Each rule of `nfsrdma explain` finds what it is for, and nothing on a machine without faults.

mod bed;

use std::collections::BTreeSet;

use bed::{none, told, Bed, ADDRESS, CLIENT, SERVER, XPRT};
use nfsrdma::{
    explain::{AGREED, FAULTS, LIMITS, SERVED},
    finding::Level,
};

/// What is done to a machine, and what a rule says of it.
struct Trial {
    rule: &'static str,
    subject: &'static str,
    change: fn(&mut Bed),
    says: &'static str,
    next: &'static str,
}

const CONNECTED: &str = "state= CONNECTED   BOUND       \n";

fn disconnect(bed: &mut Bed) {
    bed.file(&format!("{XPRT}/xprt_state"), "state= BOUND \n");
    bed.file(&format!("{XPRT}/xprt_info"), "<closed>\n");
    bed.detail(CLIENT, "state", "closed");
}

const TRIALS: &[Trial] = &[
    Trial {
        rule: "credits-used-up",
        subject: "/mnt",
        change: |bed| {
            bed.detail(CLIENT, "credits_used", "128");
            bed.detail(CLIENT, "credits_waiting", "17");
        },
        says: "all 128 credits are in use, and 17 Calls wait",
        next: "max_requests",
    },
    Trial {
        rule: "fewer-credits-than-slots",
        subject: "/mnt",
        change: |bed| bed.detail(CLIENT, "credits_granted", "32"),
        says: "the server grants 32 credits, the client could use 128",
        next: "max_requests to 128",
    },
    Trial {
        rule: "calls-wait-for-slots",
        subject: "/mnt",
        change: |bed| {
            bed.number(6, 100_000);
            bed.number(10, 250_000);
        },
        says: "on average 2.5 Calls waited",
        next: "nconnect",
    },
    Trial {
        rule: "waits-for-regions",
        subject: "/mnt",
        change: |bed| {
            bed.number(19, 90);
        },
        says: "90 of 154 Calls could not be marshaled",
        next: "rdma_slot_table_entries",
    },
    Trial {
        rule: "waits-for-sends",
        subject: "/mnt",
        change: |bed| bed.number(26, 100),
        says: "100 of 154 Calls waited for the Send Queue",
        next: "interrupts",
    },
    Trial {
        rule: "small-transfers",
        subject: "/mnt",
        change: |bed| bed.edit("/proc/self/mountstats", "wsize=1048576", "wsize=262144"),
        says: "READs and WRITEs carry at most 256 KiB",
        next: "max_block_size",
    },
    Trial {
        rule: "small-inline",
        subject: "/mnt",
        change: |bed| bed.detail(CLIENT, "inline_send_bytes", "1024"),
        says: "messages sent inline have at most 1024 bytes, although this client allows 4096",
        next: "max_req_size",
    },
    Trial {
        rule: "local-invalidations",
        subject: "/mnt",
        change: |bed| {
            bed.detail(CLIENT, "remote_invalidation", "no");
            bed.number(11, 2000);
            bed.number(12, 2000);
            bed.number(25, 4000);
        },
        says: "the client itself invalidated 4000 memory regions",
        next: "remote_invalidation to 1 on the server",
    },
    Trial {
        rule: "time-in-queue",
        subject: "/mnt",
        change: |bed| bed.op("READ", "1000 1000 0 1 1 30000 10000 40000 0"),
        says: "a READ takes 40.0 ms, of which it waits 30.0 ms at this client",
        next: "slots",
    },
    Trial {
        rule: "slow-server",
        subject: "/mnt",
        change: |bed| bed.op("WRITE", "1000 1000 0 1 1 10 900000 900010 0"),
        says: "the Reply to a WRITE comes after 900 ms",
        next: "disks",
    },
    Trial {
        rule: "mtu",
        subject: "/mnt",
        change: |bed| bed.file("/sys/class/net/veth0/mtu", "1500\n"),
        says: "an MTU of 1500 bytes, so packets of RoCE carry 1024 bytes",
        next: "4200",
    },
    Trial {
        rule: "no-connection",
        subject: "/mnt",
        change: |bed| {
            bed.remove(XPRT);
            bed.remove(CLIENT);
        },
        says: "no connection over RDMA leads to the mount's server",
        next: "nsenter",
    },
    Trial {
        rule: "no-device",
        subject: "/mnt",
        change: |bed| bed.remove("/sys/class/infiniband/rxe0"),
        says: "no RDMA device",
        next: "rdma link",
    },
    Trial {
        rule: "port-down",
        subject: "/mnt",
        change: |bed| {
            bed.file("/sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n");
            bed.file(
                "/sys/class/infiniband/rxe0/ports/1/phys_state",
                "3: Disabled\n",
            );
        },
        says: "rxe0 port 1 is DOWN, its link Disabled",
        next: "cable",
    },
    Trial {
        rule: "last-connect-error",
        subject: "/mnt",
        change: |bed| {
            disconnect(bed);
            bed.detail(CLIENT, "closed_by", "peer");
            bed.detail(CLIENT, "closed_why", "peer disconnected");
            bed.detail(
                CLIENT,
                "last_connect_error",
                "refused: no NFS server listens for RDMA on this port",
            );
            bed.detail(CLIENT, "failed_connects", "4");
        },
        says: "4 attempts to connect failed, the last: refused: no NFS server listens",
        next: "portlist",
    },
    Trial {
        rule: "last-connect-error",
        subject: "/mnt",
        change: |bed| {
            disconnect(bed);
            bed.detail(CLIENT, "state", "connecting");
            bed.detail(
                CLIENT,
                "last_connect_error",
                "no RDMA host answers at this address",
            );
        },
        says: "no RDMA host answers at this address",
        next: "4791",
    },
    Trial {
        rule: "not-connected",
        subject: "/mnt",
        change: |bed| {
            disconnect(bed);
            bed.detail(CLIENT, "closed_by", "peer");
            bed.detail(CLIENT, "closed_why", "peer disconnected");
        },
        says: "closed, closed by the peer: peer disconnected",
        next: "the peer has the reason",
    },
    Trial {
        rule: "not-connected",
        subject: "/mnt",
        change: |bed| {
            bed.remove("/sys/kernel/debug/rpcrdma");
            bed.file(&format!("{XPRT}/xprt_info"), "<closed>\n");
            bed.file(
                &format!("{XPRT}/xprt_state"),
                "state=LOCKED  CONNECTING  BOUND\n",
            );
        },
        says: "an attempt to connect is under way",
        next: "portlist",
    },
    Trial {
        rule: "not-connected",
        subject: "/mnt",
        change: |bed| {
            bed.remove("/sys/kernel/debug/rpcrdma");
            bed.file(&format!("{XPRT}/xprt_state"), "state= BOUND  OFFLINE\n");
        },
        says: "taken off line",
        next: "online",
    },
    Trial {
        rule: "reconnected",
        subject: "/mnt",
        change: |bed| {
            bed.detail(CLIENT, "connects", "3");
            let why = "completion: transport retry counter exceeded";
            bed.detail(CLIENT, "closed_by", "device");
            bed.detail(CLIENT, "closed_why", why);
        },
        says: "connected 3 times, last 4.3 s ago; before, closed by the device: completion",
        next: "packets were lost",
    },
    Trial {
        rule: "reconnected",
        subject: "/mnt",
        change: |bed| {
            bed.remove("/sys/kernel/debug/rpcrdma");
            bed.number(3, 5);
        },
        says: "lost and made again: 5 times",
        next: "xprtrdma_disconnect",
    },
    Trial {
        rule: "call-hangs",
        subject: "/mnt",
        change: |bed| {
            bed.detail(CLIENT, "oldest_call_ms", "45000");
            bed.detail(CLIENT, "calls_in_flight", "3");
        },
        says: "3 Calls have no Reply, the oldest for 45 s",
        next: "look at the server",
    },
    Trial {
        rule: "long-packets",
        subject: "/mnt",
        change: |bed| {
            bed.detail(CLIENT, "oldest_call_ms", "45000");
            bed.file("/sys/class/net/veth0/mtu", "9000\n");
        },
        says: "veth0 has an MTU of 9000; if a switch between takes less",
        next: "ping -M do -s 8972",
    },
    Trial {
        rule: "long-packets",
        subject: "/mnt",
        change: |bed| {
            bed.detail(
                CLIENT,
                "closed_why",
                "completion: transport retry counter exceeded",
            );
            bed.detail(CLIENT, "connects", "2");
        },
        says: "veth0 has an MTU of 4200",
        next: "smallest MTU of the path",
    },
    Trial {
        rule: "bad-replies",
        subject: "/mnt",
        change: |bed| bed.number(20, 2),
        says: "2 Replies were refused by the server or malformed",
        next: "trace events",
    },
    Trial {
        rule: "timeouts",
        subject: "/mnt",
        change: |bed| bed.op("READ", "1000 1003 3 1 1 1 1 1 0"),
        says: "3 RPCs timed out, most of them READ",
        next: "timeo",
    },
    Trial {
        rule: "retransmissions",
        subject: "/mnt",
        change: |bed| bed.op("READ", "1000 1003 0 1 1 1 1 1 0"),
        says: "3 Calls were sent again",
        next: "loss of a connection",
    },
    Trial {
        rule: "errors-of-operations",
        subject: "/mnt",
        change: |bed| bed.op("WRITE", "1000 1000 0 1 1 1 1 1 9"),
        says: "9 of 1000 WRITE failed",
        next: "disk full",
    },
    Trial {
        rule: "log",
        subject: "/mnt",
        change: |bed| bed.log("mlx5_0 cannot carry NFS: it lacks FRWR"),
        says: "mlx5_0 cannot carry NFS: it lacks FRWR",
        next: "another device",
    },
    Trial {
        rule: "log",
        subject: "192.0.2.77",
        change: |bed| bed.log("cannot connect to 192.0.2.77:20049: refused: no NFS server listens"),
        says: "cannot connect to 192.0.2.77:20049: refused",
        next: "echo 'rdma 20049'",
    },
    Trial {
        rule: "log",
        subject: "/mnt",
        change: |bed| {
            bed.log("192.168.20.1:20049 has refused the chunks of nfs v4 READ (ERR_CHUNK): try");
        },
        says: "has refused the chunks of nfs v4 READ",
        next: "smaller rsize",
    },
    Trial {
        rule: "client-ended",
        subject: ADDRESS,
        change: |bed| {
            let ended = "7\t192.168.20.1:4711\t12\tlocal\tstalled Send Queue\n\
                8\t192.0.2.9:1\t1\tpeer\tx\n";
            bed.file("/sys/kernel/debug/rpcrdma/server/ended", ended);
        },
        says: "connection 7 of client 192.168.20.1:4711 ended 12 s ago, by this end: stalled",
        next: "hangs",
    },
    Trial {
        rule: "client-ended",
        subject: ADDRESS,
        change: |bed| {
            let ended = "7\t192.168.20.1:4711\t12\tlocal\tprotocol error: credits exceeded\n";
            bed.file("/sys/kernel/debug/rpcrdma/server/ended", ended);
        },
        says: "by this end: protocol error: credits exceeded",
        next: "more Calls than it may",
    },
    Trial {
        rule: "client-closing",
        subject: ADDRESS,
        change: |bed| {
            bed.detail(SERVER, "state", "closing");
            bed.detail(SERVER, "closed_by", "device");
            bed.detail(SERVER, "closed_why", "device removed");
        },
        says: "closing, closed by the device: device removed",
        next: "rdma link",
    },
    Trial {
        rule: "client-send-backlog",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "send_backlog", "5"),
        says: "5 messages wait for the Send Queue",
        next: "max_requests",
    },
    Trial {
        rule: "client-stalls",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "stalls", "2"),
        says: "2 times nothing completed on its Send Queue for 30 s",
        next: "MTU",
    },
    Trial {
        rule: "client-waits",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "oldest_call_ms", "12000"),
        says: "a Call has waited for 12 s for its Reply",
        next: "nfsd threads",
    },
    Trial {
        rule: "client-reads-queued",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "reads_queued", "5"),
        says: "5 WRITEs wait until others are read",
        next: "max_pulled_pages",
    },
    Trial {
        rule: "client-uses-all-credits",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "calls_in_flight", "128"),
        says: "it has 128 Calls outstanding, of 128",
        next: "threads",
    },
    Trial {
        rule: "client-not-admitted",
        subject: ADDRESS,
        change: |bed| {
            bed.detail(SERVER, "admitted", "no");
            bed.detail(SERVER, "state_ms", "61000");
        },
        says: "no export has accepted this client in 61 s",
        next: "exportfs",
    },
    Trial {
        rule: "client-exposed-replies",
        subject: ADDRESS,
        change: |bed| bed.detail(SERVER, "exposed_replies", "16"),
        says: "16 Replies wait to be pulled",
        next: "max_exposed_replies",
    },
];

#[test]
fn each_rule_of_explain_finds_what_it_is_for() {
    for trial in TRIALS {
        let mut bed = Bed::new();
        (trial.change)(&mut bed);
        let found = bed.explained(trial.subject);
        told(&found, trial.rule, trial.says, trial.next);
    }
}

#[test]
fn explain_finds_no_fault_where_there_is_none() {
    for subject in ["/mnt", ADDRESS] {
        let explanation = Bed::new().explain(subject).unwrap();
        assert_eq!(explanation.limits, [], "{subject}");
        assert_eq!(explanation.faults, [], "{subject}");
    }
}

#[test]
fn each_rule_of_explain_has_a_trial() {
    let tried: BTreeSet<_> = TRIALS.iter().map(|trial| trial.rule).collect();
    let rules = LIMITS
        .iter()
        .chain(FAULTS)
        .chain(SERVED)
        .map(|rule| rule.name);
    assert_eq!(tried, rules.collect());
}

#[test]
fn what_the_log_explains_is_told_once() {
    let mut bed = Bed::without_debugfs();
    bed.file(&format!("{XPRT}/xprt_info"), "<closed>\n");
    bed.file(&format!("{XPRT}/xprt_state"), "state= BOUND \n");
    assert_eq!(bed.explain("/mnt").unwrap().faults[0].rule, "not-connected");
    bed.log("cannot connect to 192.168.20.1:20049: refused: no NFS server listens");
    let explanation = bed.explain("/mnt").unwrap();
    let rules: Vec<_> = explanation.faults.iter().map(|each| each.rule).collect();
    assert_eq!(rules, ["log"]);
}

#[test]
fn what_is_idle_or_was_unmounted_is_no_fault() {
    let mut bed = Bed::new();
    disconnect(&mut bed);
    bed.detail(CLIENT, "closed_by", "local");
    bed.detail(CLIENT, "closed_why", "idle");
    bed.detail(CLIENT, "failed_connects", "1");
    bed.detail(CLIENT, "last_connect_error", "timed out");
    let ended = "7\t192.168.20.1:4711\t12\tpeer\tpeer disconnected\n";
    bed.file("/sys/kernel/debug/rpcrdma/server/ended", ended);
    for subject in ["/mnt", ADDRESS] {
        none(&bed.explained(subject), |each| each.level == Level::Fault);
    }
    told(&bed.explained(ADDRESS), "client-ended", "", "");
}

#[test]
fn what_was_agreed_is_told() {
    let found = Bed::new().explained("/mnt");
    let says = |rule: &str, words: &str| {
        told(&found, rule, words, "");
    };
    says(
        "mount",
        "192.168.20.1:/export on /mnt: NFSv4.2 over rdma, READs to 1 MiB",
    );
    says(
        "connection",
        "connected for 4.3 s, from 192.168.20.1:41902, device rxe0 port 1",
    );
    says(
        "sizes",
        "messages of at most 4 KiB are sent inline, and of at most 4 KiB received",
    );
    says("credits", "128 Calls may be outstanding, 0 are");
    says("invalidation", "the Reply invalidates the largest region");
    says("pulled-replies", "agreed");
    says("security", "neither encrypted");
    let told: BTreeSet<_> = found.iter().map(|finding| finding.rule).collect();
    assert_eq!(told, AGREED.iter().map(|rule| rule.name).collect());
}

#[test]
fn a_subject_may_be_a_directory_a_server_or_a_client() {
    let bed = Bed::new();
    for subject in ["/mnt", "/mnt/some/directory", ADDRESS, "192.168.20.1:20049"] {
        let agreed = bed.explain(subject).unwrap().agreed;
        told(&agreed, "connection", "connection 2 to", "");
    }
    let agreed = bed.explain("192.168.20.1:41902").unwrap().agreed;
    told(&agreed, "connection", "connection 1 of client", "");
}

#[test]
fn another_subject_is_an_error_that_names_those_that_exist() {
    let bed = Bed::new();
    let error = bed.explain("/home").unwrap_err();
    assert_eq!(error.to_string(), "/home is not on a mount over RDMA");
    assert_eq!(error.next(), "name one of: /mnt");
    let error = bed.explain("192.0.2.77").unwrap_err();
    assert!(error.to_string().contains("no connection with 192.0.2.77"));
    assert!(
        error.next().contains("192.168.20.1:20049"),
        "{}",
        error.next()
    );
}

#[test]
fn messages_about_other_peers_and_past_outages_are_left_out() {
    let mut bed = Bed::new();
    for other in ["192.0.2.77:20049", "192.168.20.1:20050"] {
        bed.log(&format!("cannot connect to {other}: no answer: is it up"));
        assert_eq!(bed.explain("/mnt").unwrap().faults, []);
    }
    let found = bed.explain("192.168.20.1:20050").unwrap();
    assert_eq!(
        (found.agreed.len(), found.faults.len()),
        (0, 1),
        "{found:#?}"
    );
    let outage = "cannot connect to 192.168.20.1:20049: no answer: is it up";
    bed.log(outage);
    assert_eq!(bed.explain("/mnt").unwrap().faults.len(), 1);
    let log = format!(
        "5,900,20000000,-;rpcrdma: {outage}\n\
            5,901,21000000,-;rpcrdma: connected to 192.168.20.1:20049\n"
    );
    bed.file("/dev/kmsg", &log);
    assert_eq!(bed.explain("/mnt").unwrap().faults, []);
}

#[test]
fn names_that_no_rule_knows_are_shown() {
    let mut bed = Bed::new();
    bed.edit(CLIENT, "netid:", "of_a_later_version: 5\nnetid:");
    let explanation = bed.explain("/mnt").unwrap();
    let mut out = anstream::StripStream::new(Vec::new());
    nfsrdma::show::findings::explanation(&mut out, &explanation, &[]).unwrap();
    let text = String::from_utf8(out.into_inner()).unwrap();
    assert!(text.contains("of_a_later_version 5, netid rdma"), "{text}");
}

#[test]
fn without_debugfs_the_rest_is_told_and_what_is_missing() {
    let bed = Bed::without_debugfs();
    let found = bed.explained("/mnt");
    told(&found, "credits", "128 Calls may be outstanding", "");
    let missing = bed.snapshot().missing;
    assert!(
        missing
            .iter()
            .any(|each| each.what.starts_with("sizes, credits")),
        "{missing:?}"
    );
}

#[test]
fn the_states_of_sysfs_are_used_without_debugfs() {
    let mut bed = Bed::without_debugfs();
    let all = bed.snapshot();
    assert_eq!(all.connections[1].state(), "connected");
    bed.edit(
        &format!("{XPRT}/xprt_state"),
        CONNECTED.trim(),
        "state=CLOSED",
    );
    assert_eq!(bed.snapshot().connections[1].state(), "closed");
}
