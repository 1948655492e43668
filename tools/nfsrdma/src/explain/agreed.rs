// SPDX-License-Identifier: GPL-2.0

//! What both ends agreed on.

use super::Case;
use crate::{
    finding::{Finding, Rule},
    model::connection::Connection,
};

/// The rules.
pub const RULES: &[Rule<Case>] = &[
    Rule {
        name: "mount",
        check: mount,
    },
    Rule {
        name: "connection",
        check: connection,
    },
    Rule {
        name: "sizes",
        check: sizes,
    },
    Rule {
        name: "credits",
        check: credits,
    },
    Rule {
        name: "invalidation",
        check: invalidation,
    },
    Rule {
        name: "pulled-replies",
        check: pulled_replies,
    },
    Rule {
        name: "security",
        check: security,
    },
];

/// Version, transport and sizes of a mount.
fn mount(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().map(|mount| {
        let option = |name| mount.option(name).unwrap_or("?");
        Finding::note(format!(
            "{} on {}: NFSv{} over {}, READs to {}, WRITEs to {}, timeo {} s",
            mount.device,
            mount.target,
            option("vers"),
            option("proto"),
            bytes(mount.number("rsize")),
            bytes(mount.number("wsize")),
            mount
                .number("timeo")
                .map_or("?".to_string(), |tenths| (tenths / 10).to_string()),
        ))
    });
    each.collect()
}

fn all(case: &Case) -> impl Iterator<Item = &Connection> {
    case.connections.iter().chain(&case.served)
}

/// Where each connection is.
fn connection(case: &Case) -> Vec<Finding> {
    let each = all(case).map(|connection| {
        let mut what = format!("{}: {}", connection.title(), connection.state());
        if let Some(ms) = connection.detail.number("state_ms") {
            what += &format!(" for {}", seconds(ms));
        }
        if !connection.source().is_empty() {
            what += &format!(", from {}", connection.source());
        }
        if let Some(device) = connection.detail.text("device") {
            let port = connection.detail.text("device_port").unwrap_or("?");
            what += &format!(", device {device} port {port}");
        }
        Finding::note(what)
    });
    each.collect()
}

/// How long messages may be that need no RDMA Read or Write.
fn sizes(case: &Case) -> Vec<Finding> {
    let each = all(case).filter_map(|connection| {
        let send = connection.detail.number("inline_send_bytes")?;
        let recv = connection.detail.number("inline_recv_bytes")?;
        Some(Finding::note(format!(
            "{}: messages of at most {} are sent inline, and of at most {} received",
            connection.title(),
            bytes(Some(send)),
            bytes(Some(recv)),
        )))
    });
    each.collect()
}

/// How many Calls may be outstanding.
fn credits(case: &Case) -> Vec<Finding> {
    let each = all(case).filter_map(|connection| {
        let granted = connection.granted()?;
        let used = connection.used().unwrap_or(0);
        Some(Finding::note(format!(
            "{}: {granted} Calls may be outstanding, {used} are",
            connection.title()
        )))
    });
    each.collect()
}

/// Whether Replies invalidate what Calls expose.
fn invalidation(case: &Case) -> Vec<Finding> {
    let each = all(case).filter_map(|connection| {
        let on = connection.detail.flag("remote_invalidation")?;
        let what = if on {
            "the Reply invalidates the largest region"
        } else {
            "not agreed"
        };
        let title = connection.title();
        Some(Finding::note(format!(
            "{title}: Remote Invalidation: {what}"
        )))
    });
    each.collect()
}

/// Whether Replies may be pulled.
fn pulled_replies(case: &Case) -> Vec<Finding> {
    let each = all(case).filter_map(|connection| {
        let on = connection.detail.flag("pulled_replies")?;
        let what = if on {
            "agreed"
        } else {
            "not agreed: the peer is not this module, or it is off"
        };
        Some(Finding::note(format!(
            "{}: pulled Replies: {what}",
            connection.title()
        )))
    });
    each.collect()
}

/// Whether anything is protected.
fn security(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().filter_map(|mount| {
        let sec = mount.option("sec")?;
        let what = match sec {
            "krb5p" => "encrypted",
            "krb5i" => "protected against modification, not encrypted",
            _ => "neither encrypted nor protected against modification",
        };
        Some(Finding::note(format!(
            "{}: sec={sec}: {what}",
            mount.target
        )))
    });
    each.collect()
}

/// Bytes in the largest unit that divides them.
pub(super) fn bytes(number: Option<u64>) -> String {
    match number {
        None => "? bytes".to_string(),
        Some(n) if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        Some(n) if n >= 1024 && n % 1024 == 0 => format!("{} KiB", n >> 10),
        Some(n) => format!("{n} bytes"),
    }
}

/// Milliseconds in words.
pub(super) fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..600_000 => format!("{} s", ms / 1000),
        600_000..36_000_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}
