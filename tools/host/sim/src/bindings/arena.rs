// SPDX-License-Identifier: GPL-2.0

//! Where pages come from. Free pages are taken in the order of their addresses, so that pages which
//! are allocated one after the other are often contiguous.

use core::cell::RefCell;
use std::alloc::Layout;
use std::collections::BTreeSet;

use kernel::page::PAGE_SIZE;

/// The number of pages. They are not touched before they are used.
const PAGES: usize = 1 << 16;

struct Arena {
    memory: *mut u8,
    /// The pages that were never used.
    unused: usize,
    free: BTreeSet<usize>,
}

thread_local! {
    static ARENA: RefCell<Arena> = const {
        RefCell::new(Arena { memory: core::ptr::null_mut(), unused: 0, free: BTreeSet::new() })
    };
}

impl Arena {
    fn take(&mut self) -> *mut u8 {
        if self.memory.is_null() {
            let layout = Layout::from_size_align(PAGES * PAGE_SIZE, PAGE_SIZE).expect("a size");
            // SAFETY: The size is not zero.
            self.memory = unsafe { std::alloc::alloc(layout) };
            assert!(!self.memory.is_null());
        }
        let index = self.free.pop_first().unwrap_or_else(|| {
            self.unused += 1;
            self.unused - 1
        });
        assert!(index < PAGES, "too many pages are allocated");
        self.memory.wrapping_add(index * PAGE_SIZE)
    }
}

/// Takes a page, whose content is anything.
pub(super) fn take_page() -> *mut u8 {
    ARENA.with_borrow_mut(Arena::take)
}

/// Returns a page.
pub(super) fn return_page(page: *mut u8) {
    ARENA.with_borrow_mut(|arena| {
        let index = (page.addr() - arena.memory.addr()) / PAGE_SIZE;
        assert!(arena.free.insert(index));
    });
}
