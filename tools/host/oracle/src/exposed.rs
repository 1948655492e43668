// SPDX-License-Identifier: GPL-2.0

//! Places of exposed Replies: no more of anything than there are places, and nothing released
//! twice.

use rpcrdma_core::engine::requester::reply_history::ReplyHistory;
use rpcrdma_core::engine::responder::exposed::ExposedSlot;
use rpcrdma_core::engine::responder::exposed::ExposedSlots;
use rpcrdma_core::engine::responder::exposed::NotExposed;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A Reply with this XID is to be exposed.
    Expose(u32),
    /// One that was given a place is posted, and may be pulled for so long.
    Arm {
        /// Which one.
        which: usize,
        /// For how long.
        time: u64,
    },
    /// An RDMA_DONE comes.
    Done(u32),
    /// Time passes.
    Passes(u64),
    /// One of what is being released is released.
    Released(usize),
    /// One that was given a place last is not sent after all.
    Withdraw(usize),
}

/// What a slow and obvious responder knows of a Reply.
#[derive(Clone, Copy, Debug)]
struct Known {
    place: usize,
    xid: u32,
    /// When its time is over, or since when it is.
    until: Option<u64>,
    /// Its memory is exposed.
    exposed: bool,
    /// Its memory is being released.
    releasing: bool,
    /// Its RDMA_DONE has not come.
    owed: bool,
}

/// How long a release may take.
const GRACE: u64 = 20;

/// Lives through `events` with `count` places.
pub fn exposed(count: usize, events: &[Event]) {
    let mut places = ExposedSlots::new(vec![ExposedSlot::Owed { xid: 0 }; count]);
    let mut known: Vec<Known> = Vec::new();
    let mut now = 0;
    for event in events {
        match *event {
            Event::Expose(xid) => {
                let same = known.iter().any(|k| k.owed && k.xid == xid);
                match places.expose(xid) {
                    Ok(place) => {
                        assert!(!same && known.iter().all(|k| k.place != place));
                        known.push(Known {
                            place,
                            xid,
                            until: None,
                            exposed: true,
                            releasing: false,
                            owed: true,
                        });
                    }
                    Err(NotExposed::SameXid) => assert!(same),
                    Err(NotExposed::Full) => assert!(!same && known.len() == count),
                }
            }
            Event::Arm { which, time } => {
                if let Some(mine) = known.iter_mut().filter(|k| k.exposed).nth(which) {
                    mine.until = Some(now + time);
                    assert!(places.set_deadline(mine.place, now + time));
                }
            }
            Event::Done(xid) => {
                let mine = known.iter_mut().find(|k| k.owed && k.xid == xid);
                let expected = mine.and_then(|k| {
                    k.owed = false;
                    k.releasing |= k.exposed;
                    core::mem::take(&mut k.exposed).then_some(k.place)
                });
                assert_eq!(places.done(xid), expected);
            }
            Event::Passes(time) => {
                now += time;
                while let Some(place) = places.expired(now) {
                    let mine = known.iter_mut().find(|k| k.place == place && k.exposed);
                    let mine = mine.expect("only what is exposed expires");
                    assert!(mine.until.is_some_and(|until| until <= now));
                    (mine.exposed, mine.releasing) = (false, true);
                    mine.until = Some(now);
                }
                let over = |k: &Known| k.exposed && k.until.is_some_and(|until| until <= now);
                assert!(!known.iter().any(over));
            }
            Event::Released(which) => {
                let mut releasing = known.iter_mut().filter(|k| k.releasing);
                if let Some(mine) = releasing.nth(which) {
                    mine.releasing = false;
                    places.released(mine.place);
                }
            }
            Event::Withdraw(which) => {
                let exposed = known.iter().filter(|k| k.exposed).nth(which).copied();
                if let Some(mine) = exposed {
                    known.retain(|k| k.place != mine.place);
                    places.withdraw(mine.place);
                }
            }
        }
        known.retain(|k| k.exposed || k.releasing || k.owed);
        assert_eq!(places.owed(), known.iter().filter(|k| k.owed).count());
        assert!(places.owed() <= count);
        let free = places
            .as_slice()
            .iter()
            .filter(|p| **p == ExposedSlot::Free);
        assert_eq!(free.count(), count - known.len());
        let overdue = |k: &Known| k.releasing && k.until.is_some_and(|t| t + GRACE <= now);
        assert_eq!(places.is_overdue(now, GRACE), known.iter().any(overdue));
        let look = |k: &Known| Some(k.until? + if k.releasing { GRACE } else { 0 });
        let looks = known.iter().filter(|k| k.exposed || k.releasing);
        assert_eq!(places.next_check(GRACE), looks.filter_map(look).min());
    }
}

/// A habit is what the last few Replies were like.
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
