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
    backchannel::credits,
    rqst::Receiving,
    types::Types, //
};

/// What a client says to a reverse Call.
#[derive(Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// The Reply.
    Reply(&'a [u8]),
    /// It cannot take the Call.
    Refused,
}

impl<C: Types> Receiving<'_, C> {
    /// Takes the `answer` to the reverse Call `xid`, with which so many of them may be outstanding;
    /// `false` if there is no such Call. One that was given up is still there until now.
    pub(crate) fn answer_backchannel(&self, xid: u32, window: u32, answer: Answer<'_>) -> bool {
        let _alive = rcu::read_lock();
        // SAFETY: The request is ours, and keeps its transport.
        let place = unsafe { Atomic::from_ptr(&raw mut (*(*self.as_ptr()).rq_xprt).xpt_bc_xprt) };
        // `link` has stored it when all behind it was there. What is looked at through it depends
        // on its address, and needs no other order.
        let raw = place.load(Relaxed);
        if raw.is_null() {
            return false;
        }
        // Only `link` stores one there, on connections of our class: it is a `Backchannel`. It
        // stays until the guard is dropped: before `destroy` drops anything, it takes the transport
        // out of there, and waits for RCU. Found, copied to and completed while the lock is held:
        // of two answers with one XID, which two threads may have, the second finds nothing.
        // SAFETY: The memory stays, as above.
        let locked = unsafe { locks::queue(raw) };
        // SAFETY: The lock that SUNRPC asks for is held.
        let found = unsafe { bindings::xprt_lookup_rqst(raw, xid.to_be()) };
        if let Some(rqst) = NonNull::new(found) {
            // SAFETY: It was found among those that wait, and the lock is held.
            unsafe { take(raw, rqst, window, answer) };
            return true;
        }
        drop(locked);
        // SAFETY: A `Backchannel` that is not destroyed yet, as above.
        let credits = unsafe { credits(raw) };
        let late = credits.answered(xid);
        if late {
            // SAFETY: The memory stays, as above.
            unsafe { locks::transport(raw) }.set_window(window);
            credits.give_back(xid);
        }
        late
    }
}

/// Takes the answer to a Call.
///
/// Once that does not wait for an answer any more, its task, if somebody gives it up just now,
/// takes `queue_lock` before it goes only if the request is pinned. Both have to stay until the
/// task has been woken.
///
/// # Safety
///
/// `rqst` waits for a Reply, and `queue_lock` is held.
unsafe fn take(
    raw: *mut bindings::rpc_xprt,
    rqst: NonNull<bindings::rpc_rqst>,
    window: u32,
    answer: Answer<'_>,
) {
    // SAFETY: By this function's contract, and pinned until the end of this block.
    unsafe {
        bindings::xprt_pin_rqst(rqst.as_ptr());
        // Before the Call is completed, which lets another one out.
        answered(raw, rqst, window);
        complete(rqst, answer);
        bindings::xprt_unpin_rqst(rqst.as_ptr());
    }
}

/// The client has answered, and lets as many Calls be outstanding: the credit of this one is free.
///
/// # Safety
///
/// `rqst` waits for a Reply, and `queue_lock` is held.
unsafe fn answered(raw: *mut bindings::rpc_xprt, rqst: NonNull<bindings::rpc_rqst>, window: u32) {
    // SAFETY: By this function's contract; `transport_lock` is held where SUNRPC asks for it.
    unsafe {
        let locked = locks::transport(raw);
        locked.set_window(window);
        bindings::xprt_release_rqst_cong((*rqst.as_ptr()).rq_task);
    }
}

/// Completes a Call, which lets SUNRPC release it.
///
/// # Safety
///
/// `rqst` waits for a Reply and is pinned, and `queue_lock` is held.
unsafe fn complete(rqst: NonNull<bindings::rpc_rqst>, answer: Answer<'_>) {
    let rqst = rqst.as_ptr();
    // SAFETY: By this function's contract. The consumer looks at the room for the Reply, which is
    // all in the head, when it has been woken.
    unsafe {
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
    }
}
