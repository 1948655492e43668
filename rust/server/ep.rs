// SPDX-License-Identifier: GPL-2.0

//! What the device reports about a connection: the handlers, and what they share with the threads.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        SetOnce,
        SpinLock,
        SpinLockGuard, //
    }, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    exposed::{
        ExposedReplies,
        Token, //
    },
    read_throttle::{
        ReadBacklog, //
        ReadThrottle,
    },
    recv_queue::RecvQueue,
    stall::{
        StallDetector, //
        Stalled,
    },
    tunables, //
};
use crate::{
    lib::{
        counter::Gauge,
        llist::{
            Queue,
            Stack, //
        }, //
    },
    sunrpc::svc::{
        SvcHandle, //
        XprtTimer,
    },
    trace::trace,
    verbs::{
        CallReadDone,
        CmEvent,
        Drained,
        Endpoint,
        EndpointOps,
        Exposes,
        Fenced,
        QpEnded,
        RecvCtxt,
        RecvStatus,
        RecvWorker,
        ReplySender,
        Responder,
        SendWorker,
        Sent, //
        WcStatus,
    }, //
};

/// A message that kept at most this many pages is cleared away by its completion's handler. More
/// would hold up the completions behind it, and are left to a service thread.
const FEW_PAGES: usize = 4;

/// The context of a connection's endpoint.
#[pin_data]
pub(super) struct ServerEp {
    /// The transport; there is none before the connection is accepted.
    xprt: SetOnce<SvcHandle>,
    /// The connection has ended; [`Self::attach`] asks, and takes it back.
    gone: Atomic<bool>,
    /// The peer knows that it is accepted. What it sends before waits for that, so that nothing is
    /// on the Send Queue until then.
    established: Atomic<bool>,
    #[pin]
    receives: RecvQueue,
    #[pin]
    incoming: SpinLock<Incoming>,
    pub(super) read_throttle: ReadThrottle,
    #[pin]
    sending: ReplySender<Call>,
    /// Messages that were sent and have pages to let go.
    finished: Stack<Sent>,
    #[pin]
    exposed: ExposedReplies,
    #[pin]
    stall_detector: StallDetector,
    /// When a thread is to [look](Self::look) at what is exposed, and at the Send Queue.
    #[pin]
    timer: XprtTimer,
}

/// What waits for a service thread. As far as it speaks of what is here, `XPT_DATA` is changed only
/// under this lock: the thread that finds nothing clears it.
///
/// An [`XprtTimer`] sets the flag without the lock. A thread that clears it
/// again does see the alarm: that it is due is noted with full ordering before the flag is set, and
/// `svc_xprt_received` has a full barrier between the thread's clearing the flag and its asking.
pub(super) struct Incoming {
    /// Calls as they were received.
    pub(super) fresh: Queue<Buffer>,
    /// Calls whose chunks were pulled.
    pub(super) pulled: Queue<CallReadDone<Call>>,
    /// Calls that wait to be pulled.
    pub(super) read_backlog: ReadBacklog,
}

