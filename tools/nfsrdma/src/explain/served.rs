// SPDX-License-Identifier: GPL-2.0

//! What limits a client of this server, and what went wrong with it.

use super::{agreed::seconds, causes, Case};
use crate::{
    finding::{Finding, Rule},
    model::connection::Connection,
};

/// The rules.
pub const RULES: &[Rule<Case>] = &[
    Rule {
        name: "client-ended",
        check: client_ended,
    },
    Rule {
        name: "client-stalls",
        check: client_stalls,
    },
    Rule {
        name: "client-send-backlog",
        check: client_send_backlog,
    },
    Rule {
        name: "client-uses-all-credits",
        check: client_uses_all_credits,
    },
    Rule {
        name: "client-not-admitted",
        check: client_not_admitted,
    },
    Rule {
        name: "client-exposed-replies",
        check: client_exposed_replies,
    },
    Rule {
        name: "client-call-waits",
        check: client_call_waits,
    },
];

fn each(case: &Case, rule: impl Fn(&Connection) -> Option<Finding>) -> Vec<Finding> {
    case.served.iter().filter_map(rule).collect()
}

/// Connections of the client ended.
fn client_ended(case: &Case) -> Vec<Finding> {
    let each = case.ended.iter().map(|ended| {
        let ago = seconds(ended.seconds_ago.saturating_mul(1000));
        let by = if ended.closed_by.is_empty() {
            "unknown"
        } else {
            &ended.closed_by
        };
        let why = if ended.closed_why.is_empty() {
            "no reason known"
        } else {
            &ended.closed_why
        };
        Finding::fault(
            format!(
                "connection {} of client {} ended {ago} ago, by {by}: {why}",
                ended.id, ended.peer
            ),
            causes::remedy(&ended.closed_why),
        )
    });
    each.collect()
}

/// Nothing completed on the connection for a while.
fn client_stalls(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let stalls = connection
            .detail
            .number("stalls")
            .filter(|&stalls| stalls > 0)?;
        Some(Finding::fault(
            format!("{}: nothing completed for a while, {stalls} times", connection.title()),
            "the client hangs, or packets of RDMA are lost: check the client, the link and the MTU \
                along the path; after sunrpc.svc_rdma.stall_seconds the connection is closed",
        ))
    })
}

/// Replies wait for the Send Queue.
fn client_send_backlog(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let now = connection.detail.number("send_backlog").unwrap_or(0);
        let waits = connection.detail.number("send_backlog_waits").unwrap_or(0);
        let calls = connection.detail.number("calls").unwrap_or(0);
        let often = waits > 64 && waits.saturating_mul(100) > calls;
        (now > 0 || often).then(|| {
            Finding::limit(
                format!(
                    "{}: {now} Replies wait for the Send Queue, {waits} have waited",
                    connection.title()
                ),
                "the client takes Replies slowly, or the queue is short: raise \
                    sunrpc.svc_rdma.max_requests, which makes the queue longer",
            )
        })
    })
}

/// The client has as many Calls outstanding as it may.
fn client_uses_all_credits(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let granted = connection.granted().filter(|&granted| granted > 1)?;
        let calls = connection.detail.number("calls_in_flight")?;
        (calls >= granted).then(|| {
            Finding::limit(
                format!(
                    "{}: it has {calls} Calls outstanding, of {granted}",
                    connection.title()
                ),
                "add nfsd threads if few are idle, or raise sunrpc.svc_rdma.max_requests",
            )
        })
    })
}

/// No export has accepted the client.
fn client_not_admitted(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let calls = connection.detail.number("calls")?;
        (connection.detail.flag("admitted") == Some(false) && calls > 0).then(|| {
            Finding::limit(
                format!(
                    "{}: no export has accepted this client so far",
                    connection.title()
                ),
                "if it should have one, check /etc/exports, and run exportfs -ra; until then the \
                    connection has a smaller share of the server's memory",
            )
        })
    })
}

/// Exposed Replies wait for the client.
fn client_exposed_replies(case: &Case) -> Vec<Finding> {
    let limit = case.all.sysctl("svc_rdma/max_exposed_replies");
    each(case, |connection| {
        let exposed = connection.detail.number("exposed_replies")?;
        (exposed >= limit?).then(|| {
            Finding::limit(
                format!(
                    "{}: {exposed} Replies wait to be pulled",
                    connection.title()
                ),
                "the client is slow or hangs; or raise sunrpc.svc_rdma.max_exposed_replies",
            )
        })
    })
}

/// A Call has been with the server for long.
fn client_call_waits(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let age = connection
            .detail
            .number("oldest_call_ms")
            .filter(|&age| age >= 10_000)?;
        Some(Finding::fault(
            format!(
                "{}: a Call has been here for {}",
                connection.title(),
                seconds(age)
            ),
            "nfsd waits for its disk, or for the client's data: cat /proc/PID/stack of the nfsd \
                threads says which",
        ))
    })
}
