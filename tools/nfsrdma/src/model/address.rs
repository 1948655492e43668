// SPDX-License-Identifier: GPL-2.0

//! Addresses with ports, in the ways in which the sources write them.

use std::net::IpAddr;

/// An address and its port, if it has one. What is not an IP address is kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    ip: Option<IpAddr>,
    /// The index of the interface of a link-local address, if it is written as a number.
    scope: Option<u32>,
    /// The port.
    pub port: Option<u16>,
}

impl Address {
    /// Parses `192.0.2.1`, `192.0.2.1:20049`, `fd00::1`, `[fd00::1]:20049` or `[192.0.2.1]:20049`,
    /// with or without a scope: `fe80::1%2`, `fe80::1%eth0`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').unwrap_or((rest, ""));
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            return Self::new(host, port);
        }
        match text.split_once(':') {
            // More than one colon: an IPv6 address without a port.
            Some((host, port)) if !port.contains(':') => Self::new(host, port.parse().ok()),
            _ => Self::new(text, None),
        }
    }

    fn new(host: &str, port: Option<u16>) -> Self {
        let (ip, scope) = host.split_once('%').unwrap_or((host, ""));
        Self {
            host: host.to_string(),
            ip: ip.parse().ok(),
            scope: scope.parse().ok(),
            port,
        }
    }

    /// Whether there is no address.
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// Whether both are of one host.
    pub fn same_host(&self, other: &Self) -> bool {
        match (self.ip, other.ip) {
            (Some(a), Some(b)) => {
                let scopes = self.scope.zip(other.scope);
                a == b && scopes.is_none_or(|(a, b)| a == b)
            }
            _ => !self.host.is_empty() && self.host == other.host,
        }
    }

    /// Whether both are of one host, and of one port where both have one.
    pub fn matches(&self, other: &Self) -> bool {
        let ports = self.port.zip(other.port);
        self.same_host(other) && ports.is_none_or(|(a, b)| a == b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(a: &str, b: &str) -> bool {
        Address::parse(a).matches(&Address::parse(b))
    }

    #[test]
    fn addresses_match_in_all_notations() {
        assert!(matches("192.0.2.1", "192.0.2.1:20049"));
        assert!(matches("[192.0.2.1]:20049", "192.0.2.1:20049"));
        assert!(!matches("192.0.2.1:20048", "192.0.2.1:20049"));
        assert!(matches("fd00::1", "[fd00:0::1]:20049"));
        assert!(matches("fe80::1%eth0", "fe80::1"));
        assert!(matches("fe80::1%eth0", "[fe80::1%3]:20049"));
        assert!(matches("fe80::1%3", "[fe80::1%3]:20049"));
        assert!(!matches("fe80::1%4", "[fe80::1%3]:20049"));
        assert!(!matches("192.0.2.1", "192.0.2.10"));
        assert!(matches("server", "server"));
        assert!(!matches("", ""));
    }
}
