// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client: transports are connected and disconnected.

use core::cell::RefCell;
use std::collections::BTreeSet;

use kernel::ffi::{c_int, c_ulong};
use kernel::sched;

use super::wait_queue::wake_all;
use super::xprt::{state, with_transport_lock};
use super::xprt_lock::{autoclose, clear_write_space, lock_write_next};
use super::*;

pub(crate) unsafe extern "C" fn xprt_wake_pending_tasks(xprt: *mut rpc_xprt, status: c_int) {
    unsafe { wake_all(&raw mut (*xprt).pending, status) };
}

pub(crate) unsafe extern "C" fn xprt_disconnect_done(xprt: *mut rpc_xprt) {
    unsafe {
        with_transport_lock(xprt, || {
            test_and_change_bit(XPRT_CONNECTED as usize, state(xprt), false);
            clear_write_space(xprt);
            if test_and_change_bit(XPRT_CWND_WAIT as usize, state(xprt), false) {
                lock_write_next(xprt);
            }
            xprt_wake_pending_tasks(xprt, -(ENOTCONN as c_int));
        });
    }
}

thread_local! {
    /// Contexts that must not end a connection.
    static BARRED: RefCell<BTreeSet<usize>> = RefCell::default();
}

/// Begins a run.
pub(crate) fn begin() {
    BARRED.take();
}

/// Calls `f`, which must not end a connection if the Call is an old one: it was sent on an earlier
/// connection.
pub(super) fn without_disconnect(is_old: bool, f: impl FnOnce()) {
    let context = sched::current().filter(|_| is_old);
    BARRED.with_borrow_mut(|barred| barred.extend(context));
    f();
    BARRED.with_borrow_mut(|barred| context.map(|context| barred.remove(&context)));
}

pub(crate) unsafe extern "C" fn xprt_force_disconnect(xprt: *mut rpc_xprt) {
    let context = sched::current();
    if context.is_some_and(|context| BARRED.with_borrow(|barred| barred.contains(&context))) {
        sched::fail("a Call ends a connection on which it was not sent");
    }
    unsafe {
        with_transport_lock(xprt, || schedule_autoclose(xprt));
    }
}

/// `xprt_schedule_autoclose_locked()`.
unsafe fn schedule_autoclose(xprt: *mut rpc_xprt) {
    unsafe {
        if test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), true) {
            return;
        }
        if !test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            autoclose(xprt);
        } else if !(*xprt).snd_task.is_null() && !test_bit(XPRT_SND_IS_COOKIE, state(xprt)) {
            let status = Some(-(ENOTCONN as c_int));
            wake_task(&raw mut (*xprt).pending, (*xprt).snd_task, status);
        }
    }
}

/// `xprt_conditional_disconnect()`.
pub(super) unsafe fn conditional_disconnect(xprt: *mut rpc_xprt, cookie: u32) {
    unsafe {
        with_transport_lock(xprt, || {
            if cookie == (*xprt).connect_cookie {
                schedule_autoclose(xprt);
            }
        });
    }
}

/// `xprt_schedule_autodisconnect()`. The timer expires only if a play calls [`autodisconnect`].
pub(super) unsafe fn schedule_autodisconnect(xprt: *mut rpc_xprt) {
    unsafe {
        (*xprt).last_used = rpcrdma_jiffies();
        if (*xprt).recv_queue.rb_node.is_null() && (*xprt).idle_timeout != 0 {
            (*xprt).timer.expires = (*xprt).last_used.wrapping_add((*xprt).idle_timeout);
        }
    }
}

/// `xprt_init_autodisconnect()`: the idle timer has expired.
pub(crate) unsafe fn autodisconnect(xprt: *mut rpc_xprt) {
    unsafe {
        if !(*xprt).recv_queue.rb_node.is_null() {
            return;
        }
        (*xprt).last_used = rpcrdma_jiffies();
        if !test_and_change_bit(XPRT_LOCKED as usize, state(xprt), true) {
            autoclose(xprt);
        }
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_xprt_clear_connecting(xprt: *mut rpc_xprt) {
    unsafe { test_and_change_bit(XPRT_CONNECTING as usize, state(xprt), false) };
}

pub(crate) unsafe extern "C" fn xprt_reconnect_backoff(xprt: *mut rpc_xprt, least: c_ulong) {
    unsafe {
        let twice = (*xprt).reestablish_timeout << 1;
        (*xprt).reestablish_timeout = twice.min((*xprt).max_reconnect_timeout).max(least);
    }
}

/// `xprt_connect()`.
pub(crate) unsafe fn connect_task(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if !xprt_lock::prepare_transmit(xprt, task) {
            return;
        }
        if test_and_change_bit(XPRT_CLOSE_WAIT as usize, state(xprt), false) {
            (*(*xprt).ops).close.expect("an operation")(xprt);
        }
        if !test_bit(XPRT_CONNECTED, state(xprt)) {
            (*rqst).rq_connect_cookie = (*xprt).connect_cookie;
            sleep_on(&raw mut (*xprt).pending, task);
            if test_and_change_bit(XPRT_CONNECTING as usize, state(xprt), true) {
                // The worker that connects has the send lock: this cannot be.
                sched::fail("two tasks connect a transport");
            }
            if test_bit(XPRT_CONNECTED, state(xprt)) {
                rpcrdma_xprt_clear_connecting(xprt);
                wake_task(&raw mut (*xprt).pending, task, Some(0));
            } else {
                (*xprt).stat.connect_start = rpcrdma_jiffies();
                (*(*xprt).ops).connect.expect("an operation")(xprt, task);
            }
        }
        release_write(xprt, task);
    }
}
