// SPDX-License-Identifier: GPL-2.0

//! What clients say to reverse Calls.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        rcu, //
    }, //
};

use crate::{
    bindings,
    sunrpc::locks, //
};

use super::{
    class::Connection,
    reverse::credits,
    rqst::Receiving, //
};

/// What a client says to a reverse Call.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// The Reply.
    Reply(&'a [u8]),
    /// It cannot take the Call.
    Refused,
}

impl<C: Connection> Receiving<'_, C> {
    /// Takes the `answer` to the reverse Call `xid`, with which so many of them may be outstanding;
    /// `false` if there is no such Call. One that was given up is still there until now.
    pub(crate) fn answer_reverse(&self, xid: u32, window: u32, answer: Answer<'_>) -> bool {
        let _alive = rcu::read_lock();
        // SAFETY: The request keeps its transport. What is beside that stays until the guard is
        // dropped.
        unsafe {
            let forward = (*self.as_ptr()).rq_xprt;
            let raw = Atomic::from_ptr(&raw mut (*forward).xpt_bc_xprt).load(Relaxed);
            if raw.is_null() {
                return false;
            }
            let Some(rqst) = pin(raw, xid) else {
                let late = credits(raw).answered(xid);
                if late {
                    locks::transport(raw).set_window(window);
                    credits(raw).give_back(xid);
                }
                return late;
            };
            // Before the Call is completed, which lets another one out.
            answered(raw, rqst, window);
            complete(raw, rqst, answer);
            true
        }
    }
}

/// Finds the Call `xid` among those that wait, and pins it until [`complete`].
///
/// # Safety
///
/// `raw` is a reverse transport.
unsafe fn pin(raw: *mut bindings::rpc_xprt, xid: u32) -> Option<NonNull<bindings::rpc_rqst>> {
    // SAFETY: By this function's contract; `queue_lock` is held where SUNRPC asks for it.
    unsafe {
        let _locked = locks::queue(raw);
        let rqst = NonNull::new(bindings::xprt_lookup_rqst(raw, xid.to_be()));
        if let Some(rqst) = rqst {
            bindings::xprt_pin_rqst(rqst.as_ptr());
        }
        rqst
    }
}

/// The client has answered, and lets as many Calls be outstanding: the credit of this one is free.
///
/// # Safety
///
/// `rqst` is pinned.
unsafe fn answered(raw: *mut bindings::rpc_xprt, rqst: NonNull<bindings::rpc_rqst>, window: u32) {
    // SAFETY: By this function's contract; `transport_lock` is held where SUNRPC asks for it.
    unsafe {
        let locked = locks::transport(raw);
        locked.set_window(window);
        bindings::xprt_release_rqst_cong((*rqst.as_ptr()).rq_task);
    }
}

/// Completes a Call, and lets SUNRPC release it.
///
/// # Safety
///
/// `rqst` is pinned, by the caller alone.
unsafe fn complete(
    raw: *mut bindings::rpc_xprt,
    rqst: NonNull<bindings::rpc_rqst>,
    answer: Answer<'_>,
) {
    let rqst = rqst.as_ptr();
    // SAFETY: By this function's contract; `queue_lock` is held where SUNRPC asks for it. The
    // consumer looks at the room for the Reply, which is all in the head, when it has been woken.
    unsafe {
        let _locked = locks::queue(raw);
        let room = (*rqst).rq_private_buf.head[0];
        let copied = match answer {
            Answer::Reply(reply) if reply.len() <= room.iov_len => {
                room.iov_base
                    .cast::<u8>()
                    .copy_from_nonoverlapping(reply.as_ptr(), reply.len());
                // CAST: No more than a Receive buffer.
                reply.len() as c_int
            }
            // If `rpciod` is still on its way out of sending the Call, the task does not see this,
            // and sends the Call again. The client refuses it again, which comes too early as
            // seldom; and the consumer's tasks are soft, and do not try for ever.
            _ => {
                (*(*rqst).rq_task).tk_status = -bindings::EIO.cast_signed();
                0
            }
        };
        bindings::xprt_complete_rqst((*rqst).rq_task, copied);
        bindings::xprt_unpin_rqst(rqst);
    }
}
