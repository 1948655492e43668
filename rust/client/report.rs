// SPDX-License-Identifier: GPL-2.0

//! Lines of the kernel log for administrators: why there is no connection, or why an RPC failed,
//! and what to do. `mount` reports an errno only.
//!
//! Documentation/operating.rst lists the lines with their remedies.

use kernel::{
    pr_notice,
    sync::atomic::ordering::Relaxed, //
};

use crate::{
    lib::{
        ratelimit::net_ratelimit,
        sockaddr::SockAddr,
        sync::Atomic, //
    },
    sunrpc::xprt::{
        CallName,
        ConnectError, //
    },
    wire::RdmaError, //
};

/// What was last logged of a transport's attempts to connect. An outage logs each reason once.
pub(super) struct ConnectReport {
    /// The reason as a number, or [`Self::CONNECTED`].
    last: Atomic<u32>,
}

impl ConnectReport {
    const CONNECTED: u32 = u32::MAX;

    pub(super) const fn new() -> Self {
        Self {
            last: Atomic::new(Self::CONNECTED),
        }
    }

    /// An attempt to connect has failed. Runs in the connect worker.
    pub(super) fn failed(&self, peer: Option<SockAddr>, error: ConnectError) {
        let (Some(why), Some(peer)) = (reason(error), peer) else {
            return;
        };
        let number = error as u32;
        if self.last.load(Relaxed) != number && net_ratelimit() {
            self.last.store(number, Relaxed);
            pr_notice!("cannot connect to {peer}: {why}\n");
        }
    }

    /// An attempt to connect has succeeded. Runs in the connect worker.
    pub(super) fn succeeded(&self, peer: Option<SockAddr>) {
        if self.last.load(Relaxed) == Self::CONNECTED {
            return;
        }
        self.last.store(Self::CONNECTED, Relaxed);
        if let (Some(peer), true) = (peer, net_ratelimit()) {
            pr_notice!("connected to {peer}\n");
        }
    }
}

/// The reason of a failed attempt, and what to check. `None` if another attempt is likely to
/// succeed, or if the reason has a line of its own.
fn reason(error: ConnectError) -> Option<&'static str> {
    Some(match error {
        ConnectError::Refused => {
            "refused: no NFS server listens for RDMA on this port; see its /proc/fs/nfsd/portlist"
        }
        ConnectError::TimedOut => {
            "no answer: is it up, and does every firewall pass RDMA (RoCE: UDP port 4791)?"
        }
        ConnectError::HostUnreachable => {
            "no RDMA host answers at this address: is it up, has it an RDMA device there (rdma \
             link), and does every firewall pass RDMA (RoCE: UDP port 4791)?"
        }
        ConnectError::Unreachable => "no route to this address: see ip route get",
        ConnectError::Protocol => {
            "no RDMA device of this host reaches this address: compare rdma link and ip route get"
        }
        ConnectError::NoDevice => {
            "the RDMA device was removed, or its address has changed: see rdma link"
        }
        ConnectError::NoMemory => "out of memory",
        ConnectError::NotConnected | ConnectError::PeerMoved | ConnectError::Unsupported => {
            return None;
        }
    })
}

/// The server has answered a Call with RDMA_ERROR, and the RPC fails with EIO. Runs in the receive
/// worker.
#[cold]
pub(super) fn call_refused(peer: Option<SockAddr>, call: CallName<'_>, error: &RdmaError) {
    let (Some(peer), true) = (peer, net_ratelimit()) else {
        return;
    };
    match *error {
        RdmaError::Vers { low, high } => pr_notice!(
            "{peer} has refused {call} (ERR_VERS): it speaks RPC-over-RDMA versions \
             {low} to {high}\n"
        ),
        RdmaError::Chunk => pr_notice!(
            "{peer} has refused the chunks of {call} (ERR_CHUNK): try a smaller rsize and wsize\n"
        ),
    }
}
