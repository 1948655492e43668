// SPDX-License-Identifier: GPL-2.0

//! `/sys/class/infiniband`: the RDMA devices and their ports.

use serde::Serialize;

use super::root::{Root, Unreadable};

/// The directory.
pub const PATH: &str = "/sys/class/infiniband";

/// An RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its name, as in `rdma link`.
    pub name: String,
    /// Its kind: `CA` for InfiniBand and RoCE, `RNIC` for iWARP.
    pub node_type: String,
    /// The version of its firmware.
    pub firmware: String,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// A port of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// `ACTIVE`, `DOWN`, ...
    pub state: String,
    /// `LinkUp`, `Disabled`, ...
    pub physical_state: String,
    /// Its rate, as the kernel prints it.
    pub rate: String,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// The network interfaces whose addresses it has.
    pub netdevs: Vec<String>,
}

impl Device {
    /// Whether the device speaks iWARP.
    pub fn is_iwarp(&self) -> bool {
        self.node_type == "RNIC"
    }

    /// Whether packets of the device are RoCE.
    pub fn is_roce(&self) -> bool {
        !self.is_iwarp() && self.ports.iter().any(|port| port.link_layer == "Ethernet")
    }
}

/// Reads all devices.
///
/// # Errors
///
/// If the directory cannot be read: there is no RDMA core, or it has no device.
pub fn read(root: &Root) -> Result<Vec<Device>, Unreadable> {
    let names = root.list(PATH)?;
    Ok(names.into_iter().map(|name| device(root, name)).collect())
}

fn device(root: &Root, name: String) -> Device {
    let dir = format!("{PATH}/{name}");
    let file = |file: &str| root.value(&format!("{dir}/{file}")).unwrap_or_default();
    let ports = root.list(&format!("{dir}/ports")).unwrap_or_default();
    Device {
        node_type: word(&file("node_type")),
        firmware: file("fw_ver"),
        ports: ports
            .into_iter()
            .filter_map(|number| Some(port(root, &dir, number.parse().ok()?)))
            .collect(),
        name,
    }
}

fn port(root: &Root, device: &str, number: u32) -> Port {
    let dir = format!("{device}/ports/{number}");
    let file = |file: &str| root.value(&format!("{dir}/{file}")).unwrap_or_default();
    let mut netdevs = Vec::new();
    let attrs = format!("{dir}/gid_attrs/ndevs");
    for gid in root.list(&attrs).unwrap_or_default() {
        // The file of a GID that is not in use cannot be read.
        let netdev = root.value(&format!("{attrs}/{gid}")).unwrap_or_default();
        if !netdev.is_empty() && !netdevs.contains(&netdev) {
            netdevs.push(netdev);
        }
    }
    Port {
        number,
        state: word(&file("state")),
        physical_state: word(&file("phys_state")),
        rate: file("rate"),
        link_layer: file("link_layer"),
        netdevs,
    }
}

/// The word behind the number in `4: ACTIVE`.
fn word(text: &str) -> String {
    let word = text.split_once(": ").map_or(text, |(_, word)| word);
    word.trim().to_string()
}
