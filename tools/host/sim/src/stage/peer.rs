// SPDX-License-Identifier: GPL-2.0

//! A client that speaks the wire protocol, beside the module. It keeps to the protocol, and looks
//! whether the server does.

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kernel::sched::{self, below, one_in};

use super::nfsd::Nfsd;
use super::peer_calls::{check, compose, content, Sent};
use super::rpc::Rpc;
use crate::bindings::cm::{self, End, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric::{self, PeerEvent};
use crate::bindings::fabric_peer as queue;
use crate::engine::agreement::{Agreement, Extensions, ReadDepths};
use crate::wire::extensions::{Announcement, Offer};
use crate::wire::private_data::PrivateData;
use crate::wire::{Body, Header};

/// What a peer may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// Calls that it wants to have outstanding.
    pub(crate) credits: u32,
    /// The network breaks a connection off at one in so many steps.
    pub(crate) breaks_off: u32,
    /// It ends a connection itself at one in so many steps.
    pub(crate) leaves: u32,
    /// RDMA_ERRORs are to be expected, since something fails.
    pub(crate) errors: bool,
}

enum Link {
    Down,
    Asked {
        qp: u32,
        own: PrivateData,
        offer: Offer,
    },
    Up {
        qp: u32,
        server: End,
        agreement: Agreement,
        extensions: Extensions,
        granted: u32,
        sent: BTreeMap<u32, Sent>,
    },
}

/// A peer.
pub(crate) struct Peer {
    manners: Cell<Manners>,
    nfsd: Rc<Nfsd>,
    queued: RefCell<VecDeque<Rpc>>,
    link: RefCell<Link>,
    attempts: Cell<u32>,
    not_before: Cell<u64>,
    /// RPCs with a Reply, and connections.
    pub(crate) replies: Cell<u32>,
    pub(crate) refused: Cell<u32>,
    pub(crate) connections: Cell<u32>,
    closing: Cell<bool>,
}

impl Peer {
    pub(crate) fn new(manners: Manners, nfsd: Rc<Nfsd>, rpcs: Vec<Rpc>) -> Self {
        Self {
            manners: Cell::new(manners),
            nfsd,
            queued: RefCell::new(rpcs.into()),
            link: RefCell::new(Link::Down),
            attempts: Cell::new(0),
            not_before: Cell::new(0),
            replies: Cell::new(0),
            refused: Cell::new(0),
            connections: Cell::new(0),
            closing: Cell::new(false),
        }
    }

    /// From now on nothing fails.
    pub(crate) fn be_well(&self) {
        self.manners.set(Manners {
            breaks_off: 0,
            leaves: 0,
            ..self.manners.get()
        });
    }

    /// Whether all RPCs have ended.
    pub(crate) fn is_done(&self) -> bool {
        let outstanding = match &*self.link.borrow() {
            Link::Up { sent, .. } => sent.len(),
            _ => 0,
        };
        self.queued.borrow().is_empty() && outstanding == 0
    }

    /// What it waits for.
    pub(crate) fn waits_for(&self) -> String {
        match &*self.link.borrow() {
            Link::Down => format!("a connection, for {} RPCs", self.queued.borrow().len()),
            Link::Asked { .. } => "an acceptance".into(),
            Link::Up { sent, .. } => {
                let xids: Vec<u32> = sent.keys().copied().collect();
                format!(
                    "Replies to {xids:x?}, {} more queued",
                    self.queued.borrow().len()
                )
            }
        }
    }

