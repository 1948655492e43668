// SPDX-License-Identifier: GPL-2.0

//! Work items.

use core::cell::RefCell;
use std::collections::BTreeMap;

use crate::lockdep;
use crate::sched::{self, Timer};

#[derive(Clone, Copy, Default)]
struct State {
    queued: bool,
    timer: Option<Timer>,
    running: bool,
}

thread_local! {
    static ITEMS: RefCell<BTreeMap<usize, State>> = const { RefCell::new(BTreeMap::new()) };
}

fn items<R>(work: usize, f: impl FnOnce(&mut State) -> R) -> R {
    ITEMS.with_borrow_mut(|items| {
        let state = items.entry(work).or_default();
        let result = f(state);
        if !state.queued && !state.running && state.timer.is_none() {
            items.remove(&work);
        }
        result
    })
}

/// The number of work items that are queued or run.
fn busy() -> usize {
    ITEMS.with_borrow(BTreeMap::len)
}

/// Forgets all work items, after a run that has failed.
pub fn abandon_work_items() {
    ITEMS.with_borrow_mut(BTreeMap::clear);
}

/// The C interface.
#[path = "work_c.rs"]
pub mod c;

/// Work items of Rust.
pub mod workqueue {
    use core::marker::PhantomData;

    use super::c;
    use crate::arc::Arc;
    use crate::types::Opaque;

    /// A workqueue.
    pub struct Queue(());

    static QUEUE: Queue = Queue(());

    /// The system's queue.
    pub fn system() -> &'static Queue {
        &QUEUE
    }

    /// The queue for long work.
    pub fn system_long() -> &'static Queue {
        &QUEUE
    }

    /// The queue for urgent work.
    pub fn system_highpri() -> &'static Queue {
        &QUEUE
    }

    /// The unbound queue.
    pub fn system_unbound() -> &'static Queue {
        &QUEUE
    }

    /// What a work item does.
    pub trait WorkItem<const ID: u64 = 0> {
        /// The pointer to it.
        type Pointer;
        /// Does it.
        fn run(this: Self::Pointer);
    }

    /// A work item, as a part of a `T`.
    #[repr(transparent)]
    pub struct Work<T: ?Sized>(Opaque<c::work_struct>, PhantomData<fn() -> Box<T>>);

    // SAFETY: One context runs at a time.
    unsafe impl<T: ?Sized> Send for Work<T> {}
    // SAFETY: As above.
    unsafe impl<T: ?Sized> Sync for Work<T> {}

    /// A delayed work item, as a part of a `T`.
    #[repr(transparent)]
    pub struct DelayedWork<T: ?Sized>(Opaque<c::delayed_work>, PhantomData<fn() -> Box<T>>);

    // SAFETY: One context runs at a time.
    unsafe impl<T: ?Sized> Send for DelayedWork<T> {}
    // SAFETY: As above.
    unsafe impl<T: ?Sized> Sync for DelayedWork<T> {}

    impl<T: HasWork> Work<T> {
        /// A work item that is not queued.
        pub fn new() -> Self {
            let work = Opaque::<c::work_struct>::uninit();
            // SAFETY: The memory is this function's.
            unsafe { (&raw mut (*work.get()).func).write(Some(run::<T>)) };
            Self(work, PhantomData)
        }
    }

    impl<T: ?Sized> Work<T> {
        /// The C structure.
        ///
        /// # Safety
        ///
        /// None.
        pub unsafe fn raw_get(this: *const Self) -> *mut c::work_struct {
            this.cast_mut().cast()
        }
    }

    impl<T: HasDelayedWork> DelayedWork<T> {
        /// A work item that is not queued.
        pub fn new() -> Self {
            let work = Opaque::<c::delayed_work>::uninit();
            // SAFETY: The memory is this function's.
            unsafe {
                c::rpcrdma_init_delayed_work(
                    work.get(),
                    Some(run_delayed::<T>),
                    core::ptr::null_mut(),
                );
            }
            Self(work, PhantomData)
        }
    }

    impl<T: ?Sized> DelayedWork<T> {
        /// The work item.
        ///
        /// # Safety
        ///
        /// None.
        pub unsafe fn raw_as_work(this: *const Self) -> *mut Work<T> {
            this.cast_mut().cast()
        }
    }

    /// A type with a work item.
    ///
    /// # Safety
    ///
    /// Both functions are for the same member.
    pub unsafe trait HasWork: WorkItem<Pointer = Arc<Self>> + Sized {
        /// The C structure.
        ///
        /// # Safety
        ///
        /// `this` is there.
        unsafe fn work(this: *const Self) -> *mut c::work_struct;
        /// The object.
        ///
        /// # Safety
        ///
        /// `work` is that of an object.
        unsafe fn of_work(work: *mut c::work_struct) -> *const Self;
    }

    /// A type with a delayed work item.
    ///
    /// # Safety
    ///
    /// Both functions are for the same member.
    pub unsafe trait HasDelayedWork: WorkItem<Pointer = Arc<Self>> + Sized {
        /// The C structure.
        ///
        /// # Safety
        ///
        /// `this` is there.
        unsafe fn delayed(this: *const Self) -> *mut c::delayed_work;
        /// The object.
        ///
        /// # Safety
        ///
        /// `work` is that of an object.
        unsafe fn of_delayed(work: *mut c::work_struct) -> *const Self;
    }

    unsafe extern "C" fn run<T: HasWork>(work: *mut c::work_struct) {
        // SAFETY: `enqueue` has given the reference to the work item.
        T::run(unsafe { Arc::from_raw(T::of_work(work)) });
    }

    unsafe extern "C" fn run_delayed<T: HasDelayedWork>(work: *mut c::work_struct) {
        // SAFETY: As above.
        T::run(unsafe { Arc::from_raw(T::of_delayed(work)) });
    }

    /// A way to queue an object.
    pub trait Enqueue: Sized {
        /// Queues it; `false` if it is queued already.
        fn enqueue_raw(raw: *const Self) -> bool;
    }

    impl Queue {
        /// A queue of C.
        ///
        /// # Safety
        ///
        /// None.
        pub unsafe fn from_raw<'a>(_: *const c::workqueue_struct) -> &'a Self {
            &QUEUE
        }

        /// Queues the work item of an object.
        pub fn enqueue<T: Enqueue>(&self, object: Arc<T>) -> Result<(), Arc<T>> {
            let raw = object.into_raw();
            if T::enqueue_raw(raw) {
                Ok(())
            } else {
                // SAFETY: It is queued with another reference.
                Err(unsafe { Arc::from_raw(raw) })
            }
        }

        /// Queues the work item of an object, to run after a delay.
        pub fn enqueue_delayed<T: HasDelayedWork>(
            &self,
            object: Arc<T>,
            delay: usize,
        ) -> Result<(), Arc<T>> {
            let raw = object.into_raw();
            // SAFETY: The reference keeps the object until it is run.
            let queued = unsafe {
                c::queue_delayed_work_on(0, core::ptr::null_mut(), T::delayed(raw), delay)
            };
            if queued {
                Ok(())
            } else {
                // SAFETY: It is queued with another reference.
                Err(unsafe { Arc::from_raw(raw) })
            }
        }
    }
}

