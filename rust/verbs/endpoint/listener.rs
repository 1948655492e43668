// SPDX-License-Identifier: GPL-2.0

//! A listener that survives the loss of its device and a move of its address to another device.
//!
//! C: svc_rdma_transport.c, svc_rdma_create_listen_id(), svc_rdma_listen_handler()
//!
//! After either event the cm_id is dead, and must be replaced. The event's handler must not destroy
//! its own cm_id, so a work item replaces it. If the RDMA core has no device for the address yet,
//! the work item tries again until there is one. Peers that connect in the meantime are refused and
//! try again.

use core::mem;

use kernel::{
    container_of,
    impl_has_delayed_work,
    new_delayed_work,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    workqueue::{
        self,
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

use crate::{
    bindings,
    lib::{
        counter::Gauge,
        sockaddr::{
            Net,
            SockAddr, //
        }, //
    }, //
};

use super::{
    cm_event::{
        CmEvent,
        IncomingConnection, //
    },
    completion::RecvWorker,
    ep::{
        Endpoint,
        EndpointBox, //
    },
    ops::EndpointOps,
    recv_ctxt::{
        RecvBuf,
        RecvStatus, //
    }, //
};

/// The first interval between attempts to listen again; each further one is twice as long. The core
/// learns of a moved address from the same notification as this listener, and takes a little
/// longer.
const MIN_RETRY: Msecs = 50;

/// The longest interval between attempts. When it is reached, the listener is reported as lost.
const MAX_RETRY: Msecs = 3200;

/// Counts nothing: a listener has no buffers.
static NO_BUFFERS: Gauge = Gauge::new();

/// The callbacks of a listener.
pub(crate) trait ListenerOps: Send + Sync + 'static {
    /// Handles a connection request. Called in the CM's workqueue; may sleep.
    fn connect_request(&self, request: IncomingConnection<'_>);

    /// Reports that attempts to listen on `addr` again have failed until their interval reached
    /// [`MAX_RETRY`]. The listener goes on trying.
    fn lost(&self, addr: &SockAddr, error: Error);

    /// Reports that the listener listens again, after [`Self::lost`].
    fn restored(&self, addr: &SockAddr);
}

/// A listener. Dropping it stops it, which sleeps.
pub(crate) struct Listening<A: ListenerOps>(Arc<Shared<A>>);

#[pin_data]
struct Shared<A: ListenerOps> {
    ops: A,
    net: Net,
    backlog: c_int,
    #[pin]
    state: Mutex<State<A>>,
    #[pin]
    retry: DelayedWork<Shared<A>>,
}

enum State<A: ListenerOps> {
    /// Listens on the address.
    Listening(EndpointBox<Listener<A>>, SockAddr),
    /// Could not listen on the address, and tries again after this interval.
    Retrying(SockAddr, Msecs),
    /// Not listening yet, or stopped.
    Stopped,
}

/// The state of the endpoint that listens.
#[pin_data]
struct Listener<A: ListenerOps> {
    shared: Arc<Shared<A>>,
}

impl_has_delayed_work! {
    impl{A: ListenerOps} HasDelayedWork<Self> for Shared<A> { self.retry }
}

impl<A: ListenerOps> Listening<A> {
    /// Listens on `addr`, for the family of that address only.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the CM's error, among them `EADDRINUSE`.
    pub(crate) fn new(net: Net, addr: &SockAddr, backlog: c_int, ops: A) -> Result<Self> {
        let shared = Arc::pin_init(
            pin_init!(Shared {
                ops,
                net,
                backlog,
                state <- new_mutex!(State::Stopped, "Listening::state"),
                retry <- new_delayed_work!("Listening::retry"),
            }),
            GFP_KERNEL,
        )?;
        let this = Self(shared);
        // Under the lock, so that the work item of an early event finds the endpoint.
        let mut state = this.0.state.lock();
        *state = this.0.listen(addr)?;
        drop(state);
        Ok(this)
    }

    /// The address. The CM may have chosen the port.
    pub(crate) fn local_addr(&self) -> Option<SockAddr> {
        match &*self.0.state.lock() {
            State::Listening(_, addr) | State::Retrying(addr, _) => Some(*addr),
            State::Stopped => None,
        }
    }

    /// Stops listening. When this returns, no connection request is being handled.
    pub(crate) fn stop(&self) {
        let last = mem::replace(&mut *self.0.state.lock(), State::Stopped);
        // Without the lock: the drop waits for the endpoint's handlers. No handler is then left to
        // queue the work item, which must return before the module is unloaded.
        drop(last);
        // SAFETY: `retry` is an initialised `delayed_work`: `new_delayed_work` has initialised it,
        // and `raw_as_work` and `raw_get` return its `work` member.
        unsafe {
            let work = Work::raw_get(DelayedWork::raw_as_work(&raw const self.0.retry));
            bindings::flush_delayed_work(container_of!(work, bindings::delayed_work, work));
        }
    }
}

impl<A: ListenerOps> Drop for Listening<A> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<A: ListenerOps> Shared<A> {
    /// Creates an endpoint that listens on `addr`.
    fn listen(self: &Arc<Self>, addr: &SockAddr) -> Result<State<A>> {
        let shared = self.clone();
        let context = try_pin_init!(Listener { shared }? Error);
        let ep = Endpoint::listen(self.net.clone(), addr, self.backlog, context)?;
        let addr = ep.local_addr().ok_or(EINVAL)?;
        Ok(State::Listening(ep, addr))
    }

    /// Tries to listen on `addr` again. `interval` is the time since the last attempt, 0 if this is
    /// the first.
    fn listen_again(self: &Arc<Self>, addr: &SockAddr, interval: Msecs) -> State<A> {
        match self.listen(addr) {
            Ok(listening) => {
                if interval == MAX_RETRY {
                    self.ops.restored(addr);
                }
                listening
            }
            Err(error) => {
                let next = (interval * 2).clamp(MIN_RETRY, MAX_RETRY);
                if next == MAX_RETRY && interval < next {
                    self.ops.lost(addr, error);
                }
                // Fails only if the work item is queued. This runs in the work item, so only an
                // event can have queued it.
                let _ =
                    workqueue::system_long().enqueue_delayed(self.clone(), msecs_to_jiffies(next));
                State::Retrying(*addr, next)
            }
        }
    }
}

impl<A: ListenerOps> WorkItem for Shared<A> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // `stop` takes the lock before the owner, and the reference to the namespace, can go.
        let mut state = this.state.lock();
        let (addr, interval) = match mem::replace(&mut *state, State::Stopped) {
            // The old cm_id occupies the address until it is dropped. Its handlers do not take this
            // lock.
            State::Listening(old, addr) => {
                drop(old);
                (addr, 0)
            }
            State::Retrying(addr, interval) => (addr, interval),
            State::Stopped => return,
        };
        *state = this.listen_again(&addr, interval);
    }
}

impl<A: ListenerOps> EndpointOps for Listener<A> {
    type RecvData = ();
    type SendSide = ();

    fn buffers() -> &'static Gauge {
        &NO_BUFFERS
    }

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        if matches!(event, CmEvent::AddrChange | CmEvent::DeviceRemoval) {
            // On the long workqueue, because the work item waits for handlers. Fails only if the
            // item is queued.
            let _ = workqueue::system_long().enqueue(ep.context().shared.clone());
        }
    }

    fn connect_request(ep: &Endpoint<Self>, request: IncomingConnection<'_>) {
        ep.context().shared.ops.connect_request(request);
    }

    // A listener has no queues, hence no reference to a device and no Receives.
    fn device_removed(_ep: &Endpoint<Self>) {}
    fn received(_worker: &RecvWorker<'_, Self>, _recv: RecvBuf<()>, _status: RecvStatus) {}
}
