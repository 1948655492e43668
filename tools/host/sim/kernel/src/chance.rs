// SPDX-License-Identifier: GPL-2.0

//! Chance: the choices of a run.
//!
//! A choice is a number below the number of possibilities, and 0 is the plainest: the first
//! context, no preemption, no fault. A seed gives all choices. They can be recorded, and a run can
//! follow a recorded list instead, with 0 for each choice behind its end. So a list from which
//! choices are deleted is a simpler run of the same play. How fast time passes and the content of
//! data are no choices.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
    static PACE: Cell<u64> = const { Cell::new(0) };
    static DATA: Cell<u64> = const { Cell::new(0) };
    static RECORD: RefCell<Option<Vec<u64>>> = const { RefCell::new(None) };
    static REPLAY: RefCell<Option<VecDeque<u64>>> = const { RefCell::new(None) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Has the choices recorded from now on.
pub fn record() {
    RECORD.set(Some(Vec::new()));
}

/// The choices that were recorded, without zeros at the end.
pub fn recorded() -> Vec<u64> {
    let mut choices = RECORD.take().unwrap_or_default();
    while choices.last() == Some(&0) {
        choices.pop();
    }
    choices
}

/// Has the runs of this process follow these choices, for so many steps at most.
pub fn replay(choices: Vec<u64>, steps: u64) {
    REPLAY.set(Some(choices.into()));
    LIMIT.set(steps);
}

/// Whether choices are replayed.
pub fn replays() -> bool {
    REPLAY.with_borrow(Option::is_some)
}

/// The most steps of a run.
pub(crate) fn limit() -> u64 {
    LIMIT.get()
}

pub(crate) fn begin(seed: u64) {
    STATE.set(seed);
    PACE.set(seed ^ 0x7ace_7ace);
    DATA.set(seed ^ 0xda7a_da7a);
}

fn draw(state: &Cell<u64>) -> u64 {
    state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mut z = state.get();
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Chooses, by what `by_seed` makes of a random number, or by the number in the list that is
/// replayed.
fn choose(by_seed: impl FnOnce(u64) -> u64, of_list: impl FnOnce(u64) -> u64) -> u64 {
    let listed = REPLAY.with_borrow_mut(|replay| {
        let replay = replay.as_mut()?;
        Some(replay.pop_front().unwrap_or(0))
    });
    let choice = match listed {
        Some(number) => of_list(number),
        None => by_seed(STATE.with(draw)),
    };
    RECORD.with_borrow_mut(|record| {
        if let Some(record) = record {
            record.push(choice);
        }
    });
    choice
}

/// Any of these numbers.
pub fn pick(numbers: &[u32]) -> u32 {
    numbers[below(numbers.len())]
}

/// A random number below `n`, which is not 0. For schedules and faults.
pub fn below(n: usize) -> usize {
    let n = n as u64;
    choose(|number| number % n, |number| number % n) as usize
}

/// Whether something happens that does once in `n` times; never if `n` is 0.
pub fn one_in(n: u32) -> bool {
    n != 0
        && choose(
            |number| u64::from(number % u64::from(n) == 0),
            |number| u64::from(number != 0),
        ) == 1
}

/// Any number, for a priority.
pub(crate) fn any() -> u64 {
    choose(|number| number, |number| number)
}

/// 64 random bits, as data.
pub fn random() -> u64 {
    DATA.with(draw)
}

/// Nanoseconds that a step takes.
pub(crate) fn pace() -> u64 {
    PACE.with(draw) % 20_000
}
