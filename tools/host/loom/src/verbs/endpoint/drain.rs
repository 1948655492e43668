// SPDX-License-Identifier: GPL-2.0

//! Models of `Closing`.

use std::collections::VecDeque;

use loom::sync::Arc;
use loom::sync::Condvar;
use loom::sync::Mutex;
use loom::thread;

use super::closing::Closing;
use crate::explore;

/// What is in a queue.
#[derive(PartialEq)]
enum Wr {
    Work,
    Marker,
}

/// A queue of a device whose QP is in the error state: each work request completes in order.
struct Queue {
    posted: Mutex<VecDeque<Wr>>,
    work: Condvar,
    /// How many markers have completed.
    drained: Mutex<usize>,
    marker: Condvar,
}

impl Queue {
    fn new() -> Self {
        Self {
            posted: Mutex::new(VecDeque::new()),
            work: Condvar::new(),
            drained: Mutex::new(0),
            marker: Condvar::new(),
        }
    }

    fn post(&self, wr: Wr) {
        self.posted.lock().unwrap().push_back(wr);
        self.work.notify_one();
    }

    /// Completes what is posted, up to a marker.
    fn complete(&self) {
        loop {
            let mut posted = self.posted.lock().unwrap();
            let wr = loop {
                match posted.pop_front() {
                    Some(wr) => break wr,
                    None => posted = self.work.wait(posted).unwrap(),
                }
            };
            if wr == Wr::Marker {
                *self.drained.lock().unwrap() += 1;
                self.marker.notify_one();
                return;
            }
        }
    }

    /// `ib_drain_sq()` or `ib_drain_rq()`.
    fn drain(&self) {
        let before = *self.drained.lock().unwrap();
        self.post(Wr::Marker);
        let mut drained = self.drained.lock().unwrap();
        while *drained == before {
            drained = self.marker.wait(drained).unwrap();
        }
    }

    fn is_empty(&self) -> bool {
        self.posted.lock().unwrap().is_empty()
    }
}

struct Endpoint {
    closing: Closing,
    receive: Queue,
    send: Queue,
}

impl Endpoint {
    /// An open endpoint, which loom knows.
    fn new() -> Arc<Self> {
        let closing = Closing::new();
        assert!(!closing.has_begun() && !closing.has_overtaken());
        Arc::new(Self {
            closing,
            receive: Queue::new(),
            send: Queue::new(),
        })
    }

    /// What a completion handler does.
    fn post(&self, queue: &Queue) {
        if !self.closing.has_begun() {
            queue.post(Wr::Work);
            self.closing.posted();
        }
    }
}

/// The worker of a CQ posts to the queue whose completions it handles, while the endpoint is
/// closed. Law: nothing is left in the queue.
#[test]
fn drain_finds_what_its_worker_posts() {
    explore(|| {
        let ep = Endpoint::new();
        let worker = {
            let ep = ep.clone();
            thread::spawn(move || {
                ep.post(&ep.receive);
                ep.receive.complete();
                if ep.closing.has_overtaken() {
                    ep.receive.complete();
                }
            })
        };
        ep.closing.begin();
        ep.receive.drain();
        if ep.closing.has_overtaken() {
            ep.receive.drain();
        }
        assert!(ep.receive.is_empty());
        worker.join().unwrap();
    });
}

/// The worker of the send CQ posts a Receive, while the endpoint is closed. Law: nothing is left in
/// the Receive Queue.
#[test]
fn drain_finds_what_the_other_worker_posts() {
    explore(|| {
        let ep = Endpoint::new();
        let receives = {
            let ep = ep.clone();
            thread::spawn(move || ep.receive.complete())
        };
        let sends = {
            let ep = ep.clone();
            thread::spawn(move || {
                ep.post(&ep.receive);
                ep.send.complete();
            })
        };
        ep.closing.begin();
        ep.receive.drain();
        ep.send.drain();
        sends.join().unwrap();
        receives.join().unwrap();
        if ep.closing.has_overtaken() {
            ep.receive.post(Wr::Marker);
            ep.receive.complete();
        }
        assert!(ep.receive.is_empty());
    });
}
