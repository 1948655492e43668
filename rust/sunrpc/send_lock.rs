// SPDX-License-Identifier: GPL-2.0

//! The send lock of a transport, while a task waits for its Reply.
//!
//! SUNRPC lets the holder of the lock send the Calls of other tasks, too. If that happens while
//! such a task joins the queue for the lock, SUNRPC may pass the lock to this task, which has
//! nothing to send any more. The task would keep the lock until its Reply arrives. Until then no
//! other Call is sent, and a lost connection is not closed, since closing takes the lock: SUNRPC
//! wakes the holder then, but only if the holder sleeps already.

use crate::bindings;

use super::{
    c_ref::read_once,
    rpc_rqst::RqstRef, //
};

/// `wait_for_reply_request`: releases the send lock if the task has it, and puts the task to sleep.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, for a task whose Call was sent, with
/// `queue_lock` held.
pub(super) unsafe extern "C" fn wait_for_reply(task: *mut bindings::rpc_task) {
    // SAFETY: The task has a request, by this function's contract.
    let xprt = unsafe { RqstRef::of_task(task) }.xprt();
    // Only the task itself gives the lock away.
    if read_once!(xprt, snd_task) == task {
        let _locked = xprt.lock();
        // SAFETY: `transport_lock` is held, as the function requires. The task runs here, and does
        // not transmit.
        unsafe { bindings::xprt_release_xprt_cong(xprt.raw(), task) };
    }
    // SAFETY: By this function's contract, which is that of the function called.
    unsafe { bindings::xprt_wait_for_reply_request_def(task) };
}
