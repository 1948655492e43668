// SPDX-License-Identifier: GPL-2.0

//! What the module wrote to the kernel log, and what to do about it. `Documentation/operating.rst`
//! has the same messages.

use crate::{
    finding::{Finding, Rule},
    model::{address::Address, snapshot::Snapshot},
    source::log::Message,
};

/// The rules.
pub const RULES: &[Rule<Snapshot>] = &[Rule {
    name: "messages",
    check: |all| messages(all, |_| true),
}];

/// A message that tells of a fault.
struct Fault {
    /// Words that it has.
    has: &'static [&'static str],
    /// What to do.
    next: &'static str,
}

/// Where all messages are listed. The program runs in the tree, or with the package or without it.
const MANUAL: &str = "see \"Messages\" in operating.rst, in /usr/share/doc/rpcrdma-rust (package \
    rpcrdma-rust) or in Documentation of the source";

/// The first that matches.
const FAULTS: &[Fault] = &[
    Fault {
        has: &["cannot connect to ", ": refused by the server"],
        next: "the server logs nothing: its trace event svcrdma_accept_err has the errno; it is \
            out of memory, its device cannot serve a Call, or nfsd was being stopped",
    },
    Fault {
        has: &["cannot connect to ", ": refused (reason -104)"],
        next: "the server logs nothing: its trace event svcrdma_accept_err has the errno; it is \
            out of memory, its device cannot serve a Call, nfsd was being stopped, or 256 \
            requests wait for an nfsd thread",
    },
    Fault {
        has: &["cannot connect to ", ": refused"],
        next: "on the server: cat /proc/fs/nfsd/portlist, echo 'rdma 20049' > \
            /proc/fs/nfsd/portlist, or rdma=y in /etc/nfs.conf; or mount with the server's port",
    },
    Fault {
        has: &["cannot connect to ", ": no RDMA device of this host"],
        next: "ip route get ADDRESS must name an interface that rdma link lists; load the driver \
            of the card",
    },
    Fault {
        has: &["cannot connect to ", ": no host answers"],
        next: "check that the host is up (ping), its address, the cable and the VLAN",
    },
    Fault {
        has: &["cannot connect to ", ": no RDMA host answers"],
        next: "check that the host is up (ping), that it has an RDMA device at this address, the \
            VLAN, and every firewall (RoCE: UDP 4791); rping -c -a ADDRESS -C 3 -v tries without \
            NFS",
    },
    Fault {
        has: &["cannot connect to ", ": no answer"],
        next: "check that the host is up (ping), and every firewall (RoCE: UDP 4791)",
    },
    Fault {
        has: &["cannot connect to ", ": no route"],
        next: "add a route, or give the interface an address: ip route get ADDRESS",
    },
    Fault {
        has: &["cannot connect to ", ": the RDMA device was removed"],
        next: "nothing, if it comes back: the client tries again; see rdma link",
    },
    Fault {
        has: &["cannot connect to ", ": out of memory"],
        next: "free memory, or lower sunrpc.rdma_slot_table_entries and rdma_max_inline_read; the \
            client tries again",
    },
    Fault {
        has: &["cannot connect to "],
        next: MANUAL,
    },
    Fault {
        has: &[" has refused ", "it speaks RPC-over-RDMA versions"],
        next: "check that the port is that of an NFS server over RDMA, and update the server",
    },
    Fault {
        has: &[" has refused the chunks of "],
        next: "mount with a smaller rsize and wsize, and report the server and its version",
    },
    Fault {
        has: &["cannot carry NFS"],
        next: "use another device, or newer firmware of this one",
    },
    Fault {
        has: &["cannot listen on "],
        next: "give the address to an interface with an RDMA device, or stop nfsd and listen on \
            all: echo 'rdma 20049' > /proc/fs/nfsd/portlist",
    },
    Fault {
        has: &[" in C, ", " in Rust"],
        next: "make clean, and build with the compilers that built this kernel",
    },
    Fault {
        has: &["leaking their DMA mappings"],
        next: "report this with the log, and restart the machine",
    },
    Fault {
        has: &["the pages of an exposed Reply are leaked"],
        next: "report this with the log; a restart of the machine frees the pages",
    },
    Fault {
        has: &["a message that may not have been sent may be leaked"],
        next: "free memory; if the removal of the device hangs, restart the machine",
    },
    Fault {
        has: &[
            "out of memory: ",
            "is not used until the module is loaded again",
        ],
        next: "unmount, stop nfsd, and load the module again when there is memory: modprobe -r \
            rpcrdma, modprobe rpcrdma",
    },
];

/// Messages that tell of no fault. Those of the kernel's loader start with the module's name, too.
const HARMLESS: &[&str] = &[
    "RPC/RDMA transports",
    "connected to ",
    "listening on ",
    "loading out-of-tree module",
    "module verification failed",
];

/// Faults of an address, and how a later message says that they are over.
const OVER: &[(&str, &str, &str)] = &[
    ("cannot connect to ", "connected to ", ""),
    ("cannot listen on ", "listening on ", " again"),
];

/// The newest message of each fault that lasts, unless it is about an address that `about` does not
/// want.
pub(crate) fn messages(all: &Snapshot, about: impl Fn(&Address) -> bool) -> Vec<Finding> {
    let mut seen: Vec<(Option<usize>, Option<&str>)> = Vec::new();
    let mut found = Vec::new();
    for message in all.log.iter().rev() {
        let text = &*message.text;
        if HARMLESS.iter().any(|words| text.starts_with(words)) || is_over(all, message) {
            continue;
        }
        let address = address(text);
        if address.is_some_and(|address| !about(&Address::parse(address))) {
            continue;
        }
        let fault = FAULTS
            .iter()
            .position(|fault| fault.has.iter().all(|w| text.contains(w)));
        if seen.contains(&(fault, address)) {
            continue;
        }
        seen.push((fault, address));
        let next = fault
            .and_then(|index| FAULTS.get(index))
            .map(|fault| fault.next);
        let ago = all.seconds_since(message);
        found.push(Finding::fault(
            format!("kernel log, {ago} s ago: {text}"),
            next.unwrap_or(MANUAL),
        ));
    }
    found
}

/// The address of a peer or listener that a message names.
pub(crate) fn address(text: &str) -> Option<&str> {
    for (start, ..) in OVER {
        if let Some(rest) = text.strip_prefix(start) {
            return rest.split(": ").next();
        }
    }
    let (address, _) = text.split_once(" has refused ")?;
    Some(address)
}

/// Whether a later message says that the fault is over.
fn is_over(all: &Snapshot, message: &Message) -> bool {
    let fault = OVER
        .iter()
        .find(|(start, ..)| message.text.starts_with(start));
    let Some(((_, start, end), address)) = fault.zip(address(&message.text)) else {
        return false;
    };
    let over = format!("{start}{address}{end}");
    all.log
        .iter()
        .any(|later| later.at > message.at && later.text == over)
}
