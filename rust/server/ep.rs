// SPDX-License-Identifier: GPL-2.0

//! State of one connection: the context of a server's endpoint.
//!
//! C: svc_rdma.h, struct svcxprt_rdma

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        SpinLock,
        SpinLockGuard, //
    }, //
};

use super::{
    call::{
        Buffer,
        Call, //
    },
    counters::Counters,
    exposed::ExposedReplies,
    read_throttle::{
        ReadBacklog,
        ReadThrottle, //
    },
    recv_queue::RecvQueue,
    send_backlog::SendBacklog,
    stall::StallDetector, //
};
use crate::{
    lib::{
        clock::Since,
        close_reason::{
            CloseReason,
            Closed, //
        },
        llist::{
            Queue,
            Stack, //
        },
        sync::{
            Atomic,
            SetOnce, //
        }, //
    },
    sunrpc::svc::{
        StateFile,
        XprtHandle,
        XprtTimer, //
    },
    verbs::{
        CallReadDone,
        Endpoint,
        SendQueue,
        Sent, //
    }, //
};

/// Where a connection waits to be accepted.
pub(super) trait Waiting: Send + Sync + 'static {
    /// Makes a worker remove the connections that have ended. Called by a handler of an ended
    /// connection, which must not destroy its own cm_id.
    fn remove_gone(&self);
}

/// The context of a connection's endpoint.
#[pin_data]
pub(super) struct ServerEp {
    /// Holds the connection until a thread accepts it.
    accept_queue: KBox<dyn Waiting>,
    /// The transport; set when the connection is accepted.
    xprt: SetOnce<XprtHandle>,
    /// The debugfs file of the connection.
    pub(super) file: StateFile,
    pub(super) counters: Counters,
    /// When the connection changed state: it was created, was established, or ended.
    since: Since,
    /// Why the connection has ended.
    closed: Closed,
    /// The connection has ended. [`Self::attach`] reads and clears this.
    gone: Atomic<bool>,
    /// The CM has reported the connection as established. Calls that arrive earlier wait, which
    /// keeps the Send Queue empty until then.
    established: Atomic<bool>,
    #[pin]
    pub(super) recv_queue: RecvQueue,
    #[pin]
    pub(super) incoming: SpinLock<Incoming>,
    pub(super) read_throttle: ReadThrottle,
    #[pin]
    pub(super) send_backlog: SendBacklog,
    /// Completed Sends whose pages a thread has to release.
    pub(super) finished: Stack<Sent>,
    #[pin]
    pub(super) exposed: ExposedReplies,
    #[pin]
    pub(super) stall_detector: StallDetector,
    /// Wakes a thread to check exposed Replies and the Send Queue.
    #[pin]
    pub(super) timer: XprtTimer,
}

/// Work for an nfsd thread. `XPT_DATA` is set for this work, and cleared by a thread that finds
/// none, only under this lock.
///
/// An [`XprtTimer`] sets the flag without the lock. A thread that clears the flag afterwards still
/// sees the expiry: it is recorded with full ordering before the flag is set, and
/// `svc_xprt_received()` has a full barrier between clearing the flag and the thread's check.
pub(super) struct Incoming {
    /// Received messages.
    pub(super) fresh: Queue<Buffer>,
    /// Calls whose RDMA Reads have completed.
    pub(super) read_done: Queue<CallReadDone<Call>>,
    /// Calls whose Read chunks wait to be fetched.
    pub(super) read_backlog: ReadBacklog,
}

