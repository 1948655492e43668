// SPDX-License-Identifier: GPL-2.0

//! `/proc/sys/sunrpc`: the settings and counters of the module.

use std::collections::BTreeMap;

use super::root::Root;

/// The directory.
pub const PATH: &str = "/proc/sys/sunrpc";

/// The directory of the server's.
pub const SERVER: &str = "svc_rdma";

/// Reads all files of the module that have one number. The names of the server's start with
/// `svc_rdma/`.
pub fn read(root: &Root) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    let client = root.list(PATH).unwrap_or_default();
    let client = client.into_iter().filter(|name| name.starts_with("rdma_"));
    let server = root.list(&format!("{PATH}/{SERVER}")).unwrap_or_default();
    let server = server.into_iter().map(|name| format!("{SERVER}/{name}"));
    for name in client.chain(server) {
        let value = root.value(&format!("{PATH}/{name}")).ok();
        if let Some(number) = value.and_then(|value| value.parse().ok()) {
            values.insert(name, number);
        }
    }
    values
}
