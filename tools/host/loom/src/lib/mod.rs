// SPDX-License-Identifier: GPL-2.0

//! `rust/lib`.

#[path = "../../../../../rust/lib/grow_list.rs"]
pub(crate) mod grow_list;
#[path = "../../../../../rust/lib/llist.rs"]
pub(crate) mod llist;
#[path = "../../../../../rust/lib/llist_box.rs"]
pub(crate) mod llist_box;
#[path = "../../../../../rust/lib/pool.rs"]
pub(crate) mod pool;
#[path = "../../../../../rust/lib/set_once.rs"]
pub(crate) mod set_once;

pub(crate) mod barrier {
    pub(crate) use kernel::sync::atomic::smp_mb;
}
pub(crate) mod bvec {
    use std::marker::PhantomData;

    use crate::bindings::page;

    /// A part of a page.
    pub(crate) struct BVec<'a>(*mut page, PhantomData<&'a page>);

    impl<'a> BVec<'a> {
        pub(crate) fn new(page: &'a page) -> Self {
            Self(std::ptr::from_ref(page).cast_mut(), PhantomData)
        }

        pub(crate) fn page(&self) -> *mut page {
            self.0
        }

        pub(crate) fn is_counted(&self) -> bool {
            true
        }
    }
}
pub(crate) mod completion {
    pub(crate) use kernel::sync::Completion;
}
pub(crate) mod counter {
    //! Counts that no model depends on: loom does not know them.

    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    pub(crate) struct Gauge(AtomicUsize);

    impl Gauge {
        pub(crate) const fn new() -> Self {
            Self(AtomicUsize::new(0))
        }

        pub(crate) fn add(&self, n: usize) -> usize {
            self.0.fetch_add(n, Relaxed)
        }

        pub(crate) fn sub(&self, n: usize) {
            self.0.fetch_sub(n, Relaxed);
        }
    }

    pub(crate) struct Counter;

    impl Counter {
        pub(crate) fn inc(&self) {}
    }

    #[derive(Default)]
    pub(crate) struct SingleWriterCounter;

    impl SingleWriterCounter {
        pub(crate) fn add(&self, _n: u64) {}

        pub(crate) fn get(&self) -> u64 {
            0
        }
    }
}
pub(crate) mod sync {
    pub(crate) use kernel::sync::atomic::Atomic;
}

mod idle;
mod once;
mod stack;
