// SPDX-License-Identifier: GPL-2.0

//! An `rpc_rqst` that stays in place: a Call of a client, or a backchannel Call of a server.
//!
//! C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use crate::{
    bindings,
    trace::Task, //
};

use super::{
    error::SendError,
    xdr::XdrBuf,
    xprt_ref::XprtRef, //
};

/// A request.
///
/// # Invariants
///
/// - I1: The request, its task and its transport are not freed within `'a`, because the caller is
///   the task, has pinned the request, or holds `queue_lock` while the request is in a queue.
#[derive(Clone, Copy)]
pub(super) struct RqstRef<'a>(NonNull<bindings::rpc_rqst>, PhantomData<&'a ()>);

impl<'a> RqstRef<'a> {
    /// # Safety
    ///
    /// I1 holds.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::rpc_rqst) -> Self {
        // SAFETY: By this function's contract `raw` is not NULL.
        // INVARIANT: I1: by this function's contract.
        Self(unsafe { NonNull::new_unchecked(raw) }, PhantomData)
    }

    /// The request of a task.
    ///
    /// # Safety
    ///
    /// The caller is `task`, or SUNRPC on its behalf, and `task` keeps its request within `'a`.
    #[inline]
    pub(super) unsafe fn of_task(task: *mut bindings::rpc_task) -> Self {
        // SAFETY: By this function's contract the task has a request.
        unsafe { Self::new((*task).tk_rqstp) }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(self) -> *mut bindings::rpc_rqst {
        self.0.as_ptr()
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(self) -> XprtRef<'a> {
        // SAFETY: By I1 the request stays, and with it its transport, which never changes.
        unsafe { XprtRef::new((*self.raw()).rq_xprt) }
    }

    /// The XID.
    #[inline]
    pub(super) fn xid(self) -> u32 {
        // SAFETY: By I1 the request stays. Its XID never changes.
        u32::from_be(unsafe { (*self.raw()).rq_xid })
    }

    /// The task.
    #[inline]
    pub(super) fn task(self) -> *mut bindings::rpc_task {
        // SAFETY: By I1 the request stays. Its task never changes.
        unsafe { (*self.raw()).rq_task }
    }

    /// The task, for traces.
    #[inline]
    pub(super) fn trace_task(self) -> Task {
        // SAFETY: By I1 the task stays, and with it its client.
        unsafe {
            let client = (*self.task()).tk_client;
            Task {
                id: u32::from((*self.task()).tk_pid),
                client: if client.is_null() {
                    u32::MAX
                } else {
                    (*client).cl_clid
                },
            }
        }
    }

    /// Whether the task waits for a Reply after the Call is sent.
    #[inline]
    pub(super) fn expects_reply(self) -> bool {
        // SAFETY: By I1 the task stays, and with it its procedure.
        unsafe { bindings::rpcrdma_rpc_reply_expected(self.task()) }
    }

    /// The message to be sent.
    ///
    /// # Safety
    ///
    /// SUNRPC transmits the request within `'a`, and so does not change the message.
    #[inline]
    pub(super) unsafe fn message(self) -> &'a XdrBuf {
        // SAFETY: By I1 the request stays. By this function's contract the message does not change.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_snd_buf) }
    }

    /// Takes a credit and sets the start of the round trip, before a Call is sent.
    ///
    /// # Errors
    ///
    /// `NoCredit` if the peer grants no more.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock of the transport, and the request is pinned.
    #[inline]
    pub(super) unsafe fn begin_transmission(self) -> Result<(), SendError> {
        // SAFETY: By I1 the request stays. By this function's contract the caller may call the
        // function, and write the field of the request.
        unsafe {
            if !bindings::xprt_request_get_cong(self.xprt().raw(), self.raw()) {
                return Err(SendError::NoCredit);
            }
            (*self.raw()).rq_xtime = bindings::ktime_get();
        }
        Ok(())
    }

    /// Counts the bytes of a Call that was sent.
    ///
    /// # Safety
    ///
    /// As for [`Self::begin_transmission`].
    #[inline]
    pub(super) unsafe fn end_transmission(self) {
        // SAFETY: By I1 the request stays. The holder of the send lock writes this field.
        unsafe { (*self.raw()).rq_xmit_bytes_sent += (*self.raw()).rq_snd_buf.len as usize };
    }
}
