// SPDX-License-Identifier: GPL-2.0

//! `/sys/kernel/debug/rpcrdma`: the connections of both ends, as the module in Rust shows them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    root::{Root, Unreadable},
    values::Values,
};

/// The directory.
pub const PATH: &str = "/sys/kernel/debug/rpcrdma";

/// What the module shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Debug {
    /// The client's connections, by the number N of `xprt-N-rdma`.
    pub client: BTreeMap<u32, Values>,
    /// The server's connections, by their number.
    pub server: BTreeMap<u32, Values>,
    /// The server's connections that ended last.
    pub ended: Vec<Ended>,
}

/// A connection of the server that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The number that it had.
    pub id: u32,
    /// The client's address and port.
    pub peer: String,
    /// Seconds since it ended.
    pub seconds_ago: u64,
    /// Who closed it.
    pub closed_by: String,
    /// Why, in words.
    pub closed_why: String,
}

/// Reads all connections.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn read(root: &Root) -> Result<Debug, Unreadable> {
    // Without root, the directory above is closed, and this one seems to be absent.
    root.list("/sys/kernel/debug")?;
    root.list(PATH)?;
    let ended = root
        .read(&format!("{PATH}/server/ended"))
        .unwrap_or_default();
    Ok(Debug {
        client: connections(root, &format!("{PATH}/client")),
        server: connections(root, &format!("{PATH}/server")),
        ended: parse_ended(&ended),
    })
}

fn connections(root: &Root, dir: &str) -> BTreeMap<u32, Values> {
    let names = root.list(dir).unwrap_or_default();
    let each = names.into_iter().filter_map(|name| {
        let id = name.parse().ok()?;
        // A connection may have ended since the directory was read.
        let text = root.read(&format!("{dir}/{name}")).ok()?;
        Some((id, Values::parse(&text, ':')))
    });
    each.collect()
}

/// Parses lines of a number, the peer, seconds, who and why, separated by tabs.
pub fn parse_ended(text: &str) -> Vec<Ended> {
    let each = text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let known = |text: &str| {
            if text == "-" {
                String::new()
            } else {
                text.trim().to_string()
            }
        };
        Some(Ended {
            id: fields.next()?.trim().parse().ok()?,
            peer: known(fields.next()?),
            seconds_ago: fields.next()?.trim().parse().ok()?,
            closed_by: known(fields.next().unwrap_or("")),
            closed_why: known(fields.next().unwrap_or("")),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_connections_are_read() {
        let text = "3\t192.0.2.2:4711\t12\tserver\tno progress for 90 s\n\
            4\t[fd00::2]:9\t1\t-\t-\nx\ty\tz\n5\n";
        let ended = parse_ended(text);
        assert_eq!(ended.len(), 2);
        assert_eq!(ended[0].closed_why, "no progress for 90 s");
        assert_eq!(ended[1].closed_by, "");
    }
}
