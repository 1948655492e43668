// SPDX-License-Identifier: GPL-2.0

//! What a connection knows of itself, and how it meets the events of its identifier and queues.

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        CondVar,
        Mutex,
        SetOnce, //
    }, //
};

use crate::{
    engine::{
        agreement::{
            Agreement,
            Extensions,
            ReadDepths, //
        },
        credit::Window, //
    },
    lib::counter::Gauge,
    sunrpc::xprt::ConnectError,
    trace::trace,
    verbs::{
        CmEvent,
        CtrlSendPool,
        Drained,
        Endpoint,
        EndpointOps,
        Exposes,
        Fenced,
        MrRefresh,
        QpEnded,
        RecvBuf,
        RecvStatus,
        RecvWorker,
        ReplyReader,
        ReplyReads,
        Requester,
        SendWorker, //
        WcStatus,
    },
    wire::{
        extensions::Offer,
        private_data::PrivateData, //
    }, //
};

use super::{
    complete::{
        self,
        FenceWaiter, //
    },
    connect_wait::{
        ConnectProgress, //
        ConnectWait,
    },
    limits::Limits,
    recv_queue::Receives,
    reply,
    reply_read::{
        self,
        Dones,
        ReplyRead, //
    },
    shared::{
        MrWaiters,
        XprtShared, //
    },
    tunables, //
};

/// A connection's own state.
#[pin_data]
pub(super) struct ClientEp {
    /// What outlives the connection.
    pub(super) shared: Arc<XprtShared>,
    /// Known once the device is.
    limits: SetOnce<Limits>,
    /// The Receive Queue.
    pub(super) receives: Receives,
    /// Calls that may be outstanding: a [`Window`]. Written by the receive worker.
    window: Atomic<u64>,
    /// What SUNRPC was told of it: as many as there are Receives for. Written by the receive
    /// worker.
    told_window: Atomic<u32>,
    /// Messages of the receive worker's own.
    pub(super) ctrl_sends: SetOnce<CtrlSendPool>,
    /// Replies may be pulled. Known once the peer has accepted.
    pulled_replies: Atomic<bool>,
    /// Both ends allow Remote Invalidation.
    invalidates: Atomic<bool>,
    /// Replies that are being pulled.
    #[pin]
    pub(super) reply_reads: ReplyReads<ReplyRead>,
    /// What the peer is told afterwards.
    #[pin]
    pub(super) dones: Dones,
    /// Makes more memory regions.
    pub(super) refill: SetOnce<Arc<MrRefresh<FenceWaiter, MrWaiters>>>,
    /// SUNRPC knows that there is no connection: it has been told that this one is lost, or has
    /// ended it, or there has been none yet. To tell it again would have it close the next one.
    disconnect_reported: Atomic<bool>,
    /// How it was made.
    #[pin]
    pub(super) connect_wait: ConnectWait,
    /// The fence of an RPC that is given up: one at a time.
    #[pin]
    pub(super) fenced: Mutex<Option<Fenced>>,
    #[pin]
    pub(super) fence_done: CondVar,
}

