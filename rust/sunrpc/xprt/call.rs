// SPDX-License-Identifier: GPL-2.0

//! A Call, as what sends it sees it.

use crate::{
    bindings,
    sunrpc::xdr::{
        ReplyRoom,
        XdrBuf, //
    },
    trace::Task, //
};

use super::{
    slot::Slot,
    types::Types, //
};

/// A Call that is to be sent. Until it is [committed](Self::commit), no Reply is taken for it.
///
/// # Invariants
///
/// Only inside `send_request`: the send lock is held, SUNRPC keeps the request and its task in
/// place, and the slot is idle.
pub(crate) struct Call<'a, T: Types> {
    slot: &'a Slot<T>,
}

impl<'a, T: Types> Call<'a, T> {
    /// # Safety
    ///
    /// To be made in `send_request` for its argument, with an idle slot, for as long as that runs.
    #[inline]
    pub(super) unsafe fn new(slot: &'a Slot<T>) -> Self {
        // INVARIANT: By this function's contract.
        Self { slot }
    }

    /// The RPC's number.
    #[inline]
    pub(crate) fn xid(&self) -> u32 {
        self.slot.xid()
    }

    /// The task that makes the RPC, for traces.
    #[inline]
    pub(crate) fn task(&self) -> Task {
        // SAFETY: A request that is being sent has its task.
        unsafe { self.slot.task() }
    }

    /// What kind of Call it is: a number that differs between the procedures of a program.
    #[inline]
    pub(crate) fn procedure(&self) -> u32 {
        // SAFETY: A request that is being sent has its task, which has its client and procedure.
        unsafe {
            let task = (*self.slot.rqst()).rq_task;
            let program = (*(*task).tk_client).cl_prog;
            (*(*task).tk_msg.rpc_proc)
                .p_statidx
                .wrapping_add(program.wrapping_mul(31))
        }
    }

    /// Whether it was sent before, on this connection or another.
    #[inline]
    pub(crate) fn was_sent(&self) -> bool {
        // SAFETY: The request is being sent; it counts the present attempt.
        unsafe { (*self.slot.rqst()).rq_ntrans > 1 }
    }

    /// The RPC message.
    #[inline]
    pub(crate) fn message(&self) -> &XdrBuf {
        // SAFETY: SUNRPC leaves the buffer alone while it is being sent.
        unsafe { XdrBuf::from_raw(&raw mut (*self.slot.rqst()).rq_snd_buf) }
    }

    /// The room for the Reply.
    #[inline]
    pub(crate) fn room(&self) -> &ReplyRoom {
        // SAFETY: As above, and no Reply is placed there while the slot is idle.
        unsafe { ReplyRoom::from_raw(&raw mut (*self.slot.rqst()).rq_rcv_buf) }
    }

    /// Whether GSS integrity or privacy covers the message, so that nothing may be reduced (RFC
    /// 8166 Section 8.2.2.3).
    #[inline]
    pub(crate) fn is_protected(&self) -> bool {
        // SAFETY: A request that is being sent has its credential, which has its flavor.
        let flags = unsafe { (*(*(*self.slot.rqst()).rq_cred).cr_auth).au_flags };
        flags & (1 << bindings::RPCAUTH_AUTH_DATATOUCH) != 0
    }

    /// Lets a Reply take `inflight` from now on; to be called before the Call is posted.
    #[inline]
    pub(crate) fn commit(self, inflight: T::Inflight) -> Committed<'a, T> {
        // SAFETY: By the type's invariants the send lock is held, and the slot is idle.
        unsafe { self.slot.slot_state.commit(inflight) };
        // INVARIANT: As for `self`; committed just now.
        Committed { slot: self.slot }
    }
}

/// A Call that may be answered at any time: its messages are out of reach.
///
/// # Invariants
///
/// Only inside `send_request`, where SUNRPC keeps the request and its task in place. The slot was
/// committed.
pub(crate) struct Committed<'a, T: Types> {
    slot: &'a Slot<T>,
}

impl<T: Types> Committed<'_, T> {
    /// The task that makes the RPC, for traces.
    pub(crate) fn task(&self) -> Task {
        // SAFETY: A request that is being sent has its task.
        unsafe { self.slot.task() }
    }

    /// Takes the Exchange back after the Call could not be posted; `None` if the peer, who cannot
    /// have seen the Call, has answered it.
    #[cold]
    pub(crate) fn revoke(self) -> Option<T::Inflight> {
        let (claimed_empty, inflight) = self.slot.slot_state.claim()?.take();
        claimed_empty.settle();
        Some(inflight)
    }
}
