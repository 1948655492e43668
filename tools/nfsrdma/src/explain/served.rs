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
        name: "client-closing",
        check: client_closing,
    },
    Rule {
        name: "client-send-backlog",
        check: client_send_backlog,
    },
    Rule {
        name: "client-stalls",
        check: client_stalls,
    },
    Rule {
        name: "client-waits",
        check: client_waits,
    },
    Rule {
        name: "client-reads-queued",
        check: client_reads_queued,
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
];

fn each(case: &Case, rule: impl Fn(&Connection) -> Option<Finding>) -> Vec<Finding> {
    case.served.iter().filter_map(rule).collect()
}

/// Connections of the client ended.
fn client_ended(case: &Case) -> Vec<Finding> {
    let each = case.ended.iter().map(|ended| {
        let ago = seconds(ended.seconds_ago.saturating_mul(1000));
        let by = causes::who(&ended.closed_by);
        let what = format!(
            "connection {} of client {} ended {ago} ago",
            ended.id, ended.peer
        );
        match &*ended.closed_why {
            "" => Finding::note(what),
            // What an unmount and the end of nfsd look like.
            why @ ("peer disconnected" | "backchannel closed by nfsd" | "closed by nfsd") => {
                Finding::note(format!("{what}, by {by}: {why}"))
            }
            why => Finding::fault(format!("{what}, by {by}: {why}"), causes::close_remedy(why)),
        }
    });
    each.collect()
}

/// The connection is about to end.
fn client_closing(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let why = connection.detail.text("closed_why")?;
        let by = causes::who(connection.detail.text("closed_by").unwrap_or("?"));
        Some(Finding::fault(
            format!(
                "{}: {}, closed by {by}: {why}",
                connection.title(),
                connection.state()
            ),
            causes::close_remedy(why),
        ))
    })
}

/// Replies wait for the Send Queue.
fn client_send_backlog(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let waiting = connection
            .detail
            .number("send_backlog")
            .filter(|&waiting| waiting > 0)?;
        Some(Finding::limit(
            format!(
                "{}: {waiting} messages wait for the Send Queue",
                connection.title()
            ),
            "the client takes Replies slowly, or the queue is short: raise \
                sunrpc.svc_rdma.max_requests, which makes the queue longer",
        ))
    })
}

/// Nothing completed on the Send Queue for long.
fn client_stalls(case: &Case) -> Vec<Finding> {
    let seconds = case.all.sysctl("svc_rdma/stall_seconds").unwrap_or(60);
    each(case, |connection| {
        let stalls = connection
            .detail
            .number("stalls")
            .filter(|&stalls| stalls > 0)?;
        Some(Finding::limit(
            format!(
                "{}: {stalls} times nothing completed on its Send Queue for {} s",
                connection.title(),
                seconds / 3
            ),
            "the client hangs, or packets are lost: check the client, and the MTU along the path; \
                three times in a row end the connection (sunrpc.svc_rdma.stall_seconds)",
        ))
    })
}

/// Milliseconds after which a Call should have its Reply.
const LONG_CALL: u64 = 10_000;

/// A Call of the client has no Reply for long.
fn client_waits(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let age = connection
            .detail
            .number("oldest_call_ms")
            .filter(|&age| age >= LONG_CALL)?;
        Some(Finding::fault(
            format!(
                "{}: a Call has waited for {} for its Reply",
                connection.title(),
                seconds(age)
            ),
            "all nfsd threads are busy, or the file system hangs: see \
                /proc/fs/nfsd/pool_stats, and cat /proc/PID/stack of the threads of nfsd",
        ))
    })
}

/// Calls wait to be read.
fn client_reads_queued(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let queued = connection
            .detail
            .number("reads_queued")
            .filter(|&queued| queued > 0)?;
        Some(Finding::limit(
            format!(
                "{}: {queued} WRITEs wait until others are read",
                connection.title()
            ),
            "the client answers RDMA Reads slowly, or many clients write: raise \
                sunrpc.svc_rdma.max_pulled_pages",
        ))
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

/// Milliseconds after which a client should have used an export.
const ADMISSION: u64 = 60_000;

/// No export has accepted the client.
fn client_not_admitted(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let ms = connection
            .detail
            .number("state_ms")
            .filter(|&ms| ms > ADMISSION)?;
        (connection.detail.flag("admitted") == Some(false)).then(|| {
            Finding::limit(
                format!(
                    "{}: no export has accepted this client in {}",
                    connection.title(),
                    seconds(ms)
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
