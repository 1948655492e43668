// SPDX-License-Identifier: GPL-2.0

//! The order in which locks are taken, by class, and what may not sleep.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::sched::{self, Held};

/// Classes of which a context may hold two locks. The kernel tells lockdep so.
const NESTED: [&str; 1] = [
    // `cma_ib_req_handler()` takes that of the new connection with that of the listener held, by
    // `mutex_lock_nested()`.
    "rdma_cm_id::handler_mutex",
];

thread_local! {
    /// For each class, the classes that were taken while it was held.
    static AFTER: RefCell<BTreeMap<&'static str, Vec<&'static str>>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// Fails the run if the context must not sleep.
pub fn might_sleep(what: &str) {
    if std::thread::panicking() {
        return;
    }
    if let Some(why) = sched::no_sleep_reason() {
        sched::fail(format_args!("{what} sleeps {why}"));
    }
}

/// A lock is about to be taken, and the context waits for it.
pub(crate) fn take(lock: usize, class: &'static str, spins: bool) {
    if !sched::may_lock(class) {
        sched::fail(format_args!(
            "{class} is taken by a task that must not wait for others"
        ));
    }
    let nests = |held: &Held| held.lock != lock && held.class == class;
    let held = sched::with_held(|held| held.iter().any(nests));
    if held == Some(true) && !NESTED.contains(&class) {
        sched::fail(format_args!(
            "{class} is taken with another lock of this class held"
        ));
    }
    try_take(lock, class, spins);
}

/// A lock is about to be taken without a wait.
pub(crate) fn try_take(lock: usize, class: &'static str, spins: bool) {
    let held = sched::with_held(|held| {
        let others: Vec<Held> = held.clone();
        held.push(Held { lock, class, spins });
        others
    });
    for other in held.into_iter().flatten() {
        if other.lock == lock {
            sched::fail(format_args!("{class} is taken by a context that holds it"));
        }
        order(other.class, class);
    }
}

/// A lock was released.
pub(crate) fn release(lock: usize) {
    sched::with_held(|held| {
        if let Some(at) = held.iter().rposition(|held| held.lock == lock) {
            held.remove(at);
        }
    });
}

fn order(first: &'static str, then: &'static str) {
    let wrong = AFTER.with_borrow_mut(|after| {
        let followers = after.entry(first).or_default();
        if followers.contains(&then) {
            return false;
        }
        followers.push(then);
        reaches(after, then, first, &mut Vec::new())
    });
    if wrong && first != then {
        sched::fail(format_args!(
            "lock order: {then} is taken with {first} held, and the reverse"
        ));
    }
}

/// Whether `from` was held, directly or not, when `to` was taken.
fn reaches(
    after: &BTreeMap<&'static str, Vec<&'static str>>,
    from: &'static str,
    to: &'static str,
    seen: &mut Vec<&'static str>,
) -> bool {
    if from == to {
        return true;
    }
    if seen.contains(&from) {
        return false;
    }
    seen.push(from);
    let followers = after.get(from).map_or(&[][..], Vec::as_slice);
    followers.iter().any(|next| reaches(after, next, to, seen))
}
