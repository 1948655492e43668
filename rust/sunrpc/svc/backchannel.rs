// SPDX-License-Identifier: GPL-2.0

//! Reverse Calls (RFC 8167): the service calls its client back over the connection that the client
//! made.
//!
//! For that SUNRPC wants an `rpc_xprt` beside the `svc_xprt`, connected from the start. It is made
//! when a service has something to call, never connects again, and serves whoever calls over the
//! connection after that.
//!
//! The two may end in either order. The `svc_xprt` counts as a user of the reverse transport until
//! its own last user is gone. The reverse transport keeps no more than the memory of the
//! `svc_xprt`, or neither would ever end; to send a Call it takes a reference for as long as that
//! takes, if there is one to be had. SUNRPC closes the reverse transport when it closes the
//! connection: what waits for a Reply then is woken, and what is sent after that finds the
//! connection closing.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Full,
            Atomic, //
        },
        Arc, //
    },
    types::Opaque, //
};

use crate::{
    bindings,
    sunrpc::{
        addr::AddressStrings,
        credits::{
            Credits,
            Windowed, //
        },
        error::SendError,
        module_ref::ModuleRef,
        xdr::XdrBuf, //
    }, //
};

use super::{
    handle::SvcHandle,
    svc_xprt,
    transport::Connection, //
};

/// What reverse Calls on a connection are limited to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackchannelLimits {
    /// How many may be outstanding, if the client grants as much.
    pub(crate) calls: u32,
    /// Bytes of a Call.
    pub(crate) bytes: u32,
}

/// `struct rpc_xprt` with what belongs to it; C allocates it and counts references to it.
///
/// # Invariants
///
/// From `setup` until `destroy`, `forward` and `credits` are initialised, and `forward` names the
/// connection that the ops of the transport expect.
#[repr(C)]
pub(super) struct Backchannel {
    raw: Opaque<bindings::rpc_xprt>,
    pub(super) strings: UnsafeCell<AddressStrings>,
    pub(super) timeout: Opaque<bindings::rpc_timeout>,
    pub(super) forward: MaybeUninit<SvcHandle>,
    pub(super) credits: MaybeUninit<Arc<Credits<BackchannelXprt>>>,
}

/// A reverse transport, as its credits know it.
///
/// # Invariants
///
/// The memory of the transport stays until `destroy` has dropped the `Credits` that this is in.
pub(super) struct BackchannelXprt(pub(super) *mut bindings::rpc_xprt);

// SAFETY: What is done with the pointer is possible from any thread, and by the invariants it is
// valid.
unsafe impl Send for BackchannelXprt {}
// SAFETY: As above.
unsafe impl Sync for BackchannelXprt {}

// SAFETY: By the type's invariants.
unsafe impl Windowed for BackchannelXprt {
    fn raw(&self) -> *mut bindings::rpc_xprt {
        self.0
    }

    fn give_up(&self) {
        // SAFETY: A reverse transport, before `destroy` has stopped its credits.
        unsafe { close(self.0) };
    }
}

/// The connection that the transport belongs to.
///
/// # Safety
///
/// `raw` is a `Backchannel`, not destroyed within `'a`.
pub(super) unsafe fn forward<'a>(raw: *mut bindings::rpc_xprt) -> &'a SvcHandle {
    // SAFETY: By this function's contract and the type's invariants.
    unsafe { (*raw.cast::<Backchannel>()).forward.assume_init_ref() }
}

/// The credits of Calls that were given up.
///
/// # Safety
///
/// `raw` is a `Backchannel`, not destroyed within `'a`.
pub(super) unsafe fn credits<'a>(raw: *mut bindings::rpc_xprt) -> &'a Credits<BackchannelXprt> {
    // SAFETY: By this function's contract and the type's invariants.
    unsafe { (*raw.cast::<Backchannel>()).credits.assume_init_ref() }
}

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

/// Nothing outstanding will be answered: the connection is being closed, or SUNRPC has no use for
/// it any more. Then the client has to make another, for the sake of reverse Calls.
///
/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn close(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe {
        inject_disconnect(raw);
        bindings::xprt_disconnect_done(raw);
    }
}

/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn inject_disconnect(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe { forward(raw) }.deferred_close();
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
