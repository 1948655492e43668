// SPDX-License-Identifier: GPL-2.0

//! Listening for connections, also when the address moves to another device, or its device goes
//! away.
//!
//! The identifier that listened is dead then, and a new one has to be made; not by the event's
//! handler, which may not destroy its own identifier, but by a work item. The RDMA core may not
//! have a device for the address yet: that is tried again until it has one. Until it is done, peers
//! are refused and try again.

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

/// How long to wait before it is tried again: the core learns from the same notification that an
/// address has moved as we do, and is a little slower. From then on twice as long each time.
const FIRST_WAIT: Msecs = 50;

/// A device may be away for long. That is told of, once.
const LONGEST_WAIT: Msecs = 3200;

/// Nothing is sent or received where one listens.
static NO_BUFFERS: Gauge = Gauge::new();

/// Who is told of connections.
pub(crate) trait Accepts: Send + Sync + 'static {
    /// A peer wants to connect. The connection manager's worker; may sleep.
    fn connect_request(&self, request: IncomingConnection<'_>);

    /// The address cannot be listened on any more, for more than a moment. It is still being tried.
    fn lost(&self, addr: &SockAddr, error: Error);

    /// It can, after [`Self::lost`].
    fn restored(&self, addr: &SockAddr);
}

/// Listens as long as it exists. Dropping it sleeps.
pub(crate) struct Listening<A: Accepts>(Arc<Shared<A>>);

#[pin_data]
struct Shared<A: Accepts> {
    accepts: A,
    net: Net,
    backlog: c_int,
    #[pin]
    state: Mutex<State<A>>,
    #[pin]
    again: DelayedWork<Shared<A>>,
}

enum State<A: Accepts> {
    /// Listens on the address.
    Listening(EndpointBox<Listener<A>>, SockAddr),
    /// Could not listen on it again, and has waited that long since.
    Retrying(SockAddr, Msecs),
    /// The owner does not want it yet, or any more.
    Stopped,
}

/// The context of the endpoint.
#[pin_data]
struct Listener<A: Accepts> {
    shared: Arc<Shared<A>>,
}

impl_has_delayed_work! {
    impl{A: Accepts} HasDelayedWork<Self> for Shared<A> { self.again }
}

impl<A: Accepts> Listening<A> {
    /// Listens on `addr`, for that address family only.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` and others from the connection manager, `ENOMEM`.
    pub(crate) fn new(net: Net, addr: &SockAddr, backlog: c_int, accepts: A) -> Result<Self> {
        let shared = Arc::pin_init(
            pin_init!(Shared {
                accepts,
                net,
                backlog,
                state <- new_mutex!(State::Stopped, "Listening::state"),
                again <- new_delayed_work!("Listening::again"),
            }),
            GFP_KERNEL,
        )?;
        let this = Self(shared);
        // An event that comes at once waits until there is something to replace.
        let mut state = this.0.state.lock();
        *state = this.0.listen(addr)?;
        drop(state);
        Ok(this)
    }

    /// The address; the port may have been chosen by the connection manager.
    pub(crate) fn local_addr(&self) -> Option<SockAddr> {
        match &*self.0.state.lock() {
            State::Listening(_, addr) | State::Retrying(addr, _) => Some(*addr),
            State::Stopped => None,
        }
    }

    /// Stops listening, for good. No connection request is under way when this returns.
    pub(crate) fn stop(&self) {
        let last = mem::replace(&mut *self.0.state.lock(), State::Stopped);
        // A handler that runs is waited for here, without the lock. None is left to queue the work
        // item, which has to end before the module may go.
        drop(last);
        // SAFETY: The work item was initialised together with what it is in, which is a
        // `delayed_work`.
        unsafe {
            let work = Work::raw_get(DelayedWork::raw_as_work(&raw const self.0.again));
            bindings::flush_delayed_work(container_of!(work, bindings::delayed_work, work));
        }
    }
}

impl<A: Accepts> Drop for Listening<A> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<A: Accepts> Shared<A> {
    fn listen(self: &Arc<Self>, addr: &SockAddr) -> Result<State<A>> {
        let shared = self.clone();
        let context = try_pin_init!(Listener { shared }? Error);
        let ep = Endpoint::listen(self.net.clone(), addr, self.backlog, context)?;
        let addr = ep.local_addr().ok_or(EINVAL)?;
        Ok(State::Listening(ep, addr))
    }

    /// Listens again, after a failure that was followed by a wait of `waited`; 0 if there was none.
    fn listen_again(self: &Arc<Self>, addr: &SockAddr, waited: Msecs) -> State<A> {
        match self.listen(addr) {
            Ok(open) => {
                if waited == LONGEST_WAIT {
                    self.accepts.restored(addr);
                }
                open
            }
            Err(error) => {
                let wait = (waited * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
                if wait == LONGEST_WAIT && waited < wait {
                    self.accepts.lost(addr, error);
                }
                // This is the work item, so that it can be queued; an event may have been quicker.
                let _ =
                    workqueue::system_long().enqueue_delayed(self.clone(), msecs_to_jiffies(wait));
                State::Retrying(*addr, wait)
            }
        }
    }
}

impl<A: Accepts> WorkItem for Shared<A> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // The lock keeps the owner from going, and its namespace with it.
        let mut state = this.state.lock();
        let (addr, waited) = match mem::replace(&mut *state, State::Stopped) {
            // The address is taken as long as the old identifier has it. Its handlers do not want
            // the lock.
            State::Listening(old, addr) => {
                drop(old);
                (addr, 0)
            }
            State::Retrying(addr, waited) => (addr, waited),
            State::Stopped => return,
        };
        *state = this.listen_again(&addr, waited);
    }
}

impl<A: Accepts> EndpointOps for Listener<A> {
    type RecvData = ();

    const BUFFERS: &'static Gauge = &NO_BUFFERS;

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        if matches!(event, CmEvent::AddrChange | CmEvent::DeviceRemoval) {
            // It waits for the handlers of an identifier, which is long. Fails only if it is queued
            // already.
            let _ = workqueue::system_long().enqueue(ep.context().shared.clone());
        }
    }

    fn connect_request(ep: &Endpoint<Self>, request: IncomingConnection<'_>) {
        ep.context().shared.accepts.connect_request(request);
    }

    // There are no queues.
    fn device_removed(_ep: &Endpoint<Self>) {}
    fn received(_worker: &RecvWorker<'_, Self>, _recv: RecvBuf<()>, _status: RecvStatus) {}
}
