// SPDX-License-Identifier: GPL-2.0

//! Atomic variables. A context may lose its CPU before each access.

use core::cell::UnsafeCell;

pub use ordering::{Acquire, Full, Relaxed, Release};

use crate::sched;

/// Memory orders. Each is a type, as in the kernel; all accesses are in one order here.
pub mod ordering {
    /// A memory order.
    pub trait Ordering {}

    macro_rules! orders {
        ($($name:ident),*) => {$(
            #[doc = concat!("`", stringify!($name), "`.")]
            pub struct $name;

            impl Ordering for $name {}
        )*};
    }

    orders!(Relaxed, Acquire, Release, Full);

    /// Orders of a load.
    pub trait AcquireOrRelaxed: Ordering {}
    impl AcquireOrRelaxed for Acquire {}
    impl AcquireOrRelaxed for Relaxed {}

    /// Orders of a store.
    pub trait ReleaseOrRelaxed: Ordering {}
    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}
}

use ordering::{AcquireOrRelaxed, Ordering, ReleaseOrRelaxed};

/// A type of which there are atomic variables.
pub trait AtomicType: Copy + PartialEq {}

/// Such a type with wrapping sums.
pub trait AtomicNumber: AtomicType {
    /// The sum, which wraps around.
    fn plus(self, other: Self) -> Self;
    /// The difference, which wraps around.
    fn minus(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl AtomicType for $ty {}

        impl AtomicNumber for $ty {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}

numbers!(i32, u32, i64, u64, isize, usize);
impl AtomicType for bool {}
impl<T> AtomicType for *mut T {}

/// An atomic variable.
#[repr(transparent)]
pub struct Atomic<T>(UnsafeCell<T>);

// SAFETY: One context runs at a time.
unsafe impl<T> Send for Atomic<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for Atomic<T> {}

impl<T: AtomicType> Atomic<T> {
    /// A variable with this value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The variable at this address.
    ///
    /// # Safety
    ///
    /// It stays for `'a`.
    pub unsafe fn from_ptr<'a>(ptr: *mut T) -> &'a Self {
        // SAFETY: By this function's contract.
        unsafe { &*ptr.cast() }
    }

    /// The address of the variable.
    pub const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    fn get(&self) -> T {
        sched::preempt();
        // SAFETY: One context runs at a time.
        unsafe { *self.0.get() }
    }

    fn set(&self, value: T) {
        // SAFETY: One context runs at a time, and there are no references to the value.
        unsafe { *self.0.get() = value };
    }

    /// The value.
    #[inline]
    pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
        self.get()
    }

    /// Sets the value.
    #[inline]
    pub fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
        sched::preempt();
        self.set(value);
    }

    /// Sets the value, and returns the old one.
    pub fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
        let old = self.get();
        self.set(value);
        old
    }

    /// Sets the value if it is `old`. Returns the old one, as an error if it is another.
    pub fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        let was = self.get();
        if was == old {
            self.set(new);
            Ok(was)
        } else {
            Err(was)
        }
    }
}

impl<T: AtomicNumber> Atomic<T> {
    /// Adds `delta`, with wraparound. Returns the old value.
    pub fn fetch_add<O: Ordering>(&self, delta: T, _: O) -> T {
        let old = self.get();
        self.set(old.plus(delta));
        old
    }

    /// Subtracts `delta`, with wraparound. Returns the old value.
    pub fn fetch_sub<O: Ordering>(&self, delta: T, _: O) -> T {
        let old = self.get();
        self.set(old.minus(delta));
        old
    }

    /// Adds `delta`, with wraparound.
    pub fn add<O: Ordering>(&self, delta: T, order: O) {
        self.fetch_add(delta, order);
    }

    /// Subtracts `delta`, with wraparound.
    pub fn sub<O: Ordering>(&self, delta: T, order: O) {
        self.fetch_sub(delta, order);
    }
}
