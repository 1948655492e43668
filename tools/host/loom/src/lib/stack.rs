// SPDX-License-Identifier: GPL-2.0

//! Models of `Stack`.

use kernel::prelude::GFP_KERNEL;
use loom::sync::Arc;
use loom::thread;

use super::llist::Chain;
use super::llist::Stack;
use super::llist_box::LlistBox;
use crate::explore;
use crate::explore_full;
use crate::Payload;

type Object = LlistBox<Payload>;

fn object(id: usize) -> Object {
    let Ok(memory) = Object::new_uninit(GFP_KERNEL) else {
        unreachable!()
    };
    memory.write(Payload::new(id))
}

/// A stack that loom knows.
fn stack() -> Arc<Stack<Object>> {
    let stack = Stack::new();
    assert!(stack.is_empty());
    Arc::new(stack)
}

/// The ids of a chain's objects, each of which is accessed.
fn ids(chain: &mut Chain<Object>) -> Vec<usize> {
    chain
        .iter_mut()
        .map(|object| {
            object.access();
            object.id
        })
        .collect()
}

/// Two threads take all while a third pushes a chain of two objects and then one. Law: each object
/// is taken by one thread, and a chain stays whole and in order.
#[test]
fn stack_gives_each_object_to_one_taker() {
    explore(|| {
        let stack = stack();
        let takers = [(), ()].map(|()| {
            let stack = stack.clone();
            thread::spawn(move || ids(&mut stack.take_all()))
        });
        let mut chain = Chain::new();
        chain.push(object(2));
        chain.push(object(1));
        stack.push_all(chain);
        stack.push(object(3));
        let mut all = ids(&mut stack.take_all());
        for taker in takers {
            let taken = taker.join().unwrap();
            let first = taken.iter().position(|id| *id == 1);
            assert_eq!(first.map(|at| taken[at + 1]), first.map(|_| 2));
            all.extend(taken);
        }
        all.sort();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// A thread announces that it waits, has a full barrier and looks at the stack, while another
/// pushes and then reads whether a thread waits. Law: one sees the other, so no wakeup is lost.
#[test]
fn stack_push_is_a_full_barrier() {
    use kernel::sync::atomic::smp_mb;
    use kernel::sync::atomic::Atomic;
    use kernel::sync::atomic::Relaxed;

    explore_full(|| {
        let stack = stack();
        let waits = Arc::new(Atomic::new(false));
        assert!(!waits.load(Relaxed));
        let pusher = {
            let (stack, waits) = (stack.clone(), waits.clone());
            thread::spawn(move || {
                stack.push(object(1));
                waits.load(Relaxed)
            })
        };
        waits.store(true, Relaxed);
        smp_mb();
        let finds_none = stack.is_empty();
        let wakes = pusher.join().unwrap();
        assert!(wakes || !finds_none, "the wakeup is lost");
    });
}
