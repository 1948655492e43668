// SPDX-License-Identifier: GPL-2.0

//! Lock-free files of the module under [loom](https://docs.rs/loom): it runs a few threads in many
//! orders, with each value that a relaxed load may return. It prunes orders that it takes for
//! equal, and may prune too many: a model has shown what it finds once a weaker order fails it.
//!
//! Each model says its threads, its bounds and its law. `LOOM_MAX_PREEMPTIONS` in the environment
//! is the number of preemptions to explore.

#![cfg(test)]
#![allow(dead_code, reason = "the models use a part of the files")]

// The files say `core::cell::UnsafeCell`; this one is watched.
extern crate kernel as core;
// The files say `pin_init::zeroed()`.
extern crate kernel as pin_init;

#[path = "bindings.rs"]
mod bindings;
#[path = "client/mod.rs"]
mod client;
#[path = "engine/mod.rs"]
mod engine;
#[allow(special_module_name, reason = "the files say crate::lib")]
#[path = "lib/mod.rs"]
mod lib;
#[path = "server/mod.rs"]
mod server;
#[path = "sunrpc/mod.rs"]
mod sunrpc;
#[path = "trace.rs"]
mod trace;
#[path = "verbs/mod.rs"]
mod verbs;

use kernel::prelude::PinInit;

/// What was initialized in place.
type Pinned<T> = std::pin::Pin<Box<T>>;

/// Initializes in place.
fn pinned<T>(init: impl PinInit<T>) -> Pinned<T> {
    use pinned_init::InPlaceInit;

    match Box::pin_init(init) {
        Ok(pinned) => pinned,
        Err(_) => unreachable!("no initializer fails"),
    }
}

/// Something that is passed from thread to thread. loom finds two accesses that nothing orders, and
/// one that is lost: it is leaked.
struct Payload {
    id: usize,
    _memory: loom::alloc::Track<()>,
    accessed: loom::cell::UnsafeCell<usize>,
}

// SAFETY: loom watches the cell, and finds concurrent accesses.
unsafe impl Send for Payload {}
// SAFETY: As above.
unsafe impl Sync for Payload {}

impl Payload {
    fn new(id: usize) -> Self {
        Self {
            id,
            _memory: loom::alloc::Track::new(()),
            accessed: loom::cell::UnsafeCell::new(0),
        }
    }

    /// Reads it, after a thread has written to it. Returns its number.
    fn read(&self) -> usize {
        // SAFETY: loom panics if another thread writes.
        self.accessed.with(|count| assert!(unsafe { *count } > 0));
        self.id
    }

    /// Writes to it.
    fn access(&self) {
        // SAFETY: loom panics if another thread has access.
        self.accessed.with_mut(|count| unsafe { *count += 1 });
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.access();
        }
    }
}

/// The preemptions of the threads of a model together, unless the environment has a bound. Without
/// a bound, three threads with locks take hours.
const PREEMPTIONS: usize = 4;
/// As above, if any two accesses of a variable conflict.
const FEW_PREEMPTIONS: usize = 2;

/// Explores a model whose law holds by full barriers.
fn explore_full(model: impl Fn() + Sync + Send + 'static) {
    check(true, model);
}

/// Explores a model. With full barriers, and with those that order no more than their variable.
fn explore(model: impl Fn() + Sync + Send + Clone + 'static) {
    for fences in [true, false] {
        check(fences, model.clone());
    }
}

/// Explores a model as [`explore`] does, with any two accesses of a variable in either order, and
/// with fewer preemptions.
fn explore_orders(model: impl Fn() + Sync + Send + Clone + 'static) {
    for fences in [true, false] {
        check_orders(fences, model.clone());
    }
}

/// Explores a model as [`explore_full`] does, and otherwise as [`explore_orders`].
fn explore_full_orders(model: impl Fn() + Sync + Send + 'static) {
    check_orders(true, model);
}

fn check_orders(fences: bool, model: impl Fn() + Sync + Send + 'static) {
    kernel::sync::atomic::accesses_conflict(true);
    check_bounded(FEW_PREEMPTIONS, fences, model);
}

fn check(fences: bool, model: impl Fn() + Sync + Send + 'static) {
    kernel::sync::atomic::accesses_conflict(false);
    check_bounded(PREEMPTIONS, fences, model);
}

fn check_bounded(preemptions: usize, fences: bool, model: impl Fn() + Sync + Send + 'static) {
    kernel::sync::atomic::full_is_fence(fences);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}
