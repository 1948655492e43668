// SPDX-License-Identifier: GPL-2.0

//! Listening for connections, also when the address moves to another device.
//!
//! With bonded devices an address can move. The identifier that listened is dead then, and a new one
//! has to be made; not by the event's handler, which may not destroy its own identifier, but by a
//! work item. Until it is done, peers are refused and try again.

use super::cm::CmEvent;
use super::cm::IncomingConnection;
use super::endpoint::Context;
use super::endpoint::Endpoint;
use super::endpoint::EndpointBox;
use super::endpoint::RecvWorker;
use super::queues::QpEvent;
use super::recv::Recv;
use super::recv::RecvStatus;
use crate::admin::counter::Gauge;
use crate::bindings;
use crate::bindings::addr::Net;
use crate::bindings::addr::SockAddr;
use kernel::impl_has_work;
use kernel::new_mutex;
use kernel::new_work;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::sync::Mutex;
use kernel::workqueue;
use kernel::workqueue::Work;
use kernel::workqueue::WorkItem;

/// Nothing is sent or received where one listens.
static NO_BUFFERS: Gauge = Gauge::new();

/// Who is told of connections.
pub(crate) trait Accepts: Send + Sync + 'static {
    /// A peer wants to connect. The connection manager's worker; may sleep.
    fn connect_request(&self, request: IncomingConnection<'_>);

    /// The address moved and could not be listened on again.
    fn deaf(&self, error: Error);
}

/// Listens as long as it exists. Dropping it sleeps.
pub(crate) struct Listening<A: Accepts>(Arc<Shared<A>>);

#[pin_data]
struct Shared<A: Accepts> {
    accepts: A,
    net: Net,
    backlog: c_int,
    #[pin]
    ear: Mutex<Ear<A>>,
    #[pin]
    again: Work<Shared<A>>,
}

enum Ear<A: Accepts> {
    /// Listening, or about to.
    Open(Option<EndpointBox<Listener<A>>>),
    /// The owner wants no more.
    Stopped,
}

/// The context of the endpoint.
#[pin_data]
struct Listener<A: Accepts> {
    shared: Arc<Shared<A>>,
}

impl_has_work! {
    impl{A: Accepts} HasWork<Self> for Shared<A> { self.again }
}

impl<A: Accepts> Listening<A> {
    /// Listens on `addr`, for that address family only.
    ///
    /// `net` must stay as long as this does.
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
                ear <- new_mutex!(Ear::Open(None), "Listening::ear"),
                again <- new_work!("Listening::again"),
            }),
            GFP_KERNEL,
        )?;
        let this = Self(shared);
        let ear = this.0.listen(addr)?;
        *this.0.ear.lock() = Ear::Open(Some(ear));
        Ok(this)
    }

    /// The address; the port may have been chosen by the connection manager.
    pub(crate) fn local_addr(&self) -> Option<SockAddr> {
        match &*self.0.ear.lock() {
            Ear::Open(Some(ear)) => ear.local_addr(),
            _ => None,
        }
    }

    /// Stops listening, for good. No connection request is under way when this returns.
    pub(crate) fn stop(&self) {
        let last = core::mem::replace(&mut *self.0.ear.lock(), Ear::Stopped);
        // A handler that runs is waited for here, without the lock. None is left to queue the work item,
        // which has to end before the module may go.
        drop(last);
        // SAFETY: The work item was initialised together with what it is in.
        unsafe { bindings::flush_work(Work::raw_get(&self.0.again)) };
    }
}

impl<A: Accepts> Drop for Listening<A> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<A: Accepts> Shared<A> {
    fn listen(self: &Arc<Self>, addr: &SockAddr) -> Result<EndpointBox<Listener<A>>> {
        let shared = self.clone();
        let context = try_pin_init!(Listener { shared }? Error);
        Endpoint::listen(self.net, addr, self.backlog, context)
    }
}

impl<A: Accepts> WorkItem for Shared<A> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // The lock keeps the owner from going, and its namespace with it.
        let mut ear = this.ear.lock();
        let Ear::Open(open) = &mut *ear else {
            return;
        };
        let Some(addr) = open.as_ref().and_then(|ear| ear.local_addr()) else {
            return;
        };
        // The address is taken as long as the old identifier has it. Its handlers do not want the
        // lock.
        *open = None;
        match this.listen(&addr) {
            Ok(new) => *open = Some(new),
            Err(e) => this.accepts.deaf(e),
        }
    }
}

impl<A: Accepts> Context for Listener<A> {
    type Recv = ();

    const BUFFERS: &'static Gauge = &NO_BUFFERS;

    fn cm_event(ep: &Endpoint<Self>, event: CmEvent<'_>) {
        if matches!(event, CmEvent::AddrChange) {
            // It waits for the handlers of an identifier, which is long. Fails only if it is queued
            // already.
            let _ = workqueue::system_long().enqueue(ep.context().shared.clone());
        }
    }

    fn connect_request(ep: &Endpoint<Self>, request: IncomingConnection<'_>) {
        ep.context().shared.accepts.connect_request(request);
    }

    // There are no queues.
    fn qp_event(_ep: &Endpoint<Self>, _event: QpEvent) {}
    fn device_removed(_ep: &Endpoint<Self>) {}
    fn received(_worker: &RecvWorker<'_, Self>, _recv: Recv<()>, _status: RecvStatus) {}
}
