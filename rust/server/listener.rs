// SPDX-License-Identifier: GPL-2.0

//! Peers that want to connect, from their request until a service thread accepts them.

use core::mem;

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use crate::{
    lib::sockaddr::SockAddr,
    sunrpc::svc::{
        self,
        Accepting,
        NewXprt,
        SvcHandle,
        SvcXprt, //
    },
    trace::trace,
    verbs::{
        Accepts,
        EndpointBox,
        IncomingConnection,
        Listening, //
    },
    wire::{
        extensions::Offer,
        private_data::PrivateData, //
    }, //
};

use super::{
    connection::{
        Connection,
        Spare, //
    }, //
    ep::ServerEp,
};

/// Requests that the fabric may hold back, where it does.
const BACKLOG: i32 = 10;

/// Peers that may wait for a thread. Others get no answer, or are refused over iWARP; they try
/// again.
const MAX_PENDING: usize = 256;

/// A peer that waits to be accepted.
pub(super) struct ConnectRequest {
    /// Its connection.
    pub(super) endpoint: EndpointBox<ServerEp>,
    /// What it said about itself, if anything.
    pub(super) peer: Option<PrivateData>,
    /// What it can do beyond RFC 8166.
    pub(super) offer: Offer,
    /// RDMA Reads that it starts at a time.
    pub(super) peer_initiator_depth: u8,
    /// RDMA Reads that it answers at a time.
    pub(super) peer_responder_resources: u8,
}

/// A listening transport.
pub(super) struct Listener {
    listening: Listening<Arc<AcceptQueue>>,
    queue: Arc<AcceptQueue>,
    /// For its connections.
    spare: Spare,
}

/// Where peers wait.
#[pin_data]
pub(super) struct AcceptQueue {
    xprt: SvcHandle,
    /// In the order of their requests.
    #[pin]
    pending: Mutex<KVec<ConnectRequest>>,
}

impl Accepts for Arc<AcceptQueue> {
    fn connect_request(&self, request: IncomingConnection<'_>) {
        let peer = PrivateData::find(request.private_data());
        let offer = Offer::of_peer(request.private_data());
        // The connection manager speaks of this end: what the peer answers is what we may start.
        let peer_initiator_depth = request.responder_resources();
        let peer_responder_resources = request.initiator_depth();
        let mut pending = self.pending.lock();
        // Room first: an endpoint must not be dropped in the handler of its own request.
        if pending.len() >= MAX_PENDING || pending.reserve(1, GFP_KERNEL).is_err() {
            return;
        }
        let Ok(endpoint) = request.into_endpoint(ServerEp::new()) else {
            return;
        };
        let new = ConnectRequest {
            endpoint,
            peer,
            offer,
            peer_initiator_depth,
            peer_responder_resources,
        };
        if let Err(full) = pending.push_within_capacity(new) {
            // There is room, so this does not happen; if it did, leaking is the lesser evil.
            mem::forget(full);
            return;
        }
        self.xprt.set_connection();
        drop(pending);
        self.xprt.enqueue();
    }

    fn lost(&self, addr: &SockAddr, error: Error) {
        pr_err!("no device to listen on {addr} with ({error:?}); still trying\n");
    }

    fn restored(&self, addr: &SockAddr) {
        pr_info!("listening on {addr} again\n");
    }
}

impl AcceptQueue {
    /// Takes the peer that has waited longest.
    fn next(&self) -> Option<ConnectRequest> {
        let mut pending = self.pending.lock();
        self.xprt.clear_connection();
        let next = pending.remove(0).ok();
        if !pending.is_empty() {
            // SUNRPC looks at it again when this thread is done.
            self.xprt.set_connection();
        }
        next
    }

    /// Sends all that wait away.
    fn close(&self) {
        let waiting = mem::take(&mut *self.pending.lock());
        // This sleeps, but not with the lock held.
        drop(waiting);
    }
}

impl svc::Listener for Listener {
    type Connection = Connection;

    fn create(mut xprt: NewXprt<Self>, addr: &SockAddr) -> Result<SvcXprt<Self>> {
        let handle = xprt.handle();
        let net = xprt.net().ok_or(EINVAL)?;
        let queue = Arc::pin_init(
            pin_init!(AcceptQueue {
                xprt: handle,
                pending <- new_mutex!(KVec::new(), "AcceptQueue::pending"),
            }),
            GFP_KERNEL,
        )?;
        let spare = Spare::new()?;
        let listening = Listening::new(net, addr, BACKLOG, queue.clone())?;
        // The port may have been left to be chosen.
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
        match Connection::accept(request, &accepting, self.spare.clone()) {
            Ok(connection) => Some(connection),
            Err(e) => {
                trace!(svcrdma_accept_err(from, e.to_errno() as isize));
                None
            }
        }
    }

    fn detach(&self) {
        // No request comes after this, so that nobody is added once the queue is closed.
        self.listening.stop();
        self.queue.close();
    }
}
