// SPDX-License-Identifier: GPL-2.0

//! `/sys/kernel/sunrpc/xprt-switches`: the client's connections, as SUNRPC knows them.

use serde::Serialize;

use super::{
    root::{Root, Unreadable},
    values::Values,
};

/// The directory.
pub const PATH: &str = "/sys/kernel/sunrpc/xprt-switches";

/// A connection of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Xprt {
    /// The number in its name.
    pub id: u32,
    /// The number of its switch, which is a set of connections that share their Calls.
    pub switch: u32,
    /// The server's address.
    pub dstaddr: String,
    /// The client's address, where the transport tells it.
    pub srcaddr: String,
    /// `xprt_info`: slots, queues, ports. Empty while the connection is closed.
    pub info: Values,
    /// `xprt_state`: `CONNECTED`, `BOUND`, ...
    pub state: Vec<String>,
}

impl Xprt {
    /// Whether the connection is established.
    pub fn is_connected(&self) -> bool {
        self.has("CONNECTED")
    }

    /// Whether the state has this word.
    pub fn has(&self, word: &str) -> bool {
        self.state.iter().any(|each| each == word)
    }

    /// The server's port, if the connection is established.
    pub fn port(&self) -> Option<u16> {
        self.info.text("dst_port")?.parse().ok()
    }

    /// Whether the connection carries callbacks of this machine's server: the kernel lists it as
    /// a connection of the client, with port 0.
    pub fn is_backchannel(&self) -> bool {
        self.port() == Some(0)
    }
}

/// Reads all connections over RDMA, of this network namespace.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn read(root: &Root) -> Result<Vec<Xprt>, Unreadable> {
    let mut xprts = Vec::new();
    for switch in root.list(PATH)? {
        let Some(number) = switch.strip_prefix("switch-").and_then(|n| n.parse().ok()) else {
            continue;
        };
        let dir = format!("{PATH}/{switch}");
        for name in root.list(&dir).unwrap_or_default() {
            let Some(id) = id(&name) else {
                continue;
            };
            let file = |file| {
                root.value(&format!("{dir}/{name}/{file}"))
                    .unwrap_or_default()
            };
            xprts.push(Xprt {
                id,
                switch: number,
                dstaddr: file("dstaddr"),
                srcaddr: known(file("srcaddr")),
                info: Values::parse(&file("xprt_info"), '='),
                state: states(&file("xprt_state")),
            });
        }
    }
    xprts.sort_by_key(|xprt| xprt.id);
    Ok(xprts)
}

/// The number in `xprt-N-rdma`.
fn id(name: &str) -> Option<u32> {
    let (number, kind) = name.strip_prefix("xprt-")?.split_once('-')?;
    kind.starts_with("rdma").then(|| number.parse().ok())?
}

/// The kernel writes `<closed>` and `<not a socket>` for what it does not know.
fn known(text: String) -> String {
    if text.starts_with('<') {
        String::new()
    } else {
        text
    }
}

fn states(text: &str) -> Vec<String> {
    let words = text.strip_prefix("state=").unwrap_or(text);
    words.split_whitespace().map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_states_are_read() {
        assert_eq!(id("xprt-12-rdma"), Some(12));
        assert_eq!(id("xprt-12-rdma6"), Some(12));
        assert_eq!(id("xprt-1-tcp"), None);
        assert_eq!(id("xprt-x-rdma"), None);
        assert_eq!(id("subsystem"), None);
        assert_eq!(states("state= CONNECTED   BOUND "), ["CONNECTED", "BOUND"]);
        assert_eq!(known("<not a socket>".into()), "");
    }
}
