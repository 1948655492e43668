// SPDX-License-Identifier: GPL-2.0

//! Connection requests, from their arrival until an nfsd thread accepts them.
//!
//! C: svc_rdma_transport.c, svc_rdma_create(), handle_connect_req(), svc_rdma_accept()

use core::{
    ffi::CStr,
    mem, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use crate::{
    lib::{
        memalloc::NoIo,
        poll_timer::{
            Poll,
            PollTimer, //
        },
        sockaddr::SockAddr, //
    },
    sunrpc::svc::{
        self,
        Accepting,
        NewXprt,
        SvcXprt, //
        XprtHandle,
    },
    trace::trace,
    verbs::{
        IncomingConnection,
        ListenerOps,
        Listening, //
    },
    wire::{
        extensions::Offer,
        private_data::PrivateData, //
    }, //
};

use super::{
    accept::{
        self,
        ConnectRequest, //
    },
    connection::{
        Connection,
        Spare, //
    },
    ep::{
        ServerEp,
        Waiting, //
    }, //
};

/// Requests that the fabric may queue, if it queues any.
const BACKLOG: i32 = 10;

/// Requests that may wait for a thread. A further request gets no answer, or a rejection on iWARP,
/// and the client tries again.
const MAX_PENDING: usize = 256;

/// A listening transport.
pub(super) struct Listener {
    listening: Listening<Arc<AcceptQueue>>,
    queue: Arc<AcceptQueue>,
    /// Spare pages, shared by the connections of the listener.
    spare: Arc<Spare>,
}

/// The requests that wait for a thread.
///
/// The endpoint of each request refers to the queue: [`AcceptQueue::close`] breaks the cycle.
#[pin_data]
pub(super) struct AcceptQueue {
    xprt: XprtHandle,
    /// Armed to remove requests whose connection has ended. nfsd may have no thread to remove them,
    /// and device removal waits for each cm_id on the device.
    #[pin]
    requests: PollTimer<Requests>,
}

#[pin_data]
struct Requests {
    /// The oldest request first. A slot is empty only while the endpoint of its request is created,
    /// with the lock held.
    #[pin]
    pending: Mutex<KVec<Option<ConnectRequest>>>,
}

impl Requests {
    /// Removes a request whose connection has ended.
    fn next_gone(&self) -> Option<ConnectRequest> {
        let mut pending = self.pending.lock();
        let is_gone = |request: &ConnectRequest| request.endpoint.context().is_gone();
        let index = pending
            .iter()
            .position(|slot| slot.as_ref().is_some_and(is_gone))?;
        pending.remove(index).ok()?
    }
}

impl Poll for Requests {
    fn poll(&self) -> Option<c_ulong> {
        while let Some(request) = self.next_gone() {
            // The drop waits for the handlers of the request's cm_id, which take the lock.
            drop(request);
        }
        None
    }
}

impl ListenerOps for Arc<AcceptQueue> {
    fn connect_request(&self, request: IncomingConnection<'_>) {
        let peer = PrivateData::find(request.private_data());
        let offer = Offer::of_peer(request.private_data());
        // The CM reports both values from this end's view: this end's responder resources are the
        // peer's initiator depth.
        let peer_initiator_depth = request.responder_resources();
        let peer_responder_resources = request.initiator_depth();
        // Memory reclaim may wait for a mount of this host, whose client may wait for a connection
        // that this worker of the CM is to report.
        let _noio = NoIo::begin();
        let Ok(waiting) = KBox::new(self.clone(), GFP_KERNEL) else {
            return;
        };
        let mut pending = self.requests().pending.lock();
        // The slot comes first: an endpoint must not be dropped in the handler of its own request.
        if pending.len() >= MAX_PENDING || pending.push(None, GFP_KERNEL).is_err() {
            return;
        }
        let Some(slot) = pending.last_mut() else {
            return;
        };
        let Ok(endpoint) = request.into_endpoint(ServerEp::new(waiting)) else {
            pending.pop();
            return;
        };
        *slot = Some(ConnectRequest {
            endpoint,
            peer,
            offer,
            peer_initiator_depth,
            peer_responder_resources,
        });
        self.xprt.set_connection();
        drop(pending);
        self.xprt.enqueue();
    }

    fn lost(&self, addr: &SockAddr, error: Error) {
        pr_err!("cannot listen on {addr}: no RDMA device ({error:?}); retrying\n");
    }

    fn restored(&self, addr: &SockAddr) {
        pr_info!("listening on {addr} again\n");
    }
}

impl Waiting for Arc<AcceptQueue> {
    fn remove_gone(&self) {
        // Under the lock: the queue stays empty after `close`, which then cancels the timer.
        let pending = self.requests().pending.lock();
        if !pending.is_empty() {
            self.requests.arm(0);
        }
    }
}

impl AcceptQueue {
    fn requests(&self) -> &Requests {
        self.requests.target()
    }

    /// Removes the oldest request.
    fn next(&self) -> Option<ConnectRequest> {
        let mut pending = self.requests().pending.lock();
        self.xprt.clear_connection();
        let next = pending.remove(0).ok().flatten();
        if !pending.is_empty() {
            // SUNRPC enqueues the transport again when this thread is done with it.
            self.xprt.set_connection();
        }
        next
    }

    /// Rejects all waiting requests.
    fn close(&self) {
        let pending = mem::take(&mut *self.requests().pending.lock());
        // The drop sleeps, so do not hold the lock.
        drop(pending);
        self.requests.cancel();
    }
}

impl svc::Listener for Listener {
    type Connection = Connection;

    const NAME: &'static CStr = c"rdma";

    fn create(mut xprt: NewXprt<Self>, addr: &SockAddr) -> Result<SvcXprt<Self>> {
        let handle = xprt.handle();
        let net = xprt.net().ok_or(EINVAL)?;
        let queue = Arc::pin_init(
            pin_init!(AcceptQueue {
                xprt: handle,
                requests <- PollTimer::new(pin_init!(Requests {
                    pending <- new_mutex!(KVec::new(), "Requests::pending"),
                })),
            }),
            GFP_KERNEL,
        )?;
        let spare = Spare::new()?;
        let listening = Listening::new(net, addr, BACKLOG, queue.clone())?;
        // For port 0 the CM has chosen a port.
        xprt.set_local(&listening.local_addr().unwrap_or(*addr));
        Ok(xprt.install(Self {
            listening,
            queue,
            spare,
        }))
    }

    fn accept(&self, accepting: Accepting<'_, Connection>) -> Option<SvcXprt<Connection>> {
        let request = self.queue.next()?;
        let from = request.endpoint.peer_addr();
        match accept::accept(request, &accepting, self.spare.clone()) {
            Ok(connection) => Some(connection),
            Err(e) => {
                trace!(svcrdma_accept_err(from, e.to_errno() as isize));
                None
            }
        }
    }

    fn detach(&self) {
        // No request arrives after `stop`, so the queue stays empty after `close`.
        self.listening.stop();
        self.queue.close();
    }
}
