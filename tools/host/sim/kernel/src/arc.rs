// SPDX-License-Identifier: GPL-2.0

//! Counted references.

use core::cell::Cell;
use core::marker::{PhantomData, Unsize};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{CoerceUnsized, Deref, DerefMut, DispatchFromDyn};
use core::pin::Pin;
use core::ptr::NonNull;
use std::alloc::Layout;

use pin_init::PinInit;

use crate::alloc_flags::{AllocError, Flags};
use crate::error::{Error, Result};
use crate::{memory, sched};

#[repr(C)]
struct Inner<T: ?Sized> {
    count: Cell<usize>,
    data: T,
}

/// A counted reference.
pub struct Arc<T: ?Sized>(NonNull<Inner<T>>, PhantomData<Inner<T>>);

// SAFETY: As for the content. One context runs at a time.
unsafe impl<T: ?Sized + Send + Sync> Send for Arc<T> {}
// SAFETY: As above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Arc<T> {}

impl<T: ?Sized + Unsize<U>, U: ?Sized> CoerceUnsized<Arc<U>> for Arc<T> {}
impl<T: ?Sized + Unsize<U>, U: ?Sized> DispatchFromDyn<Arc<U>> for Arc<T> {}

impl<T> Arc<T> {
    fn memory(flags: Flags) -> Result<NonNull<Inner<MaybeUninit<T>>>, AllocError> {
        let layout = Layout::new::<Inner<T>>();
        let memory = memory::alloc(layout, flags, core::any::type_name::<T>())?;
        let memory: NonNull<Inner<MaybeUninit<T>>> = memory.cast();
        // SAFETY: Just allocated.
        unsafe { (&raw mut (*memory.as_ptr()).count).write(Cell::new(1)) };
        Ok(memory)
    }

    /// Allocates memory for a value.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        let memory = Self::memory(flags)?;
        // SAFETY: Just allocated.
        unsafe { (*memory.as_ptr()).data.write(value) };
        Ok(Self(memory.cast(), PhantomData))
    }

    /// Allocates and initializes a value in place.
    pub fn pin_init<E>(init: impl PinInit<T, E>, flags: Flags) -> Result<Self>
    where
        Error: From<E>,
    {
        let memory = Self::memory(flags)?;
        // SAFETY: The memory is for a `T`, and is not moved. On failure it is freed as such.
        unsafe {
            if let Err(error) = init.__pinned_init((*memory.as_ptr()).data.as_mut_ptr()) {
                memory::free(memory.cast(), size_of::<Inner<T>>());
                return Err(error.into());
            }
        }
        Ok(Self(memory.cast(), PhantomData))
    }

    /// Gives the reference up, as a pointer to the value.
    pub fn into_raw(self) -> *const T {
        let this = ManuallyDrop::new(self);
        // SAFETY: The value stays, since the reference is not put.
        unsafe { &raw const (*this.0.as_ptr()).data }
    }

    /// Takes back what [`Self::into_raw`] gave up.
    ///
    /// # Safety
    ///
    /// `raw` comes from there, and is not used again.
    pub unsafe fn from_raw(raw: *const T) -> Self {
        // SAFETY: By this function's contract.
        let inner = unsafe { crate::container_of!(raw.cast_mut(), Inner<T>, data) };
        Self(NonNull::new(inner).expect("a value"), PhantomData)
    }
}

impl<T: ?Sized> Arc<T> {
    /// Whether both refer to the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        core::ptr::addr_eq(this.0.as_ptr(), other.0.as_ptr())
    }

    fn count(&self) -> &Cell<usize> {
        // SAFETY: The reference keeps the memory.
        unsafe { &self.0.as_ref().count }
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    fn clone(&self) -> Self {
        self.count().set(self.count().get() + 1);
        Self(self.0, PhantomData)
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The reference keeps the value.
        unsafe { &self.0.as_ref().data }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        sched::preempt();
        let count = self.count().get() - 1;
        self.count().set(count);
        if count == 0 {
            let inner = self.0.as_ptr();
            // SAFETY: There is no other reference.
            unsafe {
                let size = size_of_val(&*inner);
                core::ptr::drop_in_place(&raw mut (*inner).data);
                memory::free(self.0.cast(), size);
            }
        }
    }
}

