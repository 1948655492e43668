// SPDX-License-Identifier: GPL-2.0

//! SUNRPC of the client: the wait queues in which tasks sleep, as in `net/sunrpc/sched.c`.

use kernel::ffi::c_int;
use kernel::sched;

use super::xprt::sunrpc;
use super::*;

/// `rpc_sleep_on()`: the task sleeps when its step is done.
pub(crate) unsafe fn sleep_on(queue: *mut rpc_wait_queue, task: *mut rpc_task) {
    unsafe {
        (*task).tk_waitqueue = queue;
        (*task).tk_runstate |= 1 << RPC_TASK_QUEUED;
        (*queue).qlen += 1;
    }
    let (queue, task) = (queue.expose_provenance(), task.expose_provenance());
    sunrpc(|s| s.waiting.entry(queue).or_default().push_back(task));
}

/// Wakes a task, if it is in this queue.
pub(crate) unsafe fn wake_task(
    queue: *mut rpc_wait_queue,
    task: *mut rpc_task,
    status: Option<c_int>,
) -> bool {
    if !sunrpc(|s| s.tasks.contains(&task.addr())) {
        sched::fail("a task is woken that has ended");
    }
    let found = sunrpc(|s| {
        let waiting = s.waiting.get_mut(&queue.addr());
        let at = waiting
            .as_ref()
            .and_then(|w| w.iter().position(|t| *t == task.addr()));
        at.and_then(|at| waiting.and_then(|w| w.remove(at)))
    });
    if found.is_none() {
        return false;
    }
    unsafe {
        (*queue).qlen -= 1;
        if let Some(status) = status {
            (*task).tk_status = status;
        }
        (*task).tk_runstate &= !(1 << RPC_TASK_QUEUED);
    }
    sched::wake(task.addr());
    true
}

pub(super) unsafe fn wake_all(queue: *mut rpc_wait_queue, status: c_int) {
    while let Some(task) = first(queue) {
        unsafe { wake_task(queue, ptr(task), Some(status)) };
    }
}

pub(super) fn first(queue: *mut rpc_wait_queue) -> Option<usize> {
    sunrpc(|s| {
        s.waiting
            .get(&queue.addr())
            .and_then(|w| w.front().copied())
    })
}
