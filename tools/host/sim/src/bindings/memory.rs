// SPDX-License-Identifier: GPL-2.0

//! Pages, `kmalloc()`, and other small functions.
//!
//! The address of a `struct page` is that of the page, so that any address has one, as in the
//! linear mapping. Only pages from `alloc_pages()` have a count.

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use std::alloc::Layout;
use std::collections::BTreeMap;

use kernel::alloc::flags;
use kernel::bindings::module;
use kernel::ffi::{c_char, c_int, c_uint, c_ulong};
use kernel::page::PAGE_SIZE;
use kernel::sched;

use super::*;

thread_local! {
    /// The counts of pages.
    static COUNTS: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
    static NETS: Cell<isize> = const { Cell::new(0) };
    static TABLES: RefCell<Vec<(String, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    COUNTS.with_borrow_mut(BTreeMap::clear);
}

/// The number of pages that are allocated.
pub(crate) fn pages() -> usize {
    COUNTS.with_borrow(BTreeMap::len)
}

fn gfp(flags: gfp_t) -> kernel::alloc::Flags {
    if flags & GFP_KERNEL != 0 {
        flags::GFP_KERNEL
    } else {
        flags::GFP_NOWAIT
    }
}

/// Allocates a page, which does not fail. Its bytes are stale data that no message may contain.
pub(crate) fn new_page() -> *mut page {
    let memory = arena::take_page();
    // SAFETY: Just allocated.
    unsafe { memory.write_bytes(0xc5, PAGE_SIZE) };
    let old = COUNTS.with_borrow_mut(|counts| counts.insert(memory.addr(), 1));
    assert!(old.is_none());
    memory.cast()
}

pub(crate) unsafe extern "C" fn alloc_pages(flags: gfp_t, order: c_uint) -> *mut page {
    assert_eq!(order, 0);
    if kernel::memory::fails(gfp(flags), "a page") {
        return core::ptr::null_mut();
    }
    new_page()
}

/// Changes the count of a page.
#[track_caller]
fn count<R>(page: *mut page, f: impl FnOnce(&mut usize) -> R) -> R {
    let result = COUNTS.with_borrow_mut(|counts| counts.get_mut(&page.addr()).map(f));
    match result {
        Some(result) => result,
        None => sched::fail("a page is used that is not allocated"),
    }
}

pub(crate) unsafe extern "C" fn sg_init_table(list: *mut scatterlist, count: c_uint) {
    for i in 0..count as usize {
        unsafe { *list.add(i) = scatterlist::default() };
    }
    unsafe { (*list.add(count as usize - 1)).page_link = 2 };
}

pub(crate) unsafe extern "C" fn rpcrdma_get_page(page: *mut page) {
    count(page, |count| *count += 1);
}

pub(crate) unsafe extern "C" fn rpcrdma_get_sole_pages(
    pages: *const *mut page,
    n: usize,
    to: *mut *mut page,
) -> usize {
    for i in 0..n {
        let page = unsafe { *pages.add(i) };
        let sole = !page.is_null()
            && count(page, |count| {
                let sole = *count == 1;
                *count += usize::from(sole);
                sole
            });
        if !sole {
            return i;
        }
        unsafe { *to.add(i) = page };
    }
    n
}

pub(crate) unsafe extern "C" fn rpcrdma_put_page(page: *mut page) {
    let left = count(page, |count| {
        *count -= 1;
        *count
    });
    if left == 0 {
        COUNTS.with_borrow_mut(|counts| counts.remove(&page.addr()));
        dma::freed(page.addr(), PAGE_SIZE, "a page");
        arena::return_page(page.cast());
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_release_pages(pages: *mut *mut page, n: c_int) {
    for i in 0..n as usize {
        unsafe { rpcrdma_put_page(*pages.add(i)) };
    }
}

/// Makes a page slab memory, which has no count, or a page again.
pub(super) fn set_slab(page: *mut page, slab: bool) {
    let before = COUNTS.with_borrow_mut(|counts| match slab {
        true => counts.remove(&page.addr()),
        false => counts.insert(page.addr(), 1),
    });
    if before != slab.then_some(1) {
        sched::fail("slab memory has a count");
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_page_is_counted(page: *mut page) -> bool {
    COUNTS.with_borrow(|counts| counts.contains_key(&page.addr()))
}

pub(crate) unsafe extern "C" fn rpcrdma_page_address(page: *const page) -> *mut c_void {
    page.cast_mut().cast()
}

pub(crate) unsafe extern "C" fn rpcrdma_virt_to_page(addr: *const c_void) -> *mut page {
    addr.cast_mut()
        .map_addr(|addr| addr & !(PAGE_SIZE - 1))
        .cast()
}

pub(crate) unsafe extern "C" fn rpcrdma_memcpy_from_page(
    to: *mut c_void,
    page: *mut page,
    offset: usize,
    len: usize,
) {
    assert!(offset + len <= PAGE_SIZE);
    unsafe { core::ptr::copy_nonoverlapping(page.cast::<u8>().add(offset), to.cast(), len) };
}

pub(crate) unsafe extern "C" fn rpcrdma_memcpy_to_page(
    page: *mut page,
    offset: usize,
    from: *const c_void,
    len: usize,
) {
    assert!(offset + len <= PAGE_SIZE);
    unsafe { core::ptr::copy_nonoverlapping(from.cast(), page.cast::<u8>().add(offset), len) };
}

pub(crate) unsafe extern "C" fn rpcrdma_clear_page(page: *mut page) {
    unsafe { page.cast::<u8>().write_bytes(0, PAGE_SIZE) };
}

pub(crate) unsafe extern "C" fn rpcrdma_kmalloc_node(
    size: usize,
    flags: gfp_t,
    _node: c_int,
) -> *mut c_void {
    let layout = Layout::from_size_align(size.max(1), 8).expect("a size");
    match kernel::memory::alloc(layout, gfp(flags), "kmalloc()") {
        Ok(memory) => memory.as_ptr().cast(),
        Err(_) => core::ptr::null_mut(),
    }
}

pub(crate) unsafe extern "C" fn kfree(memory: *const c_void) {
    unsafe { kernel::memory::kfree(memory.cast_mut().cast()) };
}

pub(crate) unsafe extern "C" fn kstrdup(text: *const c_char, _flags: gfp_t) -> *mut c_char {
    let bytes = unsafe { core::ffi::CStr::from_ptr(text.cast()) }.to_bytes_with_nul();
    let memory = unsafe { rpcrdma_kmalloc_node(bytes.len(), GFP_KERNEL, 0) };
    if !memory.is_null() {
        unsafe { memory.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
    }
    memory.cast()
}

pub(crate) unsafe extern "C" fn rpcrdma_memalloc_flags_save(_flags: c_uint) -> c_uint {
    0
}

pub(crate) unsafe extern "C" fn rpcrdma_memalloc_flags_restore(_flags: c_uint) {}

pub(crate) unsafe extern "C" fn smp_mb() {
    sched::preempt();
}

pub(crate) unsafe extern "C" fn smp_rmb() {
    sched::preempt();
}

pub(crate) unsafe extern "C" fn rpcrdma_smp_mb_after_atomic() {
    sched::preempt();
}

/// A bit of a word that several contexts change.
pub(crate) unsafe fn test_and_change_bit(nr: usize, word: *mut c_ulong, set: bool) -> bool {
    sched::preempt();
    unsafe {
        let old = *word & (1 << nr) != 0;
        if set {
            *word |= 1 << nr;
        } else {
            *word &= !(1 << nr);
        }
        old
    }
}

pub(crate) unsafe extern "C" fn set_bit(nr: usize, word: *mut c_ulong) {
    unsafe { test_and_change_bit(nr, word, true) };
}

pub(crate) unsafe extern "C" fn clear_bit(nr: usize, word: *mut c_ulong) {
    unsafe { test_and_change_bit(nr, word, false) };
}

pub(crate) unsafe extern "C" fn rpcrdma_set_bit_mb(nr: usize, word: *mut c_ulong) {
    unsafe { test_and_change_bit(nr, word, true) };
}

pub(crate) unsafe fn test_bit(nr: u32, word: *const c_ulong) -> bool {
    sched::preempt();
    unsafe { *word & (1 << nr) != 0 }
}

pub(crate) unsafe extern "C" fn rpcrdma_jiffies() -> c_ulong {
    sched::jiffies() as c_ulong
}

pub(crate) unsafe extern "C" fn rpcrdma_jiffies64() -> u64 {
    sched::jiffies()
}

pub(crate) unsafe extern "C" fn ktime_get() -> i64 {
    sched::now() as i64
}

pub(crate) unsafe extern "C" fn get_random_u64() -> u64 {
    sched::random()
}

pub(crate) unsafe extern "C" fn net_ratelimit() -> c_int {
    1
}

pub(crate) unsafe extern "C" fn rpcrdma_get_net(_net: *mut net) {
    NETS.set(NETS.get() + 1);
}

pub(crate) unsafe extern "C" fn rpcrdma_put_net(_net: *mut net) {
    NETS.set(NETS.get() - 1);
}

/// The references to the network namespace.
pub(crate) fn nets() -> isize {
    NETS.get()
}

pub(crate) unsafe extern "C" fn rpcrdma_synchronize_rcu() {
    kernel::sync::rcu::synchronize();
}

pub(crate) unsafe extern "C" fn rpcrdma_synchronize_rcu_tasks() {
    sched::synchronize_tasks();
}

pub(crate) unsafe extern "C" fn try_module_get(module: *mut module) -> bool {
    let module = unsafe { &*module };
    let got = !module.going.get();
    module.refs.set(module.refs.get() + usize::from(got));
    got
}

pub(crate) unsafe extern "C" fn __module_get(module: *mut module) {
    let refs = unsafe { &(*module).refs };
    if refs.get() == 0 {
        sched::fail("a reference is taken to a module that has none");
    }
    refs.set(refs.get() + 1);
}

/// The key that waits until the module has no references.
pub(crate) const UNUSED: usize = 7;

pub(crate) unsafe extern "C" fn module_put(module: *mut module) {
    let refs = unsafe { &(*module).refs };
    match refs.get().checked_sub(1) {
        Some(left) => {
            refs.set(left);
            if left == 0 {
                sched::wake(UNUSED);
            }
            sched::preempt();
        }
        None => sched::fail("a module reference is put that does not exist"),
    }
}

/// `snprintf()` of an address.
pub(crate) unsafe extern "C" fn snprintf(
    to: *mut c_char,
    len: usize,
    _format: *const c_char,
    addr: *const sockaddr,
) -> c_int {
    unsafe { rpc_ntop(addr, to, len) as c_int }
}

pub(crate) unsafe extern "C" fn rpc_ntop(
    addr: *const sockaddr,
    to: *mut c_char,
    len: usize,
) -> usize {
    let text = match unsafe { crate::lib::sockaddr::SockAddr::from_raw(addr, 128) } {
        Some(addr) => addr.ip().to_string(),
        None => String::new(),
    };
    let count = text.len().min(len.saturating_sub(1));
    unsafe {
        to.copy_from(text.as_ptr(), count);
        to.add(count).write(0);
    }
    count
}

pub(crate) unsafe extern "C" fn proc_dointvec_minmax(
    _table: *const ctl_table,
    _write: c_int,
    _buffer: *mut c_void,
    _lenp: *mut usize,
    _ppos: *mut loff_t,
) -> c_int {
    0
}

static HEADER: AtomicHeader = AtomicHeader(ctl_table_header {
    path: core::ptr::null(),
});

struct AtomicHeader(ctl_table_header);

// SAFETY: It is never written.
unsafe impl Sync for AtomicHeader {}

pub(crate) unsafe extern "C" fn register_sysctl_sz(
    path: *const c_char,
    table: *const ctl_table,
    len: usize,
) -> *mut ctl_table_header {
    let path = unsafe { core::ffi::CStr::from_ptr(path.cast()) };
    let path = path.to_string_lossy().into_owned();
    TABLES.with_borrow_mut(|tables| tables.push((path, table.addr(), len)));
    (&raw const HEADER.0).cast_mut()
}

pub(crate) unsafe extern "C" fn unregister_sysctl_table(_header: *mut ctl_table_header) {}

/// Writes to a file under `/proc/sys`, of a table that is or was registered.
pub(crate) fn write_sysctl(path: &str, value: u32) {
    let (dir, name) = path.rsplit_once('/').expect("a directory and a name");
    let found = TABLES.with_borrow(|tables| {
        tables.iter().find_map(|(path, table, len)| {
            if path != dir {
                return None;
            }
            let table = core::ptr::with_exposed_provenance::<ctl_table>(*table);
            // SAFETY: Tables are statics.
            (0..*len).map(|i| unsafe { &*table.add(i) }).find(|entry| {
                // SAFETY: An entry has a name.
                let text = unsafe { core::ffi::CStr::from_ptr(entry.procname.cast()) };
                text.to_bytes() == name.as_bytes() && entry.maxlen == 4
            })
        })
    });
    let entry = found.unwrap_or_else(|| panic!("no file {path}"));
    // SAFETY: The value of a tunable, within its bounds, is an `int`.
    unsafe {
        let (min, max) = (*entry.extra1.cast::<u32>(), *entry.extra2.cast::<u32>());
        assert!((min..=max).contains(&value), "{path} = {value}");
        *entry.data.cast::<u32>() = value;
    }
}

/// A pointer to what is at an exposed address.
pub(super) fn ptr<T>(address: usize) -> *mut T {
    core::ptr::with_exposed_provenance_mut(address)
}
