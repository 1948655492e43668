// SPDX-License-Identifier: GPL-2.0

//! Which contexts execute code of the module. None may when it is unloaded.

use super::contexts::wait_until;
use super::world::{current, now, world, State, World};

/// Calls `f`, a function of the module, from code of the kernel that has no reference to it.
pub fn module_code<R>(f: impl FnOnce() -> R) -> R {
    let id = current();
    let count = |change: isize| {
        if let Some(id) = id {
            world(|w| {
                let depth = &mut w.contexts[id].in_module;
                *depth = depth.wrapping_add_signed(change);
            });
        }
    };
    count(1);
    let result = f();
    count(-1);
    result
}

/// The names of the contexts that have not left [`module_code`].
pub fn in_module_code() -> Vec<String> {
    world(|w| {
        let inside = w.contexts.iter().filter(|context| context.in_module > 0);
        inside.map(|context| context.name.clone()).collect()
    })
}

/// `synchronize_rcu_tasks()`: waits until each context that has lost its CPU has waited or ended.
pub fn synchronize_tasks() {
    /// A key that nothing wakes.
    const KEY: usize = 14;
    let this = current();
    let ready = |w: &mut World| {
        let ready = w.contexts.iter().enumerate();
        let ready = ready.filter(|(id, c)| c.state == State::Ready && Some(*id) != this);
        ready.map(|(id, context)| (id, context.sleeps)).collect()
    };
    let before: Vec<(usize, u64)> = world(ready);
    while world(|w| {
        let same = |&(id, sleeps): &(usize, u64)| w.contexts[id].sleeps == sleeps;
        before.iter().any(same)
    }) {
        wait_until(KEY, now() + 1_000_000);
    }
}
