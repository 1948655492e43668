// SPDX-License-Identifier: GPL-2.0

//! State of one connection: the context of a client's endpoint.
//!
//! C: xprt_rdma.h, struct rpcrdma_ep

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};

use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions, //
        },
        credit::Window, //
    },
    lib::{
        close_reason::{
            CloseReason,
            Closed, //
        },
        sync::{
            Atomic,
            SetOnce, //
        }, //
    },
    verbs::{
        Endpoint,
        MrRefresh,
        RecvWorker, //
    },
    wire::{
        ErrorReply,
        ReadList, //
    }, //
};

use super::{
    answer::FenceWaiter,
    connect_failure::ConnectFailure,
    connect_wait::{
        ConnectProgress,
        ConnectWait, //
    },
    ctrl_queue::CtrlQueue,
    dones::Done,
    limits::Limits,
    recv_queue::RecvQueue,
    shared::{
        MrWaiters,
        XprtShared, //
    }, //
};

/// The context of a connection's endpoint.
#[pin_data]
pub(super) struct ClientEp {
    /// State that outlives the connection.
    pub(super) shared: Arc<XprtShared>,
    /// Set once the device is known.
    limits: SetOnce<Limits>,
    pub(super) recv_queue: RecvQueue,
    /// Calls that may be outstanding: a [`Window`]. Written by the receive worker only.
    window: Atomic<u64>,
    /// The grant in the latest Reply, as received. Written by the receive worker only.
    latest_grant: Atomic<u32>,
    /// The window last set in SUNRPC, no larger than the number of posted Receives allows. Written
    /// by the receive worker only.
    told_window: Atomic<u32>,
    /// RDMA_ERRORs that answer backchannel Calls.
    #[pin]
    errors: CtrlQueue<ErrorReply>,
    /// Inline threshold from the server, in bytes. Set when the peer accepts.
    inline_receive: Atomic<u32>,
    /// The server has sent private data. Set when the peer accepts.
    private_data: Atomic<bool>,
    /// Both ends support pulled Replies. Set when the peer accepts.
    pulled_replies: Atomic<bool>,
    /// Both ends support Remote Invalidation. Set when the peer accepts.
    remote_invalidation: Atomic<bool>,
    /// RDMA_DONEs that acknowledge fetched Replies.
    #[pin]
    dones: CtrlQueue<Done>,
    /// Allocates more MRs.
    pub(super) mr_refresh: SetOnce<Arc<MrRefresh<FenceWaiter, MrWaiters>>>,
    /// Why the connection has ended.
    closed: Closed,
    /// Set while SUNRPC already considers the transport disconnected. Calling
    /// `xprt_force_disconnect()` again would close the *next* connection.
    disconnect_reported: Atomic<bool>,
    /// Progress of the connection attempt.
    #[pin]
    pub(super) connect_wait: ConnectWait,
}

