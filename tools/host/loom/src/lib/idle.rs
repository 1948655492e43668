// SPDX-License-Identifier: GPL-2.0

//! Models of `Pool` and `GrowList`.

use kernel::prelude::GFP_KERNEL;
use kernel::sync::atomic::smp_mb;
use kernel::sync::atomic::Atomic;
use kernel::sync::atomic::Relaxed;
use loom::sync::Arc;
use loom::thread;

use super::grow_list::GrowList;
use super::llist_box::LlistBox;
use super::pool::Pool;
use crate::explore;
use crate::explore_full;
use crate::pinned;
use crate::Payload;

type Object = LlistBox<Payload>;

fn object(id: usize) -> Object {
    let Ok(memory) = Object::new_uninit(GFP_KERNEL) else {
        unreachable!()
    };
    memory.write(Payload::new(id))
}

/// An empty pool that loom knows.
fn pool() -> Arc<crate::Pinned<Pool<Object>>> {
    let pool = pinned(Pool::new());
    assert!(pool.get().is_none());
    Arc::new(pool)
}

/// Two threads get an object and put it back, while a third puts two more at once. Law: an object
/// has one owner at a time, and no object is lost.
#[test]
fn pool_gives_each_object_to_one_owner() {
    explore(|| {
        let pool = pool();
        pool.put(object(1));
        let users = [(), ()].map(|()| {
            let pool = pool.clone();
            thread::spawn(move || {
                if let Some(object) = pool.get() {
                    object.access();
                    pool.put(object);
                }
            })
        });
        let mut chain = pool.get_many(0);
        chain.push(object(2));
        chain.push(object(3));
        pool.put_all(chain);
        for user in users {
            user.join().unwrap();
        }
        let mut all = pool.get_many(4);
        let mut ids: Vec<_> = all.iter_mut().map(|object| object.id).collect();
        ids.sort();
        assert_eq!(ids, [1, 2, 3]);
    });
}

/// Two threads get an object each, of two. Law: both get one, whichever of them takes what was put.
#[test]
fn pool_hides_no_object() {
    explore(|| {
        let pool = pool();
        pool.put(object(1));
        pool.put(object(2));
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.get().is_some())
        };
        assert!(pool.get().is_some());
        assert!(other.join().unwrap());
    });
}

/// A thread finds the pool empty, announces that it waits, has a full barrier and tries again,
/// while another puts an object and then reads whether a thread waits. Law: one sees the other, so
/// no wakeup is lost.
#[test]
fn pool_that_fails_has_seen_all_objects() {
    explore_full(|| {
        let pool = pool();
        let waits = Arc::new(Atomic::new(false));
        assert!(!waits.load(Relaxed));
        let putter = {
            let (pool, waits) = (pool.clone(), waits.clone());
            thread::spawn(move || {
                pool.put(object(1));
                waits.load(Relaxed)
            })
        };
        waits.store(true, Relaxed);
        smp_mb();
        let got = pool.get().is_some();
        let wakes = putter.join().unwrap();
        assert!(got || wakes, "the wakeup is lost");
    });
}

/// A thread adds two objects while two others walk the list. Law: an object that is found is
/// complete, and all are found in the end.
#[test]
fn grow_list_shows_complete_objects() {
    explore(|| {
        let list = GrowList::new();
        assert_eq!(list.iter().count(), 0);
        let list: Arc<GrowList<Payload>> = Arc::new(list);
        let walkers = [(), ()].map(|()| {
            let list = list.clone();
            thread::spawn(move || list.iter().map(Payload::read).sum::<usize>())
        });
        for id in [1, 2] {
            let object = object(id);
            object.access();
            list.push(object);
        }
        let found = walkers.map(|walker| walker.join().unwrap());
        assert!(found.iter().all(|sum| matches!(sum, 0 | 1 | 3)));
        assert_eq!(list.iter().map(Payload::read).sum::<usize>(), 3);
    });
}