impl ServerEp {
    pub(super) fn new(accept_queue: KBox<dyn Waiting>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            accept_queue,
            xprt: SetOnce::new(),
            file: StateFile::new(),
            counters: Counters::new(),
            since: Since::now(),
            closed: Closed::new(),
            gone: Atomic::new(false),
            established: Atomic::new(false),
            recv_queue <- RecvQueue::new(),
            incoming <- new_spinlock!(
                Incoming {
                    fresh: Queue::new(),
                    read_done: Queue::new(),
                    read_backlog: ReadBacklog::new(),
                },
                "ServerEp::incoming"
            ),
            read_throttle: ReadThrottle::new(),
            send_backlog <- SendBacklog::new(),
            finished: Stack::new(),
            exposed <- ExposedReplies::new(),
            stall_detector <- StallDetector::new(),
            timer <- XprtTimer::new(),
        })
    }

    /// Sets the transport; `false` if the connection has ended already.
    pub(super) fn attach(&self, xprt: XprtHandle) -> bool {
        self.timer.attach(xprt.clone());
        self.xprt.populate(xprt);
        // Pairs with `close`: either `close` sees the transport, or this sees that `close` ran.
        !self.gone.xchg(false, Full)
    }

    /// Whether the connection ended before it had a transport.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    #[inline]
    pub(super) fn xprt(&self) -> Option<&XprtHandle> {
        self.xprt.as_ref()
    }

    /// Makes SUNRPC close the transport. Safe in any context.
    #[cold]
    pub(super) fn close(&self, reason: CloseReason) {
        if let Some(xprt) = self.set_gone(reason) {
            xprt.deferred_close();
        }
    }

    /// [`Self::end`] for the removal of the device. The removal waits for the connection, and must
    /// not wait for an nfsd thread.
    #[cold]
    pub(super) fn remove(&self) {
        match self.set_gone(CloseReason::DeviceRemoved) {
            Some(xprt) => xprt.close_by_worker(),
            None => self.accept_queue.remove_gone(),
        }
    }

    /// Notes that the connection ends. Returns the transport, if there is one to close.
    fn set_gone(&self, reason: CloseReason) -> Option<&XprtHandle> {
        self.note_close(reason);
        self.gone.xchg(true, Full);
        self.xprt()
    }

    /// [`Self::close`] for handlers of the connection manager. Also removes a connection that no
    /// thread has accepted from the queue of its listener.
    #[cold]
    pub(super) fn end(&self, reason: CloseReason) {
        self.close(reason);
        if self.xprt().is_none() {
            self.accept_queue.remove_gone();
        }
    }

    /// Notes that the connection ends, for `reason` if none is noted yet. Safe in any context.
    pub(super) fn note_close(&self, reason: CloseReason) {
        if self.closed.get().is_none() {
            self.since.restart();
        }
        self.closed.note(reason);
    }

    /// Why the connection has ended, if it has.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.closed.get()
    }

    /// Milliseconds since the connection was created, was established, or ended.
    pub(super) fn state_ms(&self) -> u64 {
        self.since.ms()
    }

    /// Whether the transport is closing.
    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.xprt().is_none_or(XprtHandle::is_closing)
    }

    /// The peer has been told that it is accepted.
    pub(super) fn set_established(&self) {
        self.since.restart();
        self.established.store(true, Relaxed);
        // Calls may have arrived already.
        self.wake_for(self.incoming.lock());
    }

    /// Whether the peer has been told that it is accepted.
    #[inline]
    pub(super) fn is_established(&self) -> bool {
        self.established.load(Relaxed)
    }

    /// Schedules stall detection. Called after each reservation of entries of `queue`.
    #[inline]
    pub(super) fn entries_reserved(&self, queue: &SendQueue) {
        self.stall_detector.entries_reserved(queue, &self.timer);
    }

    /// Releases the pages of completed Sends.
    #[inline]
    pub(super) fn clear_finished(&self, ep: &Endpoint<Self>) {
        let mut finished = self.finished.take_all();
        while let Some(sent) = finished.pop() {
            ep.sender().put_sent(ep, sent);
        }
    }

    /// Wakes a thread once no chain waits for the Send Queue. While chains wait, `has_wspace` is
    /// false, and SUNRPC gives the transport no thread. `XPT_DATA` stays set for waiting Calls.
    #[cold]
    pub(super) fn send_queue_has_room(&self) {
        if let Some(xprt) = self.xprt() {
            xprt.enqueue();
        }
    }

    /// Wakes an nfsd thread to release the pages of completed Sends in `finished`.
    ///
    /// Needs no lock of `incoming`: a thread that clears `XPT_DATA` later releases these pages
    /// afterwards, when it releases its request. `svc_xprt_received()` is a full barrier between
    /// the two steps, and so is the addition to `finished` before this call.
    #[inline]
    pub(super) fn wake_to_release(&self) {
        if let Some(xprt) = self.xprt() {
            xprt.set_data();
            xprt.enqueue();
        }
    }

    /// Wakes an nfsd thread for work that was added to `incoming`. Does nothing, and returns
    /// `false`, until the connection is established: [`Self::set_established`] wakes a thread then.
    #[inline]
    pub(super) fn wake_for(&self, incoming: SpinLockGuard<'_, Incoming>) -> bool {
        // With the lock held: `set_established` takes it after its store, and finds this work.
        if !self.is_established() {
            return false;
        }
        let xprt = self.xprt();
        if let Some(xprt) = xprt {
            xprt.set_data();
        }
        drop(incoming);
        if let Some(xprt) = xprt {
            xprt.enqueue();
        }
        true
    }
}