impl ClientEp {
    pub(super) fn new(shared: Arc<XprtShared>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            shared,
            limits: SetOnce::new(),
            recv_queue: RecvQueue::new(),
            window: Atomic::new(Window::FRESH.to_bits()),
            latest_grant: Atomic::new(Window::FRESH.granted()),
            told_window: Atomic::new(Window::FRESH.granted()),
            errors <- CtrlQueue::new(),
            inline_receive: Atomic::new(0),
            private_data: Atomic::new(false),
            pulled_replies: Atomic::new(false),
            remote_invalidation: Atomic::new(false),
            dones <- CtrlQueue::new(),
            mr_refresh: SetOnce::new(),
            closed: Closed::new(),
            disconnect_reported: Atomic::new(true),
            connect_wait <- ConnectWait::new(),
        }? Error)
    }

    /// Sets the limits, before the first Receive is posted.
    pub(super) fn set_limits(&self, limits: Limits) {
        self.limits.populate(limits);
    }

    /// The limits; [`Limits::NONE`] until the device is known.
    #[inline]
    pub(super) fn limits(&self) -> &Limits {
        self.limits.as_ref().unwrap_or(&Limits::NONE)
    }

    /// The extensions beyond RFC 8166 that both ends support.
    #[inline]
    pub(super) fn extensions(&self) -> Extensions {
        Extensions {
            pulled_replies: self.pulled_replies.load(Relaxed),
        }
    }

    /// Whether the server has sent private data (RFC 8797).
    pub(super) fn has_private_data(&self) -> bool {
        self.private_data.load(Relaxed)
    }

    /// The length of the longest message from the server, in bytes.
    #[inline]
    pub(super) fn inline_receive(&self) -> u32 {
        self.inline_receive.load(Relaxed)
    }

    /// Makes room for RDMA_ERRORs.
    pub(super) fn open_errors(&self, ep: &Endpoint<Self>, sends: u32, calls: u32) -> Result {
        self.errors.open(ep, sends, calls)
    }

    /// Makes room for RDMA_DONEs.
    pub(super) fn open_dones(&self, ep: &Endpoint<Self>, sends: u32, calls: u32) -> Result {
        self.dones.open(ep, sends, calls)
    }

    /// Notes the terms of the peer's acceptance, and whether the peer has sent `private_data`.
    pub(super) fn established(
        &self,
        agreement: Agreement,
        extensions: Extensions,
        private_data: bool,
    ) {
        self.private_data.store(private_data, Relaxed);
        self.inline_receive.store(agreement.receive, Relaxed);
        self.pulled_replies
            .store(extensions.pulled_replies, Relaxed);
        self.remote_invalidation
            .store(agreement.remote_invalidation, Relaxed);
        self.disconnect_reported.store(false, Relaxed);
        self.connect_wait
            .answer(ConnectProgress::Established(agreement, extensions));
    }

    /// Applies the grant of a Reply. Posts Receives for all Replies before SUNRPC sends more Calls.
    #[inline]
    pub(super) fn grant(&self, worker: &RecvWorker<'_, Self>, credits: u32) {
        if credits != self.latest_grant.load(Relaxed) {
            self.latest_grant.store(credits, Relaxed);
            self.change_window(worker, credits);
        }
    }

    #[cold]
    fn change_window(&self, worker: &RecvWorker<'_, Self>, credits: u32) {
        let mut window = self.window();
        if window.grant(credits, self.limits().credits) {
            self.window.store(window.to_bits(), Relaxed);
            self.fill(worker);
        }
    }

    /// Posts Receives if there are not enough for all messages that may arrive.
    #[inline]
    pub(super) fn refill(&self, worker: &RecvWorker<'_, Self>) {
        if self.recv_queue.is_low() {
            self.fill(worker);
        }
    }

    /// Posts Receives for all messages that may arrive, and lets SUNRPC send as many Calls as have
    /// a Receive for their Reply.
    #[inline(never)]
    fn fill(&self, worker: &RecvWorker<'_, Self>) {
        let backchannel = self.limits().backchannel;
        let window = self.window();
        let posted = self.post_receives(worker, window.receives(backchannel));
        let open = window.covered(posted, backchannel);
        if open != self.told_window.load(Relaxed) {
            self.told_window.store(open, Relaxed);
            self.shared.xprt.set_window(open);
        }
    }

    /// Posts Receives if there are fewer than `needed`; returns how many are posted. Fewer than
    /// `needed` means that memory was short or the Receive Queue has failed.
    pub(super) fn post_receives(&self, ep: &Endpoint<Self>, needed: u32) -> u32 {
        let limits = self.limits();
        let pool = &self.shared.recv_pool;
        let size = limits.own.receive_size as usize;
        let refilled = self
            .recv_queue
            .refill(ep, pool, needed, limits.receive_batch(), size);
        if refilled.is_err() {
            self.recv_failed(CloseReason::PostFailed);
        }
        self.recv_queue.posted()
    }

    fn window(&self) -> Window {
        Window::from_bits(self.window.load(Relaxed))
    }

    /// The RDMA_DONE for the Reply `xid` that exposes `reads`; `None` if `reads` is empty.
    pub(super) fn done_for(&self, xid: u32, reads: ReadList<'_>) -> Option<Done> {
        Done::for_reply(xid, reads, self.remote_invalidation())
    }

    /// Sends `done`, or queues it until a control Send is idle. There is room for one RDMA_DONE per
    /// outstanding Call. A server that needs more is faulty, and its connection is closed.
    pub(super) fn send_done(&self, ep: &Endpoint<Self>, done: Done) {
        if self.dones.push(done) {
            self.send_dones(ep);
        } else {
            self.force_disconnect(CloseReason::DonesExceeded);
        }
    }

    /// Sends an RDMA_ERROR, or queues it until a control Send is idle. If the server exceeds its
    /// credits, some of its Calls get no answer.
    pub(super) fn send_error(&self, ep: &Endpoint<Self>, error: &ErrorReply) {
        self.errors.push(*error);
        self.send_errors(ep);
    }

    /// Sends queued RDMA_DONEs and RDMA_ERRORs as long as control Sends are idle.
    pub(super) fn send_queued(&self, ep: &Endpoint<Self>) {
        self.send_dones(ep);
        self.send_errors(ep);
    }

    fn send_dones(&self, ep: &Endpoint<Self>) {
        let bytes = &self.shared.stats.control_bytes;
        if self.dones.send(ep, self.limits().credits, bytes).is_err() {
            self.force_disconnect(CloseReason::PostFailed);
        }
    }

    fn send_errors(&self, ep: &Endpoint<Self>) {
        let credits = self.limits().backchannel;
        let bytes = &self.shared.stats.control_bytes;
        if self.errors.send(ep, credits, bytes).is_err() {
            self.force_disconnect(CloseReason::PostFailed);
        }
    }

    /// Wakes the Calls that wait for MRs. Called when MRs may have returned to the pool.
    #[inline]
    pub(super) fn wake_mr_waiters(&self) {
        let refresh = self.mr_refresh.as_ref();
        if refresh.is_some_and(|refresh| refresh.pool().was_wanted()) {
            self.shared.xprt.write_space();
        }
    }

    /// Whether an MR had `handle` for the Call `xid`, which may have been abandoned since.
    #[cold]
    pub(super) fn gave_out(&self, xid: u32, handle: u32) -> bool {
        let refresh = self.mr_refresh.as_ref();
        refresh.is_some_and(|refresh| refresh.pool().gave_out(xid, handle))
    }

    /// Whether the connection is established and no Call is outstanding. May sleep.
    pub(super) fn is_idle(&self) -> bool {
        self.connect_wait.is_established() && !self.shared.xprt.has_outstanding_calls()
    }

    /// Notes that the connection attempt has failed, or that the connection is lost for `reason`.
    /// May sleep.
    pub(super) fn connect_failed(&self, failure: ConnectFailure, reason: CloseReason) {
        self.shared.history.report(failure);
        if self.connect_wait.fail(failure.error()) {
            self.force_disconnect(reason);
        }
    }

    /// Handles a failed Receive. May sleep.
    pub(super) fn recv_failed(&self, reason: CloseReason) {
        if self.connect_wait.recv_failed() {
            self.force_disconnect(reason);
        }
    }

    /// Makes SUNRPC close the connection, once. Safe in any context.
    ///
    /// C: verbs.c, rpcrdma_force_disconnect()
    pub(super) fn force_disconnect(&self, reason: CloseReason) {
        self.closed.note(reason);
        if !self.disconnect_reported.xchg(true, Relaxed) {
            self.shared.xprt.force_disconnect();
        }
    }

    /// Notes that this end closes the connection, for `reason` unless the connection has ended
    /// already. SUNRPC is not told again that the connection is lost.
    pub(super) fn suppress_disconnect(&self, reason: CloseReason) {
        self.disconnect_reported.store(true, Relaxed);
        if self.closed.get().is_none() {
            self.closed.note(reason);
        }
        self.shared
            .history
            .closed(self.closed.get().unwrap_or(reason));
    }

    /// Notes why the connection is about to end.
    pub(super) fn note_close(&self, reason: CloseReason) {
        self.closed.note(reason);
    }

    /// Why the connection has ended, if it has.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.closed.get()
    }

    /// The credits that the latest Reply has granted.
    pub(super) fn granted(&self) -> u32 {
        self.window().granted()
    }

    /// Whether both ends support Remote Invalidation.
    pub(super) fn remote_invalidation(&self) -> bool {
        self.remote_invalidation.load(Relaxed)
    }
}