impl ServerEp {
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            xprt: SetOnce::new(),
            gone: Atomic::new(false),
            established: Atomic::new(false),
            receives <- RecvQueue::new(),
            incoming <- new_spinlock!(
                Incoming {
                    fresh: Queue::new(),
                    pulled: Queue::new(),
                    read_backlog: ReadBacklog::none(),
                },
                "Channel::incoming"
            ),
            read_throttle: ReadThrottle::new(),
            sending <- ReplySender::new(),
            finished: Stack::new(),
            exposed <- ExposedReplies::new(),
            stall_detector <- StallDetector::new(),
            timer <- XprtTimer::new(),
        })
    }

    /// Names the transport; `false` if the connection has ended already.
    pub(super) fn attach(&self, xprt: SvcHandle) -> bool {
        self.timer.attach(xprt.clone());
        self.xprt.populate(xprt);
        // Pairs with `close`: either it sees the transport, or we see that it ran.
        !self.gone.xchg(false, Full)
    }

    /// Whether the connection has ended before there is a transport.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    #[inline]
    pub(super) fn xprt(&self) -> Option<&SvcHandle> {
        self.xprt.as_ref()
    }

    /// Has the transport closed, and ends all waits for the Send Queue. Not for interrupts.
    pub(super) fn close(&self) {
        self.gone.xchg(true, Full);
        if let Some(xprt) = self.xprt() {
            xprt.deferred_close();
        }
        self.sending.queue().close();
    }

    /// Whether the transport is closing.
    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.xprt().is_none_or(SvcHandle::is_closing)
    }

    #[inline]
    pub(super) fn receives(&self) -> &RecvQueue {
        &self.receives
    }

    #[inline]
    pub(super) fn incoming(&self) -> &SpinLock<Incoming> {
        &self.incoming
    }

    #[inline]
    pub(super) fn exposed(&self) -> &ExposedReplies {
        &self.exposed
    }

    /// What has a thread call [`Self::look`].
    #[inline]
    pub(super) fn timer(&self) -> &XprtTimer {
        &self.timer
    }

    /// To be called when entries of the Send Queue were reserved.
    #[inline]
    pub(super) fn stall_detector(&self) {
        self.stall_detector
            .stall_detector(self.sending.queue(), &self.timer);
    }

    /// Looks at what the client was given time for.
    #[cold]
    pub(super) fn poll(&self, ep: &Endpoint<Self>) {
        match self.stall_detector.poll(self.sending.queue()) {
            Ok(next) => {
                for when in [next, self.exposed.expire(ep)].into_iter().flatten() {
                    self.timer.set(when);
                }
            }
            Err(Stalled) => {
                tunables::STALLED.inc();
                self.close();
            }
        }
    }

    /// Clears away messages that were sent.
    #[inline]
    pub(super) fn clear_finished(&self, ep: &Endpoint<Self>) {
        let mut finished = self.finished.take_all();
        while let Some(sent) = finished.pop() {
            self.sending.put(ep, sent.into_message());
        }
    }

    /// Whether the peer knows that it is accepted.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        self.established.load(Relaxed)
    }

    /// To be called by a thread that has waited for the Send Queue and found room. While threads
    /// wait, SUNRPC gives the transport none, neither to clear up nor to receive.
    #[cold]
    pub(super) fn waited(&self, ep: &Endpoint<Self>) {
        self.clear_finished(ep);
        self.wake();
    }

    /// Tells SUNRPC that there is something for a service thread to do.
    #[inline]
    fn wake(&self) {
        if let Some(xprt) = self.xprt() {
            xprt.enqueue();
        }
    }

    /// [`Self::wake`], after what is to do was put into `incoming`. Before the peer knows that it
    /// is accepted, nothing is said: SUNRPC looks at the flag of a new transport by itself.
    #[inline]
    pub(super) fn wake_for(&self, incoming: SpinLockGuard<'_, Incoming>) {
        // Under the lock, which the event takes when this is so: it finds what is there by then.
        if !self.is_established() {
            return;
        }
        if let Some(xprt) = self.xprt() {
            xprt.set_data();
        }
        drop(incoming);
        self.wake();
    }
}

impl EndpointOps for ServerEp {
    type RecvData = RecvCtxt<Call>;

