// SPDX-License-Identifier: GPL-2.0

//! What makes a mount slower than it could be.

use super::{agreed::bytes, Case};
use crate::{
    finding::{Finding, Rule},
    model::connection::Connection,
};

/// The rules.
pub const RULES: &[Rule<Case>] = &[
    Rule {
        name: "credits-used-up",
        check: credits_used_up,
    },
    Rule {
        name: "fewer-credits-than-slots",
        check: fewer_credits_than_slots,
    },
    Rule {
        name: "calls-wait-for-slots",
        check: calls_wait_for_slots,
    },
    Rule {
        name: "waits-for-regions",
        check: waits_for_regions,
    },
    Rule {
        name: "waits-for-sends",
        check: waits_for_sends,
    },
    Rule {
        name: "small-transfers",
        check: small_transfers,
    },
    Rule {
        name: "small-inline",
        check: small_inline,
    },
    Rule {
        name: "local-invalidations",
        check: local_invalidations,
    },
    Rule {
        name: "time-in-queue",
        check: time_in_queue,
    },
    Rule {
        name: "slow-server",
        check: slow_server,
    },
    Rule {
        name: "mtu",
        check: mtu,
    },
];

/// Calls in a million: below this share, waits do not matter.
const RARE: u64 = 1000;

fn each(case: &Case, rule: impl Fn(&Connection) -> Option<Finding>) -> Vec<Finding> {
    case.connections.iter().filter_map(rule).collect()
}

/// All credits are in use, and Calls wait for more.
fn credits_used_up(case: &Case) -> Vec<Finding> {
    each(case, |connection| {
        let granted = connection.granted().filter(|&granted| granted > 0)?;
        let waiting = connection.detail.number("credits_waiting").unwrap_or(0);
        let queued = connection.info("sending_q_len").unwrap_or(0);
        let full = connection.used().is_some_and(|used| used >= granted);
        (full && waiting.max(queued) > 0).then(|| {
            Finding::limit(
                format!(
                    "{}: all {granted} credits are in use, and {} Calls wait for one",
                    connection.title(),
                    waiting.max(queued)
                ),
                "raise sunrpc.svc_rdma.max_requests on the server (C module there: the same name), \
                    or mount with nconnect",
            )
        })
    })
}

/// The server grants fewer credits than the client has slots.
fn fewer_credits_than_slots(case: &Case) -> Vec<Finding> {
    let slots = case.all.sysctl("rdma_slot_table_entries");
    each(case, |connection| {
        let slots = connection.info("max_num_slots").or(slots)?;
        // One credit is what a connection has before the first Reply.
        let granted = connection.granted().filter(|&granted| granted > 1)?;
        (granted < slots).then(|| {
            Finding::limit(
                format!(
                    "{}: the server grants {granted} credits, the client could use {slots}",
                    connection.title()
                ),
                format!("if Calls wait, set sunrpc.svc_rdma.max_requests to {slots} on the server"),
            )
        })
    })
}

/// Calls waited for a slot, on average.
fn calls_wait_for_slots(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().filter_map(|mount| {
        let sends = mount.sum(|xprt| xprt.sends);
        let waiting = mount.sum(|xprt| xprt.backlog);
        // At least one Call waited at every second send.
        (sends > RARE && waiting.saturating_mul(2) > sends).then(|| {
            Finding::limit(
                format!(
                    "{}: on average {:.1} Calls waited for a slot when another was sent",
                    mount.target,
                    waiting as f64 / sends as f64
                ),
                "raise sunrpc.rdma_slot_table_entries before the mount, or mount with nconnect",
            )
        })
    });
    each.collect()
}

/// Calls found no free memory region.
fn waits_for_regions(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().filter_map(|mount| {
        let failed = mount.sum(|xprt| xprt.failed_marshals);
        let sends = mount.sum(|xprt| xprt.sends);
        often(failed, sends).then(|| {
            Finding::limit(
                format!(
                    "{}: {failed} of {sends} Calls could not be marshaled at once, mostly for lack \
                        of a free memory region",
                    mount.target
                ),
                "lower the number of Calls (sunrpc.rdma_slot_table_entries), or use a device with \
                    more regions",
            )
        })
    });
    each.collect()
}

/// Whether something happened to more than one of a hundred Calls, and not only at the start.
fn often(times: u64, calls: u64) -> bool {
    times > 64 && times.saturating_mul(100) > calls
}

/// Calls found the ring of Sends full.
fn waits_for_sends(case: &Case) -> Vec<Finding> {
    let each = case.mounts.iter().filter_map(|mount| {
        let waits = mount.sum(|xprt| xprt.empty_send_ring);
        let sends = mount.sum(|xprt| xprt.sends);
        often(waits, sends).then(|| {
            Finding::limit(
                format!("{}: {waits} of {sends} Calls waited for the Send Queue", mount.target),
                "the device completes Sends late: check its load and its interrupts, or mount with \
                    nconnect",
            )
        })
    });
    each.collect()
}