    /// Ends the connection, for good.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        if let Link::Up { qp, .. } = &*self.link.borrow() {
            fabric::fabric(|f| f.set_error(*qp));
        }
    }

    fn connect(&self) {
        let credits = self.manners.get().credits;
        // One more than the Replies, for what the server sends last.
        let qp = queue::peer_qp(credits as usize + 1);
        let sizes = [1024, 2048, 4096, 8192];
        let own = PrivateData {
            remote_invalidation: below(2) == 0,
            send_size: sizes[below(4)],
            receive_size: sizes[below(4)],
        };
        let offer = Offer::default();
        let private_data = if below(4) == 0 {
            Vec::new()
        } else {
            Announcement::new(&own, &offer).as_bytes().to_vec()
        };
        let own = PrivateData::find(&private_data).unwrap_or_default();
        let param = Param {
            private_data,
            responder_resources: 8,
            initiator_depth: 8,
        };
        if cm_peer::peer_connect(qp, param) {
            *self.link.borrow_mut() = Link::Asked { qp, own, offer };
        } else {
            queue::peer_end(qp);
            self.retry_later();
        }
    }

    fn retry_later(&self) {
        let later = sched::now() + 20_000_000;
        self.not_before.set(later);
        sched::at(later, || ());
    }

    /// The connection is over: what was sent is sent again on another one.
    fn lose(&self) {
        let link = core::mem::replace(&mut *self.link.borrow_mut(), Link::Down);
        let (qp, sent) = match link {
            Link::Down => return,
            Link::Asked { qp, .. } => (qp, BTreeMap::new()),
            Link::Up {
                qp, server, sent, ..
            } => {
                cm_peer::peer_tells(qp, server, Message::Disconnect);
                (qp, sent)
            }
        };
        queue::peer_end(qp);
        let mut queued = self.queued.borrow_mut();
        for sent in sent.into_values() {
            queued.push_back(sent.rpc);
        }
        self.retry_later();
    }

    fn hear(&self) {
        let qp = match &*self.link.borrow() {
            Link::Down => return,
            Link::Asked { qp, .. } | Link::Up { qp, .. } => *qp,
        };
        let Some((from, message)) = cm_peer::peer_message(qp) else {
            return;
        };
        let mut link = self.link.borrow_mut();
        match (message, &*link) {
            (Message::Accept { param, qp: other }, Link::Asked { qp, own, offer }) => {
                let (qp, own, offer) = (*qp, *own, *offer);
                let peer = PrivateData::of_peer(&param.private_data);
                let depths = ReadDepths {
                    initiator_depth: 8,
                    responder_resources: param.responder_resources.into(),
                };
                let theirs = Offer::of_peer(&param.private_data);
                cm::connect(qp, other);
                // The message that the end is ready may be lost.
                if !one_in(4) {
                    cm_peer::peer_tells(qp, from, Message::Ready);
                }
                self.connections.set(self.connections.get() + 1);
                *link = Link::Up {
                    qp,
                    server: from,
                    agreement: Agreement::between(&own, &peer),
                    extensions: Extensions::between(&offer, &theirs, &depths),
                    granted: 1,
                    sent: BTreeMap::new(),
                };
            }
            (Message::Reject, Link::Asked { qp, .. }) => {
                let qp = *qp;
                *link = Link::Down;
                drop(link);
                queue::peer_end(qp);
                self.retry_later();
            }
            (Message::Disconnect, _) => {
                drop(link);
                self.lose();
            }
            _ => {}
        }
    }

    /// Handles an event of the queue pair.
    fn handle(&self, event: PeerEvent) {
        match event {
            PeerEvent::Received { bytes, invalidated } => self.receive(&bytes, invalidated),
            PeerEvent::Error => self.lose(),
            PeerEvent::Sent | PeerEvent::Read(_) => {}
        }
    }

    fn receive(&self, bytes: &[u8], invalidated: Option<u32>) {
        let mut link = self.link.borrow_mut();
        let Link::Up {
            qp,
            agreement,
            granted,
            sent,
            ..
        } = &mut *link
        else {
            return;
        };
        if bytes.len() > agreement.receive as usize {
            sched::fail(format_args!(
                "a message of {} bytes is over the threshold",
                bytes.len()
            ));
        }
        let Ok(header) = Header::decode(bytes) else {
            sched::fail(format_args!("a message cannot be decoded: {bytes:02x?}"));
        };
        let Some(call) = sent.remove(&header.xid) else {
            sched::fail(format_args!("a Reply {:#x} answers no Call", header.xid));
        };
        if header.credits == 0 {
            sched::fail("no credit is granted");
        }
        *granted = header.credits.min(self.manners.get().credits);
        let executed = self.nfsd.executed(header.xid, call.attempt);
        if let Some(rkey) = invalidated {
            let handles = call.reads.iter().chain(&call.writes).chain(&call.reply);
            if !agreement.remote_invalidation || !handles.clone().any(|s| s.handle == rkey) {
                sched::fail(format_args!(
                    "rkey {rkey:#x} is invalidated, which is not the Call's"
                ));
            }
        }
        match header.body {
            Body::Error(error) => {
                say!("refused: {:?} {error:?}", call.rpc);
                if !self.manners.get().errors {
                    sched::fail(format_args!("{:?} is refused: {error:?}", call.rpc));
                }
                self.refused.set(self.refused.get() + 1);
            }
            Body::Msg { chunks, payload } => {
                let writes = chunks.writes.chunks().next();
                check(&call, payload.to_vec(), writes);
                if executed != 1 {
                    sched::fail(format_args!("a Reply to a Call executed {executed} times"));
                }
                self.replies.set(self.replies.get() + 1);
            }
            Body::NoMsg { chunks } => {
                let Some(reply) = chunks.reply else {
                    sched::fail("an RDMA_NOMSG without a Reply chunk");
                };
                let payload = content(&call.reply, &reply);
                check(&call, payload, chunks.writes.chunks().next());
                self.replies.set(self.replies.get() + 1);
            }
            Body::Done => sched::fail("a server sends RDMA_DONE"),
        }
        let qp = *qp;
        // The Call is over: whatever the server still does to its memory is denied.
        for segment in call.reads.iter().chain(&call.writes).chain(&call.reply) {
            queue::peer_free(segment.handle);
        }
        fabric::fabric(|f| queue::peer_receives(f, qp, 1));
    }

    fn send(&self) {
        let mut link = self.link.borrow_mut();
        let Link::Up {
            qp,
            agreement,
            extensions: _,
            sent,
            ..
        } = &mut *link
        else {
            return;
        };
        let Some(rpc) = self.queued.borrow_mut().pop_front() else {
            return;
        };
        let attempt = self.attempts.get() + 1;
        self.attempts.set(attempt);
        let mut call = Sent::new(rpc, attempt);
        let message = compose(&mut call, *qp, agreement, self.manners.get().credits);
        sent.insert(rpc.xid, call);
        queue::peer_send(*qp, message, None);
    }

    fn can_send(&self) -> bool {
        match &*self.link.borrow() {
            Link::Up { granted, sent, .. } => {
                sent.len() < *granted as usize && !self.queued.borrow().is_empty()
            }
            _ => false,
        }
    }

    fn has_event(&self) -> bool {
        match &*self.link.borrow() {
            Link::Down => false,
            Link::Asked { qp, .. } | Link::Up { qp, .. } => {
                fabric::fabric(|f| f.qps.get(qp).is_some_and(|qp| !qp.inbox.is_empty()))
            }
        }
    }

    fn has_message(&self) -> bool {
        match &*self.link.borrow() {
            Link::Down => false,
            Link::Asked { qp, .. } | Link::Up { qp, .. } => cm_peer::has_peer_message(*qp),
        }
    }

    fn can_connect(&self) -> bool {
        matches!(*self.link.borrow(), Link::Down)
            && !self.queued.borrow().is_empty()
            && sched::now() >= self.not_before.get()
            && !self.closing.get()
    }

    fn kinds(&self) -> [bool; 4] {
        [
            self.has_message(),
            self.has_event(),
            self.can_send(),
            self.can_connect(),
        ]
    }
}

