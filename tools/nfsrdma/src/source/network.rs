// SPDX-License-Identifier: GPL-2.0

//! Interfaces of the network, sockets that listen, and packet filters.

use std::collections::BTreeMap;

use serde::Serialize;

use super::root::Root;

/// What the network is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// The MTU of each interface that an RDMA device uses.
    pub mtus: BTreeMap<String, u32>,
    /// Whether a socket listens on the port of rpcbind, if that can be told.
    pub rpcbind: Option<bool>,
    /// The rules of nftables, if they can be listed.
    pub rules: Option<String>,
    /// The names of the tables of iptables that are in use.
    pub iptables: Vec<String>,
}

/// The port of rpcbind.
const RPCBIND: u16 = 111;

/// Reads what concerns these interfaces.
pub fn read(root: &Root, interfaces: &[String]) -> Network {
    let mtu = |name: &String| {
        let mtu = root.value(&format!("/sys/class/net/{name}/mtu")).ok()?;
        Some((name.clone(), mtu.parse().ok()?))
    };
    let tcp = root.read("/proc/net/tcp").ok();
    let tcp6 = root.read("/proc/net/tcp6").unwrap_or_default();
    let tables = root.read("/proc/net/ip_tables_names").unwrap_or_default();
    Network {
        mtus: interfaces.iter().filter_map(mtu).collect(),
        rpcbind: tcp.map(|tcp| listens(&tcp, RPCBIND) || listens(&tcp6, RPCBIND)),
        rules: root.command("nft", &["list", "ruleset"]),
        iptables: tables.lines().map(str::to_string).collect(),
    }
}

/// Whether a line of `/proc/net/tcp` is of a socket that listens on this port.
fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace();
        // The local address is the second word, the state the fourth; 0A is TCP_LISTEN.
        words.nth(1).is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("0A")
    })
}

/// A chain of nftables that drops what no rule accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: String,
}

/// The chains for incoming packets whose policy is to drop.
pub fn dropping_chains(ruleset: &str) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut name = "";
    let mut dropping = false;
    for line in ruleset.lines().map(str::trim) {
        if let Some(chain) = line.strip_prefix("chain ") {
            name = chain.trim_end_matches('{').trim();
            dropping = false;
        } else if line.contains("hook input") {
            dropping = line.contains("policy drop");
            if dropping {
                chains.push(Chain {
                    name: name.to_string(),
                    rules: String::new(),
                });
            }
        } else if line == "}" {
            dropping = false;
        } else if let Some(chain) = chains.last_mut().filter(|_| dropping) {
            chain.rules.push_str(line);
            chain.rules.push('\n');
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_listen_are_found() {
        let table = "  sl  local_address rem_address   st\n\
            0: 00000000:006F 00000000:0000 0A 0:0\n\
            1: 0100007F:0050 0100007F:006F 01 0:0\n";
        assert!(listens(table, 111));
        assert!(!listens(table, 80));
        assert!(!listens("", 111));
    }

    #[test]
    fn chains_that_drop_are_found() {
        let rules = "table inet filter {\n\tchain input {\n\
            \t\ttype filter hook input priority filter; policy drop;\n\
            \t\ttcp dport 20049 accept\n\t}\n\tchain forward {\n\
            \t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
        let chains = dropping_chains(rules);
        assert_eq!(chains.len(), 1);
        assert_eq!(chains[0].name, "input");
        assert_eq!(chains[0].rules, "tcp dport 20049 accept\n");
        assert!(dropping_chains(&rules.replace("policy drop", "policy accept")).is_empty());
    }
}