/// READs and WRITEs are shorter than a client likes.
fn small_transfers(case: &Case) -> Vec<Finding> {
    let each =
        case.mounts.iter().filter_map(|mount| {
            let size = mount
                .number("rsize")
                .into_iter()
                .chain(mount.number("wsize"))
                .min()?;
            (size < 1 << 20).then(|| {
                Finding::limit(
                format!("{}: READs and WRITEs carry at most {}", mount.target, bytes(Some(size))),
                "before nfsd starts on the server, write 1048576 to /proc/fs/nfsd/max_block_size; \
                    then mount again, without rsize and wsize",
            )
            })
        });
    each.collect()
}

/// The agreed inline sizes are smaller than this end allows.
fn small_inline(case: &Case) -> Vec<Finding> {
    let directions = [
        (
            "inline_send_bytes",
            "rdma_max_inline_write",
            "sent",
            "max_req_size",
        ),
        (
            "inline_recv_bytes",
            "rdma_max_inline_read",
            "received",
            "max_reply_size",
        ),
    ];
    each(case, |connection| {
        directions
            .iter()
            .find_map(|&(agreed, setting, way, theirs)| {
                let agreed = connection.detail.number(agreed)?;
                let setting = case.all.sysctl(setting)? & !1023;
                (agreed < setting).then(|| {
                    Finding::limit(
                        format!(
                            "{}: messages {way} inline have at most {agreed} bytes, although this \
                            client allows {setting}",
                            connection.title()
                        ),
                        format!(
                        "raise sunrpc.svc_rdma.{theirs} on the server; if it is that high already, \
                            memory was fragmented when the connection was made: connect again"
                    ),
                    )
                })
            })
    })
}

/// The client invalidates most regions itself.
fn local_invalidations(case: &Case) -> Vec<Finding> {
    let iwarp = case.all.devices.iter().any(|device| device.is_iwarp());
    let off = case.all.sysctl("rdma_remote_invalidation") == Some(0);
    let each = case.mounts.iter().filter_map(|mount| {
        let local = mount.sum(|xprt| xprt.local_invalidations);
        // With Remote Invalidation, a Reply invalidates one region of each Call.
        let segments = mount.sum(|xprt| xprt.segments());
        let agreed = |on| {
            let mut connections = case.connections.iter();
            connections.any(|each| each.detail.flag("remote_invalidation") == Some(on))
        };
        (local > RARE && local >= segments - segments / 50 && !agreed(true)).then(|| {
            let what = format!(
                "{}: the client itself invalidated {local} memory regions, each a work request and \
                    a wait",
                mount.target
            );
            if off {
                Finding::limit(
                    what,
                    "set sunrpc.rdma_remote_invalidation to 1, and mount again",
                )
            } else if iwarp {
                Finding::note(what + "; on iWARP Replies do not invalidate")
            } else {
                Finding::limit(
                    what,
                    "set sunrpc.svc_rdma.remote_invalidation to 1 on the server, if it has that",
                )
            }
        })
    });
    each.collect()
}

/// An operation spends most of its time waiting at the client.
fn time_in_queue(case: &Case) -> Vec<Finding> {
    let ops = case
        .mounts
        .iter()
        .flat_map(|mount| mount.ops.iter().map(move |op| (mount, op)));
    let each = ops.filter_map(|(mount, op)| {
        let average = |ms: u64| ms as f64 / op.operations.max(1) as f64;
        let (queue, total) = (average(op.queue_ms), average(op.total_ms));
        (op.operations > 100 && queue > 1.0 && queue * 2.0 > total).then(|| {
            Finding::limit(
                format!(
                    "{}: a {} takes {total:.1} ms, of which it waits {queue:.1} ms at this client",
                    mount.target, op.name
                ),
                "raise credits (sunrpc.svc_rdma.max_requests on the server) and slots \
                    (sunrpc.rdma_slot_table_entries here), or mount with nconnect",
            )
        })
    });
    each.collect()
}

/// An operation spends most of its time at the server.
fn slow_server(case: &Case) -> Vec<Finding> {
    let ops = case
        .mounts
        .iter()
        .flat_map(|mount| mount.ops.iter().map(move |op| (mount, op)));
    let each = ops.filter_map(|(mount, op)| {
        let rtt = op.rtt_ms as f64 / op.operations.max(1) as f64;
        (op.operations > 100 && rtt > 20.0 && matches!(&*op.name, "READ" | "WRITE")).then(|| {
            Finding::limit(
                format!(
                    "{}: the Reply to a {} comes after {rtt:.0} ms on average",
                    mount.target, op.name
                ),
                "look at the server: its disks, its nfsd threads (/proc/fs/nfsd/threads), and \
                    \"nfsrdma explain\" with this client's address there",
            )
        })
    });
    each.collect()
}

/// Packets of RoCE are short.
fn mtu(case: &Case) -> Vec<Finding> {
    let used = |name: &str| {
        let mut connections = case.connections.iter().chain(&case.served);
        connections.any(|each| {
            each.detail
                .text("device")
                .is_none_or(|device| device == name)
        })
    };
    let found = crate::doctor::short_packets(&case.all);
    found
        .into_iter()
        .filter(|(device, _)| used(device))
        .map(|(_, finding)| finding)
        .collect()
}
