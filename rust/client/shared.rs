// SPDX-License-Identifier: GPL-2.0

//! What a transport has from beginning to end, whether connected or not.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    sunrpc::xprt::{
        Credits,
        ReclaimScope,
        ReversePool,
        XprtHandle, //
    },
    trace::trace,
    verbs::RegionWaiter, //
};

use super::{
    recv_queue::RecvPool,
    reply_history::Habits,
    stats::Stats,
    transport::Rdma,
    tunables, //
};

/// The transport's own, shared with its connections.
#[pin_data]
pub(super) struct Shared {
    /// SUNRPC's side of it.
    pub(super) xprt: XprtHandle<Rdma>,
    /// Credits of Calls that were given up.
    pub(super) credits: Arc<Credits<XprtHandle<Rdma>>>,
    /// Reverse Calls that this end lets be outstanding.
    pub(super) reverse_calls: u32,
    /// Places for reverse Calls.
    pub(super) reverse: Arc<ReversePool<Rdma>>,
    /// What Replies are like.
    pub(super) habits: Habits,
    /// Counters.
    pub(super) stats: Stats,
    /// Receive buffers.
    #[pin]
    pub(super) recv_pool: RecvPool,
    /// Octets that a reverse Call or its Reply may have; SUNRPC asks whenever it likes.
    pub(super) reverse_payload: Atomic<u32>,
}

impl Shared {
    pub(super) fn new(
        xprt: XprtHandle<Rdma>,
        credits: Arc<Credits<XprtHandle<Rdma>>>,
        reverse: Arc<ReversePool<Rdma>>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                credits,
                reverse_calls: tunables::reverse_calls(),
                reverse,
                habits: Habits::new(),
                stats: Stats::new(),
                recv_pool <- RecvPool::new(),
                reverse_payload: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes the agreement on a connection.
    pub(super) fn agreed(&self, reverse_payload: u32) {
        self.reverse_payload.store(reverse_payload, Relaxed);
    }
}

/// Calls that wait for memory regions.
pub(super) struct RegionWaiters(pub(super) Arc<Shared>);

impl RegionWaiter for RegionWaiters {
    type Scope = ReclaimScope;

    fn scope(&self) -> ReclaimScope {
        self.0.xprt.reclaim_scope()
    }

    fn one_more(&self) {
        self.0.xprt.write_space();
    }

    fn refilled(&self, made: u32) {
        trace!(xprtrdma_createmrs(self.0.xprt.peer(), made));
        self.0.stats.regions_made.add(u64::from(made));
        self.0.xprt.write_space();
    }
}
