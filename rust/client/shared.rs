// SPDX-License-Identifier: GPL-2.0

//! State of a transport that outlives its connections.
//!
//! C: xprt_rdma.h, struct rpcrdma_xprt

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};

use crate::{
    lib::sync::Atomic,
    sunrpc::xprt::{
        self,
        BackchannelPool,
        Credits,
        ReclaimScope,
        XprtHandle, //
    },
    trace::trace,
    verbs::MrWaiter, //
};

use super::{
    link_history::LinkHistory,
    recv_queue::RecvPool,
    reply_history::ReplyHistories,
    report::ConnectReport,
    stall::{
        StallDetector,
        StallTimer, //
    },
    stats::Stats,
    tunables, //
};

/// The client's transport: RPC-over-RDMA, the connecting end.
pub(super) struct RdmaXprt {
    pub(super) shared: Arc<XprtShared>,
}

/// An established connection. The holder of the send lock uses and closes it.
pub(super) type Connection = xprt::Connection<RdmaXprt>;

/// The state that a transport shares with its connections.
#[pin_data]
pub(super) struct XprtShared {
    /// SUNRPC's part of the transport.
    pub(super) xprt: XprtHandle<RdmaXprt>,
    /// Credits of abandoned Calls.
    pub(super) credits: Arc<Credits<XprtHandle<RdmaXprt>>>,
    /// Backchannel Calls that may be outstanding.
    pub(super) backchannel_calls: u32,
    /// Preallocated requests for backchannel Calls.
    pub(super) backchannel: Arc<BackchannelPool<RdmaXprt>>,
    /// Predicts which Replies will be long.
    pub(super) reply_histories: ReplyHistories,
    /// Watches the Reads of Replies.
    pub(super) stall_timer: Arc<StallTimer<RdmaXprt>>,
    pub(super) stats: Stats,
    /// What the kernel log says about connection attempts.
    pub(super) connect_report: ConnectReport,
    /// What has happened to the connections.
    pub(super) history: LinkHistory,
    /// Idle Receive buffers.
    #[pin]
    pub(super) recv_pool: RecvPool,
    /// Length limit of a backchannel Call and of its Reply. SUNRPC may ask for it at any time.
    pub(super) backchannel_payload: Atomic<u32>,
}

impl XprtShared {
    pub(super) fn new(
        xprt: XprtHandle<RdmaXprt>,
        credits: Arc<Credits<XprtHandle<RdmaXprt>>>,
        backchannel: Arc<BackchannelPool<RdmaXprt>>,
    ) -> Result<Arc<Self>> {
        let stall_timer = StallDetector::new(xprt.clone())?;
        Arc::pin_init(
            pin_init!(Self {
                xprt,
                credits,
                backchannel_calls: tunables::BACKCHANNEL_CALLS.get(),
                backchannel,
                reply_histories: ReplyHistories::new(),
                stall_timer,
                stats: Stats::new(),
                connect_report: ConnectReport::new(),
                history: LinkHistory::new(),
                recv_pool <- RecvPool::new(),
                backchannel_payload: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes what a new connection allows.
    pub(super) fn agreed(&self, backchannel_payload: u32) {
        self.backchannel_payload.store(backchannel_payload, Relaxed);
    }
}

/// Wakes the Calls that wait for MRs.
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
        // Without new MRs the Call would fail again at once, and start the worker again.
        if made > 0 {
            self.0.xprt.write_space();
        }
    }
}
