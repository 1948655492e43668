// SPDX-License-Identifier: GPL-2.0

//! A cell that loom watches.

pub use ::core::cell::*;

/// A cell whose users promise that one of them has access at a time. loom finds two accesses that
/// nothing orders.
pub struct UnsafeCell<T> {
    value: ::core::cell::UnsafeCell<T>,
    watch: OnceCell<loom::cell::UnsafeCell<()>>,
}

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        Self {
            value: ::core::cell::UnsafeCell::new(value),
            watch: OnceCell::new(),
        }
    }

    /// A pointer to the value, for an exclusive access that begins now.
    pub fn get(&self) -> *mut T {
        let watch = self.watch.get_or_init(|| loom::cell::UnsafeCell::new(()));
        watch.with_mut(|_| ());
        self.value.get()
    }

    /// The value, which no other thread can access.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}
