// SPDX-License-Identifier: GPL-2.0

//! What holds for the text of a file under `/sys/kernel/debug/rpcrdma`.

use core::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use kernel::sched;

use crate::bindings::books;

/// The table of all names.
const TABLE: &str = include_str!("../../../../../Documentation/operating.rst");

/// Values that are no numbers, and those that are yes or no.
const TEXTS: [&str; 8] = [
    "netid",
    "peer",
    "source",
    "device",
    "state",
    "closed_by",
    "closed_why",
    "last_connect_error",
];
const FLAGS: [&str; 3] = ["admitted", "remote_invalidation", "pulled_replies"];

/// What a client knows while it has a connection.
const OF_CONNECTION: [&str; 10] = [
    "source",
    "device",
    "device_port",
    "inline_send_bytes",
    "inline_recv_bytes",
    "remote_invalidation",
    "pulled_replies",
    "credits_granted",
    "receives_posted",
    "mrs_used",
];

/// What never decreases. A message counts as a Call until a thread has looked at it.
const COUNTERS: [&str; 20] = [
    "connects",
    "failed_connects",
    "calls_inline",
    "calls_read",
    "calls_write",
    "calls_reply_chunk",
    "calls_with_read_chunks",
    "replies_inline",
    "replies_write",
    "replies_pulled",
    "inline_bytes",
    "read_bytes",
    "written_bytes",
    "pulled_bytes",
    "retransmissions",
    "mr_waits",
    "send_queue_waits",
    "backchannel_calls",
    "send_backlog_waits",
    "stalls",
];

/// What nothing is in use of at rest.
const AT_REST: [&str; 10] = [
    "credits_used",
    "credits_waiting",
    "mrs_used",
    "calls_in_flight",
    "oldest_call_ms",
    "send_backlog",
    "reads_queued",
    "pulled_pages",
    "exposed_replies",
    "exposed_pages",
];

/// What the world allows.
#[derive(Clone, Copy, Default)]
struct Limits {
    slots: u64,
    requests: u64,
    threads: u64,
}

thread_local! {
    static LIMITS: Cell<Limits> = const { Cell::new(Limits { slots: 0, requests: 0, threads: 0 }) };
}

