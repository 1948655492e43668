// SPDX-License-Identifier: GPL-2.0

//! A server that acts anything to the clients of the module.

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use kernel::sched::{self, below, one_in};

use super::hostile;
use super::peer_calls::register;
use super::rpc::Rpc;
use crate::bindings::cm::{self, End, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric::{fabric, PeerEvent};
use crate::bindings::fabric_peer as queue;
use crate::engine::agreement::Agreement;
use crate::wire::extensions::{Announcement, Offer};
use crate::wire::private_data::PrivateData;
use crate::wire::{Body, Header, HeaderWriter, Overflow, ReadSegment, Segment, WriteChunk};

/// The RPCs of the clients, by XID.
pub(super) type Calls = Rc<RefCell<BTreeMap<u32, Rpc>>>;

/// A connection.
struct Link {
    qp: u32,
    client: End,
    agreement: Agreement,
    calls: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

/// A hostile server.
pub(super) struct HostileServer {
    /// Where connection requests arrive.
    mailbox: u32,
    links: RefCell<Vec<Link>>,
    /// Whose requests it has left without an answer.
    asked: RefCell<Vec<End>>,
    left: Cell<u32>,
    has_ended: Cell<bool>,
    calls: Calls,
    /// What it has done.
    pub(super) acts: Cell<u64>,
}

impl HostileServer {
    /// Starts to listen at the hostile address. It does so many things there.
    pub(super) fn new(acts: u32, calls: Calls) -> Self {
        let mailbox = queue::peer_qp(0);
        cm_peer::peer_listens(Some(mailbox));
        Self {
            mailbox,
            links: RefCell::default(),
            asked: RefCell::default(),
            left: Cell::new(acts),
            has_ended: Cell::new(false),
            calls,
            acts: Cell::new(0),
        }
    }

    /// Does nothing more, but keeps its connections.
    pub(super) fn be_silent(&self) {
        self.left.set(0);
    }

    /// Its connections end, and the address leads to the server of the module.
    pub(super) fn end(&self) {
        self.left.set(0);
        self.has_ended.set(true);
        cm_peer::peer_listens(None);
        // The connection manager gives up.
        for from in self.asked.take() {
            cm_peer::peer_tells(self.mailbox, from, Message::Reject);
        }
        while let Some((from, message)) = cm_peer::peer_message(self.mailbox) {
            if matches!(message, Message::Request { .. }) {
                cm_peer::peer_tells(self.mailbox, from, Message::Reject);
            }
        }
        let links: Vec<u32> = self.links.borrow().iter().map(|link| link.qp).collect();
        for qp in links {
            self.leave(qp, false);
        }
    }

    /// Removes what is left, when the run is over.
    pub(super) fn remove(&self) {
        queue::peer_end(self.mailbox);
    }

    fn leave(&self, qp: u32, says_so: bool) {
        let mut links = self.links.borrow_mut();
        let Some(at) = links.iter().position(|link| link.qp == qp) else {
            return;
        };
        let link = links.swap_remove(at);
        if says_so {
            cm_peer::peer_tells(qp, link.client, Message::Disconnect);
        } else {
            cm::disconnect(qp);
        }
        queue::peer_end(qp);
    }

    fn hear(&self) {
        let Some((from, message)) = cm_peer::peer_message(self.mailbox) else {
            return;
        };
        let Message::Request { param, qp: other } = message else {
            return;
        };
        if !self.has_ended.get() && one_in(8) {
            self.asked.borrow_mut().push(from);
            return;
        }
        // A request may have been on its way when the server ended.
        if self.has_ended.get() || one_in(6) {
            cm_peer::peer_tells(self.mailbox, from, Message::Reject);
            return;
        }
        let qp = queue::peer_qp([1, 8, 200][below(3)]);
        queue::peer_is_hostile(qp);
        let own = PrivateData {
            remote_invalidation: below(2) == 0,
            send_size: [1024, 4096, 262_144][below(3)],
            receive_size: [1024, 4096, 262_144][below(3)],
        };
        let peer = PrivateData::of_peer(&param.private_data);
        let offer = Offer {
            pulled_replies: below(4) != 0,
        };
        let mut private_data = Announcement::new(&own, &offer).as_bytes().to_vec();
        match below(6) {
            0 => private_data = hostile::bytes(below(197)),
            1 => hostile::spoil(&mut private_data, &[]),
            _ => {}
        }
        private_data.truncate(196);
        cm::connect(qp, other);
        let param = Param {
            private_data,
            responder_resources: [0, 1, 8, 255][below(4)],
            initiator_depth: [0, 1, 8, 255][below(4)],
        };
        cm_peer::peer_tells(qp, from, Message::Accept { param, qp });
        self.links.borrow_mut().push(Link {
            qp,
            client: from,
            agreement: Agreement::between(&own, &peer),
            calls: Vec::new(),
            sent: Vec::new(),
        });
    }

    fn tell(&self, qp: u32) {
        match cm_peer::peer_message(qp) {
            Some((_, Message::Disconnect)) => self.leave(qp, true),
            Some((_, Message::Reject)) => self.leave(qp, true),
            _ => {}
        }
    }

    fn handle(&self, qp: u32) {
        let event = fabric(|f| f.qps.get_mut(&qp)?.inbox.pop_front());
        match event {
            Some(PeerEvent::Received { bytes, .. }) => {
                hostile::receive(qp);
                let mut links = self.links.borrow_mut();
                if let Some(link) = links.iter_mut().find(|link| link.qp == qp) {
                    link.calls.push(bytes);
                }
            }
            Some(PeerEvent::Error) => self.leave(qp, below(2) == 0),
            _ => {}
        }
    }

    fn act(&self, qp: u32) {
        self.left.set(self.left.get() - 1);
        self.acts.set(self.acts.get() + 1);
        let mut links = self.links.borrow_mut();
        let Some(link) = links.iter_mut().find(|link| link.qp == qp) else {
            return;
        };
        let xid = match link.calls.first() {
            Some(call) if call.len() >= 4 => {
                u32::from_be_bytes([call[0], call[1], call[2], call[3]])
            }
            _ => hostile::number(),
        };
        match below(16) {
            0..=8 => {
                if !link.calls.is_empty() {
                    let at = below(link.calls.len());
                    // A Call that stays is answered twice.
                    let call = if one_in(8) {
                        link.calls[at].clone()
                    } else {
                        link.calls.swap_remove(at)
                    };
                    self.answer(link, &call);
                }
            }
            9 => queue::peer_send(qp, hostile::bytes(below(9000)), None),
            10 => queue::peer_send(qp, hostile::unasked(xid), None),
            11 => {
                if let Some(message) = link.sent.last() {
                    queue::peer_send(qp, message.clone(), None);
                }
            }
            12 => hostile::access(qp),
            13 => hostile::invalidate(qp, hostile::unasked(xid)),
            14 => hostile::receive(qp),
            _ => {
                drop(links);
                if one_in(3) {
                    self.leave(qp, below(2) == 0);
                }
            }
        }
    }

    /// Answers a Call as a server does, with one thing wrong in most cases.
    fn answer(&self, link: &mut Link, call: &[u8]) {
        let Ok(header) = Header::decode(call) else {
            return;
        };
        let Some(rpc) = self.calls.borrow().get(&header.xid).copied() else {
            return;
        };
        let (Body::Msg { chunks, .. } | Body::NoMsg { chunks }) = header.body else {
            return;
        };
        let qp = link.qp;
        let reply = rpc.reply();
        let item = rpc.reply_item();
        let write = chunks
            .writes
            .chunks()
            .next()
            .filter(|_| !rpc.is_protected() && !one_in(8));
        let mut rest = reply.clone();
        if let Some(chunk) = &write {
            fill(qp, chunk, &reply[item.clone()]);
            let end = item.end.next_multiple_of(4).min(rest.len());
            rest.drain(item.start..end);
        }
        let returned = write.map(|_| item.len() as u32);
        let credits = [1, 4, 32, hostile::number()][below(4)];
        let mut reads = Vec::new();
        let mut message = vec![0; 2048];
        let inline = rest.len() + 300 <= link.agreement.send as usize && !one_in(8);
        let whole = chunks.reply.filter(|_| !inline);
        let mut encode = || -> Result<usize, Overflow> {
            let mut out = if inline {
                HeaderWriter::msg(&mut message, header.xid, credits)?
            } else {
                HeaderWriter::nomsg(&mut message, header.xid, credits)?
            };
            if !inline && (whole.is_none() || one_in(4)) {
                reads = register(qp, &rest, false);
                if one_in(3) {
                    hostile::lie(&mut reads);
                }
                for segment in &reads {
                    let position = if one_in(10) { 4 } else { 0 };
                    let segment = *segment;
                    out.read_segment(ReadSegment { position, segment })?;
                }
            }
            let mut out = out.no_more_reads()?;
            for chunk in chunks.writes.chunks() {
                let lie = if one_in(8) { hostile::number() } else { 0 };
                out.return_chunk(&chunk, returned.unwrap_or(0) ^ lie)?;
            }
            let out = out.no_more_writes()?;
            match &whole {
                Some(chunk) => {
                    let lie = if one_in(8) { hostile::number() } else { 0 };
                    out.return_chunk(chunk, rest.len() as u32 ^ lie)
                }
                None => out.no_reply_chunk(),
            }
        };
        let len = encode().unwrap_or(0);
        message.truncate(len);
        if let Some(chunk) = &whole {
            fill(qp, chunk, &rest);
        }
        if inline {
            message.extend(&rest);
        }
        if one_in(2) {
            hostile::spoil(&mut message, &link.sent);
        }
        if one_in(6) {
            hostile::free(&reads);
        }
        if link.sent.len() == 8 {
            link.sent.remove(0);
        }
        link.sent.push(message.clone());
        let own: Vec<Segment> = chunks.writes.chunks().flat_map(|c| c.segments()).collect();
        match own.first() {
            Some(segment) if link.agreement.remote_invalidation && one_in(2) => {
                queue::peer_send(qp, message, Some(segment.handle));
            }
            _ if one_in(16) => hostile::invalidate(qp, message),
            _ => queue::peer_send(qp, message, None),
        }
    }

    /// What can be done, and on which connection.
    fn choices(&self) -> Vec<(Choice, u32)> {
        let mut choices = Vec::new();
        if cm_peer::has_peer_message(self.mailbox) {
            choices.push((Choice::Hear, self.mailbox));
        }
        for link in &*self.links.borrow() {
            if cm_peer::has_peer_message(link.qp) {
                choices.push((Choice::Tell, link.qp));
            }
            if fabric(|f| f.qps.get(&link.qp).is_some_and(|qp| !qp.inbox.is_empty())) {
                choices.push((Choice::Handle, link.qp));
            }
            if self.left.get() > 0 {
                choices.push((Choice::Act, link.qp));
            }
        }
        choices
    }
}

#[derive(Clone, Copy)]
enum Choice {
    Hear,
    Tell,
    Handle,
    Act,
}

/// Writes bytes to the segments of a chunk, most often within them.
fn fill(qp: u32, chunk: &WriteChunk<'_>, bytes: &[u8]) {
    let mut rest = bytes;
    for segment in chunk.segments() {
        let (now, later) = rest.split_at((segment.length as usize).min(rest.len()));
        if !now.is_empty() {
            let mut now = now.to_vec();
            if one_in(20) {
                now.push(0xbb);
            }
            queue::peer_write(qp, segment.handle, segment.offset, now, false);
        }
        rest = later;
    }
}

impl sched::Source for HostileServer {
    fn pending(&self) -> usize {
        self.choices().len()
    }

    fn run(&self, nth: usize) {
        let Some((choice, qp)) = self.choices().get(nth).copied() else {
            return;
        };
        match choice {
            Choice::Hear => self.hear(),
            Choice::Tell => self.tell(qp),
            Choice::Handle => self.handle(qp),
            Choice::Act => self.act(qp),
        }
    }
}
