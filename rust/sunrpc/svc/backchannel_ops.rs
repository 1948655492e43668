// SPDX-License-Identifier: GPL-2.0

//! The table of operations that SUNRPC calls on a connection's backchannel transport. They run in
//! `rpciod`, and `destroy` in a system worker.
//!
//! C: svc_rdma_backchannel.c, rpcrdma_bc_send_request(), xprt_rdma_bc_send_request()
//! C: svc_rdma_backchannel.c, xprt_rdma_bc_allocate(), xprt_rdma_bc_free(), xprt_rdma_bc_put()

use core::{
    marker::PhantomData,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::atomic::ordering::Full, //
};

use crate::{
    bindings,
    sunrpc::{
        error::SendError,
        locked_rqst::{
            Releasing,
            Transmission, //
        },
        send_lock,
        xprt_base,
        xprt_ref::XprtRef, //
    }, //
};

use super::{
    backchannel::{
        close,
        inject_disconnect,
        Backchannel,
        Private, //
    },
    svc_xprt,
    transport::Connection, //
};

/// The table for the backchannel transports of connections `C`.
pub(super) struct BackchannelOps<C: Connection>(PhantomData<C>);

impl<C: Connection> BackchannelOps<C> {
    /// The table. It stays while the module is loaded.
    pub(super) const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        release_request: Some(release_request),
        wait_for_reply_request: Some(send_lock::wait_for_reply),
        connect: Some(connect),
        buf_alloc: Some(buf_alloc),
        buf_free: Some(buf_free),
        send_request: Some(send_request::<C>),
        close: Some(close),
        destroy: Some(destroy),
        inject_disconnect: Some(inject_disconnect),
        ..pin_init::zeroed()
    };
}

/// `buf_alloc`: allocates the buffers for a Call and its Reply. `send_request` copies the Call, so
/// SUNRPC may free the buffers, or send the Call again, at any time.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, as all of the following; the task has its
/// request.
unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract the request is the task's. `kmalloc_node()` has no
    // preconditions. `rq_rbuffer` is in the memory, which is longer than the Call.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let len = (*rqst).rq_callsize.saturating_add((*rqst).rq_rcvsize);
        let flags = bindings::rpc_task_gfp_mask();
        let memory = bindings::rpcrdma_kmalloc_node(len, flags, bindings::NUMA_NO_NODE);
        if memory.is_null() {
            // SUNRPC tries again after a delay.
            return ENOMEM.to_errno();
        }
        (*rqst).rq_buffer = memory;
        (*rqst).rq_rbuffer = memory.byte_add((*rqst).rq_callsize);
    }
    0
}

/// `buf_free`: frees the buffers of a request.
///
/// # Safety
///
/// As for [`buf_alloc`], which allocated the buffers.
unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
    // SAFETY: `buf_alloc` allocated the memory. SUNRPC does not use it any more.
    unsafe { bindings::kfree((*(*task).tk_rqstp).rq_buffer) };
}

/// `send_request`: sends a Call.
///
/// # Safety
///
/// As for [`buf_alloc`]; the send lock is held and the request is pinned.
unsafe extern "C" fn send_request<C: Connection>(rqst: *mut bindings::rpc_rqst) -> c_int {
    // SAFETY: By this function's contract. The transport of the request, which the request keeps,
    // is a backchannel of a connection `C`.
    let (rqst, connection) = unsafe {
        let rqst = Transmission::new(rqst);
        let private = Private::from_raw(rqst.xprt().raw());
        // INVARIANT: I1 of `Of`: the operations are those for connections `C`.
        (rqst, Of::<C>(private, PhantomData))
    };
    match transmit(rqst, &connection) {
        Ok(()) => 0,
        Err(error) => {
            if error == SendError::NotConnected {
                // SUNRPC considers the transport connected, and would retry for ever.
                connection.0.close();
            }
            error.to_errno()
        }
    }
}

/// The private part of the backchannel of a connection `C`.
///
/// # Invariants
///
/// - I1: The connection is a `C`.
struct Of<'a, C: Connection>(&'a Private, PhantomData<C>);

fn transmit<C: Connection>(
    rqst: Transmission<'_>,
    backchannel: &Of<'_, C>,
) -> Result<(), SendError> {
    // If the reference is the last one, its drop at the end frees the connection.
    let connection = backchannel
        .0
        .connection
        .get()
        .ok_or(SendError::NotConnected)?;
    if connection.is_closing() {
        return Err(SendError::NotConnected);
    }
    // SAFETY: By I1 of `Of` the connection is a `C`, to which `connection` is a reference.
    let data = unsafe { svc_xprt::data::<C>(connection.raw()) };
    rqst.begin()?;
    rqst.count();
    let sent = data.send_backchannel(rqst.xid(), rqst.message());
    if sent.is_err() {
        rqst.uncount();
    }
    match sent {
        // nfsd makes a Call that has failed again at once, as long as the backchannel is up. Have
        // this Call wait for a Reply instead, until it times out. That delays no other Call.
        Err(SendError::TooBig) => {
            rqst.return_credit();
            Ok(())
        }
        sent => sent,
    }
}

/// `release_request`: releases the credit of a request, unless the client still processes the Call.
/// If the client has replied, the request has no credit, or one for a second transmission that has
/// failed.
///
/// # Safety
///
/// As for [`buf_alloc`]; SUNRPC has removed the request from its queues, and `transport_lock` is
/// held.
unsafe extern "C" fn release_request(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract. The transport of the request is a backchannel, which the
    // request keeps. `destroy` stops the credits.
    unsafe {
        let rqst = Releasing::of_task(task);
        Private::from_raw(rqst.xprt().raw())
            .credits
            .release_request(rqst, rqst.was_sent());
    }
}

/// `connect`: fails. Only the client can connect, and its next connection has another transport.
///
/// # Safety
///
/// As for [`buf_alloc`]; the send lock is held.
unsafe extern "C" fn connect(raw: *mut bindings::rpc_xprt, _task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract the transport is alive.
    let xprt = unsafe { XprtRef::new(raw) };
    xprt.clear_connecting();
    // With `EPIPE`, SUNRPC does not try again at once.
    xprt.wake_pending(EPIPE.to_errno());
}

/// `destroy`: frees the transport. Its last reference is gone.
///
/// # Safety
///
/// As for [`buf_alloc`]; the last operation on the transport.
pub(super) unsafe extern "C" fn destroy(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract the private part was not taken before.
    let private = unsafe { Private::from_raw(raw) };
    // Usually the `svc_xprt` has been freed, and has put its reference to this transport. If SUNRPC
    // failed after `setup`, the pointer is still there: clear it, and wait for the threads of this
    // module that have read it in an RCU read-side section. SUNRPC reads the pointer without
    // protection when it closes the `svc_xprt`, and must not destroy this transport meanwhile.
    if private.link().cmpxchg(raw, ptr::null_mut(), Full).is_ok() {
        // SAFETY: `destroy` may sleep.
        unsafe { bindings::rpcrdma_synchronize_rcu() };
    }
    // The timer uses the private part, so it must end first.
    private.credits.stop();
    // SAFETY: No other thread uses the transport, and `private` is not used any more.
    drop(unsafe { Backchannel::take(raw) });
    // SAFETY: `into_raw` gave the transport to SUNRPC, which has no more use for it.
    unsafe { xprt_base::free(raw) };
}
