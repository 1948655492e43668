// SPDX-License-Identifier: GPL-2.0

//! A play with a server that keeps to the protocol, but for backchannel Calls that the client must
//! refuse (RFC 8167 Section 5.3): with chunks, long ones, and those of another version.

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use kernel::sched::{self, below, pick, Config};

use super::hostile_plays::device;
use super::nfsd::Nfsd;
use super::outcome::{to_call, May, Seen};
use super::peer_calls::register;
use super::rpc::Rpc;
use super::world::{self, World};
use crate::bindings::cm::{self, Message, Param};
use crate::bindings::cm_peer;
use crate::bindings::fabric::{fabric, PeerEvent};
use crate::bindings::fabric_peer as queue;
use crate::bindings::rpc::{Client, Manner};
use crate::wire::extensions::{Announcement, Offer};
use crate::wire::private_data::PrivateData;
use crate::wire::{Body, Header, HeaderWriter, Overflow, RdmaError, ReadSegment, Segment};

/// The connection of the server.
#[derive(Default)]
struct Link {
    qp: u32,
    /// Calls that it has not answered.
    calls: Vec<Rpc>,
    /// Illegal Calls that the client has not answered, and the error that is due.
    illegal: BTreeMap<u32, RdmaError>,
    granted: usize,
}

impl Link {
    fn can_call(&self) -> bool {
        self.illegal.len() < self.granted
    }
}

/// The server.
struct Caller {
    /// Where connection requests arrive.
    mailbox: u32,
    link: RefCell<Option<Link>>,
    pulled_replies: bool,
    /// The illegal Calls that are left, and those that were refused.
    left: Cell<u32>,
    refused: Cell<u64>,
}

impl Caller {
    fn accept(&self) {
        let Some((from, Message::Request { qp: other, .. })) = cm_peer::peer_message(self.mailbox)
        else {
            return;
        };
        if self.link.borrow().is_some() {
            sched::fail("the client connects again");
        }
        let qp = queue::peer_qp(300);
        let offer = Offer {
            pulled_replies: self.pulled_replies,
        };
        let private_data = Announcement::new(&PrivateData::default(), &offer);
        cm::connect(qp, other);
        let param = Param {
            private_data: private_data.as_bytes().to_vec(),
            responder_resources: 8,
            initiator_depth: 8,
        };
        cm_peer::peer_tells(qp, from, Message::Accept { param, qp });
        *self.link.borrow_mut() = Some(Link {
            qp,
            granted: 1,
            ..Link::default()
        });
    }

    fn receive(&self, link: &mut Link, bytes: &[u8]) {
        fabric(|f| queue::peer_receives(f, link.qp, 1));
        let Ok(header) = Header::decode(bytes) else {
            sched::fail(format_args!("a message cannot be decoded: {bytes:02x?}"));
        };
        match header.body {
            Body::Error(error) => {
                say!("refused: {:#x} {error:?}", header.xid);
                if link.illegal.remove(&header.xid) != Some(error) {
                    let xid = header.xid;
                    sched::fail(format_args!("{error:?} is no answer to Call {xid:#x}"));
                }
                link.granted = header.credits as usize;
                self.refused.set(self.refused.get() + 1);
            }
            Body::Msg { payload, .. } => match Rpc::of_call(&payload.to_vec()) {
                Some((rpc, _)) => link.calls.push(rpc),
                None => sched::fail(format_args!("Call {:#x} is not as it was", header.xid)),
            },
            _ => sched::fail(format_args!("what is {header:?}?")),
        }
    }

    /// Sends an illegal Call, most often with the XID of a Call that it has yet to answer.
    fn call(&self, link: &mut Link) {
        let left = self.left.get() - 1;
        self.left.set(left);
        let own = link.calls.first().map(|rpc| rpc.xid);
        let own = own.filter(|xid| !link.illegal.contains_key(xid) && below(4) != 0);
        let xid = own.unwrap_or(0x9000_0000 + left);
        let mut message = vec![0; 400];
        // Without pulled Replies, an RDMA_NOMSG with a Read list is a Call.
        let form = below(if self.pulled_replies { 4 } else { 5 });
        let len = encode(form, link.qp, xid, &mut message);
        message.truncate(len.expect("room for a header"));
        let mut error = RdmaError::Chunk;
        if form == 3 {
            message[4..8].copy_from_slice(&7_u32.to_be_bytes());
            error = RdmaError::Vers { low: 1, high: 1 };
        }
        if form != 4 {
            message.extend([xid, 0, 2].iter().flat_map(|word| word.to_be_bytes()));
        }
        say!("illegal Call {xid:#x} of form {form}");
        link.illegal.insert(xid, error);
        queue::peer_send(link.qp, message, None);
    }

