// SPDX-License-Identifier: GPL-2.0

//! MTUs and packet filters.

use crate::{
    finding::{Finding, Rule},
    model::snapshot::Snapshot,
    source::network::dropping_chains,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[
    Rule {
        name: "mtu",
        check: mtu,
    },
    Rule {
        name: "filter",
        check: filter,
    },
    Rule {
        name: "iptables",
        check: iptables,
    },
];

/// The headers of RoCE v2 over IPv4 or IPv6, with the longest extensions: `RXE_MAX_HDR_LENGTH`.
const ROCE_HEADERS: u32 = 80;
/// The path MTUs of InfiniBand and RoCE.
const PATH_MTUS: [u32; 5] = [4096, 2048, 1024, 512, 256];

/// The path MTU that an interface allows.
fn path_mtu(mtu: u32) -> Option<u32> {
    PATH_MTUS
        .into_iter()
        .find(|path| path + ROCE_HEADERS <= mtu)
}

/// RoCE devices whose packets are shorter than they could be, with their names.
pub(crate) fn short_packets(all: &Snapshot) -> Vec<(&str, Finding)> {
    let roce = all.devices.iter().filter(|device| device.is_roce());
    let ports = roce.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let netdevs = ports.flat_map(|(device, port)| port.netdevs.iter().map(move |n| (device, n)));
    let each = netdevs.filter_map(|(device, netdev)| {
        let &mtu = all.network.mtus.get(netdev)?;
        let path = path_mtu(mtu).filter(|&path| path < 4096)?;
        Some((
            &*device.name,
            Finding::limit(
                format!(
                    "{}: {netdev} has an MTU of {mtu} bytes, so packets of RoCE carry {path} bytes",
                    device.name
                ),
                "set 4200 or more on both ends and on every switch between them, then make a \
                    software device again, as it keeps the MTU that it was made with",
            ),
        ))
    });
    each.collect()
}

/// The MTU of Ethernet without jumbo frames.
const ETHERNET_MTU: u32 = 1500;

/// The interface of an RDMA device, or of any, whose frames are jumbo frames, and its MTU.
pub(crate) fn jumbo<'a>(all: &'a Snapshot, device: Option<&str>) -> Option<(&'a str, u32)> {
    let devices = all
        .devices
        .iter()
        .filter(|each| device.is_none_or(|device| each.name == device));
    let ports = devices.flat_map(|device| &device.ports);
    let mut netdevs = ports.flat_map(|port| &port.netdevs);
    netdevs.find_map(|netdev| {
        let &mtu = all.network.mtus.get(netdev)?;
        (mtu > ETHERNET_MTU).then_some((&**netdev, mtu))
    })
}

fn mtu(all: &Snapshot) -> Vec<Finding> {
    let mut found: Vec<_> = short_packets(all)
        .into_iter()
        .map(|(_, finding)| finding)
        .collect();
    let jumbo: Vec<_> = all
        .network
        .mtus
        .iter()
        .filter(|(_, &mtu)| mtu > ETHERNET_MTU)
        .collect();
    found.extend(jumbo.into_iter().map(|(netdev, mtu)| {
        Finding::note(format!(
            "{netdev} has an MTU of {mtu}: if a switch between takes less, mounts and short files \
                work, and long ones hang; ping -M do -s {} PEER must be answered",
            mtu.saturating_sub(28)
        ))
    }));
    found
}

/// The port of RoCE v2.
const ROCE_PORT: &str = "4791";

/// nftables drops what the kernel sees of RDMA.
fn filter(all: &Snapshot) -> Vec<Finding> {
    let Some(rules) = &all.network.rules else {
        return Vec::new();
    };
    let roce = all.devices.iter().any(|device| device.is_roce());
    let siw = all
        .devices
        .iter()
        .any(|device| device.name.starts_with("siw"));
    let mut found = Vec::new();
    for chain in dropping_chains(rules) {
        let accepts = |port: &str| chain.rules.lines().any(|rule| accepts(rule, port));
        if roce && !accepts(ROCE_PORT) {
            found.push(Finding::limit(
                format!(
                    "the chain {} of nftables drops what it does not know, and no rule accepts UDP \
                        4791: Soft RoCE gets no packets (a card that does RoCE itself does)",
                    chain.name
                ),
                format!(
                    "nft add rule inet filter {} udp dport 4791 accept",
                    chain.name
                ),
            ));
        }
        if siw && !accepts("20049") {
            found.push(Finding::limit(
                format!(
                    "the chain {} of nftables drops TCP 20049, which siw needs",
                    chain.name
                ),
                format!(
                    "nft add rule inet filter {} tcp dport 20049 accept",
                    chain.name
                ),
            ));
        }
    }
    found
}

/// Whether a rule accepts a port: a number, a list of them, or everything.
fn accepts(rule: &str, port: &str) -> bool {
    let all = rule == "accept";
    let mut words = rule.split(|c: char| !c.is_ascii_alphanumeric());
    rule.contains("accept") && (all || words.any(|word| word == port))
}

/// iptables is in use, whose rules are not looked at.
fn iptables(all: &Snapshot) -> Vec<Finding> {
    let tables = &all.network.iptables;
    if !tables.iter().any(|table| table == "filter") {
        return Vec::new();
    }
    vec![Finding::note(
        "iptables filters packets: Soft RoCE needs UDP 4791 (iptables -L INPUT -n), and a rule \
            for port 20049 filters no RoCE",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_mtus_leave_room_for_headers() {
        assert_eq!(path_mtu(1500), Some(1024));
        assert_eq!(path_mtu(4200), Some(4096));
        assert_eq!(path_mtu(4175), Some(2048));
        assert_eq!(path_mtu(100), None);
    }

    #[test]
    fn rules_accept_ports() {
        assert!(accepts("udp dport 4791 accept", "4791"));
        assert!(accepts("udp dport { 53, 4791 } accept", "4791"));
        assert!(accepts("accept", "4791"));
        assert!(!accepts("udp dport 4791 drop", "4791"));
        assert!(!accepts("udp dport 14791 accept", "4791"));
    }
}
