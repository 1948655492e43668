// SPDX-License-Identifier: GPL-2.0

//! `/proc/fs/nfsd` and `/proc/net/rpc/nfsd`: the server's listeners, threads and totals.

use serde::Serialize;

use super::root::{Root, Unreadable};

/// The server, as far as nfsd shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Nfsd {
    /// Transport and port of each listener. `None` if they cannot be read.
    pub listeners: Option<Vec<Listener>>,
    /// The number of threads.
    pub threads: u64,
    /// The longest READ and WRITE in bytes.
    pub max_block_size: Option<u64>,
    /// Bytes that clients read and wrote since nfsd was loaded.
    pub bytes: Option<(u64, u64)>,
    /// RPCs since nfsd was loaded, and those that were refused.
    pub rpcs: Option<(u64, u64)>,
    /// The versions that are on.
    pub versions: Vec<String>,
}

/// A line of `portlist`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listener {
    /// `rdma`, `tcp` or `udp`.
    pub netid: String,
    /// Its port.
    pub port: u16,
}

impl Nfsd {
    /// The listeners for RDMA.
    pub fn rdma_listeners(&self) -> impl Iterator<Item = &Listener> {
        let all = self.listeners.iter().flatten();
        all.filter(|listener| listener.netid.starts_with("rdma"))
    }
}

/// Reads what nfsd shows. `None` if nfsd is not loaded or its file system not mounted.
///
/// # Errors
///
/// If the file system is there, but only root may read the listeners; the rest is in the value.
pub fn read(root: &Root) -> (Option<Nfsd>, Option<Unreadable>) {
    let portlist = root.read("/proc/fs/nfsd/portlist");
    let totals = root.read("/proc/net/rpc/nfsd");
    if portlist == Err(Unreadable::Absent) && totals.is_err() {
        return (None, None);
    }
    let mut nfsd = totals.map(|text| parse_totals(&text)).unwrap_or_default();
    let number = |file: &str| {
        root.value(&format!("/proc/fs/nfsd/{file}"))
            .ok()?
            .parse()
            .ok()
    };
    if let Some(threads) = number("threads") {
        nfsd.threads = threads;
    }
    nfsd.max_block_size = number("max_block_size");
    let versions = root.value("/proc/fs/nfsd/versions").unwrap_or_default();
    let on = versions
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('+'));
    nfsd.versions = on.map(str::to_string).collect();
    match portlist {
        Ok(text) => {
            nfsd.listeners = Some(parse_listeners(&text));
            (Some(nfsd), None)
        }
        Err(Unreadable::Absent) => (Some(nfsd), None),
        Err(why) => (Some(nfsd), Some(why)),
    }
}

fn parse_listeners(text: &str) -> Vec<Listener> {
    let each = text.lines().filter_map(|line| {
        let (netid, port) = line.split_once(' ')?;
        Some(Listener {
            netid: netid.to_string(),
            port: port.trim().parse().ok()?,
        })
    });
    each.collect()
}

fn parse_totals(text: &str) -> Nfsd {
    let mut nfsd = Nfsd::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match name {
            "th" => nfsd.threads = next(),
            "io" => nfsd.bytes = Some((next(), next())),
            "rpc" => nfsd.rpcs = Some((next(), next())),
            _ => {}
        }
    }
    nfsd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_listeners_are_read() {
        let nfsd = parse_totals("rc 0 0 9\nio 4096 8192\nth 8 0\nrpc 574 3 1 1 1\n");
        assert_eq!(nfsd.threads, 8);
        assert_eq!(nfsd.bytes, Some((4096, 8192)));
        assert_eq!(nfsd.rpcs, Some((574, 3)));
        let listeners = parse_listeners("rdma 20049\ntcp 2049\nbroken\nrdma x\n");
        assert_eq!(listeners.len(), 2);
        assert_eq!(listeners[0].port, 20049);
    }
}
