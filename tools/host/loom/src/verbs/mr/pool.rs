// SPDX-License-Identifier: GPL-2.0

//! Models of `MrPool`.

use std::sync::atomic::AtomicUsize;

use kernel::prelude::GFP_KERNEL;
use kernel::sync::Arc;
use loom::thread;

use super::mr_alloc::MrRef;
use super::mr_alloc::MrSpec;
use super::mr_pool::MrPool;
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