    fn reply(link: &mut Link) {
        let rpc = link.calls.swap_remove(below(link.calls.len()));
        let mut message = vec![0; 64];
        let len = HeaderWriter::plain(&mut message, rpc.xid, 1 + below(32) as u32);
        message.truncate(len.expect("room for a header"));
        message.extend(rpc.reply());
        queue::peer_send(link.qp, message, None);
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        if cm_peer::has_peer_message(self.mailbox) {
            choices.push(Choice::Accept);
        }
        if let Some(link) = &*self.link.borrow() {
            if fabric(|f| !f.qps[&link.qp].inbox.is_empty()) {
                choices.push(Choice::Handle);
            }
            if self.left.get() > 0 && link.can_call() {
                choices.push(Choice::Call);
            }
            if !link.calls.is_empty() {
                choices.push(Choice::Reply);
            }
        }
        choices
    }
}

/// Encodes the header of an illegal Call: with a Read chunk, a Write chunk, a Reply chunk, without
/// chunks (the version is wrong), or with a chunk that is the whole Call.
fn encode(form: usize, qp: u32, xid: u32, message: &mut [u8]) -> Result<usize, Overflow> {
    let segments: Vec<Segment> = register(qp, &[0; 40], form == 1 || form == 2);
    let mut header = if form == 4 {
        HeaderWriter::nomsg(message, xid, 8)?
    } else {
        HeaderWriter::msg(message, xid, 8)?
    };
    if form == 0 || form == 4 {
        let position = if form == 0 { 12 } else { 0 };
        for segment in &segments {
            let segment = *segment;
            header.read_segment(ReadSegment { position, segment })?;
        }
    }
    let mut writes = header.no_more_reads()?;
    if form == 1 {
        writes.write_chunk(segments.iter().copied())?;
    }
    let end = writes.no_more_writes()?;
    if form == 2 {
        end.reply_chunk(segments.iter().copied())
    } else {
        end.no_reply_chunk()
    }
}

#[derive(Clone, Copy)]
enum Choice {
    Accept,
    Handle,
    Call,
    Reply,
}

impl sched::Source for Caller {
    fn pending(&self) -> usize {
        self.choices().len()
    }

    fn run(&self, nth: usize) {
        let choice = self.choices()[nth];
        if let Choice::Accept = choice {
            return self.accept();
        }
        let mut link = self.link.borrow_mut();
        let link = link.as_mut().expect("a connection");
        match choice {
            Choice::Call => self.call(link),
            Choice::Reply => Self::reply(link),
            _ => match fabric(|f| f.qps.get_mut(&link.qp)?.inbox.pop_front()) {
                Some(PeerEvent::Received { bytes, .. }) => self.receive(link, &bytes),
                Some(PeerEvent::Error) => sched::fail("an illegal Call ends the connection"),
                _ => {}
            },
        }
    }
}

/// Each illegal Call is refused. The connection stays, and RPCs in both directions go on.
pub(super) fn client_refuses_illegal_calls(config: &Config) -> Result<Seen, String> {
    sched::begin(&Config {
        seed: !config.seed,
        ..*config
    });
    let world = World {
        device: device(),
        tunables: vec![
            ("sunrpc/rdma_slot_table_entries", pick(&[4, 8, 128])),
            ("sunrpc/rdma_max_bc_requests", pick(&[1, 4, 16])),
        ],
        threads: 1,
        payload: 8192,
    };
    let shapes: Vec<Rpc> = (0..pick(&[3, 10, 40])).map(|_| Rpc::short()).collect();
    let pulled_replies = below(2) == 0;
    let illegal = pick(&[5, 20, 60]);
    world::begin(config, world, Rc::new(Nfsd::default()))?;
    let server = Rc::new(Caller {
        mailbox: queue::peer_qp(0),
        link: RefCell::default(),
        pulled_replies,
        left: Cell::new(illegal),
        refused: Cell::new(0),
    });
    cm_peer::peer_listens(Some(server.mailbox));
    sched::add_source(server.clone());
    let replies = Rc::new(Cell::new(0));
    let client: Rc<RefCell<Option<Rc<Client>>>> = Rc::default();
    let (mounted, counted) = (client.clone(), replies.clone());
    sched::spawn("mount", move || {
        let client = Client::to(cm::hostile_address(), 1 << 24, Manner::PATIENT);
        let client = Rc::new(client.expect("a transport"));
        for shape in shapes {
            client.start(to_call(shape, May { fail: false }, &counted));
        }
        mounted.replace(Some(client));
    });
    sched::run_until("the Calls of both ends", || {
        let ended = client.borrow().as_ref().is_some_and(|c| c.tasks.get() == 0);
        ended && server.refused.get() == u64::from(illegal)
    })?;
    let denied = fabric(|f| core::mem::take(&mut f.denied));
    if !denied.is_empty() {
        return Err(format!("an end was denied: {denied:?}"));
    }
    let refused = server.refused.get();
    cm_peer::peer_listens(None);
    if let Some(link) = server.link.take() {
        cm::disconnect(link.qp);
        queue::peer_end(link.qp);
    }
    queue::peer_end(server.mailbox);
    sched::spawn("umount", move || {
        client.take().expect("a client").put();
    });
    world::end()?;
    Ok(Seen {
        replies: replies.get(),
        hostile: refused,
        steps: sched::steps(),
        ..Seen::default()
    })
}
