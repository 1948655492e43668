// SPDX-License-Identifier: GPL-2.0

//! The operations on a connection: making it, its end, and that of the transport.

use core::ffi::c_void;

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::memalloc::NoIo,
    sunrpc::locks,
    trace::trace, //
};

use super::{
    backoff::FIRST_BACKOFF_MS,
    handle::peer_of,
    reclaim,
    rpc_xprt::Xprt,
    transport::Transport, //
};

/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, as are all of the following; the send lock is
/// held.
pub(super) unsafe extern "C" fn close<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe {
        Xprt::<T>::from_raw(raw).live().disconnect(raw);
        (*raw).connect_cookie = (*raw).connect_cookie.wrapping_add(1);
        bindings::xprt_disconnect_done(raw);
    }
}

/// A Reply is overdue. RDMA connections have no keep-alive, so only another connection tells.
///
/// # Safety
///
/// See [`close`].
pub(super) unsafe extern "C" fn timer(
    raw: *mut bindings::rpc_xprt,
    _task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract.
    unsafe { bindings::xprt_force_disconnect(raw) };
}

/// # Safety
///
/// See [`close`]; one at a time.
pub(super) unsafe extern "C" fn set_port<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    port: c_ushort,
) {
    // SAFETY: By this function's contract. In both families' addresses the port is the second half
    // word, in network order.
    unsafe {
        let at = (&raw mut (*raw).addr).cast::<u16>().add(1);
        at.write(port.to_be());
        (*Xprt::<T>::from_raw(raw).header.strings.get()).set_port(port);
    }
}

/// Has the connect worker make a connection: at once, or after a pause if the last one was good for
/// nothing. `task` waits for it already.
///
/// # Safety
///
/// See [`close`]; the send lock is held by `task`.
pub(super) unsafe extern "C" fn connect<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract. The send lock goes to the worker, which gives it back,
    // and which `destroy` cancels; or it is given back here.
    unsafe {
        if !bindings::xprt_lock_connect(raw, task, cookie(raw)) {
            return;
        }
        let live = Xprt::<T>::from_raw(raw).live();
        let backoff = live.backoff.left();
        trace!(xprtrdma_op_connect(peer_of(raw), backoff));
        if backoff > 0 {
            live.backoff.wait(backoff);
            bindings::rpcrdma_xprt_clear_connecting(raw);
            bindings::xprt_unlock_connect(raw, cookie(raw));
            return;
        }
        live.connect_worker.queue(0);
    }
}

/// What names the connect worker as the holder of the send lock.
fn cookie(raw: *mut bindings::rpc_xprt) -> *mut c_void {
    raw.cast()
}

/// # Safety
///
/// Called by the workqueue for the `connect_worker` of a transport, which holds the send lock.
pub(super) unsafe extern "C" fn connect_worker<T: Transport>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract. `destroy` waits for this worker.
    let (live, raw) = unsafe { Xprt::<T>::of_connect_worker(work) };
    // SAFETY: Alive, as above.
    let _scope = unsafe { reclaim::Scope::of(raw) };
    live.backoff.stop();
    // SAFETY: The send lock is held. There is no connection: SUNRPC has had the last one closed.
    unsafe { live.disconnect(raw) };
    let connected = live.transport.connect();
    // SAFETY: The send lock is held until it is given back below.
    unsafe {
        bindings::rpcrdma_xprt_clear_connecting(raw);
        let status = match connected {
            Ok(connection) => {
                live.connected(connection);
                let now = bindings::rpcrdma_jiffies();
                (*raw).connect_cookie = (*raw).connect_cookie.wrapping_add(1);
                let stat = &raw mut (*raw).stat;
                (*stat).connect_count = (*stat).connect_count.wrapping_add(1);
                (*stat).connect_time = (*stat)
                    .connect_time
                    .wrapping_add(now.wrapping_sub((*stat).connect_start));
                live.backoff.begin();
                bindings::set_bit(bindings::XPRT_CONNECTED as usize, &raw mut (*raw).state);
                trace!(xprtrdma_connect(peer_of(raw), 0, 1));
                -bindings::EAGAIN.cast_signed()
            }
            Err(error) => {
                live.backoff.begin();
                let errno = error.to_errno();
                trace!(xprtrdma_connect(peer_of(raw), errno, errno));
                errno
            }
        };
        // Nobody waits for a Reply of this connection before the lock is given back.
        bindings::xprt_wake_pending_tasks(raw, status);
        bindings::xprt_unlock_connect(raw, cookie(raw));
    }
}

/// # Safety
///
/// The last call for a transport.
pub(super) unsafe extern "C" fn destroy<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract; nobody else uses the transport, which is as good as the
    // send lock.
    unsafe {
        let live = Xprt::<T>::from_raw(raw).live();
        live.connect_worker.cancel_sync();
        live.backoff.stop();
        live.credits.stop();
        // That may take memory, and the locks of a connection are of the kind that those take who
        // free some.
        let noio = NoIo::begin();
        live.disconnect(raw);
        drop(noio);
        Xprt::<T>::finish(raw.cast());
    }
}

/// # Safety
///
/// See [`close`].
pub(super) unsafe extern "C" fn set_connect_timeout<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    connect: c_ulong,
    reconnect: c_ulong,
) {
    // SAFETY: By this function's contract; these are `transport_lock`'s.
    unsafe {
        trace!(xprtrdma_op_set_cto(peer_of(raw), connect, reconnect));
        let _locked = locks::transport(raw);
        if connect < (*raw).connect_timeout {
            let each = connect.max(msecs_to_jiffies(2 * FIRST_BACKOFF_MS));
            let timeout = Xprt::<T>::from_raw(raw).header.timeout.get();
            (*timeout).to_initval = each;
            (*timeout).to_maxval = each;
            (*raw).connect_timeout = connect;
        }
        if reconnect < (*raw).max_reconnect_timeout {
            (*raw).max_reconnect_timeout = reconnect;
        }
    }
}

/// # Safety
///
/// See [`close`]; in a task whose Call has been sent, which need not have the send lock any more.
pub(super) unsafe extern "C" fn inject_disconnect<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    live.with_link(|connection| {
        if let Some(connection) = connection {
            // SAFETY: The transport is alive.
            trace!(xprtrdma_op_inject_dsc(unsafe { peer_of(raw) }));
            T::inject_disconnect(connection);
        }
    });
}