/// Begins a run with these tunables, which are not the defaults, and so many nfsd threads.
pub(super) fn begin(tunables: &[(&str, u32)], threads: usize) {
    let tunable = |name: &str| {
        let mut tunables = tunables.iter().rev();
        let found = tunables.find(|(file, _)| *file == name);
        found.map_or(128, |(_, value)| u64::from(*value))
    };
    LIMITS.set(Limits {
        slots: tunable("sunrpc/rdma_slot_table_entries"),
        requests: tunable("sunrpc/svc_rdma/max_requests"),
        threads: threads as u64,
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

impl End {
    pub(super) fn dir(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The documented names.
    fn names(self) -> BTreeSet<&'static str> {
        let (_, table) = TABLE.split_once("\nName  ").expect("the table of names");
        let rows = table.lines().skip(1).take_while(|line| !line.is_empty());
        let names = rows.filter_map(|row| {
            let (name, rest) = row.strip_prefix("``")?.split_once("``")?;
            let end = rest.trim_start();
            (end.starts_with(self.dir()) || end.starts_with("both")).then_some(name)
        });
        names.collect()
    }
}

/// The lines of a file.
#[derive(Clone)]
pub(super) struct File {
    pub(super) end: End,
    pub(super) name: String,
    values: BTreeMap<String, String>,
}

impl File {
    pub(super) fn parse(end: End, name: &str, text: &str) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for line in text.lines() {
            let (name, value) = line
                .split_once(": ")
                .ok_or_else(|| format!("the line {line:?} has no name"))?;
            if value.is_empty() || values.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(format!("{name} has no value, or two"));
            }
        }
        let names: BTreeSet<&str> = values.keys().map(String::as_str).collect();
        let others: Vec<_> = names.symmetric_difference(&end.names()).copied().collect();
        if !others.is_empty() || !text.ends_with('\n') {
            return Err(format!("other names than documented: {others:?}"));
        }
        let file = Self {
            end,
            name: name.to_owned(),
            values,
        };
        file.check().map(|()| file)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// A number; 0 for `-`.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub(super) fn is_known(&self, name: &str) -> bool {
        self.text(name) != "-"
    }

    /// What holds at any time.
    fn check(&self) -> Result<(), String> {
        for (name, value) in &self.values {
            let name = name.as_str();
            let fits = match name {
                _ if value == "-" => true,
                "netid" => ["rdma", "rdma6"].contains(&value.as_str()),
                "peer" | "source" => value.parse::<SocketAddr>().is_ok(),
                "closed_by" => ["peer", "local", "device"].contains(&value.as_str()),
                "state" => true,
                _ if FLAGS.contains(&name) => ["yes", "no"].contains(&value.as_str()),
                _ if TEXTS.contains(&name) => value.trim() == value,
                _ => value.parse::<u64>().is_ok(),
            };
            if !fits {
                return Err(format!("{name} is {value:?}"));
            }
        }
        let age = sched::now() / 1_000_000 + 1;
        for name in ["state_ms", "oldest_call_ms"] {
            if self.number(name) > age {
                return Err(format!("{name} is {}, at {age}", self.text(name)));
            }
        }
        if self.is_known("closed_by") != self.is_known("closed_why") {
            return Err("one of closed_by and closed_why is not known".into());
        }
        let limits = LIMITS.get();
        let at_most: &[(&str, u64)] = match self.end {
            End::Client => &[
                ("credits_used", limits.slots),
                ("credits_granted", limits.slots),
                ("calls_in_flight", limits.slots),
            ],
            End::Server => &[
                ("credits_granted", limits.requests),
                ("calls_in_flight", limits.threads),
            ],
        };
        for (name, most) in at_most {
            if self.number(name) > *most {
                return Err(format!("{name} is {}, of {most}", self.text(name)));
            }
        }
        match self.end {
            End::Client => self.check_client(),
            End::Server => self.check_server(),
        }
    }

    fn check_client(&self) -> Result<(), String> {
        let states = ["connecting", "connected", "closing", "closed"];
        if !states.contains(&self.text("state")) {
            return Err(format!("the state is {:?}", self.text("state")));
        }
        let connected = self.is_known("device");
        let other = OF_CONNECTION.map(|name| (name, self.is_known(name)));
        if let Some((name, _)) = other.iter().find(|(_, known)| *known != connected) {
            return Err(format!("only one of device and {name} is known"));
        }
        if connected && self.number("credits_granted") == 0 {
            return Err("no credit is granted".into());
        }
        if (self.number("calls_in_flight") > 0) != self.is_known("oldest_call_ms") {
            return Err("only one of Calls in flight and the oldest of them is known".into());
        }
        Ok(())
    }

    fn check_server(&self) -> Result<(), String> {
        let states = ["accepting", "connected", "closing"];
        if !states.contains(&self.text("state")) {
            return Err(format!("the state is {:?}", self.text("state")));
        }
        for name in ["netid", "peer", "source", "device", "device_port"] {
            if !self.is_known(name) {
                return Err(format!("{name} is not known"));
            }
        }
        Ok(())
    }

    /// Nothing has happened while the file was read: all is as the stand-ins know it.
    pub(super) fn check_book(&self) -> Result<(), String> {
        let book = match self.end {
            End::Client => books::of_client(&self.name),
            End::Server => books::of_server(&self.name),
        };
        match book.iter().find(|(name, value)| self.text(name) != value) {
            Some((name, value)) => Err(format!("{name} is {}, not {value}", self.text(name))),
            None => Ok(()),
        }
    }

    /// Fewer than before.
    pub(super) fn check_later(&self, before: &Self) -> Result<(), String> {
        let less = |name: &&&str| self.number(name) < before.number(name);
        match COUNTERS.iter().find(less) {
            Some(name) => Err(format!("{name} is less than before")),
            None => Ok(()),
        }
    }

    pub(super) fn check_rest(&self) -> Result<(), String> {
        let used = |name: &&&str| self.number(name) > 0;
        match AT_REST.iter().find(used) {
            Some(name) => Err(format!("{name} is {}", self.text(name))),
            None => Ok(()),
        }
    }

    pub(super) fn fail(&self, why: &str) -> ! {
        sched::fail(format_args!("{}/{}: {why}", self.end.dir(), self.name))
    }
}

/// What both ends of a connection say, if there were no faults.
pub(super) fn pair(client: &File, server: &File) -> Result<(), String> {
    let both = |name: &'static str| (client.number(name), server.number(name), name);
    let sum = |file: &File, names: &[&str]| names.iter().map(|name| file.number(name)).sum();
    let answers: u64 = sum(
        server,
        &["replies_inline", "replies_write", "replies_pulled"],
    );
    let asked: u64 = sum(server, &["calls", "backchannel_calls"]);
    let equal = [
        both("written_bytes"),
        both("read_bytes"),
        both("replies_pulled"),
        both("backchannel_calls"),
        both("inline_bytes"),
        (
            client.number("calls_read"),
            server.number("calls_with_read_chunks"),
            "Calls with a Read chunk",
        ),
        (
            client.number("inline_send_bytes"),
            server.number("inline_recv_bytes"),
            "the length of messages to the server",
        ),
        (
            client.number("inline_recv_bytes"),
            server.number("inline_send_bytes"),
            "the length of messages to the client",
        ),
        (answers, asked, "answers to Calls"),
        (client.number("connects"), 1, "connections"),
        (client.number("failed_connects"), 0, "failed attempts"),
        (client.number("retransmissions"), 0, "retransmissions"),
        (server.number("stalls"), 0, "stalls"),
    ];
    if let Some((one, other, what)) = equal.iter().find(|(one, other, _)| one != other) {
        return Err(format!("{what}: {one} and {other}"));
    }
    for name in ["remote_invalidation", "pulled_replies"] {
        if client.text(name) != server.text(name) {
            return Err(format!("only one end has {name}"));
        }
    }
    if (client.text("peer"), client.text("source")) != (server.text("source"), server.text("peer"))
    {
        return Err("the ends have other addresses".into());
    }
    let (pulled, bytes) = (
        client.number("replies_pulled"),
        client.number("pulled_bytes"),
    );
    if client.number("credits_granted") > server.number("credits_granted")
        || (pulled == 0) != (bytes == 0)
    {
        return Err("credits or pulled Replies".into());
    }
    Ok(())
}
