// SPDX-License-Identifier: GPL-2.0

//! The RDMA devices, and what their kinds cost.

use crate::{
    finding::{Finding, Rule},
    model::snapshot::Snapshot,
    source::devices::Device,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[
    Rule {
        name: "devices",
        check: devices,
    },
    Rule {
        name: "ports",
        check: ports,
    },
    Rule {
        name: "software-device",
        check: software,
    },
    Rule {
        name: "iwarp",
        check: iwarp,
    },
];

/// The devices that there are.
fn devices(all: &Snapshot) -> Vec<Finding> {
    if all.devices.is_empty() {
        return vec![Finding::fault(
            "this machine has no RDMA device",
            "load the driver of the card (rdma link must list it); for Soft RoCE: rdma link add \
                rxe0 type rxe netdev eth0",
        )];
    }
    let each = all.devices.iter().flat_map(|device| {
        device
            .ports
            .iter()
            .filter(|port| port.state == "ACTIVE")
            .map(|port| {
                let on = match port.netdevs.is_empty() {
                    true => String::new(),
                    false => format!(" on {}", port.netdevs.join(", ")),
                };
                let firmware = match device.firmware.is_empty() {
                    true => String::new(),
                    false => format!(", firmware {}", device.firmware),
                };
                Finding::good(format!(
                    "{} port {}{on}: {}, {}{firmware}",
                    device.name,
                    port.number,
                    kind(device),
                    port.rate
                ))
            })
    });
    each.collect()
}

/// The kind of a device, in the words of its users.
fn kind(device: &Device) -> &'static str {
    if device.is_iwarp() {
        "iWARP"
    } else if device.is_roce() {
        "RoCE"
    } else {
        "InfiniBand"
    }
}

fn ports(all: &Snapshot) -> Vec<Finding> {
    all.devices.iter().flat_map(ports_down).collect()
}

/// The ports of a device that do not work.
pub(crate) fn ports_down(device: &Device) -> Vec<Finding> {
    let down = device.ports.iter().filter(|port| port.state != "ACTIVE");
    down.map(|port| {
        let next = if port.link_layer == "InfiniBand" && port.physical_state == "LinkUp" {
            "the link is up, but no subnet manager has configured the port: start one (opensm)"
        } else {
            "check the cable and the switch, and that the interface is up (ip link set DEV up)"
        };
        Finding::fault(
            format!(
                "{} port {} is {}, its link {}",
                device.name, port.number, port.state, port.physical_state
            ),
            next,
        )
    })
    .collect()
}

/// Devices without hardware.
fn software(all: &Snapshot) -> Vec<Finding> {
    let soft = |device: &&Device| {
        ["rxe", "siw"]
            .iter()
            .any(|kind| device.name.starts_with(kind))
    };
    let each = all.devices.iter().filter(soft).map(|device| {
        Finding::note(format!(
            "{} is RDMA in software: every byte is copied by the processor, and TCP is faster",
            device.name
        ))
    });
    each.collect()
}

/// What iWARP does not do.
fn iwarp(all: &Snapshot) -> Vec<Finding> {
    let each = all
        .devices
        .iter()
        .filter(|device| device.is_iwarp())
        .map(|device| {
            Finding::note(format!(
            "{} speaks iWARP: no Remote Invalidation (a work request more for each region), and \
                the server registers memory for RDMA Reads",
            device.name
        ))
        });
    each.collect()
}
