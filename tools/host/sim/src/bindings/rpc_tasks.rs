// SPDX-License-Identifier: GPL-2.0

//! RPC tasks of the client, as in `net/sunrpc/sched.c`: what they refer to, how they sleep, and how
//! they end.

use kernel::ffi::c_int;
use kernel::sched;

use super::*;

unsafe extern "C" fn decodes() {}

thread_local! {
    static FIXED: &'static Fixed = Box::leak(Box::new(Fixed::default()));
}

/// What each task refers to.
#[derive(Default)]
pub(super) struct Fixed {
    pub(super) client: core::cell::UnsafeCell<rpc_clnt>,
    program: core::cell::UnsafeCell<rpc_program>,
    pub(super) procedure: core::cell::UnsafeCell<rpc_procinfo>,
    /// Of a task that sends a Reply: none is decoded.
    pub(super) reply: core::cell::UnsafeCell<rpc_procinfo>,
    auth: core::cell::UnsafeCell<rpc_auth>,
    pub(super) cred: core::cell::UnsafeCell<rpc_cred>,
}

pub(super) fn fixed() -> &'static Fixed {
    let fixed = FIXED.with(|fixed| *fixed);
    unsafe {
        (*fixed.program.get()).name = c"sim".as_ptr().cast();
        (*fixed.client.get()).cl_program = fixed.program.get();
        (*fixed.client.get()).cl_vers = 1;
        (*fixed.procedure.get()).p_name = c"CALL".as_ptr().cast();
        (*fixed.procedure.get()).p_decode = Some(decodes);
        (*fixed.cred.get()).cr_auth = fixed.auth.get();
    }
    fixed
}

pub(super) fn known_task(task: Box<rpc_task>) -> *mut rpc_task {
    let task = Box::into_raw(task);
    xprt::sunrpc(|s| s.tasks.insert(task.addr()));
    task
}

pub(super) unsafe fn free_task(task: *mut rpc_task) {
    xprt::sunrpc(|s| s.tasks.remove(&task.addr()));
    drop(unsafe { Box::from_raw(task) });
}

/// `xprt_transmit()` with the send lock; 0 if `task` now waits for the lock.
pub(super) unsafe fn try_transmit(xprt: *mut rpc_xprt, task: *mut rpc_task) -> c_int {
    unsafe {
        if !xprt_lock::prepare_transmit(xprt, task) {
            return 0;
        }
        if !xprt_lock::is_transmitted(task) {
            (*task).tk_status = 0;
            rqst::transmit(task);
        }
        let status = (*task).tk_status;
        xprt_lock::release_write(xprt, task);
        status
    }
}

/// `xprt_request_need_retransmit()`.
pub(super) unsafe fn needs_retransmit(task: *mut rpc_task) -> bool {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        (*rqst).rq_connect_cookie != (*xprt).connect_cookie
            || !test_bit(XPRT_CONNECTED, &raw const (*xprt).state)
    }
}

/// `rpc_task_need_encode()`.
pub(super) unsafe fn needs_encode(task: *mut rpc_task) -> bool {
    unsafe {
        let flags = u32::from((*task).tk_flags);
        xprt_lock::is_transmitted(task)
            && (flags & RPC_TASK_SENT == 0
                || flags & RPC_TASK_NO_RETRANS_TIMEOUT == 0
                || needs_retransmit(task))
    }
}

/// `xprt_timer()`.
pub(super) unsafe fn xprt_timer(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        if (*task).tk_status != -(ETIMEDOUT as c_int) {
            return;
        }
        if (*rqst).rq_reply_bytes_recvd > 0 {
            (*task).tk_status = 0;
        } else if let Some(timer) = (*(*xprt).ops).timer {
            let is_old = needs_retransmit(task);
            xprt_connect::without_disconnect(is_old, || timer(xprt, task));
        }
    }
}

/// A task that is queued sleeps. SUNRPC sets no timer for a slot, nor for the send lock unless the
/// task is soft.
pub(super) unsafe fn sleep_if_queued(task: *mut rpc_task) {
    unsafe {
        while (*task).tk_runstate & 1 << RPC_TASK_QUEUED != 0 {
            let (xprt, queue) = ((*task).tk_xprt, (*task).tk_waitqueue);
            let soft = u32::from((*task).tk_flags) & RPC_TASK_SOFT != 0;
            let timed =
                queue == &raw mut (*xprt).pending || soft && queue == &raw mut (*xprt).sending;
            let deadline = (*task).deadline;
            // `__rpc_queue_timer_fn()` removes the task from the queue, and the task runs later.
            let timer = (deadline != 0 && timed).then(|| {
                sched::at(deadline, move || {
                    wait_queue::wake_task(queue, task, Some(-(ETIMEDOUT as c_int)));
                })
            });
            sched::wait_on(task.addr());
            timer.map(sched::cancel);
        }
    }
}

pub(super) fn delay_key(task: *mut rpc_task) -> usize {
    (1 << 44) ^ task.addr()
}

/// `rpc_delay()`.
pub(super) unsafe fn delay(task: *mut rpc_task) {
    let later = sched::now() + 250_000_000;
    while unsafe { (*task).killed } == 0 && sched::wait_until(delay_key(task), later) {}
}

/// `xprt_release()`.
pub(super) unsafe fn release(task: *mut rpc_task) {
    unsafe {
        let rqst = (*task).tk_rqstp;
        let xprt = (*rqst).rq_xprt;
        let ops = (*xprt).ops;
        rqst::dequeue(task);
        (*xprt).transport_lock.take(true);
        (*ops).release_xprt.expect("an operation")(xprt, task);
        (*ops).release_request.expect("an operation")(task);
        xprt_connect::schedule_autodisconnect(xprt);
        (*xprt).transport_lock.release();
        if !(*rqst).rq_buffer.is_null() {
            (*ops).buf_free.expect("an operation")(task);
        }
        (*task).tk_rqstp = core::ptr::null_mut();
        if (*rqst).rq_bc_pa_state & 1 << RPC_BC_PA_IN_USE == 0 {
            (*ops).free_slot.expect("an operation")(xprt, rqst);
        } else {
            (*ops).bc_free_rqst.expect("an operation")(rqst);
        }
    }
}
