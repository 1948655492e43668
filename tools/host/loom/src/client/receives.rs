// SPDX-License-Identifier: GPL-2.0

//! A model of `RecvPool`.

use kernel::prelude::GFP_KERNEL;
use loom::sync::Arc;
use loom::thread;

use super::recv_queue::RecvPool;
use crate::explore_full_orders;
use crate::pinned;
use crate::verbs::receiver;
use crate::verbs::Endpoint;
use crate::verbs::RecvBuf;

/// A connection ends while two tasks put back buffers that they have read. Law: the pool of no
/// connection has no buffer, so none outlives its domain.
#[test]
fn pool_that_is_closed_keeps_no_buffer() {
    explore_full_orders(|| {
        let ep = Endpoint::<()>::new(1);
        let pool = pinned(RecvPool::new());
        pool.open(&ep);
        pool.clear();
        let pool = Arc::new(pool);
        let tasks = [(), ()].map(|()| {
            let Some(Ok(buffer)) = ep.pd().map(|pd| RecvBuf::new(pd, 1, (), GFP_KERNEL)) else {
                unreachable!()
            };
            buffer.memory.access();
            let pool = pool.clone();
            thread::spawn(move || pool.put(buffer))
        });
        pool.close();
        for task in tasks {
            task.join().unwrap();
        }
        assert_eq!(receiver::buffers(), 0, "a buffer outlives its connection");
    });
}
