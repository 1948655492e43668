// SPDX-License-Identifier: GPL-2.0

//! An RPC that ends without a Reply: the peer has refused it, or this end cannot send its Call.
//!
//! A refusal can be here while SUNRPC is still on its way out of sending the Call: in
//! `xprt_request_transmit`, which then notes the connection's cookie, in `xprt_transmit`, or, in
//! the task, in `call_transmit_status`, which clears the task's status. What the task is told
//! earlier than that it does not see. It takes a Reply of no bytes for the end of the connection,
//! and closes it.
//!
//! So the bringer of the refusal, a worker of the connection's queues, looks whether the task waits
//! for the Reply. If it does, the RPC is ended. If not, the slot remembers the refusal, and the
//! task itself ends the RPC when it comes to wait. Both happen with `queue_lock` held, without
//! which no task begins to wait for a Reply: one of the two sees the other.

use kernel::sync::barrier::smp_rmb;

use crate::{
    bindings,
    lib::fence::Fenced, //
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
            .last_with_queue_lock(|slot, claimed_empty| {
                // SAFETY: The request is pinned, and `queue_lock` is held.
                if unsafe { waits(slot.rqst()) } {
                    claimed_empty.answered();
                    // SAFETY: As above, and the task waits.
                    unsafe { end(slot.rqst(), refusal) };
                } else {
                    claimed_empty.refused(refusal);
                }
            });
    }
}

/// Has a task wait for its Reply, unless that was refused already.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy` in a task whose Call was sent, with `queue_lock`
/// held.
pub(super) unsafe extern "C" fn wait_for_reply_request<T: Types>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract; the task has its slot, and owns it if it was refused.
    unsafe {
        bindings::xprt_wait_for_reply_request_def(task);
        let slot = Slot::<T>::from_rqst((*task).tk_rqstp);
        if let Some(refusal) = slot.slot_state.take_refusal() {
            end(slot.rqst(), refusal);
        }
    }
}

/// Whether the task has sent the Call and waits for its Reply.
///
/// # Safety
///
/// The request is pinned, and `queue_lock` is held.
unsafe fn waits(rqst: *mut bindings::rpc_rqst) -> bool {
    // SAFETY: By this function's contract, request and task stay. A task that waits may be woken at
    // any time by others, and then does not look for a Reply.
    unsafe {
        let task = (*rqst).rq_task;
        let state = (&raw const (*task).tk_runstate).read_volatile();
        // The queue is written before the state says that the task is in one, and stays when it is
        // woken. Without the lock, a task begins to wait for the send lock.
        smp_rmb();
        let queue = (&raw const (*task).tk_waitqueue).read_volatile();
        state & (1 << bindings::RPC_TASK_NEED_XMIT) == 0
            && state & (1 << bindings::RPC_TASK_QUEUED) != 0
            && core::ptr::eq(queue, &raw const (*(*rqst).rq_xprt).pending)
    }
}

/// Ends the RPC of a task that waits; the slot says already that it is answered.
///
/// # Safety
///
/// The request is the caller's or pinned, its task waits for the Reply, and `queue_lock` is held.
unsafe fn end(rqst: *mut bindings::rpc_rqst, refusal: Refusal) {
    // SAFETY: By this function's contract: what sent the Call is done with the request, and the
    // task looks at it when it is woken.
    unsafe {
        let task = (*rqst).rq_task;
        match refusal {
            // It then finds no Reply, and that the Call was not sent on the present connection.
            Refusal::SendAgain => {
                (*rqst).rq_connect_cookie = (*(*rqst).rq_xprt).connect_cookie.wrapping_sub(1);
            }
            Refusal::Fail => (*task).tk_status = -bindings::EIO.cast_signed(),
            Refusal::TooBig => (*task).tk_status = -bindings::EMSGSIZE.cast_signed(),
        }
        bindings::xprt_complete_rqst(task, 0);
    }
}
