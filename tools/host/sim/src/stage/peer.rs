// SPDX-License-Identifier: GPL-2.0

//! A client that speaks the wire protocol, beside the module: its connections, and the RPCs that it
//! has to send on them.

use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kernel::sched::{self, below, one_in};

use super::nfsd::Nfsd;
use super::peer_calls::Sent;
use super::rpc::Rpc;
use crate::bindings::cm::{self, End, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric;
use crate::bindings::fabric_peer as queue;
use crate::engine::agreement::{Agreement, Extensions, ReadDepths};
use crate::wire::extensions::{Announcement, Offer};
use crate::wire::private_data::PrivateData;

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

pub(super) enum Link {
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
    pub(super) manners: Cell<Manners>,
    pub(super) nfsd: Rc<Nfsd>,
    pub(super) queued: RefCell<VecDeque<Rpc>>,
    pub(super) link: RefCell<Link>,
    pub(super) attempts: Cell<u32>,
    pub(super) not_before: Cell<u64>,
    /// RPCs with a Reply, and connections.
    pub(crate) replies: Cell<u32>,
    pub(crate) refused: Cell<u32>,
    pub(crate) connections: Cell<u32>,
    pub(super) closing: Cell<bool>,
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

    pub(super) fn connect(&self) {
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
    pub(super) fn lose(&self) {
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

    pub(super) fn hear(&self) {
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
                // The message that the end is ready may be lost, but not over iWARP.
                if !one_in(4) || fabric::fabric(|f| f.device.iwarp) {
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
}
