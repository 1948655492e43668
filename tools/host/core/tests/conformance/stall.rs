// SPDX-License-Identifier: GPL-2.0

//! A queue counts as stalled only if no WR completes between several polls.

use rpcrdma_core::engine::stall::Polled;
use rpcrdma_core::engine::stall::SqStallState;
use rpcrdma_core::engine::stall::SqState;
use rpcrdma_core::engine::stall::StallState;

const TIMEOUT: u64 = 90;

/// Polls a stalled queue whenever a poll is due; returns the times of the polls.
fn poll_until_stalled(state: &mut StallState, completed: u32) -> Vec<u64> {
    let mut times = Vec::new();
    let mut now = state.next_poll();
    for _ in 0..10 {
        times.push(now);
        match state.poll(completed, true, now, TIMEOUT) {
            SqState::Busy(next) => now = next,
            SqState::Stalled => return times,
            SqState::Idle => break,
        }
    }
    panic!("{times:?}");
}

#[test]
fn stalled_after_the_timeout() {
    let mut state = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(poll_until_stalled(&mut state, 7), [1030, 1060, 1090]);
}

#[test]
fn completion_restarts_the_timeout() {
    let mut state = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(state.poll(7, true, 1030, TIMEOUT), SqState::Busy(1060));
    assert_eq!(state.poll(7, true, 1060, TIMEOUT), SqState::Busy(1090));
    assert_eq!(state.poll(8, true, 1090, TIMEOUT), SqState::Busy(1120));
    assert_eq!(poll_until_stalled(&mut state, 8), [1120, 1150, 1180]);
}

#[test]
fn completion_count_may_wrap() {
    let mut state = StallState::new(u32::MAX, 1000, TIMEOUT);
    assert_eq!(state.poll(0, true, 1030, TIMEOUT), SqState::Busy(1060));
}

#[test]
fn idle_queue_is_not_stalled() {
    let mut state = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(state.poll(7, false, 5000, TIMEOUT), SqState::Idle);
}

#[test]
fn early_polls_do_not_count() {
    let mut state = StallState::new(7, 1000, TIMEOUT);
    for now in 1000..1030 {
        assert_eq!(state.poll(7, true, now, TIMEOUT), SqState::Busy(1030));
    }
    assert_eq!(poll_until_stalled(&mut state, 7), [1030, 1060, 1090]);
}

#[test]
fn clock_jump_is_not_a_stall() {
    let mut state = StallState::new(7, 1000, TIMEOUT);
    assert_eq!(state.poll(7, true, 90_000, TIMEOUT), SqState::Busy(90_030));
    assert_eq!(state.poll(8, true, 90_030, TIMEOUT), SqState::Busy(90_060));
}

#[test]
fn zero_timeout_takes_three_polls() {
    let mut state = StallState::new(7, 1000, 0);
    assert_eq!(state.poll(7, true, 1001, 0), SqState::Busy(1002));
    assert_eq!(state.poll(7, true, 1002, 0), SqState::Busy(1003));
    assert_eq!(state.poll(7, true, 1003, 0), SqState::Stalled);
}

/// Some are outstanding, and `completed` have completed.
fn busy(completed: u32) -> Polled {
    Polled {
        completed,
        outstanding: true,
    }
}

const NONE: Polled = Polled {
    completed: 0,
    outstanding: false,
};

#[test]
fn reads_stall_behind_later_sends() {
    let mut state = SqStallState::new(7, 1000, TIMEOUT);
    assert_eq!(state.next_poll(), 1030);
    // At each poll a Send has completed since the last one.
    for (completed, now) in (8..).zip([1030, 1060, 1090]) {
        let next = SqState::Busy(now + 30);
        assert_eq!(state.poll(busy(completed), busy(5), now, TIMEOUT), next);
    }
    assert_eq!(state.unchanged(), 2);
    let polled = state.poll(busy(11), busy(5), 1120, TIMEOUT);
    assert_eq!(polled, SqState::Stalled);
}

#[test]
fn completion_of_a_read_restarts_the_timeout() {
    let mut state = SqStallState::new(7, 1000, TIMEOUT);
    for (completed, now) in (8..108).zip((1030..).step_by(30)) {
        let reads = busy(completed / 3);
        let next = SqState::Busy(now + 30);
        assert_eq!(state.poll(busy(completed), reads, now, TIMEOUT), next);
    }
}

#[test]
fn reads_that_were_not_outstanding_do_not_stall() {
    let mut state = SqStallState::new(7, 1000, TIMEOUT);
    for (completed, now) in (8..108).zip((1030..).step_by(30)) {
        let reads = if completed % 3 == 0 { NONE } else { busy(5) };
        let next = SqState::Busy(now + 30);
        assert_eq!(state.poll(busy(completed), reads, now, TIMEOUT), next);
    }
}

#[test]
fn queue_without_reads_stalls() {
    let mut state = SqStallState::new(7, 1000, TIMEOUT);
    assert_eq!(
        state.poll(busy(7), NONE, 1030, TIMEOUT),
        SqState::Busy(1060)
    );
    assert_eq!(
        state.poll(busy(7), NONE, 1060, TIMEOUT),
        SqState::Busy(1090)
    );
    assert_eq!(state.poll(busy(7), NONE, 1090, TIMEOUT), SqState::Stalled);
}

#[test]
fn early_poll_does_not_count_for_reads() {
    let mut state = SqStallState::new(7, 1000, TIMEOUT);
    assert_eq!(
        state.poll(busy(7), busy(5), 1010, TIMEOUT),
        SqState::Busy(1030)
    );
    assert_eq!(
        state.poll(busy(8), busy(5), 1030, TIMEOUT),
        SqState::Busy(1040)
    );
    assert_eq!(state.unchanged(), 0);
    assert_eq!(
        state.poll(busy(8), busy(5), 1040, TIMEOUT),
        SqState::Busy(1060)
    );
    assert_eq!(state.unchanged(), 1);
}
