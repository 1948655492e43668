// SPDX-License-Identifier: GPL-2.0

//! `/sys/module`: which module is loaded.

use serde::Serialize;

use super::root::Root;

/// Which implementation of RPC-over-RDMA the kernel has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "language", rename_all = "lowercase")]
pub enum Module {
    /// None is loaded.
    #[default]
    None,
    /// The kernel's own.
    C,
    /// The one in Rust.
    Rust {
        /// Its version.
        version: String,
    },
}

/// Finds out. The C module has no version, and does not know pulled Replies.
pub fn read(root: &Root) -> Module {
    let version = root.value("/sys/module/rpcrdma/version");
    if root.exists("/proc/sys/sunrpc/svc_rdma/pulled_replies") {
        return Module::Rust {
            version: version.unwrap_or_default(),
        };
    }
    if root.exists("/sys/module/rpcrdma") || root.exists("/proc/sys/sunrpc/svc_rdma") {
        Module::C
    } else {
        Module::None
    }
}

/// Whether the RDMA core is a vendor's, for which the module was not built.
pub fn has_foreign_core(root: &Root) -> bool {
    let taint = root.value("/sys/module/ib_core/taint").unwrap_or_default();
    taint.contains('O')
}
