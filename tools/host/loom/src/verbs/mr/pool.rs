// SPDX-License-Identifier: GPL-2.0

//! Models of `MrPool`.

use std::sync::atomic::AtomicUsize;

use kernel::prelude::GFP_KERNEL;
use kernel::sync::atomic::ordering::Full;
use kernel::sync::atomic::smp_mb;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use kernel::sync::Arc;
use loom::thread;

use super::mr_alloc::MrRef;
use super::mr_alloc::MrSpec;
use super::mr_pool::MrPool;
use crate::explore_full_orders;
use crate::explore_orders;
use crate::verbs::device::pd::Pd;

type Pool = Arc<MrPool<()>>;

/// A pool with so many idle MRs, which loom knows.
fn pool(mrs: u32) -> Pool {
    let mapped = AtomicUsize::new(0);
    let Ok(pd) = Arc::new(Pd { mapped }, GFP_KERNEL) else {
        unreachable!()
    };
    let spec = MrSpec {
        depth: 1,
        gaps: false,
        most: mrs,
        reg_done: || (),
    };
    let Ok(pool) = MrPool::new(&pd, spec) else {
        unreachable!()
    };
    assert!(!pool.was_wanted() && !pool.has_idle());
    assert_eq!(pool.usage().idle, 0);
    assert_eq!(pool.grow(mrs), mrs);
    pool
}

/// Registers an MR for the Call `xid`: changes all that its holder may change.
fn expose(pool: &Pool, mr: &mut MrRef<()>, xid: u32) {
    let handle = mr.id();
    mr.own_mut().exposed.handle = handle;
    mr.memory_mut().0.access();
    mr.rkey_owner.note(xid, handle);
    assert!(
        pool.gave_out(xid, handle),
        "an idle MR is unknown to its pool"
    );
}

/// Invalidates an MR, and puts it back.
fn invalidate(mut mr: MrRef<()>) {
    assert_eq!(mr.own().exposed.handle, mr.id());
    mr.memory_mut().unmap();
    mr.into_idle();
}

/// A sender exposes memory with all MRs that it finds, while one worker puts back an MR and another
/// allocates one. Law: an MR has one user at a time, the pool knows each, and none is lost.
#[test]
fn mr_has_one_user() {
    explore_orders(|| {
        let pool = pool(1);
        let Some(mut used) = pool.idle.take_all().pop() else {
            panic!("no MR was allocated")
        };
        expose(&pool, &mut used, 1);
        let invalidates = thread::spawn(move || invalidate(used));
        let refresh = {
            let pool = pool.clone();
            thread::spawn(move || pool.grow(1))
        };
        for xid in 2..4 {
            let mut idle = pool.idle.take_all();
            while let Some(mut mr) = idle.pop() {
                expose(&pool, &mut mr, xid);
                invalidate(mr);
            }
        }
        invalidates.join().unwrap();
        assert_eq!(refresh.join().unwrap(), 1);
        let mut idle = pool.idle.take_all();
        let mut count = 0;
        while let Some(mut mr) = idle.pop() {
            expose(&pool, &mut mr, 4);
            count += 1;
        }
        assert_eq!(count, 2, "an MR is lost");
        assert_eq!(pool.usage().idle, 2);
    });
}

/// The transport of a sender that waits for MRs.
struct Xprt {
    pool: Pool,
    /// `XPRT_WRITE_SPACE`: the sender waits.
    waits: Atomic<bool>,
}

impl Xprt {
    /// `XprtHandle::write_space`.
    fn write_space(&self) {
        smp_mb();
        if self.waits.load(Relaxed) {
            self.waits.xchg(false, Full);
        }
    }

    /// `ClientEp::wake_mr_waiters`.
    fn wake_mr_waiters(&self) {
        if self.pool.was_wanted() {
            self.write_space();
        }
    }
}

/// A sender finds no MR and becomes a waiter, twice, while a worker puts one back, and another
/// allocates one. Law: the sender does not wait in the end, as there are idle MRs.
#[test]
fn sender_does_not_miss_an_mr() {
    explore_full_orders(|| {
        let pool = pool(1);
        let Some(mut used) = pool.idle.take_all().pop() else {
            panic!("no MR was allocated")
        };
        expose(&pool, &mut used, 1);
        let xprt = Xprt {
            pool,
            waits: Atomic::new(false),
        };
        assert!(!xprt.waits.load(Relaxed));
        let xprt = loom::sync::Arc::new(xprt);
        let invalidates = {
            let xprt = xprt.clone();
            thread::spawn(move || {
                invalidate(used);
                xprt.wake_mr_waiters();
            })
        };
        let refresh = {
            let xprt = xprt.clone();
            thread::spawn(move || {
                assert_eq!(xprt.pool.grow(1), 1);
                xprt.wake_mr_waiters();
            })
        };
        let mut at_hand = Vec::new();
        for _ in 0..2 {
            let mut idle = xprt.pool.idle.take_all();
            while let Some(mr) = idle.pop() {
                at_hand.push(mr);
            }
            if at_hand.len() == 2 {
                break;
            }
            // `send::failed`.
            xprt.waits.store(true, Relaxed);
            smp_mb();
            xprt.pool.want();
            if xprt.pool.has_idle() {
                xprt.write_space();
            }
            if xprt.waits.load(Relaxed) {
                break;
            }
        }
        invalidates.join().unwrap();
        refresh.join().unwrap();
        let waits = xprt.waits.load(Relaxed);
        assert!(!(waits && xprt.pool.has_idle()), "a sender waits for ever");
    });
}
