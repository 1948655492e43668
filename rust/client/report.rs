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
    sunrpc::xprt::CallName,
    wire::RdmaError, //
};

use super::connect_failure::ConnectFailure;

/// What was last logged about a transport's attempts to connect. An outage logs each reason once.
pub(super) struct ConnectReport {
    /// The number of the [`ConnectFailure`], or [`Self::CONNECTED`].
    last: Atomic<u64>,
}

impl ConnectReport {
    const CONNECTED: u64 = 0;

    pub(super) const fn new() -> Self {
        Self {
            last: Atomic::new(Self::CONNECTED),
        }
    }

    /// Reports a failed attempt to connect. Runs in the connect worker.
    pub(super) fn failed(&self, peer: Option<SockAddr>, failure: ConnectFailure) {
        let (Some(remedy), Some(peer)) = (failure.remedy(), peer) else {
            return;
        };
        let code = failure.code();
        if self.last.load(Relaxed) != code && net_ratelimit() {
            self.last.store(code, Relaxed);
            pr_notice!(
                "cannot connect to {peer}: {}{remedy}\n",
                format_args!("{failure}")
            );
        }
    }

    /// Reports a successful attempt to connect. Runs in the connect worker.
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

/// Reports that the server has answered a Call with RDMA_ERROR, and that the RPC fails with EIO.
/// Runs in the receive worker.
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
