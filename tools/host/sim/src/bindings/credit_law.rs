// SPDX-License-Identifier: GPL-2.0

//! Two laws that each message shows (RFC 8166 Section 3.3.1, RFC 8167 Section 4.1). No end has more
//! Calls outstanding than the other has granted, in either direction. A server that grants credits
//! has a Receive for each of them, posted or taken by a Call that it has not answered. A client
//! that sends without credits takes the Receives of its own: such a client is owed nothing.
//!
//! A Call counts from the time when SUNRPC gives it a credit. The grant at that time is that of the
//! last Reply that SUNRPC has, or of a later one that the module has and may have handled in part.

use core::cell::RefCell;
use std::collections::BTreeMap;

use kernel::sched;

use super::fabric::{Fabric, Grants};
use super::*;
use crate::wire::{Body, Header};

/// An end of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

/// A Call that was sent.
struct Call {
    /// When it got its credit.
    credit: u64,
    /// When the Reply has arrived.
    answered: Option<u64>,
}

/// The grant of a Reply.
struct Grant {
    xid: u32,
    credits: u32,
    arrived: u64,
    /// When SUNRPC had the Reply.
    completed: Option<u64>,
}

/// What one end of a connection has sent.
#[derive(Default)]
struct Direction {
    side: Option<Side>,
    calls: BTreeMap<u32, Call>,
    /// When a hostile peer has answered Calls that have a credit, but were not sent yet.
    early: BTreeMap<u32, u64>,
    /// In the order of their arrival.
    grants: Vec<Grant>,
    /// Those of Replies to Calls that SUNRPC had not given a credit yet, by their XIDs.
    strays: BTreeMap<u32, Grant>,
}

#[derive(Default)]
struct Law {
    /// Counts what happens.
    clock: u64,
    /// When each Call got its credit.
    credits: BTreeMap<(Side, u32), u64>,
    /// By the queue pair of the end that sends the Calls.
    directions: BTreeMap<u32, Direction>,
}

thread_local! {
    static LAW: RefCell<Law> = RefCell::default();
}

/// Begins a run.
pub(crate) fn begin() {
    LAW.set(Law::default());
}

impl Law {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Direction {
    /// The Calls that count at a time.
    fn outstanding(&self, at: u64) -> usize {
        let counts = |call: &&Call| call.credit <= at && call.answered.is_none_or(|when| when > at);
        self.calls.values().filter(counts).count()
    }

