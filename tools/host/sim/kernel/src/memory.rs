// SPDX-License-Identifier: GPL-2.0

//! Allocations: some fail by chance, each is known until it ends, and none may end while a device
//! uses it.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::NonNull;

use crate::alloc_flags::{AllocError, Flags};
use crate::heap;
use crate::lockdep;
use crate::sched;

struct Live {
    layout: Layout,
    what: &'static str,
    node: i32,
}

/// What memory is filled with when it is freed.
const POISON: u8 = 0x6b;

/// Is told of each range that is freed.
pub type FreeHook = fn(usize, usize, &'static str);

thread_local! {
    static LIVE: RefCell<BTreeMap<usize, Live>> = const { RefCell::new(BTreeMap::new()) };
    static FAILS: Cell<u32> = const { Cell::new(0) };
    static HOOK: Cell<Option<FreeHook>> = const { Cell::new(None) };
    static FAILED: Cell<u64> = const { Cell::new(0) };
}

/// Has one in `n` allocations fail, and one in `n / 8` that may not sleep; none if `n` is 0.
pub fn fail_one_in(n: u32) {
    FAILS.set(n);
}

/// The number of allocations that have failed.
pub fn failed() -> u64 {
    FAILED.get()
}

/// Sets the hook for what is freed.
pub fn on_free(hook: FreeHook) {
    HOOK.set(Some(hook));
}

/// Whether an allocation fails now.
pub fn fails(flags: Flags, what: &'static str) -> bool {
    // The kernel reclaims memory for an allocation that may sleep.
    let mut fails = FAILS.get();
    if flags.may_sleep() {
        lockdep::might_sleep("an allocation");
    } else {
        fails = fails.div_ceil(8);
    }
    sched::preempt();
    if sched::one_in(fails) {
        FAILED.set(FAILED.get() + 1);
        crate::say!("no memory for {what}");
        return true;
    }
    false
}

/// Notes an allocation, of no NUMA node in particular.
pub fn note(addr: usize, layout: Layout, what: &'static str) {
    note_on(addr, layout, what, -1);
}

/// Notes an allocation on a NUMA node; -1 if any will do.
pub(crate) fn note_on(addr: usize, layout: Layout, what: &'static str, node: i32) {
    if layout.size() > 0 {
        let one = Live { layout, what, node };
        let old = LIVE.with_borrow_mut(|live| live.insert(addr, one));
        assert!(old.is_none(), "allocated twice");
    }
}

/// Notes the end of an allocation.
pub fn forget(addr: usize, size: usize) -> Option<Layout> {
    if size == 0 {
        return None;
    }
    let live = LIVE.with_borrow_mut(|live| live.remove(&addr));
    let Some(live) = live else {
        sched::fail("memory is freed that is not allocated");
    };
    if let Some(hook) = HOOK.get() {
        hook(addr, live.layout.size(), live.what);
    }
    // Who still reads it finds no pointer and no plausible number.
    let memory = std::ptr::with_exposed_provenance_mut::<u8>(addr);
    // SAFETY: The memory is still there, and what was in it was dropped or moved.
    unsafe { memory.write_bytes(POISON, live.layout.size()) };
    Some(live.layout)
}

/// Allocates memory of zeroes.
pub fn alloc(layout: Layout, flags: Flags, what: &'static str) -> Result<NonNull<u8>, AllocError> {
    if fails(flags, what) {
        return Err(AllocError);
    }
    let memory = heap::take(layout);
    // SAFETY: The memory has this size, and belongs to no other allocation.
    unsafe { memory.write_bytes(0, layout.size()) };
    note(memory.as_ptr().addr(), layout, what);
    Ok(memory)
}

/// `kfree()`: frees what any allocator of this crate has allocated.
///
/// # Safety
///
/// Null, or the start of such an allocation, which is not used any more.
pub unsafe fn kfree(memory: *mut u8) {
    if let Some(memory) = NonNull::new(memory) {
        // SAFETY: By this function's contract.
        unsafe { free(memory, usize::MAX) };
    }
}

/// Frees what any allocator of this crate has allocated.
///
/// # Safety
///
/// `memory` is the start of such an allocation, which is not used any more. `size` is 0 if it has
/// no bytes.
pub(crate) unsafe fn free(memory: NonNull<u8>, size: usize) {
    if let Some(layout) = forget(memory.as_ptr().addr(), size) {
        if !heap::put(memory, layout) {
            // SAFETY: The memory of a vector, with the layout that it was allocated with.
            unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
        }
    }
}

/// What is allocated: how often, and what.
pub fn live() -> BTreeMap<&'static str, usize> {
    LIVE.with_borrow(|live| {
        let mut kinds = BTreeMap::new();
        for one in live.values() {
            *kinds.entry(one.what).or_insert(0) += 1;
        }
        kinds
    })
}

/// The bytes of the largest allocation of this kind.
pub fn largest(what: &str) -> usize {
    LIVE.with_borrow(|live| {
        let ones = live.values().filter(|one| one.what == what);
        ones.map(|one| one.layout.size()).max().unwrap_or(0)
    })
}

/// The NUMA node that this allocation was made for; -1 if none.
pub fn node_of(addr: usize) -> i32 {
    LIVE.with_borrow(|live| live.get(&addr).map_or(-1, |one| one.node))
}

/// The allocation that contains this address, as its start and its end.
pub fn allocation_of(addr: usize) -> Option<(usize, usize)> {
    LIVE.with_borrow(|live| {
        let (start, one) = live.range(..=addr).next_back()?;
        let end = start + one.layout.size();
        (addr < end).then_some((*start, end))
    })
}

/// Begins a run.
pub(crate) fn begin() {
    if LIVE.with_borrow(BTreeMap::is_empty) {
        heap::reset();
    }
}

/// Forgets all allocations, after a run that has failed.
pub fn abandon() {
    LIVE.with_borrow_mut(BTreeMap::clear);
    FAILS.set(0);
}
