// SPDX-License-Identifier: GPL-2.0

//! Which module is loaded.

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