    /// The grant at a time. A new connection has one credit, and a grant of none counts as one.
    fn granted(&self, at: u64) -> u32 {
        let arrived = self.grants.iter().filter(|grant| grant.arrived <= at);
        let is_completed = |grant: &&Grant| grant.completed.is_some_and(|when| when <= at);
        let last = arrived.clone().filter(is_completed);
        let last = last.map(|grant| grant.arrived).max().unwrap_or(0);
        let current = arrived.filter(|grant| grant.arrived >= last);
        current.map(|grant| grant.credits).max().unwrap_or(0).max(1)
    }
}

fn side_of(xprt: *mut rpc_xprt) -> Side {
    if unsafe { (*xprt).bc_xprt }.is_null() {
        Side::Client
    } else {
        Side::Server
    }
}

unsafe fn key(rqst: *mut rpc_rqst) -> (Side, u32) {
    unsafe { (side_of((*rqst).rq_xprt), u32::from_be((*rqst).rq_xid)) }
}

/// SUNRPC gives a Call a credit.
pub(super) unsafe fn take(rqst: *mut rpc_rqst) {
    let key = unsafe { key(rqst) };
    LAW.with_borrow_mut(|law| {
        let now = law.tick();
        say!("{:?} has a credit for Call {:#x}", key.0, key.1);
        law.credits.insert(key, now);
    });
}

/// SUNRPC has the Reply to a Call. A hostile peer may have sent it before there was a Call, so that
/// this law does not know of it yet.
pub(super) unsafe fn complete(rqst: *mut rpc_rqst) {
    let (side, xid) = unsafe { key(rqst) };
    say!("{side:?} has the Reply to {xid:#x}");
    LAW.with_borrow_mut(|law| {
        let now = law.tick();
        for direction in law.directions.values_mut() {
            if direction.side != Some(side) {
                continue;
            }
            if let Some(call) = direction.calls.get_mut(&xid) {
                call.answered.get_or_insert(now);
            }
            // If two Replies have arrived, either is the one.
            let mut grants = direction.grants.iter_mut();
            if let Some(grant) = grants.find(|grant| grant.xid == xid) {
                grant.completed.get_or_insert(now);
            } else if let Some(mut grant) = direction.strays.remove(&xid) {
                grant.completed = Some(now);
                direction.grants.push(grant);
                // The Call is posted, and the device may have yet to send it.
                if !direction.calls.contains_key(&xid) {
                    direction.early.insert(xid, now);
                }
            }
        }
    });
}

impl Fabric {
    /// The end of the module that has this queue pair.
    fn side(&self, number: u32) -> Option<Side> {
        let owner = self.owners.get(&self.qps.get(&number)?.pd)?;
        Some(if *owner == fabric::device().addr() {
            Side::Server
        } else {
            Side::Client
        })
    }
}

/// A message of one queue pair reaches the other.
pub(super) fn message(f: &Fabric, from: u32, to: u32, bytes: &mut [u8]) {
    let sides = (f.side(from), f.side(to));
    let lowered = {
        let Ok(header) = Header::decode(bytes) else {
            return;
        };
        let is_call = match &header.body {
            Body::Msg { payload, .. } => payload.to_vec().get(4..8) == Some(&[0; 4]),
            // Only a client has long Calls, and only a server long Replies.
            Body::NoMsg { .. } => sides.0 == Some(Side::Client) || sides.1 == Some(Side::Server),
            Body::Error(_) => false,
            Body::Done => return,
        };
        if is_call {
            call(from, header.xid, sides.0);
            return;
        }
        if sides.0 == Some(Side::Server) {
            granted(f, from, to, &header);
        }
        let credits = match (f.device.grants, sides) {
            (Grants::One, (Some(_), Some(_))) => 1,
            (Grants::Any, (Some(_), Some(_))) => 1 + sched::below(header.credits.max(1) as usize),
            _ => header.credits as usize,
        };
        reply(to, header.xid, credits as u32, sides.1);
        credits as u32
    };
    bytes[8..12].copy_from_slice(&lowered.to_be_bytes());
}

/// A Call is sent from a queue pair, which is that of the module if `side` is known.
fn call(from: u32, xid: u32, side: Option<Side>) {
    let broken = LAW.with_borrow_mut(|law| {
        let direction = law.directions.entry(from).or_default();
        direction.side = side;
        let credit = match side {
            None => 0,
            Some(side) => match law.credits.get(&(side, xid)) {
                Some(credit) => *credit,
                None => return Some(format!("QP {from} sends Call {xid:#x} without a credit")),
            },
        };
        let answered = direction.early.remove(&xid);
        direction.calls.insert(xid, Call { credit, answered });
        side?;
        let outstanding = direction.calls.values();
        let outstanding = outstanding.filter(|call| call.answered.is_none());
        let last = outstanding.map(|call| call.credit).max().unwrap_or(0);
        let (count, granted) = (direction.outstanding(last), direction.granted(last));
        let why = format!("QP {from} has {count} Calls outstanding, and {granted} credits");
        (count > granted as usize).then_some(why)
    });
    if let Some(why) = broken {
        sched::fail(why);
    }
}

/// A server's Reply grants credits to the client that has the queue pair `to`.
fn granted(f: &Fabric, from: u32, to: u32, header: &Header<'_>) {
    if f.qps.get(&to).is_none_or(|client| !client.honest) {
        return;
    }
    let posted = f.qps.get(&from).map_or(0, |qp| qp.recv.len());
    let taken = LAW.with_borrow(|law| {
        let calls = law.directions.get(&to).map(|direction| &direction.calls);
        let others = calls
            .into_iter()
            .flatten()
            .filter(|(xid, _)| **xid != header.xid);
        others.filter(|(_, call)| call.answered.is_none()).count()
    });
    if posted + taken < header.credits as usize {
        sched::fail(format!(
            "QP {from} grants {} credits, with {posted} Receives and {taken} Calls",
            header.credits
        ));
    }
}

/// A Reply reaches a queue pair. `side` is that of its end.
fn reply(to: u32, xid: u32, credits: u32, side: Option<Side>) {
    LAW.with_borrow_mut(|law| {
        let now = law.tick();
        let has_credit = side.is_some_and(|side| law.credits.contains_key(&(side, xid)));
        let direction = law.directions.entry(to).or_default();
        direction.side = side;
        let grant = Grant {
            xid,
            credits,
            arrived: now,
            completed: None,
        };
        match direction.calls.get_mut(&xid) {
            Some(call) => call.answered.get_or_insert(now),
            None if has_credit => direction.early.entry(xid).or_insert(now),
            None => {
                let stray = direction.strays.entry(xid).or_insert(grant);
                stray.credits = stray.credits.max(credits);
                return;
            }
        };
        say!("a Reply to {xid:#x} grants {credits}");
        direction.grants.push(grant);
    });
}
