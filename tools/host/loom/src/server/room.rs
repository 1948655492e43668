// SPDX-License-Identifier: GPL-2.0

//! Models of `SendBacklog` and `SendQueue`.

use kernel::sync::atomic::ordering;
use kernel::sync::atomic::smp_mb;
use kernel::sync::atomic::Atomic;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::Arc;
use loom::thread;

use super::send_backlog::Chain;
use super::send_backlog::SendBacklog;
use crate::explore_full;
use crate::pinned;
use crate::verbs;
use crate::verbs::SendCtxt;
use crate::verbs::SendQueue;
use crate::Pinned;

/// The Send Queue of a connection, and the chains that wait for room there.
struct Connection {
    queue: SendQueue,
    backlog: Pinned<SendBacklog>,
    posted: AtomicUsize,
    /// `XPT_BUSY`. `XPT_DATA` is set.
    busy: Atomic<bool>,
}

impl Connection {
    /// A connection that loom knows, with a Send Queue of this depth.
    fn new(depth: u32, share: u32) -> Arc<Self> {
        let connection = Self {
            queue: SendQueue::new(),
            backlog: pinned(SendBacklog::new()),
            posted: AtomicUsize::new(0),
            busy: Atomic::new(true),
        };
        connection.queue.open(depth, share);
        connection.backlog.open(4);
        assert!(connection.backlog.is_empty() && !connection.queue.is_used());
        assert!(connection.busy.load(ordering::Relaxed));
        Arc::new(connection)
    }

    /// `post::post`.
    fn post(&self, serial: i32, entries: u32) {
        if let Some(permit) = self.backlog.reserve(&self.queue, entries) {
            return self.posted(permit);
        }
        let chain = Chain::Send {
            ctxt: SendCtxt(serial),
            len: 0,
            invalidate: None,
        };
        assert!(self.backlog.push(chain, entries).is_ok());
        self.post_waiting();
    }

    /// `post::post_waiting`.
    fn post_waiting(&self) {
        while let Some(next) = self.backlog.next(&self.queue) {
            let is_last = next.is_last;
            self.posted(next.permit);
            if is_last {
                self.enqueue();
            }
        }
    }

    fn posted(&self, permit: verbs::Permit<'_>) {
        verbs::post(permit, &self.queue);
        self.posted.fetch_add(1, Relaxed);
    }

    /// `handlers::made_room`, for a chain of so many work requests.
    fn complete(&self, entries: u32) {
        verbs::complete(&self.queue, entries);
        if !self.backlog.is_empty() {
            self.post_waiting();
        }
    }

    /// `svc_xprt_enqueue()`, with `Connection::has_wspace`. It may read `XPT_BUSY` early.
    fn enqueue(&self) {
        if !self.busy.load(ordering::Relaxed) && self.backlog.is_empty_now() {
            self.busy.xchg(true, ordering::Full);
        }
    }

    /// `svc_xprt_received()`.
    fn received(&self) {
        smp_mb();
        self.busy.store(false, ordering::Relaxed);
        self.enqueue();
    }
}

/// A worker that completes a chain of so many work requests.
fn completes(connection: &Arc<Connection>, entries: u32) -> thread::JoinHandle<()> {
    let connection = connection.clone();
    thread::spawn(move || connection.complete(entries))
}

/// A Send Queue before it is open, and then. Law: no entry is reserved before, and all can be
/// reserved then.
#[test]
fn nothing_is_reserved_before_the_queue_is_open() {
    explore_full(|| {
        let queue = SendQueue::new();
        for entries in [0, 1, 2] {
            assert!(queue.try_reserve(entries).is_none());
            assert!(!queue.is_used());
        }
        queue.open(2, 2);
        assert!(!queue.is_used());
        let permit = queue.try_reserve(2);
        assert!(permit.is_some() && queue.is_used() && queue.try_reserve(1).is_none());
        drop(permit);
        assert_eq!(queue.state(), (2, 2));
    });
}

/// An idle Send Queue of two entries, with a share of one. Law: a chain longer than the share is
/// posted, and one longer than the queue is not.
#[test]
fn chain_longer_than_the_queue_is_not_posted() {
    explore_full(|| {
        let queue = SendQueue::new();
        queue.open(2, 1);
        assert!(queue.try_reserve(3).is_none());
        drop(queue.try_reserve(2).expect("room"));
        queue.share_all();
        assert!(queue.try_reserve(3).is_none());
        assert_eq!(queue.state(), (2, 2));
    });
}

/// A chain of two entries fills the Send Queue, and completes while a thread posts another. Law:
/// the second chain is posted at once, by the completion, or by its own thread.
#[test]
fn chain_that_waits_is_posted_by_the_completion() {
    explore_full(|| {
        let connection = Connection::new(2, 2);
        connection.post(0, 2);
        let worker = completes(&connection, 2);
        connection.post(1, 2);
        worker.join().unwrap();
        assert_eq!(connection.posted.load(Relaxed), 2, "a chain waits for ever");
        assert!(connection.backlog.is_empty());
    });
}

/// A chain of two entries completes while two threads post a chain of one and one of two. Law: as
/// long as a chain waits, a chain is outstanding; both are posted once all others have completed.
#[test]
fn failed_reservation_hides_no_room_for_ever() {
    explore_full(|| {
        let connection = Connection::new(2, 2);
        connection.post(0, 2);
        let worker = completes(&connection, 2);
        let sender = {
            let connection = connection.clone();
            thread::spawn(move || connection.post(1, 1))
        };
        connection.post(2, 2);
        worker.join().unwrap();
        sender.join().unwrap();
        if connection.posted.load(Relaxed) < 3 {
            assert!(connection.queue.is_used(), "a chain waits for ever");
            let (free, depth) = connection.queue.state();
            connection.complete((depth - free).unsigned_abs());
        }
        assert_eq!(connection.posted.load(Relaxed), 3);
    });
}

/// A thread that has taken no Call, because a chain waits, clears `XPT_BUSY` while a completion
/// posts that chain. Law: one of them enqueues the transport.
#[test]
fn transport_is_enqueued_when_no_chain_waits() {
    explore_full(|| {
        let connection = Connection::new(2, 2);
        connection.post(0, 2);
        connection.post(1, 2);
        let worker = completes(&connection, 2);
        connection.received();
        worker.join().unwrap();
        assert!(connection.backlog.is_empty());
        assert!(
            connection.busy.load(ordering::Relaxed),
            "no thread takes the next Call"
        );
    });
}

/// A stranger's chain fills its share, and completes while another thread opens the whole queue.
/// Law: no entry is lost, and none is made.
#[test]
fn share_is_widened_once() {
    explore_full(|| {
        let connection = Connection::new(3, 1);
        connection.post(0, 1);
        let worker = completes(&connection, 1);
        let admits = {
            let connection = connection.clone();
            thread::spawn(move || connection.queue.share_all())
        };
        connection.queue.share_all();
        admits.join().unwrap();
        worker.join().unwrap();
        assert_eq!(connection.queue.state(), (3, 3));
    });
}
