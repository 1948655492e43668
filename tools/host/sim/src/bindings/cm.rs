// SPDX-License-Identifier: GPL-2.0

//! The connection manager: connections, their ends, and what a message does to an end.
//!
//! The two ends of a connection exchange messages, which arrive one after the other in each
//! direction, at any time. The handler of an event runs in a worker, with the handler lock of its
//! `cm_id`.

use core::cell::RefCell;
use core::ffi::c_void;
use std::collections::{BTreeMap, VecDeque};

use kernel::ffi::{c_int, c_uint};
use kernel::sched;

use super::*;

/// A message of the connection manager.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Request {
        param: Param,
        qp: u32,
    },
    Accept {
        param: Param,
        qp: u32,
    },
    /// The active end is ready to use.
    Ready,
    Reject,
    Disconnect,
}

/// What a connection is proposed or accepted with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Param {
    pub(crate) private_data: Vec<u8>,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A `cm_id`, by number.
    Id(usize),
    /// A peer of the stage, by its queue pair.
    Peer(u32),
}

/// What a `cm_id` is told.
#[derive(Clone, Debug)]
pub(super) enum News {
    Event {
        event: c_uint,
        status: c_int,
        param: Param,
    },
    /// A connection request of this end.
    Request { from: End, param: Param, qp: u32 },
}

pub(super) struct Id {
    pub(super) raw: usize,
    /// The other end, once there is one.
    pub(super) other: Option<End>,
    /// The queue pair of the other end.
    pub(super) other_qp: Option<u32>,
    pub(super) news: VecDeque<News>,
    pub(super) busy: bool,
    pub(super) listens: bool,
    pub(super) accepted: bool,
    pub(super) established: bool,
    pub(super) disconnected: bool,
}

#[derive(Default)]
pub(super) struct Cm {
    pub(super) ids: BTreeMap<usize, Id>,
    pub(super) next: usize,
    /// Messages on their way, for each pair of ends.
    pub(super) wires: Vec<(End, End, VecDeque<Message>)>,
    /// What peers of the stage were told.
    pub(super) peers: BTreeMap<u32, VecDeque<(End, Message)>>,
    /// Where requests for [`hostile_address`] go, if not to the server.
    pub(super) hostile: Option<u32>,
    /// The reason for which requests of the module are rejected.
    pub(super) rejects: Option<c_int>,
    /// Nothing answers requests of the module, and they end after so many nanoseconds.
    pub(super) unanswered: Option<u64>,
    /// When each of these requests was made.
    pub(super) requests: Vec<u64>,
}

thread_local! {
    static CM: RefCell<Cm> = RefCell::default();
}

pub(super) fn cm<R>(f: impl FnOnce(&mut Cm) -> R) -> R {
    CM.with_borrow_mut(f)
}

/// Begins a run.
pub(crate) fn begin() {
    cm(|cm| {
        cm.rejects = None;
        cm.unanswered = None;
        cm.requests.clear();
    });
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    CM.with(|cm| {
        if let Ok(mut cm) = cm.try_borrow_mut() {
            core::mem::forget(core::mem::take(&mut *cm));
        }
    });
}

/// The number of `cm_id`s.
pub(crate) fn ids() -> usize {
    cm(|cm| cm.ids.len())
}

/// The port that everything listens on.
pub(crate) const PORT: u16 = 20_049;