/// The only reference to a value.
pub struct UniqueArc<T: ?Sized>(Arc<T>);

impl<T> UniqueArc<T> {
    /// Allocates memory for a value.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        Ok(Self(Arc::new(value, flags)?))
    }

    /// Allocates and initializes a value in place.
    pub fn pin_init<E>(init: impl PinInit<T, E>, flags: Flags) -> Result<Pin<Self>>
    where
        Error: From<E>,
    {
        // SAFETY: An `Arc` does not move its value.
        Ok(unsafe { Pin::new_unchecked(Self(Arc::pin_init(init, flags)?)) })
    }
}

impl<T: ?Sized> Deref for UniqueArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for UniqueArc<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: There is no other reference.
        unsafe { &mut (*self.0 .0.as_ptr()).data }
    }
}

impl<T: ?Sized> From<UniqueArc<T>> for Arc<T> {
    fn from(unique: UniqueArc<T>) -> Self {
        unique.0
    }
}

impl<T: ?Sized> From<Pin<UniqueArc<T>>> for Arc<T> {
    fn from(unique: Pin<UniqueArc<T>>) -> Self {
        // SAFETY: An `Arc` does not move its value.
        unsafe { Pin::into_inner_unchecked(unique) }.0
    }
}

/// `refcount_t`.
pub struct Refcount(Cell<i32>);

// SAFETY: One context runs at a time.
unsafe impl Sync for Refcount {}

impl Refcount {
    /// A count.
    pub const fn new(value: i32) -> Self {
        Self(Cell::new(value))
    }

    /// Increments the count, which is not 0.
    pub fn inc(&self) {
        sched::preempt();
        if self.0.get() <= 0 {
            sched::fail("a reference is taken to what has none");
        }
        self.0.set(self.0.get() + 1);
    }

    /// Decrements the count; whether it is 0 then.
    pub fn dec_and_test(&self) -> bool {
        sched::preempt();
        if self.0.get() <= 0 {
            sched::fail("a reference is put that does not exist");
        }
        self.0.set(self.0.get() - 1);
        self.0.get() == 0
    }
}

/// A type that counts references to itself.
///
/// # Safety
///
/// A value stays while it has references.
pub unsafe trait AlwaysRefCounted {
    /// Takes a reference.
    fn inc_ref(&self);
    /// Puts a reference.
    ///
    /// # Safety
    ///
    /// The caller has one, and does not use it any more.
    unsafe fn dec_ref(obj: NonNull<Self>);
}

/// A reference to a value that counts them.
pub struct ARef<T: AlwaysRefCounted>(NonNull<T>, PhantomData<T>);

// SAFETY: As for the value.
unsafe impl<T: AlwaysRefCounted + Sync + Send> Send for ARef<T> {}
// SAFETY: As for the value.
unsafe impl<T: AlwaysRefCounted + Sync + Send> Sync for ARef<T> {}

impl<T: AlwaysRefCounted> ARef<T> {
    /// Takes a reference over.
    ///
    /// # Safety
    ///
    /// The caller has a reference, and gives it up.
    pub unsafe fn from_raw(ptr: NonNull<T>) -> Self {
        Self(ptr, PhantomData)
    }

    /// Gives the reference up.
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).0
    }
}

impl<T: AlwaysRefCounted> From<&T> for ARef<T> {
    fn from(value: &T) -> Self {
        value.inc_ref();
        Self(NonNull::from(value), PhantomData)
    }
}

impl<T: AlwaysRefCounted> Clone for ARef<T> {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl<T: AlwaysRefCounted> Deref for ARef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The reference keeps the value.
        unsafe { self.0.as_ref() }
    }
}

impl<T: AlwaysRefCounted> Drop for ARef<T> {
    fn drop(&mut self) {
        // SAFETY: The reference is this value's.
        unsafe { T::dec_ref(self.0) };
    }
}
