// SPDX-License-Identifier: GPL-2.0

//! An `rpc_rqst` while a lock of its transport is held: what that lock allows.
//!
//! | type           | lock             | where                                                   |
//! |----------------|------------------|---------------------------------------------------------|
//! | `Transmission` | send lock        | `send_request`                                          |
//! | `Releasing`    | `transport_lock` | `release_request`                                       |
//! | `QueuedRqst`   | `queue_lock`     | CQ workers, nfsd threads, and `wait_for_reply_request`  |
//!
//! C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)

use core::ops::Deref;

use kernel::prelude::*;

use crate::bindings;

use super::{
    c_ref::read_once,
    error::SendError,
    rpc_rqst::RqstRef,
    xdr::XdrBuf,
    xprt_ref::LockedQueue, //
};

/// A request that SUNRPC transmits: the transport is in its `send_request`.
///
/// # Invariants
///
/// - I1: The send lock of the transport is held within `'a`. SUNRPC has pinned the request, and
///   does not change the message to be sent.
#[derive(Clone, Copy)]
pub(super) struct Transmission<'a>(RqstRef<'a>);

impl<'a> Deref for Transmission<'a> {
    type Target = RqstRef<'a>;

    #[inline]
    fn deref(&self) -> &RqstRef<'a> {
        &self.0
    }
}

impl<'a> Transmission<'a> {
    /// # Safety
    ///
    /// SUNRPC calls `send_request` for `raw`. `'a` is within the call.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::rpc_rqst) -> Self {
        // SAFETY: SUNRPC has pinned the request, which keeps task and transport.
        // INVARIANT: I1: SUNRPC calls `send_request` so.
        Self(unsafe { RqstRef::new(raw) })
    }

    /// The message to be sent.
    #[inline]
    pub(super) fn message(self) -> &'a XdrBuf {
        // SAFETY: The request stays, and by I1 the message does not change.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_snd_buf) }
    }

    /// Takes a credit and sets the start of the round trip, before a Call is sent.
    ///
    /// # Errors
    ///
    /// `NoCredit` if the peer grants no more.
    #[inline]
    pub(super) fn begin(self) -> Result<(), SendError> {
        // SAFETY: By I1 the request is pinned, and the send lock is held. Its holder calls the
        // function, and writes the field of the request.
        unsafe {
            if !bindings::xprt_request_get_cong(self.xprt().raw(), self.raw()) {
                return Err(SendError::NoCredit);
            }
            (*self.raw()).rq_xtime = bindings::ktime_get();
        }
        Ok(())
    }

    /// Returns the credit of a Call that was not sent, although SUNRPC is told so.
    #[cold]
    pub(super) fn return_credit(self) {
        let _locked = self.xprt().lock();
        // SAFETY: By I1 the request stays, and with it its task. The function requires the
        // `transport_lock`, which is held.
        unsafe { bindings::xprt_release_rqst_cong(self.task().raw()) };
    }

    /// Counts the bytes of a Call that was sent.
    #[inline]
    pub(super) fn end(self) {
        // SAFETY: By I1 the request is pinned, and the send lock is held. Its holder writes this
        // field.
        unsafe { (*self.raw()).rq_xmit_bytes_sent += (*self.raw()).rq_snd_buf.len as usize };
    }

    /// Counts the bytes of a Call before it is sent, for a transport whose answers
    /// [reset](QueuedRqst::set_answered) the count. An answer may arrive at once.
    pub(super) fn count(self) {
        let sent = read_once!(self.fields(), rq_xmit_bytes_sent);
        self.set_bytes_sent(sent.wrapping_add(self.message().len() as usize));
    }

    /// Undoes [`Self::count`] for a Call that was not sent.
    #[cold]
    pub(super) fn uncount(self) {
        let sent = read_once!(self.fields(), rq_xmit_bytes_sent);
        self.set_bytes_sent(sent.saturating_sub(self.message().len() as usize));
    }
}

/// A request that SUNRPC releases: the transport is in its `release_request`.
///
/// # Invariants
///
/// - I1: The `transport_lock` of the transport is held within `'a`. SUNRPC has removed the request
///   from its queues.
#[derive(Clone, Copy)]
pub(super) struct Releasing<'a>(RqstRef<'a>);

impl<'a> Deref for Releasing<'a> {
    type Target = RqstRef<'a>;

    #[inline]
    fn deref(&self) -> &RqstRef<'a> {
        &self.0
    }
}

