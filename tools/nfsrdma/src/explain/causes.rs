// SPDX-License-Identifier: GPL-2.0

//! What errors and reasons of the kernel mean for a connection, and what to do.

/// An error of the kernel.
struct Cause {
    /// Its name, and number on Linux.
    errno: (&'static str, u32),
    /// What it means for a connection.
    means: &'static str,
    /// What to do.
    next: &'static str,
}

const CAUSES: &[Cause] = &[
    Cause {
        errno: ("ECONNREFUSED", 111),
        means: "the server refused: it answers, but nothing listens on this port",
        next: "on the server: echo 'rdma 20049' > /proc/fs/nfsd/portlist, and check that nfsd has \
            threads; here: mount with that port",
    },
    Cause {
        errno: ("EHOSTUNREACH", 113),
        means: "no peer answers at this address, or there is no route to it",
        next: "check addresses, VLAN and the ports (rdma link) of both machines, and that no \
            filter drops RoCE (UDP 4791); then rping -c -a SERVER -C 3 -v",
    },
    Cause {
        errno: ("ETIMEDOUT", 110),
        means: "the server did not answer in time",
        next: "check that the server runs, and that no filter drops RoCE (UDP 4791) or packets \
            as large as the MTU",
    },
    Cause {
        errno: ("ENETUNREACH", 101),
        means: "there is no route to the server",
        next: "ip route get SERVER must name an interface that has an RDMA device (rdma link)",
    },
    Cause {
        errno: ("ENODEV", 19),
        means: "no RDMA device of this machine reaches the server's address",
        next: "rdma link must list a device on the interface that \"ip route get SERVER\" names",
    },
    Cause {
        errno: ("EADDRNOTAVAIL", 99),
        means: "no RDMA device of this machine has a suitable address",
        next: "give the interface of the device an address of the server's network",
    },
    Cause {
        errno: ("ECONNRESET", 104),
        means: "the peer closed the connection",
        next: "see \"nfsrdma explain\" and the kernel log on the peer",
    },
    Cause {
        errno: ("ENOTCONN", 107),
        means: "the connection was lost",
        next: "see \"nfsrdma explain\" and the kernel log on the peer",
    },
    Cause {
        errno: ("EPROTO", 71),
        means: "the peer does not speak RPC-over-RDMA as expected",
        next: "check that the port is that of an NFS server over RDMA, and the versions at both \
            ends",
    },
    Cause {
        errno: ("ENOMEM", 12),
        means: "there was no memory for the buffers of a connection",
        next: "lower sunrpc.rdma_max_inline_read and _write or rdma_slot_table_entries, or free \
            memory",
    },
    Cause {
        errno: ("EINVAL", 22),
        means: "the device lacks something that NFS needs",
        next: "the kernel log names it (\"cannot carry NFS\"): use another device",
    },
    Cause {
        errno: ("EOPNOTSUPP", 95),
        means: "the device lacks something that NFS needs",
        next: "the kernel log names it (\"cannot carry NFS\"): use another device",
    },
];

/// What an error means, and what to do: `ECONNREFUSED`, `-111`, `111`, or a line with such a name.
pub(super) fn cause(error: &str) -> Option<(&'static str, &'static str)> {
    let number: Option<i64> = error.trim().parse().ok();
    let number = number.map(i64::unsigned_abs);
    let is_named = |name: &str| {
        error
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word == name)
    };
    let found = |cause: &&Cause| {
        let (name, errno) = cause.errno;
        number == Some(u64::from(errno)) || is_named(name)
    };
    let cause = CAUSES.iter().find(found)?;
    Some((cause.means, cause.next))
}

/// What to do about words in the reason why a connection was closed. The first that matches.
const REASONS: &[(&[&str], &str)] = &[
    (
        &["stall", "no progress", "nothing completed"],
        "the peer hangs, or the network drops packets of RDMA: check the peer, the MTU along the \
            path and the counters of the port (rdma statistic show)",
    ),
    (
        &["credit", "flood"],
        "the peer sent more Calls than it may: update the peer",
    ),
    (
        &["protection", "access error", "access violation"],
        "an RPC used memory that was not exposed: report it with the trace events of both ends",
    ),
    (
        &["retry exceeded", "transport retry"],
        "packets were lost: check the link, flow control and the MTU along the path",
    ),
    (
        &["receiver not ready", "rnr"],
        "the peer has no Receives posted: it hangs, or its receive queue is too short",
    ),
    (
        &["device", "removed"],
        "the RDMA device went away: check rdma link, and the kernel log",
    ),
    (
        &["idle"],
        "nothing: the client closes a connection that is idle, and connects when it is needed",
    ),
    (
        &["refused"],
        "nothing listens there: check /proc/fs/nfsd/portlist on the server",
    ),
    (
        &["malformed", "version", "header"],
        "the peer sent a message that is no RPC-over-RDMA of version 1: update the peer",
    ),
    (
        &["timeout", "timed out", "did not answer", "unanswered"],
        "the server was too slow or hangs: check it and the network, or mount with a longer timeo",
    ),
    (
        &["memory", "allocate"],
        "memory was short: lower the sizes and numbers of messages, or free memory",
    ),
];

/// What to do about a reason in words.
pub(super) fn remedy(why: &str) -> &'static str {
    let why = why.to_lowercase();
    let known = REASONS
        .iter()
        .find(|(words, _)| words.iter().any(|word| why.contains(word)));
    known.map_or(
        "see the kernel log and \"nfsrdma explain\" on the peer",
        |(_, next)| next,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_name_and_number() {
        let refused = cause("ECONNREFUSED").unwrap();
        assert!(refused.0.contains("refused"));
        assert_eq!(cause("-111"), Some(refused));
        assert_eq!(cause("rejected (ECONNREFUSED)"), Some(refused));
        assert_eq!(cause("0"), None);
        assert_eq!(cause("ECONNREFUSEDX"), None);
        assert_eq!(cause("9999999999999999999999"), None);
    }

    #[test]
    fn reasons_have_remedies() {
        assert!(remedy("No progress for 90 s").contains("hangs"));
        assert!(remedy("credits exceeded").contains("more Calls"));
        assert!(remedy("something new").contains("kernel log"));
    }
}
