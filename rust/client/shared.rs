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
        BackchannelPool,
        Credits,
        ReclaimScope,
        XprtHandle, //
    },
    trace::trace,
    verbs::MrWaiter, //
};

use super::{
    recv_queue::RecvPool,
    reply_history::ReplyHistories,
    stats::Stats,
    transport::RdmaXprt,
    tunables, //
};

/// The transport's own, shared with its connections.
#[pin_data]
pub(super) struct XprtShared {
    /// SUNRPC's side of it.
    pub(super) xprt: XprtHandle<RdmaXprt>,
    /// Credits of Calls that were given up.
    pub(super) credits: Arc<Credits<XprtHandle<RdmaXprt>>>,
    /// Reverse Calls that this end lets be outstanding.
    pub(super) backchannel_calls: u32,
    /// Places for reverse Calls.
    pub(super) backchannel: Arc<BackchannelPool<RdmaXprt>>,
    /// What Replies are like.
    pub(super) reply_histories: ReplyHistories,
    /// Counters.
    pub(super) stats: Stats,
    /// Receive buffers.
    #[pin]
    pub(super) recv_pool: RecvPool,
    /// Bytes that a reverse Call or its Reply may have; SUNRPC asks whenever it likes.
    pub(super) backchannel_payload: Atomic<u32>,
}

impl XprtShared {
    pub(super) fn new(
        xprt: XprtHandle<RdmaXprt>,
        credits: Arc<Credits<XprtHandle<RdmaXprt>>>,
        backchannel: Arc<BackchannelPool<RdmaXprt>>,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                credits,
                backchannel_calls: tunables::backchannel_calls(),
                backchannel,
                reply_histories: ReplyHistories::new(),
                stats: Stats::new(),
                recv_pool <- RecvPool::new(),
                backchannel_payload: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes the agreement on a connection.
    pub(super) fn agreed(&self, backchannel_payload: u32) {
        self.backchannel_payload.store(backchannel_payload, Relaxed);
    }
}

/// Calls that wait for memory regions.
pub(super) struct MrWaiters(pub(super) Arc<XprtShared>);

impl MrWaiter for MrWaiters {
    type Scope = ReclaimScope;

    fn scope(&self) -> ReclaimScope {
        self.0.xprt.reclaim_scope()
    }

    fn one_more(&self) {
        self.0.xprt.write_space();
    }

    fn refilled(&self, made: u32) {
        trace!(xprtrdma_createmrs(self.0.xprt.peer(), made));
        self.0.stats.mrs_made.add(u64::from(made));
        self.0.xprt.write_space();
    }
}