impl ClientEp {
    pub(super) fn new(shared: Arc<XprtShared>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            shared,
            limits: SetOnce::new(),
            receives: Receives::new(),
            window: Atomic::new(Window::FRESH.to_bits()),
            ctrl_sends: SetOnce::new(),
            pulled_replies: Atomic::new(false),
            invalidates: Atomic::new(false),
            reply_reads <- ReplyReads::new(),
            dones <- Dones::new(),
            told_window: Atomic::new(Window::FRESH.granted()),
            refill: SetOnce::new(),
            disconnect_reported: Atomic::new(true),
            connect_wait <- ConnectWait::new(),
            fenced <- new_mutex!(None, "Channel::fenced"),
            fence_done <- new_condvar!("Channel::fence_done"),
        }? Error)
    }

    /// Sets the sizes, before the first Receive is posted.
    pub(super) fn set_limits(&self, limits: Limits) {
        self.limits.populate(limits);
    }

    /// The sizes. Before the device is known, they are those of nothing.
    #[inline]
    pub(super) fn limits(&self) -> &Limits {
        self.limits.as_ref().unwrap_or(&Limits::NONE)
    }

    /// What was agreed on beyond RFC 8166.
    #[inline]
    pub(super) fn extensions(&self) -> Extensions {
        Extensions {
            pulled_replies: self.pulled_replies.load(Relaxed),
        }
    }

    /// Whether handles of the peer may be invalidated.
    pub(super) fn invalidates(&self) -> bool {
        self.invalidates.load(Relaxed)
    }

    /// A Reply has granted credits: there are Receives for all Replies before more Calls go out.
    #[inline]
    pub(super) fn grant(&self, worker: &RecvWorker<'_, Self>, credits: u32) {
        let mut window = self.window();
        if window.grant(credits, self.limits().requests) {
            self.window.store(window.to_bits(), Relaxed);
            self.refill(worker);
        }
    }

    /// Posts Receives for all messages that may come, and lets out as many Calls as have one.
    #[inline]
    pub(super) fn refill(&self, worker: &RecvWorker<'_, Self>) {
        let backchannel = self.limits().backchannel;
        let window = self.window();
        let standing = self.receives.refill(worker, window.receives(backchannel));
        let open = window.covered(standing, backchannel);
        if open != self.told_window.load(Relaxed) {
            self.told_window.store(open, Relaxed);
            self.shared.xprt.set_window(open);
        }
    }

    #[inline]
    fn window(&self) -> Window {
        Window::from_bits(self.window.load(Relaxed))
    }

    /// Regions may have been put back: who waits for some is told.
    #[inline]
    pub(super) fn mrs_are_back(&self) {
        let refill = self.refill.as_ref();
        if refill.is_some_and(|refill| refill.pool().was_wanted()) {
            self.shared.xprt.write_space();
        }
    }

    /// Whether a region had this handle for that Call, which may have been given up since.
    #[cold]
    pub(super) fn gave_out(&self, xid: u32, handle: u32) -> bool {
        let refill = self.refill.as_ref();
        refill.is_some_and(|refill| refill.pool().gave_out(xid, handle))
    }

    /// The attempt has failed, or the connection is lost.
    fn over(&self, error: ConnectError) {
        if self.connect_wait.fail(error) {
            self.force_disconnect();
        }
    }

    /// A Receive has failed. Not for interrupts.
    pub(super) fn receive_failed(&self) {
        if self.connect_wait.recv_failed() {
            self.force_disconnect();
        }
    }

    /// Has SUNRPC close the connection, once. Good in any context.
    pub(super) fn force_disconnect(&self) {
        if !self.disconnect_reported.xchg(true, Relaxed) {
            self.shared.xprt.force_disconnect();
        }
    }

    /// From now on nobody needs to be told that the connection is lost: it is this end's doing.
    pub(super) fn suppress_disconnect(&self) {
        self.disconnect_reported.store(true, Relaxed);
    }
}

impl EndpointOps for ClientEp {
    type RecvData = ();

