// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client: the send lock of a transport, and its congestion window, which decides
//! whether a task gets that lock.

use core::ffi::c_void;

use kernel::ffi::c_int;
use kernel::sched;

use super::wait_queue::first;
use super::xprt::{lock_key, state, sunrpc, with_transport_lock, SCALE};
use super::*;

pub(crate) unsafe extern "C" fn xprt_reserve_xprt_cong(
    xprt: *mut rpc_xprt,
    task: *mut rpc_task,
) -> c_int {
    unsafe {
        if test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            if task == (*xprt).snd_task {
                return 1;
            }
        } else if test_bit(XPRT_WRITE_SPACE, state(xprt)) || test_bit(XPRT_CWND_WAIT, state(xprt)) {
            clear_locked(xprt);
        } else {
            (*xprt).snd_task = task;
            return 1;
        }
        (*task).tk_status = -(EAGAIN as c_int);
        sleep_on(&raw mut (*xprt).sending, task);
        0
    }
}

/// `xprt_clear_locked()`.
unsafe fn clear_locked(xprt: *mut rpc_xprt) {
    unsafe {
        (*xprt).snd_task = core::ptr::null_mut();
        if test_bit(XPRT_CLOSE_WAIT, state(xprt)) {
            autoclose(xprt);
        } else {
            test_and_change_bit(XPRT_LOCKED as usize, state(xprt), false);
            sched::wake(lock_key(xprt));
        }
    }
}

/// Queues `xprt_autoclose()`, which gets the send lock.
pub(super) fn autoclose(xprt: *mut rpc_xprt) {
    let address = xprt.expose_provenance();
    sched::spawn("xprt_autoclose", move || unsafe {
        let xprt = ptr::<rpc_xprt>(address);
        test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), false);
        (*(*xprt).ops).close.expect("an operation")(xprt);
        let release = (*(*xprt).ops).release_xprt.expect("an operation");
        with_transport_lock(xprt, || release(xprt, core::ptr::null_mut()));
    });
}

/// `__xprt_lock_write_next_cong()`.
pub(super) unsafe fn lock_write_next(xprt: *mut rpc_xprt) {
    unsafe {
        if test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            return;
        }
        let may =
            !test_bit(XPRT_WRITE_SPACE, state(xprt)) && !test_bit(XPRT_CWND_WAIT, state(xprt));
        let queue = &raw mut (*xprt).sending;
        match first(queue).filter(|_| may) {
            Some(task) => {
                (*xprt).snd_task = ptr(task);
                wake_task(queue, ptr(task), None);
            }
            None => clear_locked(xprt),
        }
    }
}

pub(crate) unsafe extern "C" fn xprt_release_xprt_cong(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe {
        if (*xprt).snd_task == task {
            clear_locked(xprt);
            lock_write_next(xprt);
        }
    }
}

/// `xprt_lock_write()`.
pub(crate) unsafe fn lock_write(xprt: *mut rpc_xprt, task: *mut rpc_task) -> bool {
    unsafe {
        if test_bit(XPRT_LOCKED, state(xprt)) && (*xprt).snd_task == task {
            return true;
        }
        let reserve = (*(*xprt).ops).reserve_xprt.expect("an operation");
        with_transport_lock(xprt, || reserve(xprt, task)) != 0
    }
}

/// `rpc_task_transmitted()`.
pub(super) unsafe fn is_transmitted(task: *mut rpc_task) -> bool {
    unsafe { (*task).tk_runstate & 1 << RPC_TASK_NEED_XMIT == 0 }
}

/// Other contexts run for a while, now and then.
unsafe fn lose_processor(task: *mut rpc_task) {
    if sched::one_in(16) {
        let later = sched::now() + sched::below(400_000) as u64;
        while unsafe { (*task).killed } == 0 && sched::wait_until(rpc_tasks::delay_key(task), later)
        {
        }
    }
}

/// `xprt_prepare_transmit()`.
pub(crate) unsafe fn prepare_transmit(xprt: *mut rpc_xprt, task: *mut rpc_task) -> bool {
    unsafe {
        // While the task has no processor, the holder of the lock may send the request, and then
        // pass the lock to this task.
        lose_processor(task);
        if lock_write(xprt, task) {
            return true;
        }
        lose_processor(task);
        if is_transmitted(task) {
            // The holder of the lock has transmitted the request meanwhile.
            wake_task(&raw mut (*xprt).sending, task, Some(0));
        }
        false
    }
}