/// The number of work items that are queued or run.
pub fn busy_work_items() -> usize {
    busy()
}

/// A work item.
#[macro_export]
macro_rules! new_work {
    ($class:literal) => {
        $crate::workqueue::Work::new()
    };
}

/// A delayed work item.
#[macro_export]
macro_rules! new_delayed_work {
    ($class:literal) => {
        $crate::workqueue::DelayedWork::new()
    };
}

/// Says which member is the work item.
#[macro_export]
macro_rules! impl_has_work {
    (impl$({$($generics:tt)*})? HasWork<$item:ty> for $ty:ty { self.$field:ident }) => {
        // SAFETY: Both are for this member.
        unsafe impl$(<$($generics)*>)? $crate::workqueue::HasWork for $ty {
            unsafe fn work(this: *const Self) -> *mut $crate::bindings::work_struct {
                // SAFETY: By this function's contract.
                unsafe { $crate::workqueue::Work::raw_get(&raw const (*this).$field) }
            }

            unsafe fn of_work(work: *mut $crate::bindings::work_struct) -> *const Self {
                // SAFETY: By this function's contract.
                unsafe { $crate::container_of!(work, Self, $field) }
            }
        }

        impl$(<$($generics)*>)? $crate::workqueue::Enqueue for $ty {
            fn enqueue_raw(raw: *const Self) -> bool {
                // SAFETY: The reference keeps the object until it is run.
                unsafe {
                    $crate::bindings::queue_work(
                        ::core::ptr::null_mut(),
                        <Self as $crate::workqueue::HasWork>::work(raw),
                    )
                }
            }
        }
    };
}

/// Says which member is the delayed work item.
#[macro_export]
macro_rules! impl_has_delayed_work {
    (impl$({$($generics:tt)*})? HasDelayedWork<$item:ty> for $ty:ty { self.$field:ident }) => {
        // SAFETY: Both are for this member.
        unsafe impl$(<$($generics)*>)? $crate::workqueue::HasDelayedWork for $ty {
            unsafe fn delayed(this: *const Self) -> *mut $crate::bindings::delayed_work {
                // SAFETY: By this function's contract.
                unsafe { (&raw const (*this).$field).cast_mut().cast() }
            }

            unsafe fn of_delayed(work: *mut $crate::bindings::work_struct) -> *const Self {
                // SAFETY: By this function's contract; the work item is the first member.
                unsafe {
                    $crate::container_of!(
                        work.cast::<$crate::bindings::delayed_work>(),
                        Self,
                        $field
                    )
                }
            }
        }

        impl$(<$($generics)*>)? $crate::workqueue::Enqueue for $ty {
            fn enqueue_raw(raw: *const Self) -> bool {
                // SAFETY: The reference keeps the object until it is run.
                unsafe {
                    $crate::bindings::queue_delayed_work_on(
                        0,
                        ::core::ptr::null_mut(),
                        <Self as $crate::workqueue::HasDelayedWork>::delayed(raw),
                        0,
                    )
                }
            }
        }
    };
}
