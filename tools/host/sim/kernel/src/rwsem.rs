// SPDX-License-Identifier: GPL-2.0

//! Reader/writer semaphores.

use std::cell::Cell;

use crate::lockdep;
use crate::sched;

/// `struct rw_semaphore`.
pub struct RwSem {
    class: &'static str,
    readers: Cell<usize>,
    written: Cell<bool>,
}

impl RwSem {
    /// A semaphore that is free.
    pub const fn new(class: &'static str) -> Self {
        Self {
            class,
            readers: Cell::new(0),
            written: Cell::new(false),
        }
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn take(&self, is_free: impl Fn() -> bool) {
        lockdep::might_sleep("a semaphore");
        sched::preempt();
        lockdep::take(self.key(), self.class, false);
        while !is_free() {
            sched::wait_on(self.key());
        }
    }

    fn release(&self) {
        lockdep::release(self.key());
        sched::wake(self.key());
        sched::preempt();
    }

    /// `down_read()`.
    pub fn down_read(&self) {
        self.take(|| !self.written.get());
        self.readers.set(self.readers.get() + 1);
    }

    /// `up_read()`.
    pub fn up_read(&self) {
        self.readers.set(self.readers.get() - 1);
        self.release();
    }

    /// `down_write()`.
    pub fn down_write(&self) {
        self.take(|| !self.written.get() && self.readers.get() == 0);
        self.written.set(true);
    }

    /// `up_write()`.
    pub fn up_write(&self) {
        self.written.set(false);
        self.release();
    }

    /// `downgrade_write()`.
    pub fn downgrade_write(&self) {
        self.written.set(false);
        self.readers.set(1);
        sched::wake(self.key());
    }
}
