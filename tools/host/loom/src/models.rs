// SPDX-License-Identifier: GPL-2.0

//! Lock-free files of the module under [loom](https://docs.rs/loom): it runs a few threads in many
//! orders, with each value that a relaxed load may return. It prunes orders that it takes for
//! equal, and may prune too many: a model has shown what it finds once a weaker order fails it.
//!
//! Each model says its threads, its bounds and its law. `LOOM_MAX_PREEMPTIONS` in the environment
//! bounds the preemptions of a thread; without it there is no such bound.

#![cfg(test)]
#![allow(dead_code, reason = "the models use a part of the files")]

// The files say `core::cell::UnsafeCell`; this one is watched.
extern crate kernel as core;

#[allow(special_module_name, reason = "the files say crate::lib")]
#[path = "lib/mod.rs"]
mod lib;
#[path = "sunrpc/mod.rs"]
mod sunrpc;

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

/// Explores a model. With full barriers, and with those that order no more than their variable.
fn explore(model: impl Fn() + Sync + Send + Clone + 'static) {
    for fences in [true, false] {
        kernel::sync::atomic::full_is_fence(fences);
        loom::model(model.clone());
    }
}