    const BUFFERS: &'static Gauge = &tunables::MESSAGE_BYTES;

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        let this = ep.context();
        match event {
            CmEvent::Established { .. } => {
                this.established.store(true, Relaxed);
                // Calls may have come already.
                this.wake_for(this.incoming.lock());
            }
            CmEvent::Disconnected
            | CmEvent::ConnectError
            | CmEvent::Unreachable
            | CmEvent::Rejected { .. }
            | CmEvent::DeviceRemoval => this.close(),
            _ => {}
        }
    }

    fn qp_fatal(ep: &Endpoint<Self>, code: u32) {
        if let Some(device) = ep.device_name() {
            trace!(svcrdma_qp_error(code, &device, ep.peer_addr()));
        }
        // Perhaps an interrupt, so that waits go on until the first work request is flushed.
        if let Some(xprt) = ep.context().xprt() {
            xprt.deferred_close();
        }
    }

    fn device_removed(ep: &Endpoint<Self>) {
        if let Some(device) = ep.device_name() {
            trace!(svcrdma_device_removal(&device, ep.peer_addr()));
        }
        ep.context().close();
    }

    #[inline]
    fn trace_received(ep: &Endpoint<Self>, serial: i32, status: &RecvStatus, vendor_err: u32) {
        match *status {
            RecvStatus::Received { len, .. } => {
                trace!(svcrdma_wc_recv(ep.recv_cid(serial), len as u32));
            }
            RecvStatus::Flushed => trace!(svcrdma_wc_recv_flush(
                ep.recv_cid(serial),
                status.code(),
                vendor_err
            )),
            RecvStatus::Failed(code) => {
                trace!(svcrdma_wc_recv_err(ep.recv_cid(serial), code, vendor_err));
            }
        }
    }

    fn received(worker: &RecvWorker<'_, Self>, mut buffer: Buffer, status: RecvStatus) {
        let this = worker.context();
        let standing = this.receives.ended();
        let RecvStatus::Received { len, invalidated } = status else {
            this.receives.recycle(buffer);
            this.close();
            return;
        };
        // If Receives cannot be posted, the connection is lost, and the client will send its Calls
        // again on another. Acting on this one would do it twice.
        if this.is_closing() || !this.receives.refill(worker, standing) {
            this.receives.recycle(buffer);
            this.close();
            return;
        }
        let call = &mut buffer.user_mut().call;
        call.bytes = len;
        call.invalidated = invalidated;
        let mut incoming = this.incoming.lock();
        incoming.fresh.push(buffer);
        this.wake_for(incoming);
    }

    fn drained(ep: &Drained<'_, Self>) {
        let this = ep.context();
        this.timer.cancel();
        this.clear_finished(ep);
        loop {
            let pulled = this.incoming.lock().pulled.pop();
            match pulled {
                Some(pulled) => drop(pulled.finish(ep)),
                None => break,
            }
        }
        this.exposed.drained(ep);
        this.sending.drained(ep);
    }
}

impl Responder for ServerEp {
    type Call = Call;

    #[inline]
    fn sending(&self) -> &ReplySender<Call> {
        &self.sending
    }

    fn sent(worker: &SendWorker<'_, Self>, sent: Sent, status: WcStatus) {
        let this = worker.context();
        if let Some(place) = sent.place() {
            this.exposed.sent(worker, place, sent);
        } else if sent.pages() <= FEW_PAGES {
            this.sending.put(worker, sent.into_message());
        } else if this.finished.push(sent) {
            // Nobody may come by for long; what waits here keeps pages.
            this.wake_for(this.incoming.lock());
        }
        if status != WcStatus::Success {
            this.close();
        }
    }

    fn pulled(worker: &SendWorker<'_, Self>, pulled: CallReadDone<Call>, status: WcStatus) {
        let this = worker.context();
        if status != WcStatus::Success {
            // The Call cannot be put together; the client has to send it again.
            this.close();
            let mut buffer = pulled.finish(worker);
            this.end_read(&mut buffer.user_mut().call);
            this.receives.recycle(buffer);
            return;
        }
        let mut incoming = this.incoming.lock();
        incoming.pulled.push(pulled);
        this.wake_for(incoming);
    }
}

impl Exposes for ServerEp {
    type Token = Token;

    fn invalidated(worker: &SendWorker<'_, Self>, place: Token, fence: Result<Fenced, QpEnded>) {
        let this = worker.context();
        match fence {
            Ok(_) => this.exposed.released(worker, place),
            // What is exposed goes when the queue pair is gone.
            Err(_) => this.close(),
        }
    }

    fn not_registered(worker: &SendWorker<'_, Self>, _status: WcStatus) {
        worker.context().close();
    }
}
