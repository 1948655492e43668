// SPDX-License-Identifier: GPL-2.0

//! What to do about the reasons that the module gives: why an attempt to connect failed, and why a
//! connection ended.

/// Words of a reason, and what to do.
type Remedy = (&'static str, &'static str);

/// Why an attempt to connect failed. The first whose words the reason has.
const CONNECT: &[Remedy] = &[
    (
        "no NFS server listens",
        "on the server: cat /proc/fs/nfsd/portlist, then echo 'rdma 20049' > \
            /proc/fs/nfsd/portlist, and check that nfsd has threads; or mount with its port",
    ),
    (
        "old connection",
        "nothing: the server forgets the old connection after a while, and the client tries again",
    ),
    (
        "refused",
        "on the server, the trace event svcrdma_accept_err has the errno, the kernel log nothing: \
            it is out of memory, its device cannot serve a Call, or nfsd was being stopped",
    ),
    (
        "no RDMA device",
        "rdma link must list a device on the interface that \"ip route get SERVER\" names",
    ),
    (
        "no route",
        "ip route get SERVER must name an interface that has an RDMA device (rdma link)",
    ),
    (
        "no host answers",
        "check that the server is up (ping), its address, the cable and the VLAN",
    ),
    (
        "no RDMA host answers",
        "check that the server is up (ping) and has an RDMA device at this address (rdma link), \
            and that every firewall passes RDMA (RoCE: UDP 4791); then rping -c -a SERVER -C 3 -v",
    ),
    (
        "no answer",
        "check that the server is up (ping), and that every firewall passes RDMA (RoCE: UDP 4791)",
    ),
    (
        "lost before it was used",
        "the server closed the connection at once: see \"nfsrdma explain\" there",
    ),
    (
        "device was removed",
        "check rdma link and the kernel log: the client tries again when the device is back",
    ),
    (
        "device lacks",
        "use another device, or newer firmware of this one",
    ),
    (
        "hardware address",
        "nothing, if the server has moved to another machine: the client tries again",
    ),
    (
        "memory",
        "free memory, or lower sunrpc.rdma_slot_table_entries, rdma_max_inline_read and _write",
    ),
    (
        "connection manager",
        "see the kernel log for the device's driver, and rdma link",
    ),
];

/// Why a connection ended. The first whose words the reason has.
const CLOSED: &[Remedy] = &[
    (
        "RNR retry",
        "the peer posts no Receives: it hangs, or is out of memory; over Soft RoCE, packets may be \
            lost as well: check the link, and the MTU along the path",
    ),
    (
        "retry counter exceeded",
        "packets were lost: check the link, flow control, and the MTU along the path: ping -M do \
            -s SIZE, with the MTU less 28, must be answered",
    ),
    (
        "stalled",
        "the peer hangs, or packets are lost: check the peer, and the MTU along the path; the \
            limit is sunrpc.svc_rdma.stall_seconds at a server, and sunrpc.rdma_stall_seconds at \
            a client",
    ),
    (
        "credits exceeded",
        "the peer sent more Calls than it may: update the peer",
    ),
    (
        "overdue",
        "the client does not take its Replies: it hangs, or packets are lost",
    ),
    (
        "protocol error",
        "the peer breaks the protocol: update it; until then, turn remote_invalidation or \
            pulled_replies off in /proc/sys/sunrpc",
    ),
    (
        "access error",
        "an RPC used memory that it may not: report it with the trace events of both ends",
    ),
    (
        "protection error",
        "an RPC used memory that it may not: report it with the trace events of both ends",
    ),
    (
        "not invalidated",
        "the device did not invalidate memory: look for newer firmware, and report it",
    ),
    (
        "device removed",
        "check rdma link and the kernel log: the client connects again when the device is back",
    ),
    (
        "address moved",
        "nothing: the client connects again to the address",
    ),
    (
        "hardware address",
        "nothing, if the peer has moved to another machine: the client connects again; if it has \
            not, two machines may have the address: ip neighbour show",
    ),
    (
        "no Reply",
        "the server was too slow for the mount's timeo, or hangs: look at the server, or mount \
            with a longer timeo",
    ),
    (
        "without a Reply",
        "the server leaves Calls unanswered: look at the server and its log",
    ),
    (
        "idle",
        "nothing: a connection that is idle is closed, and made again when it is needed",
    ),
    (
        "backchannel closed by nfsd",
        "nothing, if the client has unmounted or connected again; otherwise it does not answer \
            callbacks: see its log",
    ),
    (
        "closed by nfsd",
        "nothing, if nfsd was stopped or the client was idle; otherwise see the server's log",
    ),
    (
        "closed by SUNRPC",
        "nothing, after an unmount or a change by an administrator; otherwise see the kernel log",
    ),
    (
        "peer disconnected",
        "the peer has the reason: run \"nfsrdma explain\" there, with this machine's address",
    ),
    (
        "not established",
        "the client went away while it connected: see \"nfsrdma explain\" there",
    ),
    (
        "fault injection",
        "turn off fault injection (/sys/kernel/debug/fail_sunrpc)",
    ),
    (
        "queue pair error",
        "see the kernel log for the device's driver, and rdma statistic show",
    ),
    (
        "completion",
        "see the kernel log for the device's driver, and rdma statistic show",
    ),
    (
        "work request",
        "see the kernel log for the device's driver, and rdma statistic show",
    ),
    (
        "not posted",
        "memory was short, or the device refused a message: see the kernel log",
    ),
];

/// What to do if an attempt to connect failed for this reason.
pub(super) fn connect_remedy(why: &str) -> &'static str {
    find(CONNECT, why).unwrap_or("see the kernel log here and on the server, and rdma link")
}

/// What to do if a connection ended for this reason.
pub(super) fn close_remedy(why: &str) -> &'static str {
    find(CLOSED, why).unwrap_or("see the kernel log, and \"nfsrdma explain\" on the peer")
}

fn find(table: &[Remedy], why: &str) -> Option<&'static str> {
    let entry = table.iter().find(|(words, _)| why.contains(words));
    entry.map(|&(_, next)| next)
}

/// Who has closed a connection, in a sentence.
pub(super) fn who(by: &str) -> &str {
    match by {
        "local" => "this end",
        "peer" => "the peer",
        "device" => "the device",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_telling_words_come_first() {
        for table in [CONNECT, CLOSED] {
            for (index, (words, _)) in table.iter().enumerate() {
                let mut earlier = table.iter().take(index);
                assert!(!earlier.any(|(other, _)| words.contains(other)), "{words}");
            }
        }
        assert!(close_remedy("completion: RNR retry counter exceeded").contains("Receives"));
        assert!(
            connect_remedy("refused: no NFS server listens for RDMA on this port")
                .contains("portlist")
        );
        assert!(connect_remedy("refused by the server").contains("svcrdma_accept_err"));
        assert!(close_remedy("something new").contains("kernel log"));
    }
}
