// SPDX-License-Identifier: GPL-2.0

//! The operations that SUNRPC calls on the transport of a connection's reverse Calls.

use core::{
    marker::PhantomData,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::Full,
        Atomic, //
    }, //
};

use crate::{
    bindings,
    sunrpc::{
        error::SendError,
        module_ref::ModuleRef,
        xdr::XdrBuf, //
    }, //
};

use super::{
    backchannel::{
        close,
        credits,
        forward,
        inject_disconnect,
        Backchannel, //
    },
    svc_xprt,
    transport::Connection, //
};

/// The operations of the reverse transports of connections `C`.
pub(super) struct BackchannelOps<C: Connection>(PhantomData<C>);

impl<C: Connection> BackchannelOps<C> {
    const TABLE: bindings::rpc_xprt_ops = bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        release_request: Some(release_request),
        wait_for_reply_request: Some(bindings::xprt_wait_for_reply_request_def),
        connect: Some(connect),
        buf_alloc: Some(buf_alloc),
        buf_free: Some(buf_free),
        send_request: Some(send_request::<C>),
        close: Some(close),
        destroy: Some(destroy),
        inject_disconnect: Some(inject_disconnect),
        ..pin_init::zeroed()
    };

    /// The table, for as long as the module is there.
    pub(super) fn table() -> &'static bindings::rpc_xprt_ops {
        const { &Self::TABLE }
    }
}

/// One allocation for the Call and the Reply. The Call is copied from there when it is sent, so
/// that it may be freed, or sent again, whenever SUNRPC likes.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, as are all of the following; the task has its
/// slot.
unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract. If there is no memory SUNRPC tries again in a while.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let len = (*rqst).rq_callsize.saturating_add((*rqst).rq_rcvsize);
        let flags = bindings::rpc_task_gfp_mask();
        let memory = bindings::rpcrdma_kmalloc_node(len, flags, bindings::NUMA_NO_NODE);
        if memory.is_null() {
            return -bindings::ENOMEM.cast_signed();
        }
        (*rqst).rq_buffer = memory;
        (*rqst).rq_rbuffer = memory.byte_add((*rqst).rq_callsize);
        0
    }
}

/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
    // SAFETY: From `buf_alloc`.
    unsafe { bindings::kfree((*(*task).tk_rqstp).rq_buffer) };
}

/// # Safety
///
/// See [`buf_alloc`]; the request is being sent, one at a time.
unsafe extern "C" fn send_request<C: Connection>(rqst: *mut bindings::rpc_rqst) -> c_int {
    // SAFETY: By this function's contract.
    match unsafe { transmit::<C>(rqst) } {
        Ok(()) => 0,
        Err(error) => {
            if error == SendError::NotConnected {
                // SUNRPC would try again and again on what it takes for connected.
                // SAFETY: By this function's contract.
                unsafe { close((*rqst).rq_xprt) };
            }
            error.to_errno()
        }
    }
}

/// # Safety
///
/// As for [`send_request`].
unsafe fn transmit<C: Connection>(rqst: *mut bindings::rpc_rqst) -> Result<(), SendError> {
    // SAFETY: By this function's contract; the task keeps its transport.
    unsafe {
        let raw = (*rqst).rq_xprt;
        // This may be the last to let go of the connection, which then ends here.
        let forward = forward(raw).get().ok_or(SendError::NotConnected)?;
        if forward.is_closing() {
            return Err(SendError::NotConnected);
        }
        if !bindings::xprt_request_get_cong(raw, rqst) {
            return Err(SendError::NoCredit);
        }
        (*rqst).rq_xtime = bindings::ktime_get();
        let message = XdrBuf::from_raw(&raw mut (*rqst).rq_snd_buf);
        let xid = u32::from_be((*rqst).rq_xid);
        // By the invariants of `Backchannel` it is a connection `C`.
        svc_xprt::data::<C>(forward.as_ptr()).call_back(xid, message)?;
        (*rqst).rq_xmit_bytes_sent += message.len() as usize;
    }
    Ok(())
}

/// Gives the credit of a Call back, unless the client still has that Call: an answer has done so
/// already.
///
/// # Safety
///
/// See [`buf_alloc`]; SUNRPC has taken the request out of its queues, and holds `transport_lock`.
unsafe extern "C" fn release_request(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let unanswered = (*rqst).rq_cong != 0 && (*rqst).rq_xmit_bytes_sent != 0;
        let xid = u32::from_be((*rqst).rq_xid);
        if unanswered && credits((*rqst).rq_xprt).keep(xid, (*rqst).rq_timeout) {
            (*rqst).rq_cong = 0;
        } else {
            bindings::xprt_release_rqst_cong(task);
        }
    }
}

/// There is nothing to connect: that is up to the client, and makes another transport.
///
/// # Safety
///
/// See [`buf_alloc`]; the send lock is held.
unsafe extern "C" fn connect(raw: *mut bindings::rpc_xprt, _task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract. With this error SUNRPC does not try again at once.
    unsafe {
        bindings::rpcrdma_xprt_clear_connecting(raw);
        bindings::xprt_wake_pending_tasks(raw, -bindings::EPIPE.cast_signed());
    }
}

/// # Safety
///
/// See [`buf_alloc`]; the last call for the transport.
pub(super) unsafe extern "C" fn destroy(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract. The references to connection and module are those of
    // `create`.
    unsafe {
        let forward = (*raw.cast::<Backchannel>()).forward.assume_init_read();
        // As a rule the `svc_xprt` is gone. It is there if SUNRPC could not complete what `setup`
        // had made: then nobody must find it. Those of our own who have found it are in an RCU
        // read-side section, which the memory outlives. SUNRPC itself looks at the pointer without
        // any lock where it closes the `svc_xprt`; that both happen at once is its to rule out.
        let place = Atomic::from_ptr(&raw mut (*forward.as_ptr()).xpt_bc_xprt);
        if place.cmpxchg(raw, ptr::null_mut(), Full).is_ok() {
            bindings::rpcrdma_synchronize_rcu();
        }
        credits(raw).stop();
        drop((*raw.cast::<Backchannel>()).credits.assume_init_read());
        bindings::xprt_free(raw);
        drop(forward);
        drop(ModuleRef::of_transport());
    }
}
