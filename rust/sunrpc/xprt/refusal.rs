// SPDX-License-Identifier: GPL-2.0

//! An RPC that ends without a Reply: the peer has refused the Call, or this end cannot send it.
//!
//! A refusal can arrive while SUNRPC is still returning from the transmission: in
//! `xprt_request_transmit()`, which then stores the connect cookie, in `xprt_transmit()`, or in the
//! task's `call_transmit_status()`, which clears the task's status. A status set before that point
//! is lost. The task then finds a zero-length Reply, treats it as a lost connection, and closes the
//! transport.
//!
//! So the completion worker that brings the refusal tests whether the task already waits for the
//! Reply. If it does, the worker ends the RPC. If it does not, the worker stores the refusal in the
//! slot, and the task ends the RPC itself when it begins to wait. Both hold `queue_lock`, without
//! which no task begins to wait for a Reply, so one of them sees the other.

use core::mem::offset_of;

use kernel::prelude::*;

use crate::{
    bindings,
    lib::{
        barrier::smp_rmb,
        fence::Fenced, //
    },
    sunrpc::{
        c_ref::read_once,
        locked_rqst::QueuedRqst,
        rpc_rqst::RqstRef,
        send_lock, //
    }, //
};

use super::{
    claim::Fencing,
    slot::Slot,
    slot_state::Refusal,
    types::Types, //
};

impl<T: Types> Fenced<Fencing<T>> {
    /// Ends the RPC without a Reply.
    #[cold]
    pub(crate) fn refuse(self, refusal: Refusal) {
        self.into_inner()
            .release_with_queue_lock(|rqst, claimed_empty| {
                if waits_for_reply(rqst) {
                    claimed_empty.answered();
                    end(rqst, refusal);
                } else {
                    claimed_empty.refused(refusal);
                }
            });
    }
}

/// `wait_for_reply_request`: puts the task to sleep until its Reply arrives, or ends the RPC if a
/// refusal is stored.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, for a task whose Call was sent, with
/// `queue_lock` held.
pub(super) unsafe extern "C" fn wait_for_reply_request<T: Types>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract, which is that of the functions called. SUNRPC owns the
    // slot of a refused Call, and this runs on its behalf.
    let (rqst, refusal) = unsafe {
        send_lock::wait_for_reply(task);
        let rqst = RqstRef::of_task(task);
        let refusal = Slot::<T>::of(rqst).slot_state.take_refusal();
        (QueuedRqst::new(rqst), refusal)
    };
    if let Some(refusal) = refusal {
        end(rqst, refusal);
    }
}

/// Whether the task of a request has sent the Call and waits for the Reply.
fn waits_for_reply(rqst: QueuedRqst<'_>) -> bool {
    // Other threads write these words with single accesses. They may wake a waiting task at any
    // time; the task then does not look for a Reply.
    let state = read_once!(rqst.task(), tk_runstate);
    // `tk_waitqueue` is written before `RPC_TASK_QUEUED` is set, and keeps its value when the task
    // is woken. A task that begins to wait for the send lock does not hold `queue_lock`.
    smp_rmb();
    let queue = read_once!(rqst.task(), tk_waitqueue);
    let pending = offset_of!(bindings::rpc_xprt, pending);
    state & (1 << bindings::RPC_TASK_NEED_XMIT) == 0
        && state & (1 << bindings::RPC_TASK_QUEUED) != 0
        && queue.addr() == rqst.xprt().raw().addr() + pending
}

/// Ends the RPC of a task that waits for the Reply, so the transmission has returned. The slot is
/// Done already.
fn end(rqst: QueuedRqst<'_>, refusal: Refusal) {
    match refusal {
        // The task finds no Reply, and a cookie of another connection, so it sends again.
        Refusal::SendAgain => rqst.expire_cookie(),
        Refusal::Fail => rqst.set_status(EIO.to_errno()),
        Refusal::TooBig => rqst.set_status(-(bindings::EMSGSIZE as c_int)),
    }
    rqst.complete(0);
}