/// The steps of a peer.
pub(crate) struct PeerSteps(pub(crate) Rc<Peer>);

impl sched::Source for PeerSteps {
    fn pending(&self) -> usize {
        self.0.kinds().into_iter().filter(|kind| *kind).count()
    }

    fn run(&self, nth: usize) {
        let peer = &self.0;
        let manners = peer.manners.get();
        let up = match &*peer.link.borrow() {
            Link::Up { qp, .. } => Some(*qp),
            _ => None,
        };
        if let Some(qp) = up {
            if one_in(manners.breaks_off) {
                say!("the network ends the connection of QP {qp}");
                cm::disconnect(qp);
                return;
            }
            if one_in(manners.leaves) {
                say!("the peer ends the connection of QP {qp}");
                peer.lose();
                return;
            }
        }
        let kinds = peer.kinds();
        let chosen = (0..kinds.len()).filter(|kind| kinds[*kind]).nth(nth);
        match chosen {
            Some(0) => peer.hear(),
            Some(1) => {
                let event = match &*peer.link.borrow() {
                    Link::Asked { qp, .. } | Link::Up { qp, .. } => {
                        fabric::fabric(|f| f.qps.get_mut(qp)?.inbox.pop_front())
                    }
                    Link::Down => None,
                };
                if let Some(event) = event {
                    peer.handle(event);
                }
            }
            Some(2) => peer.send(),
            Some(_) => peer.connect(),
            None => {}
        }
    }
}
