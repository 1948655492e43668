// SPDX-License-Identifier: GPL-2.0

//! A client that sends anything to the server, beside the module.

use core::cell::{Cell, RefCell};

use kernel::sched::{self, below, one_in};

use super::hostile;
use super::peer_calls::{compose, Sent};
use super::rpc::Rpc;
use crate::bindings::cm::{self, End, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric::{fabric, PeerEvent};
use crate::bindings::fabric_peer as queue;
use crate::engine::agreement::Agreement;
use crate::wire::extensions::{Announcement, Offer};
use crate::wire::private_data::PrivateData;
use crate::wire::Segment;

enum Link {
    Down,
    Asked {
        qp: u32,
        own: PrivateData,
    },
    Up {
        qp: u32,
        server: End,
        agreement: Agreement,
    },
}

/// A hostile client.
pub(super) struct HostileClient {
    /// The highest byte of its XIDs.
    number: u32,
    link: RefCell<Link>,
    /// What it may still do.
    left: Cell<u32>,
    /// What it has done.
    pub(super) acts: Cell<u64>,
    not_before: Cell<u64>,
    next: Cell<u32>,
    /// Payload of the service.
    payload: u32,
    sent: RefCell<Vec<Vec<u8>>>,
    segments: RefCell<Vec<Segment>>,
}

impl HostileClient {
    pub(super) fn new(number: u32, acts: u32, payload: u32) -> Self {
        Self {
            number,
            link: RefCell::new(Link::Down),
            left: Cell::new(acts),
            acts: Cell::new(0),
            not_before: Cell::new(0),
            next: Cell::new(0),
            payload,
            sent: RefCell::default(),
            segments: RefCell::default(),
        }
    }

    /// Does nothing more, but keeps its connection.
    pub(super) fn be_silent(&self) {
        self.left.set(0);
    }

    fn qp(&self) -> Option<u32> {
        match &*self.link.borrow() {
            Link::Down => None,
            Link::Asked { qp, .. } | Link::Up { qp, .. } => Some(*qp),
        }
    }

    /// Does nothing more. The network ends its connection.
    pub(super) fn end(&self) {
        self.left.set(0);
        self.leave(false);
    }

    fn leave(&self, says_so: bool) {
        let link = core::mem::replace(&mut *self.link.borrow_mut(), Link::Down);
        let qp = match link {
            Link::Down => return,
            Link::Asked { qp, .. } => qp,
            Link::Up { qp, server, .. } => {
                if says_so {
                    cm_peer::peer_tells(qp, server, Message::Disconnect);
                } else {
                    cm::disconnect(qp);
                }
                qp
            }
        };
        queue::peer_end(qp);
        let later = sched::now() + 20_000_000;
        self.not_before.set(later);
        sched::at(later, || ());
    }

    fn connect(&self) {
        self.left.set(self.left.get() - 1);
        let qp = queue::peer_qp([0, 1, 8, 200][below(4)]);
        queue::peer_is_hostile(qp);
        let own = PrivateData {
            remote_invalidation: below(2) == 0,
            send_size: [1024, 4096, 262_144][below(3)],
            receive_size: [1024, 4096, 262_144][below(3)],
        };
        let offer = Offer {
            pulled_replies: below(4) != 0,
        };
        let mut private_data = Announcement::new(&own, &offer).as_bytes().to_vec();
        match below(6) {
            0 => private_data = hostile::bytes(below(57)),
            1 => hostile::spoil(&mut private_data, &[]),
            _ => {}
        }
        private_data.truncate(56);
        let param = Param {
            private_data,
            responder_resources: [0, 1, 8, 255][below(4)],
            initiator_depth: [0, 1, 8, 255][below(4)],
        };
        if cm_peer::peer_connect(qp, param) {
            *self.link.borrow_mut() = Link::Asked { qp, own };
        } else {
            queue::peer_end(qp);
        }
    }

    fn hear(&self, qp: u32) {
        let Some((from, message)) = cm_peer::peer_message(qp) else {
            return;
        };
        let mut link = self.link.borrow_mut();
        match (message, &*link) {
            (Message::Accept { param, qp: other }, Link::Asked { own, .. }) => {
                let agreement = Agreement::between(own, &PrivateData::of_peer(&param.private_data));
                cm::connect(qp, other);
                if !one_in(4) {
                    cm_peer::peer_tells(qp, from, Message::Ready);
                }
                *link = Link::Up {
                    qp,
                    server: from,
                    agreement,
                };
            }
            (Message::Reject | Message::Disconnect, _) => {
                drop(link);
                self.leave(true);
            }
            _ => {}
        }
    }

    fn handle(&self, qp: u32) {
        let event = fabric(|f| f.qps.get_mut(&qp)?.inbox.pop_front());
        match event {
            Some(PeerEvent::Received { .. }) => hostile::receive(qp),
            Some(PeerEvent::Error) => self.leave(below(2) == 0),
            _ => {}
        }
    }

    /// Sends a Call, most often spoiled.
    fn call(&self, qp: u32, agreement: &Agreement) {
        self.next.set(self.next.get() + 1);
        let xid = (self.number << 24) + self.next.get() / [1, 1, 2][below(3)];
        let mut call = Sent::new(Rpc::any(xid, self.payload), self.next.get());
        let mut message = compose(&mut call, qp, agreement, hostile::number());
        let mut segments = self.segments.borrow_mut();
        segments.extend(call.segments());
        if segments.len() > 200 {
            segments.drain(..100);
        }
        let mut sent = self.sent.borrow_mut();
        match below(4) {
            0 | 1 => hostile::spoil(&mut message, &sent),
            2 => hostile::free(&segments),
            _ => {}
        }
        if sent.len() == 8 {
            sent.remove(below(8));
        }
        sent.push(message.clone());
        queue::peer_send(qp, message, None);
    }

    fn act(&self, qp: u32, agreement: &Agreement) {
        self.left.set(self.left.get() - 1);
        self.acts.set(self.acts.get() + 1);
        match below(16) {
            // More than it may.
            0 => {
                for _ in 0..below(80) {
                    self.call(qp, agreement);
                }
            }
            1..=8 => self.call(qp, agreement),
            9 => queue::peer_send(qp, hostile::bytes(below(9000)), None),
            10 => queue::peer_send(qp, hostile::unasked(hostile::number()), None),
            11 | 12 => hostile::access(qp),
            13 => hostile::invalidate(qp, hostile::unasked(self.number << 24)),
            14 => hostile::receive(qp),
            _ => self.leave(below(2) == 0),
        }
    }
}

impl sched::Source for HostileClient {
    fn pending(&self) -> usize {
        let Some(qp) = self.qp() else {
            let may = self.left.get() > 0 && sched::now() >= self.not_before.get();
            return usize::from(may);
        };
        let events = fabric(|f| f.qps.get(&qp).is_some_and(|qp| !qp.inbox.is_empty()));
        let acts = self.left.get() > 0 && matches!(*self.link.borrow(), Link::Up { .. });
        usize::from(cm_peer::has_peer_message(qp)) + usize::from(events) + usize::from(acts)
    }

    fn run(&self, nth: usize) {
        let Some(qp) = self.qp() else {
            return self.connect();
        };
        let agreement = match &*self.link.borrow() {
            Link::Up { agreement, .. } => Some(*agreement),
            _ => None,
        };
        let events = fabric(|f| f.qps.get(&qp).is_some_and(|qp| !qp.inbox.is_empty()));
        let mut kinds = Vec::new();
        if cm_peer::has_peer_message(qp) {
            kinds.push(0);
        }
        if events {
            kinds.push(1);
        }
        if self.left.get() > 0 && agreement.is_some() {
            kinds.push(2);
        }
        match (kinds.get(nth), agreement) {
            (Some(0), _) => self.hear(qp),
            (Some(1), _) => self.handle(qp),
            (Some(_), Some(agreement)) => self.act(qp, &agreement),
            _ => {}
        }
    }
}
