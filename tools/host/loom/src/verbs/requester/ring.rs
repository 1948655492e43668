// SPDX-License-Identifier: GPL-2.0

//! A model of `SendCtxRing`.

use std::sync::atomic::AtomicUsize;

use kernel::prelude::GFP_KERNEL;
use kernel::sync::Arc;
use loom::sync::atomic::AtomicPtr;
use loom::sync::atomic::Ordering::Acquire;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::atomic::Ordering::Release;
use loom::thread;

use super::sendctx_ring::SendCtxRing;
use crate::bindings::ib_cqe;
use crate::bindings::page;
use crate::explore_orders;
use crate::lib::bvec::BVec;
use crate::verbs::device::attrs::SenderSizes;
use crate::verbs::device::pd::Pd;

/// Sends that may be outstanding.
const MESSAGES: u32 = 2;
/// Buffers from the start.
const BUFFERS: u32 = 1;

/// The ring of a connection, and its Send Queue.
struct Connection {
    ring: Arc<SendCtxRing>,
    pd: Arc<Pd>,
    page: page,
    /// The CQE of the Send that was posted last. The device passes it on from the sender to the
    /// worker, and nothing back.
    posted: AtomicPtr<ib_cqe>,
}

impl Connection {
    fn new() -> loom::sync::Arc<Self> {
        let sizes = SenderSizes {
            messages: MESSAGES,
            buffer: 1,
            sges: 2,
        };
        let mapped = AtomicUsize::new(0);
        let Ok(pd) = Arc::new(Pd { mapped }, GFP_KERNEL) else {
            unreachable!()
        };
        let Ok(ring) = SendCtxRing::new(&pd, &sizes, BUFFERS, || ()) else {
            unreachable!()
        };
        assert_eq!(ring.released(), BUFFERS);
        loom::sync::Arc::new(Self {
            ring,
            pd,
            page: page {
                refs: AtomicUsize::new(1),
            },
            posted: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    /// `RequestSender::begin` and `ReadySend::post_plain`, behind the Send `head`. Returns the
    /// index of the Send, unless the ring is full.
    fn send(&self, head: u32, moved: &mut u32, gathers: bool) -> Option<u32> {
        // SAFETY: This is the only sender.
        let (index, entry) = unsafe { self.ring.begin(head, moved) }?;
        entry.clear();
        entry.memory()[0] = 1;
        assert!(entry.append(1).is_ok());
        if gathers {
            assert!(entry.gather(&BVec::new(&self.page)).is_ok());
        }
        let request = entry.request(gathers);
        // SAFETY: The entry has it.
        self.posted.store(unsafe { (*request).wr_cqe }, Release);
        Some(index)
    }

    /// The device reads what was posted, and the Send Queue's worker handles the completion of the
    /// last Send. `done` is the CQE that it has handled before.
    fn complete(&self, done: &mut *mut ib_cqe) {
        let cqe = self.posted.load(Acquire);
        if cqe == *done {
            return;
        }
        *done = cqe;
        // SAFETY: The connection has the ring.
        let (ring, last) = unsafe { SendCtxRing::of_cqe(cqe) };
        let mut index = ring.released();
        while index != last {
            index = ring.next(index);
            // SAFETY: Posted, and not released.
            unsafe { ring.entry(index) }.memory();
        }
        // SAFETY: This is the worker, and the Send is complete.
        unsafe { ring.release(last) };
    }
}

/// A thread sends four messages, as long as the ring of two has room, while the worker of the Send
/// Queue handles completions, each of which may be that of two Sends. Law: an entry has one user at
/// a time, each page is put and unmapped once, and all entries are free in the end.
#[test]
fn send_that_is_posted_is_not_begun_again() {
    explore_orders(|| {
        let connection = Connection::new();
        let worker = {
            let connection = connection.clone();
            thread::spawn(move || {
                let mut done = std::ptr::null_mut();
                connection.complete(&mut done);
                connection.complete(&mut done);
                done.expose_provenance()
            })
        };
        let mut sent = 0;
        let (mut head, mut moved) = (BUFFERS, 0);
        // The entry that was empty at first comes before those that are used again.
        for _ in 0..MESSAGES + 2 {
            if let Some(index) = connection.send(head, &mut moved, sent != 1) {
                head = index;
                sent += 1;
            }
        }
        let done = worker.join().unwrap();
        let mut done = std::ptr::with_exposed_provenance_mut(done);
        assert!(sent >= MESSAGES, "a ring that is not full has no room");
        connection.complete(&mut done);
        assert_eq!(connection.ring.released(), head);
        assert_eq!(connection.page.refs.load(Relaxed), 1);
        assert_eq!(connection.pd.mapped.load(Relaxed), 0);
    });
}
