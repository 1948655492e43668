// SPDX-License-Identifier: GPL-2.0

//! A model of `StallDetector`.

use loom::sync::Arc;
use loom::thread;

use super::stall::StallDetector;
use super::stall::Stalled;
use crate::engine::stall::Polled;
use crate::explore_full;
use crate::pinned;
use crate::sunrpc::svc::XprtTimer;
use crate::verbs;
use crate::verbs::SendQueue;
use crate::Pinned;

struct Connection {
    queue: SendQueue,
    detector: Pinned<StallDetector>,
    timer: XprtTimer,
}

impl Connection {
    /// A connection with one outstanding chain and a poll to come, which loom knows.
    fn busy() -> Arc<Self> {
        let connection = Self {
            queue: SendQueue::new(),
            detector: pinned(StallDetector::new()),
            timer: XprtTimer::new(),
        };
        connection.queue.open(4, 4);
        connection.post();
        assert_eq!(connection.timer.armed(), 1);
        Arc::new(connection)
    }

    fn post(&self) {
        let Some(permit) = self.queue.try_reserve(1) else {
            panic!("the queue is full")
        };
        self.detector.entries_reserved(&self.queue, &self.timer);
        verbs::post(permit, &self.queue);
    }

    fn poll(&self) {
        match self.detector.poll(&self.queue, Polled::default()) {
            Ok(None) => (),
            Ok(Some(next)) => self.timer.arm(next),
            Err(Stalled) => panic!("time stands still"),
        }
    }
}

/// The timer fires while the only chain completes and a thread posts another. Law: a poll follows,
/// as a chain is outstanding. This poll and the next find no stall, and end when nothing is
/// outstanding.
#[test]
fn poll_follows_a_chain() {
    explore_full(|| {
        let connection = Connection::busy();
        let worker = {
            let connection = connection.clone();
            thread::spawn(move || verbs::complete(&connection.queue, 1))
        };
        let timer = {
            let connection = connection.clone();
            thread::spawn(move || connection.poll())
        };
        connection.post();
        worker.join().unwrap();
        timer.join().unwrap();
        assert!(connection.timer.armed() >= 2, "no poll finds a stall");
        let before = connection.timer.armed();
        connection.poll();
        assert_eq!(connection.timer.armed(), before + 1);
        verbs::complete(&connection.queue, 1);
        connection.poll();
        assert_eq!(connection.timer.armed(), before + 1);
    });
}
