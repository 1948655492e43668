// SPDX-License-Identifier: GPL-2.0

//! Completes a backchannel Call with the client's Reply or refusal.
//!
//! C: svc_rdma_backchannel.c, svc_rdma_handle_bc_reply()

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        rcu, //
    }, //
};

use crate::{
    bindings,
    sunrpc::{
        locked_rqst::QueuedRqst,
        xprt_ref::{
            LockedXprt,
            XprtRef, //
        }, //
    }, //
};

use super::{
    backchannel::Private,
    rqst::Receiving,
    types::Types, //
};

/// The client's answer to a backchannel Call.
#[derive(Clone, Copy)]
pub(crate) enum BackchannelAnswer<'a> {
    /// The Reply.
    Reply(&'a [u8]),
    /// RDMA_ERROR: the client cannot process the Call.
    Refused,
}

/// The credits of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Grant {
    /// How many Calls may be outstanding.
    pub(crate) window: u32,
    /// The number of the message, in the order of arrival on the connection, from 1 on.
    pub(crate) message: u64,
}

impl<C: Types> Receiving<'_, C> {
    /// Completes the backchannel Call `xid`, and sets the window, unless a later message has.
    /// `false` if there is no such Call. A Call whose RPC has ended exists until it is completed.
    pub(crate) fn complete_backchannel(
        &self,
        xid: u32,
        grant: Grant,
        answer: BackchannelAnswer<'_>,
    ) -> bool {
        let _rcu = rcu::read_lock();
        // Relaxed suffices: `link` stored the address after it had completed the transport, and all
        // accesses below depend on the address.
        let raw = self.xprt().bc_xprt().load(Relaxed);
        if raw.is_null() {
            return false;
        }
        // SAFETY: On connections of this module only `link` stores a transport, so it is a
        // `Backchannel`. `destroy` clears the word and waits for an RCU grace period before it
        // takes the private part, so `_rcu` keeps that, and the memory.
        let (xprt, private) = unsafe { (XprtRef::new(raw), Private::from_raw(raw)) };
        {
            // The lock is held until the Call is completed: two threads may have answers with the
            // same XID, and the second one must find no Call.
            let locked = xprt.lock_queue();
            if let Some(rqst) = locked.lookup(xid) {
                complete(private, rqst, grant, answer);
                return true;
            }
        }
        let is_held = private.credits.is_held(xid);
        if is_held {
            set_window(private, &xprt.lock(), grant);
            private.credits.release(xid);
        }
        is_held
    }
}

/// Completes a Call.
fn complete(private: &Private, rqst: QueuedRqst<'_>, grant: Grant, answer: BackchannelAnswer<'_>) {
    // A task that gives up its request takes `queue_lock` if the request is in a queue or pinned.
    // `wake` removes the request from the queue, so the pin must keep request and task until it is
    // done.
    rqst.pin();
    // The credit comes first, since the completion lets another Call be sent.
    release_credit(private, rqst, grant);
    wake(rqst, answer);
    // SAFETY: Pinned above.
    unsafe { rqst.unpin() };
}

/// Sets the window. If two threads each have an answer, the later message counts.
fn set_window(private: &Private, locked: &LockedXprt<'_>, grant: Grant) {
    // `transport_lock` is held.
    if grant.message > private.granted_by.load(Relaxed) {
        private.granted_by.store(grant.message, Relaxed);
        locked.set_window(grant.window);
    }
}

/// Releases the credit of an answered Call, and sets the window.
fn release_credit(private: &Private, rqst: QueuedRqst<'_>, grant: Grant) {
    let locked = rqst.xprt().lock();
    set_window(private, &locked, grant);
    // `release_request` waits until the request is unpinned.
    rqst.set_answered();
    // SAFETY: `rqst` keeps its task, and `transport_lock` is held.
    unsafe { bindings::xprt_release_rqst_cong(rqst.task().raw()) };
}

/// Stores the Reply, or `EIO`, and wakes the task.
fn wake(rqst: QueuedRqst<'_>, answer: BackchannelAnswer<'_>) {
    // SAFETY: The request stays. The whole buffer for the Reply is its head, which does not change
    // before the task is woken.
    let head = unsafe { (*rqst.raw()).rq_private_buf.head[0] };
    let copied = match answer {
        BackchannelAnswer::Reply(reply) if reply.len() <= head.iov_len => {
            // SAFETY: The head has as many bytes, which the consumer does not access before the
            // task is woken.
            unsafe {
                head.iov_base
                    .cast::<u8>()
                    .copy_from_nonoverlapping(reply.as_ptr(), reply.len());
            }
            // CAST: No longer than a Receive buffer.
            reply.len() as c_int
        }
        // If `rpciod` is still returning from the transmission, the task overwrites the status and
        // sends the Call again. The client refuses the Call again, and that refusal is rarely as
        // early. nfsd makes a failed Call again in any case: the client sets the pace.
        _ => {
            rqst.set_status(EIO.to_errno());
            0
        }
    };
    rqst.complete(copied);
}
