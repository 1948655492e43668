// SPDX-License-Identifier: GPL-2.0

//! The operations that connect and disconnect a client's transport, and destroy it.
//!
//! C: transport.c, xprt_rdma_connect(), xprt_rdma_connect_worker(), xprt_rdma_close()
//! C: transport.c, xprt_rdma_destroy(), xprt_rdma_inject_disconnect(), xprt_rdma_set_port()
//! C: transport.c, xprt_rdma_timer(), xprt_rdma_set_connect_timeout()

use core::ffi::c_void;

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::{
        close_reason::CloseReason,
        memalloc::NoIo, //
    },
    sunrpc::{
        rpc_rqst::RqstRef,
        xprt_base::XprtBase,
        xprt_ref::XprtRef, //
    },
    trace::trace, //
};

use super::{
    backoff::FIRST_BACKOFF_MS,
    connect_error::PeerState,
    handle::Header,
    reclaim::ReclaimScope,
    rpc_xprt::{
        SendLock,
        Xprt,
        XprtState, //
    },
    transport::Transport, //
};

/// `close`: ends the connection.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, as all of the following, with the send lock
/// held.
pub(super) unsafe extern "C" fn close<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport is alive and the send lock is held.
    unsafe { SendLock::<T>::assume(XprtState::from_raw(raw)) }.close();
}

/// `timer`: handles an overdue Reply. RDMA connections have no keep-alive, so only a new connection
/// shows whether the peer is alive. If the [turn](super::last_answer) of the Call may still come,
/// the task waits for another timeout instead, without retransmission.
///
/// Of several overdue tasks, the first makes SUNRPC connect again. The others may get here after
/// that. Their Calls were not sent on the new connection.
///
/// # Safety
///
/// As for [`close`], without the send lock. `task` is running, and has a request of `raw`.
pub(super) unsafe extern "C" fn timer<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract the transport is alive and one of this module, and the
    // task has a request, which stays until the task goes on.
    let (state, rqst) = unsafe { (XprtState::<T>::from_raw(raw), RqstRef::of_task(task)) };
    let xprt = state.xprt();
    if rqst.has_lost_connection() {
        return;
    }
    // SAFETY: As above.
    let last_answer = unsafe { Header::last_answer(xprt) };
    // The peer may never answer the Calls that are overdue and have no task any more.
    let outstanding = xprt.lock().outstanding();
    let outstanding = outstanding.saturating_sub(state.credits.overdue());
    let timeout = rqst.timeout();
    if !(rqst.is_sent_once() && last_answer.may_come(rqst.number(), outstanding, timeout)) {
        // SAFETY: As above.
        unsafe { Header::closed(xprt) }.note(CloseReason::ReplyOverdue);
        xprt.force_disconnect();
    }
}

/// `set_port`: the port that rpcbind has returned.
///
/// # Safety
///
/// As for [`close`], without the send lock. SUNRPC serialises calls for `raw`.
pub(super) unsafe extern "C" fn set_port(raw: *mut bindings::rpc_xprt, port: c_ushort) {
    // SAFETY: By this function's contract the transport is alive, and calls are serialised.
    unsafe { XprtBase::set_port(raw, port) };
}

/// `connect`: queues the connect worker, or wakes the tasks in `pending` after the reconnect delay.
/// `task` already sleeps there.
///
/// # Safety
///
/// As for [`close`]; `task` holds the send lock.
pub(super) unsafe extern "C" fn connect<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract `task` holds the send lock. The function passes it on to
    // `owner(raw)`.
    if !unsafe { bindings::xprt_lock_connect(raw, task, owner(raw)) } {
        return;
    }
    // SAFETY: By this function's contract the transport is alive. The send lock belongs to this
    // function until it passes it on or releases it.
    let (state, delay) = unsafe {
        let state = XprtState::<T>::from_raw(raw);
        (state, state.backoff.remaining())
    };
    trace!(xprtrdma_op_connect(state.xprt().peer(), delay));
    // SAFETY: The send lock is held, and there is no connection, since SUNRPC connects. `destroy`
    // cancels both work items before it frees the transport. The connect worker gets the send lock
    // from here, or it is released, on behalf of its owner.
    unsafe {
        if delay == 0 {
            state.connect_worker.queue(0);
        } else {
            state.backoff.wake_after(delay);
            state.xprt().clear_connecting();
            bindings::xprt_unlock_connect(raw, owner(raw));
        }
    }
}

