// SPDX-License-Identifier: GPL-2.0

//! The steps of a client beside the module: it keeps to the protocol when it sends Calls, and looks
//! whether the server does.

use std::rc::Rc;

use kernel::sched::{self, one_in};

use super::peer::{Link, Peer};
use super::peer_calls::{check, compose, content, Sent};
use crate::bindings::cm;
use crate::bindings::cm_peer;
use crate::bindings::fabric::{self, PeerEvent};
use crate::bindings::fabric_peer as queue;
use crate::wire::{Body, Header};

impl Peer {
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
            if !agreement.remote_invalidation || !call.segments().any(|s| s.handle == rkey) {
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
                check(&call, payload.to_vec(), &chunks);
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
                check(&call, payload, &chunks);
                self.replies.set(self.replies.get() + 1);
            }
            Body::Done => sched::fail("a server sends RDMA_DONE"),
        }
        let qp = *qp;
        // The Call is over: whatever the server still does to its memory is denied.
        for segment in call.segments() {
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