impl Releasing<'_> {
    /// # Safety
    ///
    /// SUNRPC calls `release_request` for `task`. The lifetime is within the call.
    #[inline]
    pub(super) unsafe fn of_task(task: *mut bindings::rpc_task) -> Self {
        // SAFETY: By this function's contract the task has its request until the call returns.
        // INVARIANT: I1: SUNRPC calls `release_request` so.
        Self(unsafe { RqstRef::of_task(task) })
    }

    /// Whether the request has a credit.
    #[inline]
    pub(super) fn has_credit(self) -> bool {
        read_once!(self.fields(), rq_cong) != 0
    }

    /// Takes the credit from the request. The transport still counts the credit.
    #[inline]
    pub(super) fn forget_credit(self) {
        // SAFETY: The request stays. By I1 the lock is held, which guards the field.
        unsafe { (*self.raw()).rq_cong = 0 };
    }

    /// Releases the credit of the request, if it has one.
    #[inline]
    pub(super) fn release_credit(self) {
        // SAFETY: The task stays. By I1 the lock is held, as the function requires.
        unsafe { bindings::xprt_release_rqst_cong(self.task().raw()) };
    }
}

/// A request whose transport's `queue_lock` is held.
///
/// # Invariants
///
/// - I1: The `queue_lock` of the transport is held within `'a`.
/// - I2: The request is in the receive queue, or pinned, or its task waits for the caller.
#[derive(Clone, Copy)]
pub(super) struct QueuedRqst<'a>(RqstRef<'a>);

impl<'a> Deref for QueuedRqst<'a> {
    type Target = RqstRef<'a>;

    #[inline]
    fn deref(&self) -> &RqstRef<'a> {
        &self.0
    }
}

impl LockedQueue<'_> {
    /// Finds the request with this XID that waits for its Reply.
    #[inline]
    pub(super) fn lookup(&self, xid: u32) -> Option<QueuedRqst<'_>> {
        // SAFETY: By I1 the lock is held, as the function requires.
        let rqst = unsafe { bindings::xprt_lookup_rqst(self.xprt().raw(), xid.to_be()) };
        if rqst.is_null() {
            return None;
        }
        // SAFETY: A request in the receive queue stays, with its task, while the lock is held.
        Some(unsafe { QueuedRqst::new(RqstRef::new(rqst)) })
    }
}

impl QueuedRqst<'_> {
    /// # Safety
    ///
    /// I1 and I2 hold for the lifetime of the value that is returned.
    #[inline]
    pub(super) unsafe fn new<'a>(rqst: RqstRef<'a>) -> QueuedRqst<'a> {
        // INVARIANT: I1 and I2: by this function's contract.
        QueuedRqst(rqst)
    }

    /// Pins the request: its task cannot release it before it is [unpinned](Self::unpin).
    #[inline]
    pub(super) fn pin(self) {
        // SAFETY: By I1 the lock is held. By I2 the request stays until it is released.
        unsafe { bindings::xprt_pin_rqst(self.raw()) };
    }

    /// Unpins the request.
    ///
    /// # Safety
    ///
    /// The caller has pinned the request, and unpins it once.
    #[inline]
    pub(super) unsafe fn unpin(self) {
        // SAFETY: By I1 the lock is held. The rest by this function's contract.
        unsafe { bindings::xprt_unpin_rqst(self.raw()) };
    }

    /// Sets the status of the task.
    #[inline]
    pub(super) fn set_status(self, errno: c_int) {
        // SAFETY: By I2 the task stays. It reads the status when it is woken. A task that runs may
        // overwrite the status; single accesses do not tear.
        unsafe { (&raw mut (*self.task().raw()).tk_status).write_volatile(errno) };
    }

    /// Resets the count of bytes sent, because the peer has answered the Call: what
    /// [`RqstRef::was_sent`] tells is whether a transmission has no answer.
    pub(super) fn set_answered(self) {
        self.set_bytes_sent(0);
    }

    /// Makes the task send the Call again: it finds the connect cookie of another connection.
    #[cold]
    pub(super) fn expire_cookie(self) {
        let cookie = read_once!(self.xprt(), connect_cookie);
        // SAFETY: By I2 the request stays. The task reads the cookie when it is woken.
        unsafe { (*self.raw()).rq_connect_cookie = cookie.wrapping_sub(1) };
    }

    /// Removes the request from the receive queue and wakes the task, whose Reply has `length`
    /// bytes; a length of 0 is none.
    #[inline]
    pub(super) fn complete(self, length: c_int) {
        // SAFETY: By I1 the lock is held, as the function requires. By I2 the task stays.
        unsafe { bindings::xprt_complete_rqst(self.task().raw(), length) };
    }
}
