// SPDX-License-Identifier: GPL-2.0

//! Work items, as C has them.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "the names are those of C"
)]

use super::*;
use crate::ffi::{c_int, c_ulong, c_void};

/// The function of a work item.
pub type work_func_t = Option<unsafe extern "C" fn(work: *mut work_struct)>;

/// `struct work_struct`.
#[repr(C)]
pub struct work_struct {
    /// The function.
    pub func: work_func_t,
}

/// `struct timer_list`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct timer_list {
    /// When it expires, or has expired.
    pub expires: c_ulong,
    /// The function.
    pub function: Option<unsafe extern "C" fn(*mut timer_list)>,
}

// SAFETY: All zeroes are no function.
unsafe impl pin_init::Zeroable for timer_list {}

/// `struct delayed_work`.
#[repr(C)]
pub struct delayed_work {
    /// The work item.
    pub work: work_struct,
    /// Its timer.
    pub timer: timer_list,
}

/// `struct workqueue_struct`.
#[repr(C)]
pub struct workqueue_struct(u8);

/// A queue; all are one.
pub const system_long_wq: *mut workqueue_struct = core::ptr::null_mut();
/// A queue; all are one.
pub const system_dfl_long_wq: *mut workqueue_struct = core::ptr::null_mut();
/// Any CPU.
pub const wq_misc_consts_WORK_CPU_UNBOUND: u32 = 64;

fn key(work: *mut work_struct) -> usize {
    work.addr()
}

/// `queue_work()`.
///
/// # Safety
///
/// The work item stays until its function is called.
pub unsafe fn queue_work(_: *mut workqueue_struct, work: *mut work_struct) -> bool {
    let new = items(key(work), |state| {
        let new = !state.queued && state.timer.is_none();
        state.queued = true;
        new
    });
    if new {
        start(work);
    }
    sched::preempt();
    new
}

fn start(work: *mut work_struct) {
    sched::spawn("work item", move || {
        while items(key(work), |state| state.running) {
            sched::wait_on(key(work));
        }
        // Cancelled meanwhile.
        let queued = items(key(work), |state| {
            let queued = state.queued;
            state.queued = false;
            state.running = queued;
            queued
        });
        if queued {
            // SAFETY: The work item is initialized, and stays until its function is called.
            unsafe {
                let func = (*work).func.expect("a work item with a function");
                sched::module_code(|| func(work));
            }
            items(key(work), |state| state.running = false);
        }
        sched::wake(key(work));
    });
}

fn expire(work: *mut work_struct) {
    items(key(work), |state| {
        state.timer = None;
        state.queued = true;
    });
    start(work);
}

/// `queue_delayed_work_on()`.
///
/// # Safety
///
/// As for [`queue_work`].
pub unsafe fn queue_delayed_work_on(
    _cpu: c_int,
    queue: *mut workqueue_struct,
    delayed: *mut delayed_work,
    delay: c_ulong,
) -> bool {
    // SAFETY: The work item is there.
    let work = unsafe { &raw mut (*delayed).work };
    if delay == 0 {
        // SAFETY: By this function's contract.
        return unsafe { queue_work(queue, work) };
    }
    let new = items(key(work), |state| !state.queued && state.timer.is_none());
    if new {
        arm(work, delay);
    }
    sched::preempt();
    new
}

fn arm(work: *mut work_struct, delay: c_ulong) {
    let deadline = sched::now() + delay as u64 * 1_000_000;
    let timer = sched::at(deadline, move || expire(work));
    items(key(work), |state| state.timer = Some(timer));
}

/// `mod_delayed_work_on()`.
///
/// # Safety
///
/// As for [`queue_work`].
pub unsafe fn mod_delayed_work_on(
    cpu: c_int,
    queue: *mut workqueue_struct,
    delayed: *mut delayed_work,
    delay: c_ulong,
) -> bool {
    // SAFETY: The work item is there.
    let work = unsafe { &raw mut (*delayed).work };
    let timer = items(key(work), |state| state.timer.take());
    if let Some(timer) = timer {
        sched::cancel(timer);
    }
    if items(key(work), |state| state.queued) {
        return true;
    }
    // SAFETY: By this function's contract.
    unsafe { queue_delayed_work_on(cpu, queue, delayed, delay) };
    timer.is_some()
}

/// `cancel_delayed_work_sync()`.
///
/// # Safety
///
/// The work item is initialized.
pub unsafe fn cancel_delayed_work_sync(delayed: *mut delayed_work) -> bool {
    lockdep::might_sleep("cancel_delayed_work_sync()");
    // SAFETY: The work item is there.
    let work = unsafe { &raw mut (*delayed).work };
    // SAFETY: By this function's contract.
    unsafe { cancel_work_sync(work) }
}

/// `cancel_work_sync()`.
///
/// # Safety
///
/// The work item is initialized.
pub unsafe fn cancel_work_sync(work: *mut work_struct) -> bool {
    lockdep::might_sleep("cancel_work_sync()");
    let (timer, queued) = items(key(work), |state| {
        (state.timer.take(), core::mem::take(&mut state.queued))
    });
    if let Some(timer) = timer {
        sched::cancel(timer);
    }
    while items(key(work), |state| state.running) {
        sched::wait_on(key(work));
    }
    timer.is_some() || queued
}

/// `flush_delayed_work()`: what is queued is run at once.
///
/// # Safety
///
/// The work item is initialized.
pub unsafe fn flush_delayed_work(delayed: *mut delayed_work) -> bool {
    lockdep::might_sleep("flush_delayed_work()");
    // SAFETY: The work item is there.
    let work = unsafe { &raw mut (*delayed).work };
    let timer = items(key(work), |state| state.timer.take());
    if let Some(timer) = timer {
        sched::cancel(timer);
        expire(work);
    }
    let mut waited = false;
    while items(key(work), |state| state.running || state.queued) {
        waited = true;
        sched::wait_on(key(work));
    }
    waited
}

/// Initializes a delayed work item.
///
/// # Safety
///
/// `work` may be written.
pub unsafe fn rpcrdma_init_delayed_work(
    work: *mut delayed_work,
    func: work_func_t,
    _key: *mut c_void,
) {
    // SAFETY: By this function's contract.
    unsafe {
        (*work).work.func = func;
        (*work).timer = timer_list::default();
    }
}