pub(super) fn address(host: u8, port: u16) -> __kernel_sockaddr_storage {
    let mut bytes = [0_u8; 128];
    bytes[..2].copy_from_slice(&(AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&port.to_be_bytes());
    bytes[4..8].copy_from_slice(&[10, 0, 0, host]);
    // SAFETY: Both are 128 bytes, any of which are valid.
    unsafe { core::mem::transmute(bytes) }
}

/// The address that the server listens on.
pub(crate) fn server_address() -> __kernel_sockaddr_storage {
    address(1, PORT)
}

/// An address that leads to the server, unless a peer listens there.
pub(crate) fn hostile_address() -> __kernel_sockaddr_storage {
    address(HOSTILE, PORT)
}

const HOSTILE: u8 = 3;

/// The address of the end that connects, with this queue pair. Some are on the server's host.
pub(super) fn address_of(qp: u32) -> __kernel_sockaddr_storage {
    address(1 + (qp % 3) as u8, 1000 + (qp % 60_000) as u16)
}

/// Whether both addresses are those of one host.
pub(super) fn is_same_host(a: &__kernel_sockaddr_storage, b: &__kernel_sockaddr_storage) -> bool {
    // SAFETY: Both are 128 bytes, any of which are valid.
    let [a, b]: [[u8; 128]; 2] =
        unsafe { [core::mem::transmute_copy(a), core::mem::transmute_copy(b)] };
    a[4..8] == b[4..8]
}

/// Whether these are the bytes of [`hostile_address`].
pub(super) fn is_hostile(addr: &__kernel_sockaddr_storage) -> bool {
    // SAFETY: Both are 128 bytes, any of which are valid.
    let bytes: [u8; 128] = unsafe { core::mem::transmute_copy(addr) };
    bytes[7] == HOSTILE
}

pub(super) fn new_id(handler: rdma_cm_event_handler, context: *mut c_void) -> *mut rdma_cm_id {
    cm(|cm| {
        cm.next += 1;
        let number = cm.next;
        let raw = Box::into_raw(Box::new(rdma_cm_id {
            device: core::ptr::null_mut(),
            context,
            qp: core::ptr::null_mut(),
            event_handler: handler,
            route: rdma_route::default(),
            port_num: 0,
            handler_mutex: spinlock::new("rdma_cm_id::handler_mutex"),
            number,
        }));
        let id = Id {
            raw: raw.expose_provenance(),
            other: None,
            other_qp: None,
            news: VecDeque::new(),
            busy: false,
            listens: false,
            accepted: false,
            established: false,
            disconnected: false,
        };
        cm.ids.insert(number, id);
        raw
    })
}

impl Cm {
    pub(super) fn raw(&self, number: usize) -> *mut rdma_cm_id {
        core::ptr::with_exposed_provenance_mut(self.ids[&number].raw)
    }

    pub(super) fn send(&mut self, from: End, to: End, message: Message) {
        say!("{from:?} sends {to:?} {message:?}");
        let wire = self
            .wires
            .iter_mut()
            .find(|wire| (wire.0, wire.1) == (from, to));
        match wire {
            Some(wire) => wire.2.push_back(message),
            None => self.wires.push((from, to, VecDeque::from([message]))),
        }
    }

    pub(super) fn tell(&mut self, number: usize, event: c_uint, status: c_int, param: Param) {
        if let Some(id) = self.ids.get_mut(&number) {
            id.news.push_back(News::Event {
                event,
                status,
                param,
            });
        }
    }

    /// The `cm_id` of a queue pair.
    pub(super) fn id_of_qp(&self, qp: u32) -> Option<usize> {
        let of = |number: &&usize| {
            let raw = self.raw(**number);
            // SAFETY: The `cm_id` is in the list, so it is there.
            unsafe { !(*raw).qp.is_null() && (*(*raw).qp).qp_num == qp }
        };
        self.ids.keys().find(of).copied()
    }

    /// The passive end learns that the connection is established.
    pub(super) fn establish(&mut self, number: usize) {
        if let Some(id) = self.ids.get_mut(&number) {
            if id.accepted && !id.established {
                id.established = true;
                sched::wake(connect_key(number));
                let event = rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED;
                self.tell(number, event, 0, Param::default());
            }
        }
    }

    /// The connection of a `cm_id` is over.
    pub(super) fn over(&mut self, number: usize) {
        let Some(id) = self.ids.get_mut(&number) else {
            return;
        };
        if !core::mem::replace(&mut id.disconnected, true) {
            sched::wake(connect_key(number));
            let raw = self.raw(number);
            // SAFETY: The `cm_id` is in the list, so it is there.
            let qp = unsafe { (*raw).qp };
            if !qp.is_null() {
                // SAFETY: A `cm_id` keeps its queue pair.
                let qp = unsafe { (*qp).qp_num };
                fabric(|f| f.set_error(qp));
            }
            let event = rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED;
            self.tell(number, event, 0, Param::default());
        }
    }

    pub(super) fn arrive(&mut self, from: End, to: End, message: Message) {
        say!("{to:?} gets {message:?}");
        let number = match to {
            End::Peer(qp) => {
                // Over iWARP, a connection to a process that has ended is reset.
                let is_reset = fabric(|f| f.device.iwarp && !f.qps.contains_key(&qp));
                if is_reset && matches!(message, Message::Accept { .. }) {
                    self.send(to, from, Message::Disconnect);
                }
                self.peers.entry(qp).or_default().push_back((from, message));
                return;
            }
            End::Id(number) => number,
        };
        if !self.ids.contains_key(&number) {
            if matches!(message, Message::Request { .. }) {
                self.send(to, from, Message::Reject);
            }
            return;
        }
        if ib_core::is_gone(0) && matches!(message, Message::Request { .. }) {
            self.send(to, from, Message::Reject);
            return;
        }
        match message {
            Message::Request { param, qp } => {
                let id = self.ids.get_mut(&number).expect("a listener");
                id.news.push_back(News::Request { from, param, qp });
            }
            Message::Accept { param, qp } => self.accepted(number, from, qp, param),
            Message::Ready => self.establish(number),
            Message::Reject => {
                let event = rdma_cm_event_type_RDMA_CM_EVENT_REJECTED;
                let reason = ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED as c_int;
                self.tell(number, event, reason, Param::default());
            }
            Message::Disconnect => self.over(number),
        }
    }

    /// The active end's request was accepted.
    fn accepted(&mut self, number: usize, from: End, qp: u32, param: Param) {
        let raw = self.raw(number);
        let id = self.ids.get_mut(&number).expect("a cm_id");
        // SAFETY: The `cm_id` is in the list, so it is there.
        let own = unsafe { (*raw).qp };
        if id.disconnected || own.is_null() {
            self.send(End::Id(number), from, Message::Disconnect);
            return;
        }
        id.other = Some(from);
        id.established = true;
        // SAFETY: A `cm_id` keeps its queue pair.
        connect(unsafe { (*own).qp_num }, qp);
        let event = rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED;
        self.tell(number, event, 0, param);
        self.send(End::Id(number), from, Message::Ready);
    }
}

/// Woken when the module requests a connection.
pub(crate) const REQUEST_KEY: usize = 24;

/// A queue pair may now send to the other.
pub(crate) fn connect(own: u32, other: u32) {
    fabric(|f| {
        if let Some(qp) = f.qps.get_mut(&own) {
            qp.other = Some(other);
            if qp.state == QpState::Init {
                qp.state = QpState::Rts;
            }
        }
    });
}

/// What waits for an accepted connection to be established.
pub(super) fn connect_key(number: usize) -> usize {
    (1 << 42) | number
}

pub(super) fn busy_key(number: usize) -> usize {
    (1 << 41) | number
}

/// The network ends a connection. Both ends get DISCONNECTED later.
pub(crate) fn disconnect(qp: u32) {
    let other = fabric(|f| f.qps.get(&qp).and_then(|qp| qp.other));
    for qp in [Some(qp), other].into_iter().flatten() {
        fabric(|f| f.set_error(qp));
        if let Some(number) = cm(|cm| cm.id_of_qp(qp)) {
            cm(|cm| cm.over(number));
        }
    }
}

/// Who listens.
pub(crate) fn listener() -> Option<usize> {
    cm(|cm| {
        cm.ids
            .iter()
            .find(|(_, id)| id.listens)
            .map(|(number, _)| *number)
    })
}