    const BUFFERS: &'static Gauge = &tunables::MESSAGE_BYTES;

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        let this = ep.context();
        match event {
            CmEvent::AddrResolved | CmEvent::RouteResolved => {
                this.connect_wait.answer(ConnectProgress::Answered)
            }
            CmEvent::Established {
                private_data,
                reads,
            } => {
                let limits = this.limits();
                let peer = PrivateData::of_peer(private_data);
                let agreement = Agreement::between(&limits.own, &peer);
                let depths = ReadDepths {
                    initiator_depth: u32::from(limits.read_depth),
                    responder_resources: u32::from(reads),
                };
                let theirs = Offer::of_peer(private_data);
                let extensions = Extensions::between(&limits.offer(), &theirs, &depths);
                this.pulled_replies
                    .store(extensions.pulled_replies, Relaxed);
                this.invalidates
                    .store(agreement.remote_invalidation, Relaxed);
                this.disconnect_reported.store(false, Relaxed);
                this.connect_wait
                    .answer(ConnectProgress::Established(agreement, extensions));
            }
            CmEvent::AddrError { unanswered: false } => this.over(ConnectError::Protocol),
            CmEvent::RouteError => this.over(ConnectError::Unreachable),
            // It does not answer. As a timeout `mount`, and others that might look elsewhere, would
            // ask again for minutes; as an unreachable network it would end what a container waits
            // for (fatal_neterrors), each time its server is slow to start.
            CmEvent::AddrError { unanswered: true } | CmEvent::Unreachable => {
                this.over(ConnectError::HostUnreachable);
            }
            // The peer still has an old connection, and will have noticed by the next attempt.
            CmEvent::Rejected { stale: true } => this.over(ConnectError::NotConnected),
            CmEvent::Rejected { .. } => this.over(ConnectError::Refused),
            CmEvent::ConnectError | CmEvent::Disconnected => {
                this.over(ConnectError::NotConnected);
            }
            CmEvent::AddrChange | CmEvent::DeviceRemoval => this.over(ConnectError::NoDevice),
            CmEvent::Other => {}
        }
    }

    // `qp_fatal` may be an interrupt, where SUNRPC's lock cannot be taken. What is posted is
    // flushed after such an event, and that ends the connection.

    fn device_removed(ep: &Endpoint<Self>) {
        if let Some(device) = ep.device_name() {
            trace!(xprtrdma_device_removal(&device, ep.peer_addr()));
        }
        ep.context().over(ConnectError::NoDevice);
    }

    #[inline]
    fn trace_received(ep: &Endpoint<Self>, serial: i32, status: &RecvStatus, vendor_err: u32) {
        let bytes = match *status {
            RecvStatus::Received { bytes, .. } => bytes as u32,
            _ => 0,
        };
        trace!(xprtrdma_wc_receive(
            ep.recv_cid(serial),
            status.code(),
            vendor_err,
            bytes
        ));
    }

    fn received(worker: &RecvWorker<'_, Self>, recv: RecvBuf<()>, status: RecvStatus) {
        reply::received(worker, recv, status);
    }

    fn drained(ep: &Drained<'_, Self>) {
        ep.context().reply_reads.drained(ep);
        // No other connection can use those that are idle.
        ep.context().shared.recv_pool.close();
    }
}

impl Requester for ClientEp {
    fn sent(worker: &SendWorker<'_, Self>, status: WcStatus) {
        let this = worker.context();
        this.shared.xprt.write_space();
        if status != WcStatus::Success {
            this.force_disconnect();
        }
    }

    fn ctrl_sent(worker: &SendWorker<'_, Self>, status: WcStatus) {
        let this = worker.context();
        match status {
            WcStatus::Success => this.dones.next(worker),
            _ => this.force_disconnect(),
        }
    }
}

impl Exposes for ClientEp {
    type Token = FenceWaiter;

    fn invalidated(
        worker: &SendWorker<'_, Self>,
        waiter: FenceWaiter,
        fence: Result<Fenced, QpEnded>,
    ) {
        complete::fenced(worker, waiter, fence);
    }

    fn not_registered(worker: &SendWorker<'_, Self>, status: WcStatus) {
        if status != WcStatus::Success {
            worker.context().force_disconnect();
        }
    }
}

impl ReplyReader for ClientEp {
    type ReplyRead = ReplyRead;

    fn reply_reads(&self) -> &ReplyReads<ReplyRead> {
        &self.reply_reads
    }

    fn pulled(worker: &SendWorker<'_, Self>, pulling: ReplyRead, status: WcStatus) {
        reply_read::pulled(worker, pulling, status);
    }
}
