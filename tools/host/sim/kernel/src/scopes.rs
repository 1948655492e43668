// SPDX-License-Identifier: GPL-2.0

//! What a context must not do for a while: sleep, or wait for other locks than a few.

use super::world::{current, world};

pub(crate) fn no_sleep_reason() -> Option<String> {
    let id = current()?;
    world(|w| {
        let context = &w.contexts[id];
        let lock = context.held.iter().find(|held| held.spins);
        match (lock, context.no_sleep.last()) {
            (Some(held), _) => Some(format!("with the spinlock {} held", held.class)),
            (None, Some(why)) => Some((*why).to_owned()),
            (None, None) => None,
        }
    })
}

/// Calls `f` in a scope in which the context must not sleep, for this reason.
pub fn no_sleep<R>(why: &'static str, f: impl FnOnce() -> R) -> R {
    let id = current();
    if let Some(id) = id {
        world(|w| w.contexts[id].no_sleep.push(why));
    }
    let result = f();
    if let Some(id) = id {
        world(|w| w.contexts[id].no_sleep.pop());
    }
    result
}

/// Calls `f` in a scope in which the context waits for no locks but those of these classes.
pub fn only_locks<R>(classes: &'static [&'static str], f: impl FnOnce() -> R) -> R {
    let id = current().expect("a context");
    world(|w| w.contexts[id].only_locks = Some(classes));
    let result = f();
    world(|w| w.contexts[id].only_locks = None);
    result
}

/// Whether the context may wait for locks of this class.
pub(crate) fn may_lock(class: &str) -> bool {
    let only = current().and_then(|id| world(|w| w.contexts[id].only_locks));
    only.is_none_or(|classes| classes.contains(&class))
}
