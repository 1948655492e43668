// SPDX-License-Identifier: GPL-2.0

//! Slots of exposed Replies: each Reply has one, and its memory is released once.

use rpcrdma_core::engine::requester::reply_history::ReplyHistory;
use rpcrdma_core::engine::responder::exposed::ExposedSlot;
use rpcrdma_core::engine::responder::exposed::ExposedSlots;
use rpcrdma_core::engine::responder::exposed::NotExposed;

/// An event at the responder.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The Reply with this XID is exposed.
    Expose(u32),
    /// The Send of an exposed Reply is posted.
    Post {
        /// Index among the exposed Replies.
        which: usize,
        /// Time from now to the deadline.
        time: u64,
    },
    /// The RDMA_DONE with this XID arrives.
    Done(u32),
    /// This much time passes.
    Passes(u64),
    /// The memory of a Reply is released; its index among those that are being released.
    Released(usize),
    /// An exposed Reply is not sent after all; its index among the exposed Replies.
    Withdraw(usize),
}

/// The model of a Reply that has a slot.
#[derive(Clone, Copy, Debug)]
struct Model {
    slot: usize,
    xid: u32,
    /// The deadline, or the time at which the Reply expired.
    until: Option<u64>,
    /// The memory is exposed.
    exposed: bool,
    /// The memory is being released.
    releasing: bool,
    /// The RDMA_DONE has not arrived.
    owed: bool,
}

/// Time after which a release is overdue.
const GRACE: u64 = 20;

/// Runs `events` on `count` slots.
pub fn exposed(count: usize, events: &[Event]) {
    let mut slots = ExposedSlots::new(vec![ExposedSlot::Owed { xid: 0 }; count]);
    let mut replies: Vec<Model> = Vec::new();
    let mut now = 0;
    for event in events {
        match *event {
            Event::Expose(xid) => {
                let same = replies.iter().any(|r| r.owed && r.xid == xid);
                match slots.expose(xid) {
                    Ok(slot) => {
                        assert!(!same && replies.iter().all(|r| r.slot != slot));
                        replies.push(Model {
                            slot,
                            xid,
                            until: None,
                            exposed: true,
                            releasing: false,
                            owed: true,
                        });
                    }
                    Err(NotExposed::SameXid) => assert!(same),
                    Err(NotExposed::Full) => assert!(!same && replies.len() == count),
                }
            }
            Event::Post { which, time } => {
                if let Some(reply) = replies.iter_mut().filter(|r| r.exposed).nth(which) {
                    reply.until = Some(now + time);
                    assert!(slots.set_deadline(reply.slot, now + time));
                }
            }
            Event::Done(xid) => {
                let reply = replies.iter_mut().find(|r| r.owed && r.xid == xid);
                let expected = reply.and_then(|r| {
                    r.owed = false;
                    r.releasing |= r.exposed;
                    core::mem::take(&mut r.exposed).then_some(r.slot)
                });
                assert_eq!(slots.done(xid), expected);
            }
            Event::Passes(time) => {
                now += time;
                while let Some(slot) = slots.expired(now) {
                    let reply = replies.iter_mut().find(|r| r.slot == slot && r.exposed);
                    let reply = reply.expect("only an exposed Reply expires");
                    assert!(reply.until.is_some_and(|until| until <= now));
                    (reply.exposed, reply.releasing) = (false, true);
                    reply.until = Some(now);
                }
                let expired = |r: &Model| r.exposed && r.until.is_some_and(|until| until <= now);
                assert!(!replies.iter().any(expired));
            }
            Event::Released(which) => {
                let mut releasing = replies.iter_mut().filter(|r| r.releasing);
                if let Some(reply) = releasing.nth(which) {
                    reply.releasing = false;
                    slots.released(reply.slot);
                }
            }
            Event::Withdraw(which) => {
                let exposed = replies.iter().filter(|r| r.exposed).nth(which).copied();
                if let Some(reply) = exposed {
                    replies.retain(|r| r.slot != reply.slot);
                    slots.withdraw(reply.slot);
                }
            }
        }
        replies.retain(|r| r.exposed || r.releasing || r.owed);
        let ended =
            |slot: &&ExposedSlot| matches!(slot, ExposedSlot::Free | ExposedSlot::Ending { .. });
        let owed = slots.as_slice().iter().filter(|slot| !ended(slot)).count();
        assert_eq!(owed, replies.iter().filter(|r| r.owed).count());
        for reply in &replies {
            assert_eq!(slots.xid(reply.slot), reply.owed.then_some(reply.xid));
        }
        assert_eq!(slots.xid(count), None);
        let free = slots.as_slice().iter().filter(|p| **p == ExposedSlot::Free);
        assert_eq!(free.count(), count - replies.len());
        let overdue = |r: &Model| r.releasing && r.until.is_some_and(|t| t + GRACE <= now);
        assert_eq!(slots.is_overdue(now, GRACE), replies.iter().any(overdue));
        let check = |r: &Model| Some(r.until? + if r.releasing { GRACE } else { 0 });
        let pending = replies.iter().filter(|r| r.exposed || r.releasing);
        assert_eq!(slots.next_check(GRACE), pending.filter_map(check).min());
    }
}

/// The last few Replies determine the prediction of the history.
pub fn history(long: &[bool]) {
    let mut history = ReplyHistory::default();
    assert!(!history.is_long());
    for (n, long_now) in long.iter().enumerate() {
        history = history.after(*long_now);
        assert_eq!(ReplyHistory::from_bits(history.to_bits()), history);
        let last = |count: usize| long[..=n].iter().rev().take(count);
        if n >= 1 && last(2).all(|long| *long) {
            assert!(history.is_long());
        }
        if n >= 3 && last(4).all(|long| !*long) {
            assert!(!history.is_long());
        }
    }
}
