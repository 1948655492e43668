// SPDX-License-Identifier: GPL-2.0

//! A queue comes to a halt only if the same is under way at every look.

use rpcrdma_core::engine::responder::stall::Found;
use rpcrdma_core::engine::responder::stall::StallState;

const TIMEOUT: u64 = 90;

/// Looks at the times that it is told to, at a queue that does not move; returns those times.
fn looks(progress: &mut StallState, completed: u32) -> Vec<u64> {
    let mut times = Vec::new();
    let mut now = progress.next_poll();
    for _ in 0..10 {
        times.push(now);
        match progress.poll(completed, true, now, TIMEOUT) {
            Found::Busy(next) => now = next,
            Found::Stalled => return times,
            Found::Idle => break,
        }
    }
    panic!("{times:?}");
}

#[test]
fn stalled_after_the_timeout() {
    let mut progress = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(looks(&mut progress, 7), [1030, 1060, 1090]);
}

#[test]
fn completion_restarts_the_timeout() {
    let mut progress = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(progress.poll(7, true, 1030, TIMEOUT), Found::Busy(1060));
    assert_eq!(progress.poll(7, true, 1060, TIMEOUT), Found::Busy(1090));
    assert_eq!(progress.poll(8, true, 1090, TIMEOUT), Found::Busy(1120));
    assert_eq!(looks(&mut progress, 8), [1120, 1150, 1180]);
}

#[test]
fn completion_count_may_wrap() {
    let mut progress = StallState::new(u32::MAX, 1000, TIMEOUT);
    assert_eq!(progress.poll(0, true, 1030, TIMEOUT), Found::Busy(1060));
}

#[test]
fn idle_queue_is_not_stalled() {
    let mut progress = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(progress.poll(7, false, 5000, TIMEOUT), Found::Idle);
}

#[test]
fn early_polls_do_not_count() {
    let mut progress = StallState::new(7, 1000, TIMEOUT);
    for now in 1000..1030 {
        assert_eq!(progress.poll(7, true, now, TIMEOUT), Found::Busy(1030));
    }
    assert_eq!(looks(&mut progress, 7), [1030, 1060, 1090]);
}

#[test]
fn clock_jump_is_not_a_stall() {
    let mut progress = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(progress.poll(7, true, 90_000, TIMEOUT), Found::Busy(90_030));
    assert_eq!(progress.poll(8, true, 90_030, TIMEOUT), Found::Busy(90_060));
}

#[test]
fn zero_timeout_takes_three_polls() {
    let mut progress = StallState::new(7, 1000, 0);
    assert_eq!(progress.poll(7, true, 1001, 0), Found::Busy(1002));
    assert_eq!(progress.poll(7, true, 1002, 0), Found::Busy(1003));
    assert_eq!(progress.poll(7, true, 1003, 0), Found::Stalled);
}
