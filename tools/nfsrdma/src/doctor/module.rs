// SPDX-License-Identifier: GPL-2.0

//! Which module is loaded, and what it said.

use crate::{
    finding::{Finding, Rule},
    model::snapshot::Snapshot,
    source::module::Module,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[
    Rule {
        name: "module",
        check: module,
    },
    Rule {
        name: "foreign-core",
        check: foreign_core,
    },
    Rule {
        name: "messages",
        check: last_messages,
    },
];

/// The module in Rust, the C module, or none.
fn module(all: &Snapshot) -> Vec<Finding> {
    let kernel = &all.kernel;
    vec![match &all.module {
        Module::Rust { version } if version.is_empty() => {
            Finding::good(format!("the module in Rust, kernel {kernel}"))
        }
        Module::Rust { version } => Finding::good(format!(
            "the module in Rust, version {version}, kernel {kernel}"
        )),
        Module::C => Finding::limit(
            format!("the C module, kernel {kernel}: it shows little of its connections"),
            "if the module in Rust should be loaded: rpcrdma-check says why it is not",
        ),
        Module::None => Finding::fault(
            format!("no rpcrdma module is loaded, kernel {kernel}"),
            "modprobe rpcrdma; if that fails, rpcrdma-check says why",
        ),
    }]
}

/// The RDMA core is not the kernel's own.
fn foreign_core(all: &Snapshot) -> Vec<Finding> {
    if !all.foreign_core {
        return Vec::new();
    }
    vec![Finding::fault(
        "ib_core was not built with this kernel: a vendor's RDMA stack is in use, whose \
            structures the module does not know",
        "remove the vendor's stack, or use the vendor's rpcrdma with it",
    )]
}

/// Messages that tell of a fault, the newest of each kind, and what to do.
const MESSAGES: &[(&str, &str)] = &[
    (
        "cannot carry NFS",
        "use another device, or newer firmware of this one",
    ),
    (
        "cannot listen on",
        "give the address to an interface with an RDMA device, or listen on all: \
            nfsdctl listener +rdma:0.0.0.0:20049",
    ),
    (
        "in C, ",
        "make clean, and build with the compilers that built this kernel",
    ),
    (
        "leaking their DMA mappings",
        "report this with the log, and restart the machine",
    ),
];

/// Messages that tell of no fault. Those of the kernel's loader start with the module's name, too.
const HARMLESS: &[&str] = &[
    "RPC/RDMA transports",
    "listening on ",
    "loading out-of-tree module",
    "module verification failed",
];

/// What the module wrote to the kernel log of faults. Another message may say that one is over.
pub(crate) fn last_messages(all: &Snapshot) -> Vec<Finding> {
    let mut found = Vec::new();
    for &(words, next) in MESSAGES {
        let mut messages = all.log.iter().rev();
        let Some(message) = messages.find(|message| message.text.contains(words)) else {
            continue;
        };
        let address = message.text.strip_prefix("cannot listen on ");
        let address = address.and_then(|rest| rest.split(": ").next());
        let over = address.is_some_and(|address| {
            let again = format!("listening on {address} again");
            all.log
                .iter()
                .any(|later| later.at > message.at && later.text == again)
        });
        if !over {
            let ago = all.seconds_since(message);
            let what = format!("kernel log, {ago} s ago: {}", message.text);
            found.push(Finding::fault(what, next));
        }
    }
    // Other messages of failures, whose words later versions may change.
    let last = all.log.iter().rev().find(|message| {
        let known = MESSAGES
            .iter()
            .any(|(words, _)| message.text.contains(words));
        let harmless = HARMLESS.iter().any(|words| message.text.starts_with(words));
        !known && !harmless
    });
    found.extend(last.map(|message| {
        let ago = all.seconds_since(message);
        Finding::fault(
            format!("kernel log, {ago} s ago: {}", message.text),
            "see \"Messages\" in Documentation/operating.rst",
        )
    }));
    found
}