/// `xprt_release_write()`.
pub(crate) unsafe fn release_write(xprt: *mut rpc_xprt, task: *mut rpc_task) {
    unsafe {
        if (*xprt).snd_task == task {
            let release = (*(*xprt).ops).release_xprt.expect("an operation");
            with_transport_lock(xprt, || release(xprt, task));
        }
    }
}

pub(crate) unsafe extern "C" fn xprt_lock_connect(
    xprt: *mut rpc_xprt,
    task: *mut rpc_task,
    cookie: *mut c_void,
) -> bool {
    unsafe {
        with_transport_lock(xprt, || {
            let locked = test_bit(XPRT_LOCKED, state(xprt)) && (*xprt).snd_task == task;
            if locked {
                test_and_change_bit(XPRT_SND_IS_COOKIE as usize, state(xprt), true);
                (*xprt).snd_task = cookie.cast();
            }
            locked
        })
    }
}

pub(crate) unsafe extern "C" fn xprt_unlock_connect(xprt: *mut rpc_xprt, cookie: *mut c_void) {
    unsafe {
        with_transport_lock(xprt, || {
            if (*xprt).snd_task != cookie.cast() || !test_bit(XPRT_LOCKED, state(xprt)) {
                return;
            }
            (*xprt).snd_task = core::ptr::null_mut();
            test_and_change_bit(XPRT_SND_IS_COOKIE as usize, state(xprt), false);
            (*(*xprt).ops).release_xprt.expect("an operation")(xprt, core::ptr::null_mut());
            xprt_connect::schedule_autodisconnect(xprt);
        });
        sched::wake(lock_key(xprt));
    }
}

pub(crate) unsafe extern "C" fn xprt_write_space(xprt: *mut rpc_xprt) -> bool {
    unsafe {
        if !test_bit(XPRT_WRITE_SPACE, state(xprt)) {
            return false;
        }
        with_transport_lock(xprt, || clear_write_space(xprt))
    }
}

pub(super) unsafe fn clear_write_space(xprt: *mut rpc_xprt) -> bool {
    unsafe {
        let was = test_and_change_bit(XPRT_WRITE_SPACE as usize, state(xprt), false);
        if was {
            lock_write_next(xprt);
        }
        was
    }
}

pub(crate) unsafe extern "C" fn xprt_wait_for_buffer_space(xprt: *mut rpc_xprt) {
    unsafe { test_and_change_bit(XPRT_WRITE_SPACE as usize, state(xprt), true) };
}

// The congestion window.

pub(crate) unsafe extern "C" fn xprt_request_get_cong(
    xprt: *mut rpc_xprt,
    rqst: *mut rpc_rqst,
) -> bool {
    unsafe {
        if (*rqst).rq_cong != 0 {
            return true;
        }
        with_transport_lock(xprt, || {
            if (*rqst).rq_cong != 0 {
                return true;
            }
            if (*xprt).cong >= (*xprt).cwnd {
                let head = sunrpc(|s| s.queues[&xprt.addr()].transmit.front().copied());
                let moves = head.is_some_and(|head| (*ptr::<rpc_rqst>(head)).rq_cong != 0);
                if !moves {
                    test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), true);
                }
                return false;
            }
            (*rqst).rq_cong = 1;
            (*xprt).cong += SCALE;
            credit_law::take(rqst);
            true
        })
    }
}

pub(crate) unsafe extern "C" fn xprt_release_rqst_cong(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if !(*xprt).transport_lock.is_held() {
            sched::fail("xprt_release_rqst_cong() needs the transport lock");
        }
        if (*rqst).rq_cong == 0 {
            return;
        }
        (*rqst).rq_cong = 0;
        match (*xprt).cong.checked_sub(SCALE) {
            Some(left) => (*xprt).cong = left,
            None => sched::fail("a credit is released that is not in use"),
        }
        if (*xprt).cong < (*xprt).cwnd {
            test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), false);
        }
        lock_write_next(xprt);
    }
}
