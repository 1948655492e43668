// SPDX-License-Identifier: GPL-2.0

//! What went wrong at the client, and what to do.

use super::{agreed::seconds, causes, Case};
use crate::{
    finding::{Finding, Rule},
    model::connection::Connection,
    source::mountstats::Op,
};

/// The rules.
pub const RULES: &[Rule<Case>] = &[
    Rule {
        name: "no-connection",
        check: no_connection,
    },
    Rule {
        name: "no-device",
        check: no_device,
    },
    Rule {
        name: "port-down",
        check: port_down,
    },
    Rule {
        name: "last-connect-error",
        check: last_connect_error,
    },
    Rule {
        name: "not-connected",
        check: not_connected,
    },
    Rule {
        name: "reconnected",
        check: reconnected,
    },
    Rule {
        name: "call-hangs",
        check: call_hangs,
    },
    Rule {
        name: "long-packets",
        check: long_packets,
    },
    Rule {
        name: "bad-replies",
        check: bad_replies,
    },
    Rule {
        name: "timeouts",
        check: timeouts,
    },
    Rule {
        name: "retransmissions",
        check: retransmissions,
    },
    Rule {
        name: "errors-of-operations",
        check: errors_of_operations,
    },
    Rule {
        name: "log",
        check: log,
    },
];

fn each(case: &Case, rule: impl Fn(&Connection) -> Option<Finding>) -> Vec<Finding> {
    case.connections.iter().filter_map(rule).collect()
}

/// The mount has no connection in this network namespace.
fn no_connection(case: &Case) -> Vec<Finding> {
    let known = !case.all.connections.is_empty();
    if case.mounts.is_empty() || !case.connections.is_empty() || !known {
        return Vec::new();
    }
    vec![Finding::fault(
        "no connection over RDMA leads to the mount's server in this network namespace",
        "run this in the namespace that mounted (nsenter -t PID -n), or mount again",
    )]
}

/// The machine has no RDMA device.
fn no_device(case: &Case) -> Vec<Finding> {
    if !case.all.devices.is_empty() {
        return Vec::new();
    }
    vec![Finding::fault(
        "this machine has no RDMA device",
        "load the driver of the card (rdma link must list it); for Soft RoCE: rdma link add rxe0 \
            type rxe netdev eth0",
    )]
}

/// The port of a connection's device is down.
fn port_down(case: &Case) -> Vec<Finding> {
    let used = |name: &str| {
        let all = case.connections.iter().chain(&case.served);
        let mut named = all
            .filter_map(|connection| connection.detail.text("device"))
            .peekable();
        named.peek().is_none() || named.any(|device| device == name)
    };
    let devices = case.all.devices.iter().filter(|device| used(&device.name));
    devices.flat_map(crate::doctor::ports_down).collect()
}

/// Why the connection is not made. A connection that was idle is not wanted, and the reason may be
/// that of an older attempt.
fn connect_error(connection: &Connection) -> Option<&str> {
    let waiting = connection.detail.number("credits_waiting").unwrap_or(0);
    let idle = connection.detail.text("closed_why") == Some("idle");
    let wanted = !idle || waiting > 0 || connection.state() == "connecting";
    let error = connection.detail.text("last_connect_error")?;
    (wanted && !connection.is_connected()).then_some(error)
}

/// The last attempt to connect failed.
fn last_connect_error(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let error = connect_error(connection)?;
        let failed = connection.detail.number("failed_connects").unwrap_or(1);
        let title = connection.title();
        Some(Finding::fault(
            format!("{title}: {failed} attempts to connect failed, the last: {error}"),
            causes::connect_remedy(error),
        ))
    })
}

/// The connection is down, for another reason.
fn not_connected(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        if connection.is_connected() || connect_error(connection).is_some() {
            return None;
        }
        let title = connection.title();
        let why = connection.detail.text("closed_why");
        // The log says more.
        if why.is_none() && connection.state() != "offline" && !log(case).is_empty() {
            return None;
        }
        Some(match (why, &*connection.state()) {
            (_, "offline") => Finding::fault(
                format!("{title}: taken off line by an administrator"),
                "echo online > xprt_state in /sys/kernel/sunrpc/xprt-switches, or rpcctl",
            ),
            (Some("idle"), state) => Finding::note(format!(
                "{title}: {state}, because it was idle; the next Call connects"
            )),
            (Some(why), state) => Finding::fault(
                format!("{title}: {state}, {}", closed(connection, why)),
                causes::close_remedy(why),
            ),
            (None, "connecting") => Finding::fault(
                format!("{title}: an attempt to connect is under way, or the pause before it"),
                "check that the server is up (ping), that it listens (/proc/fs/nfsd/portlist \
                    there), and the ports (rdma link) of both ends",
            ),
            (None, state) => Finding::fault(
                format!("{title}: {state}"),
                "nothing, if the mount is idle: the client connects when it has a Call; \
                    otherwise check that the server is up and listens",
            ),
        })
    })
}

fn closed(connection: &Connection, why: &str) -> String {
    match connection.detail.text("closed_by") {
        Some(by) => format!("closed by {}: {why}", causes::who(by)),
        None => format!("closed: {why}"),
    }
}