/// Identifies the connect worker as the owner of the send lock.
fn owner(raw: *mut bindings::rpc_xprt) -> *mut c_void {
    raw.cast()
}

/// The function of the connect worker.
///
/// # Safety
///
/// The workqueue calls this for the `connect_worker` of a transport of `T`. [`connect`] has passed
/// the send lock to it.
pub(super) unsafe extern "C" fn connect_worker<T: Transport>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract. `destroy` waits for this worker. `connect` passed the
    // send lock to it, and it releases the lock at its end.
    let mut lock = unsafe { SendLock::<T>::assume(XprtState::of_connect_worker(work)) };
    let state = lock.state();
    let xprt = state.xprt();
    let _scope = ReclaimScope::new(xprt);
    state.backoff.stop();
    // SUNRPC closes a lost connection before it connects, so there is usually none.
    lock.disconnect();
    let connected = state.transport.connect();
    // A task that a failed attempt wakes has SUNRPC close the connection of its cookie. The task
    // may be late, and must not close the next connection.
    lock.change_cookie();
    xprt.clear_connecting();
    let status = match connected {
        Ok(connection) => {
            lock.store(connection);
            lock.count_connect();
            lock.begin_backoff(PeerState::Unknown);
            xprt.flags().set::<{ bindings::XPRT_CONNECTED }>();
            trace!(xprtrdma_connect(xprt.peer(), 0, 1));
            EAGAIN.to_errno()
        }
        Err(error) => {
            lock.begin_backoff(error.peer_state());
            let errno = error.to_errno();
            trace!(xprtrdma_connect(xprt.peer(), errno, errno));
            errno
        }
    };
    // No task waits for a Reply on the new connection before the send lock is released, so this
    // wakes only tasks that wait for the connection.
    xprt.wake_pending(status);
    // SAFETY: The transport is alive, and the lock belongs to this worker, its `owner`.
    unsafe { bindings::xprt_unlock_connect(xprt.raw(), owner(xprt.raw())) };
}

/// `destroy`: frees the transport. Its last reference is gone.
///
/// # Safety
///
/// SUNRPC calls this once, as the last operation on the transport.
pub(super) unsafe extern "C" fn destroy<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport was not destroyed before. SUNRPC's
    // `xprt_destroy()` has taken the send lock.
    let mut lock = unsafe { SendLock::<T>::assume(XprtState::from_raw(raw)) };
    let state = lock.state();
    state.remove_file();
    state.connect_worker.cancel_sync();
    state.backoff.stop();
    state.credits.stop();
    // Disconnecting may allocate, and reclaim may take the locks of a connection.
    let noio = NoIo::begin();
    lock.disconnect();
    drop(noio);
    // SAFETY: By this function's contract no other thread uses the transport, and neither `state`
    // nor `lock` is used any more.
    unsafe { Xprt::<T>::destroy(raw) };
}

/// `set_connect_timeout`: shortens the timeouts of RPCs and connections.
///
/// # Safety
///
/// As for [`close`], without the send lock.
pub(super) unsafe extern "C" fn set_connect_timeout(
    raw: *mut bindings::rpc_xprt,
    connect: c_ulong,
    reconnect: c_ulong,
) {
    // SAFETY: By this function's contract the transport is alive.
    let xprt = unsafe { XprtRef::new(raw) };
    trace!(xprtrdma_op_set_cto(xprt.peer(), connect, reconnect));
    let least = msecs_to_jiffies(2 * FIRST_BACKOFF_MS);
    xprt.lock().shorten_timeouts(connect, reconnect, least);
}

/// `inject_disconnect`: ends the connection as if the network had failed.
///
/// # Safety
///
/// As for [`close`], in a task whose Call was sent, with or without the send lock.
pub(super) unsafe extern "C" fn inject_disconnect<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the transport is alive.
    let state = unsafe { XprtState::<T>::from_raw(raw) };
    state.with_link(|connection| {
        if let Some(connection) = connection {
            trace!(xprtrdma_op_inject_dsc(state.xprt().peer()));
            T::inject_disconnect(connection);
        }
    });
}
