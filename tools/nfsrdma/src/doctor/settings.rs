// SPDX-License-Identifier: GPL-2.0

//! Settings that make no sense, or cost more than one may think.

use crate::{
    finding::{Finding, Rule},
    model::snapshot::Snapshot,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[
    Rule {
        name: "no-effect",
        check: no_effect,
    },
    Rule {
        name: "client-memory",
        check: client_memory,
    },
    Rule {
        name: "server-memory",
        check: server_memory,
    },
    Rule {
        name: "pages-of-calls",
        check: pages_of_calls,
    },
    Rule {
        name: "reply-size",
        check: reply_size,
    },
    Rule {
        name: "slots-without-credits",
        check: slots_without_credits,
    },
    Rule {
        name: "short-stall",
        check: short_stall,
    },
    Rule {
        name: "turned-off",
        check: turned_off,
    },
];

/// Settings without an effect in the module in Rust, with their defaults.
const NO_EFFECT: &[(&str, u64)] = &[
    ("rdma_inline_write_padding", 0),
    ("rdma_memreg_strategy", 5),
    ("rdma_pad_optimize", 0),
    ("svc_rdma/max_outbound_read_requests", 16),
];

/// A setting was changed that does nothing.
fn no_effect(all: &Snapshot) -> Vec<Finding> {
    if !all.is_rust() {
        return Vec::new();
    }
    let changed = NO_EFFECT.iter().filter_map(|&(name, default)| {
        let value = all.sysctl(name).filter(|&value| value != default)?;
        Some(Finding::note(format!(
            "sunrpc.{} is {value}: it has no effect, and is kept for scripts",
            name.replace('/', ".")
        )))
    });
    changed.collect()
}

/// Bytes of buffers of a connection, and the share of the machine's memory that is much.
fn much(all: &Snapshot, bytes: u64, what: &str, next: &str) -> Option<Finding> {
    let share = all.memory.checked_div(50)?;
    (all.memory > 0 && bytes > share).then(|| {
        Finding::limit(
            format!(
                "each connection of {what} takes {} MiB of buffers, of {} MiB of memory",
                bytes >> 20,
                all.memory >> 20
            ),
            next,
        )
    })
}

/// A connection of the client takes much memory.
fn client_memory(all: &Snapshot) -> Vec<Finding> {
    let value = |name| all.sysctl(name).unwrap_or(0);
    let slots = value("rdma_slot_table_entries");
    let receives = slots
        .saturating_add(slots / 4)
        .saturating_add(value("rdma_max_bc_requests"));
    let mut bytes = receives.saturating_mul(value("rdma_max_inline_read"));
    // Above 64 KiB each Call has a Send buffer of that size.
    let send = value("rdma_max_inline_write");
    if send > 64 << 10 {
        bytes = bytes.saturating_add(slots.saturating_mul(send));
    }
    let next = "lower sunrpc.rdma_slot_table_entries, rdma_max_inline_read and _write";
    much(all, bytes, "the client", next).into_iter().collect()
}

/// A connection of the server takes much memory.
fn server_memory(all: &Snapshot) -> Vec<Finding> {
    if all.nfsd.as_ref().is_none_or(|nfsd| nfsd.threads == 0) {
        return Vec::new();
    }
    let value = |name: &str| all.sysctl(&format!("svc_rdma/{name}")).unwrap_or(0);
    let receives = value("max_requests")
        .saturating_mul(2)
        .saturating_add(value("max_bc_requests"))
        .saturating_add(value("max_exposed_replies"));
    // A page list has 8 bytes for each page of the longest message.
    let block = all
        .nfsd
        .as_ref()
        .and_then(|nfsd| nfsd.max_block_size)
        .unwrap_or(1 << 20);
    let list = (block / 4096).saturating_mul(8).next_power_of_two();
    let bytes = receives.saturating_mul(value("max_req_size").saturating_add(list));
    let next = "lower sunrpc.svc_rdma.max_requests and max_req_size, or write 1048576 to \
        /proc/fs/nfsd/max_block_size before nfsd starts";
    much(all, bytes, "the server", next).into_iter().collect()
}

/// Pages of Calls may take more memory than there is.
fn pages_of_calls(all: &Snapshot) -> Vec<Finding> {
    let limits = ["max_pulled_pages", "max_exposed_pages"];
    let each = limits.iter().filter_map(|limit| {
        let pages = all.sysctl(&format!("svc_rdma/{limit}"))?;
        let bytes = pages.saturating_mul(4096);
        let serves = all.nfsd.as_ref().is_some_and(|nfsd| nfsd.threads > 0);
        (serves && all.memory > 0 && bytes > all.memory / 2).then(|| {
            Finding::limit(
                format!(
                    "sunrpc.svc_rdma.{limit} allows {} MiB, more than half of {} MiB of memory",
                    bytes >> 20,
                    all.memory >> 20
                ),
                format!("sysctl sunrpc.svc_rdma.{limit}={}", all.memory / 4 / 4096),
            )
        })
    });
    each.collect()
}

/// Replies may be shorter than Calls.
fn reply_size(all: &Snapshot) -> Vec<Finding> {
    let reply = all
        .sysctl("svc_rdma/max_reply_size")
        .filter(|&size| size > 0);
    let (Some(reply), Some(call)) = (reply, all.sysctl("svc_rdma/max_req_size")) else {
        return Vec::new();
    };
    if reply >= call {
        return Vec::new();
    }
    vec![Finding::limit(
        format!(
            "the server sends {reply} bytes inline, and takes {call}: Replies are mostly longer"
        ),
        "set sunrpc.svc_rdma.max_reply_size to 0, which means max_req_size",
    )]
}

/// The client has more slots than this machine's server would grant.
fn slots_without_credits(all: &Snapshot) -> Vec<Finding> {
    let slots = all.sysctl("rdma_slot_table_entries");
    let (Some(slots), Some(requests)) = (slots, all.sysctl("svc_rdma/max_requests")) else {
        return Vec::new();
    };
    // A server with the same settings grants no more than it has.
    if slots <= requests || slots <= 128 {
        return Vec::new();
    }
    vec![Finding::note(format!(
        "sunrpc.rdma_slot_table_entries is {slots}: it takes effect only with servers whose \
            svc_rdma.max_requests is as large (here: {requests})"
    ))]
}

/// A short time limit ends connections of slow clients.
fn short_stall(all: &Snapshot) -> Vec<Finding> {
    let Some(seconds) = all
        .sysctl("svc_rdma/stall_seconds")
        .filter(|&seconds| seconds < 30)
    else {
        return Vec::new();
    };
    vec![Finding::limit(
        format!(
            "sunrpc.svc_rdma.stall_seconds is {seconds}: clients on slow links lose connections"
        ),
        "sysctl sunrpc.svc_rdma.stall_seconds=90",
    )]
}

/// What makes RPCs cheaper is off.
fn turned_off(all: &Snapshot) -> Vec<Finding> {
    let settings = [
        (
            "rdma_remote_invalidation",
            "each RPC invalidates its regions itself",
        ),
        (
            "rdma_pulled_replies",
            "a Reply chunk is registered for Replies that may be long",
        ),
        (
            "svc_rdma/remote_invalidation",
            "clients invalidate their regions themselves",
        ),
        (
            "svc_rdma/pulled_replies",
            "clients register a Reply chunk for Replies that may be long",
        ),
        (
            "svc_rdma/short_replies",
            "short Replies use the Reply chunk if there is one",
        ),
    ];
    let off = settings
        .iter()
        .filter(|(name, _)| all.sysctl(name) == Some(0));
    off.map(|(name, cost)| {
        let name = name.replace('/', ".");
        Finding::limit(
            format!("sunrpc.{name} is off: {cost}"),
            format!("sysctl sunrpc.{name}=1"),
        )
    })
    .collect()
}