/// The connection was lost and made again.
fn reconnected(case: &Case) -> Vec<Finding> {
    let found = each(case, |connection| {
        let connects = connection.detail.number("connects");
        let connects = connects.filter(|&connects| connects > 1)?;
        if !connection.is_connected() {
            return None;
        }
        let mut what = format!("{}: connected {connects} times", connection.title());
        if let Some(ms) = connection.detail.number("state_ms") {
            what += &format!(", last {} ago", seconds(ms));
        }
        Some(match connection.detail.text("closed_why") {
            Some("idle") => Finding::note(what + ", after it was idle"),
            Some(why) => Finding::fault(
                format!("{what}; before, {}", closed(connection, why)),
                causes::close_remedy(why),
            ),
            None => Finding::fault(what, causes::close_remedy("")),
        })
    });
    if !found.is_empty() {
        return found;
    }
    let each = case.mounts.iter().filter_map(|mount| {
        let connects = mount.xprts.iter().map(|xprt| xprt.connects).max()?;
        let mut known = case
            .connections
            .iter()
            .map(|each| each.detail.number("connects"));
        (connects > 1 && !known.any(|known| known.is_some())).then(|| {
            Finding::fault(
                format!(
                    "{}: its connection was lost and made again: {connects} times",
                    mount.target
                ),
                "the reason is in the trace events xprtrdma_disconnect and xprtrdma_connect, and \
                    on the server in \"nfsrdma explain\" with this client's address",
            )
        })
    });
    each.collect()
}

/// The age of a connection's oldest Call, in milliseconds, if it is more than half of timeo.
fn overdue(case: &Case, connection: &Connection) -> Option<u64> {
    // Tenths of a second.
    let timeo = case
        .mounts
        .iter()
        .filter_map(|mount| mount.number("timeo"))
        .min();
    let limit = timeo.unwrap_or(600).saturating_mul(100).clamp(1000, 60_000) / 2;
    let age = connection.detail.number("oldest_call_ms");
    age.filter(|&age| age >= limit)
}

/// A Call has had no Reply for long.
fn call_hangs(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let age = overdue(case, connection)?;
        let calls = connection.detail.number("calls_in_flight").unwrap_or(1);
        Some(Finding::fault(
            format!(
                "{}: {calls} Calls have no Reply, the oldest for {}",
                connection.title(),
                seconds(age)
            ),
            "the server or its disk hangs, or packets are lost: look at the server and its log",
        ))
    })
}

/// Ends of connections that lost packets cause.
const LOSSES: [&str; 3] = ["retry counter exceeded", "no Reply", "peer disconnected"];

/// Jumbo frames may be lost on the way: Calls hang, or the connection was lost.
fn long_packets(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let detail = &connection.detail;
        let why = detail.text("closed_why").unwrap_or("");
        let lost = LOSSES.iter().any(|loss| why.contains(loss));
        if !lost && overdue(case, connection).is_none() {
            return None;
        }
        let (netdev, mtu) = crate::doctor::jumbo(&case.all, detail.text("device"))?;
        Some(Finding::fault(
            format!(
                "{}: {netdev} has an MTU of {mtu}; if a switch between takes less, packets of \
                    long transfers are lost",
                connection.title()
            ),
            format!(
                "ping -M do -s {} must be answered by the server; if it is not, give both ends \
                    the smallest MTU of the path",
                mtu.saturating_sub(28)
            ),
        ))
    })
}

/// Replies were malformed.
fn bad_replies(case: &Case) -> Vec<Finding> {
    let each =
        case.mounts.iter().filter_map(|mount| {
            let bad = mount.sum(|xprt| xprt.bad_replies);
            (bad > 0).then(|| {
                Finding::fault(
                format!("{}: {bad} Replies were refused by the server or malformed", mount.target),
                "the trace events xprtrdma_reply_vers_err, _rqst_err and _short_err say which; \
                    update the server",
            )
            })
        });
    each.collect()
}

/// RPCs timed out.
fn timeouts(case: &Case) -> Vec<Finding> {
    let each =
        case.mounts.iter().filter_map(|mount| {
            let times = mount.total(|op| op.timeouts);
            let op = mount.ops.iter().max_by_key(|op| op.timeouts)?;
            (times > 0).then(|| {
                Finding::fault(
                format!("{}: {times} RPCs timed out, most of them {}", mount.target, op.name),
                "the server or the network was away or too slow for the mount's timeo: see the \
                    connection's state above, and the server's log",
            )
            })
        });
    each.collect()
}

/// Calls were sent again.
fn retransmissions(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().filter_map(|mount| {
        let times = mount.total(Op::sent_again);
        // Calls that are outstanding have been transmitted, too.
        let used = case.connections.iter().filter_map(Connection::used);
        let outstanding = used.fold(0, u64::saturating_add);
        (times > outstanding && times > 0).then(|| {
            Finding::fault(
                format!("{}: {times} Calls were sent again", mount.target),
                "each loss of a connection causes this: find its reason above",
            )
        })
    });
    each.collect()
}

/// Operations ended with errors, other than those of every file system.
fn errors_of_operations(case: &Case) -> Vec<Finding> {
    // Lookups of files that do not exist, and the like, are everyday.
    const TELLING: [&str; 3] = ["READ", "WRITE", "COMMIT"];
    let ops = case
        .mounts
        .iter()
        .flat_map(|mount| mount.ops.iter().map(move |op| (mount, op)));
    let each = ops.filter(|(_, op)| op.errors > 0 && TELLING.contains(&&*op.name));
    each.map(|(mount, op)| {
        Finding::fault(
            format!(
                "{}: {} of {} {} failed",
                mount.target, op.errors, op.operations, op.name
            ),
            "see the log of the application and of the server: disk full, quota, an export that \
                went away",
        )
    })
    .collect()
}

/// The module wrote to the kernel log.
fn log(case: &Case) -> Vec<Finding> {
    crate::doctor::messages(&case.all, |address| case.is_about(address))
}
