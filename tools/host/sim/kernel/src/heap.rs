// SPDX-License-Identifier: GPL-2.0

//! Where `kmalloc()` takes memory from. What a device maps depends on the page in which memory
//! begins and on its offset there. The heap of the host would make that depend on all that the
//! process has allocated before; this heap begins each run anew.
//!
//! As in the kernel, sizes are powers of two up to a page, and whole pages above. An allocation of
//! the former kind is aligned to its size, so that none crosses the end of a page.

use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::{null_mut, NonNull};

const PAGE: usize = 4096;
/// The bytes of the heap. They are not touched before they are used.
const SIZE: usize = 1 << 30;
const SMALLEST: usize = 16;

struct Heap {
    memory: *mut u8,
    /// The bytes up to the end of what was ever used.
    used: usize,
    /// What is free again, by size, the last one first.
    free: BTreeMap<usize, Vec<NonNull<u8>>>,
}

thread_local! {
    static HEAP: RefCell<Heap> = const {
        RefCell::new(Heap { memory: null_mut(), used: 0, free: BTreeMap::new() })
    };
}

/// The bytes that an allocation of `size` takes.
fn class(size: usize) -> usize {
    if size > PAGE {
        size.next_multiple_of(PAGE)
    } else {
        size.next_power_of_two().max(SMALLEST)
    }
}

/// Allocates memory, whose content is anything.
pub(crate) fn take(layout: Layout) -> NonNull<u8> {
    let size = class(layout.size());
    assert!(layout.align() <= size.min(PAGE));
    HEAP.with_borrow_mut(|heap| {
        if let Some(memory) = heap.free.get_mut(&size).and_then(Vec::pop) {
            return memory;
        }
        if heap.memory.is_null() {
            let all = Layout::from_size_align(SIZE, PAGE).expect("a size");
            // SAFETY: The size is not zero.
            heap.memory = unsafe { std::alloc::alloc(all) };
        }
        let start = heap.used.next_multiple_of(size.min(PAGE));
        heap.used = start + size;
        assert!(heap.used <= SIZE, "too much memory is allocated");
        NonNull::new(heap.memory.wrapping_add(start)).expect("memory")
    })
}

/// Returns memory; `false` if it is not of this heap.
pub(crate) fn put(memory: NonNull<u8>, layout: Layout) -> bool {
    HEAP.with_borrow_mut(|heap| {
        let offset = memory.as_ptr().addr().wrapping_sub(heap.memory.addr());
        let is_own = !heap.memory.is_null() && offset < heap.used;
        if is_own {
            heap.free
                .entry(class(layout.size()))
                .or_default()
                .push(memory);
        }
        is_own
    })
}

/// Begins anew. Nothing is allocated, or nothing that is will be used again.
pub(crate) fn reset() {
    HEAP.with_borrow_mut(|heap| {
        heap.used = 0;
        heap.free.clear();
    });
}
