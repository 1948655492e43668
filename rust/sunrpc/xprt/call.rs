// SPDX-License-Identifier: GPL-2.0

//! A Call, as what sends it sees it.

use core::marker::PhantomData;

use crate::{
    bindings,
    lib::{
        bvec::BVec,
        fence::Keep, //
    },
    sunrpc::xdr::{
        ReplyRoom,
        XdrBuf, //
    },
    trace::Task, //
};

use super::{
    slot::Slot,
    types::{
        Outstanding,
        Types, //
    }, //
};

/// A Call that is to be sent. Until it is [committed](Self::commit), no Reply is taken for it.
///
/// # Invariants
///
/// - I1: Only inside `send_request`, throughout `'a`: the send lock is held, SUNRPC keeps the
///   request and its task in place, and the slot is idle.
/// - I2: `'a` is that of this Call alone: it cannot be shortened, and no caller can choose it.
pub(crate) struct Call<'a, T: Types> {
    slot: &'a Slot<T>,
    /// The end of the connection that the Call is to be sent on.
    endpoint: &'a T::Endpoint,
    _own: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a, T: Types> Call<'a, T> {
    /// # Safety
    ///
    /// To be made in `send_request` for its argument, with an idle slot, for as long as that runs;
    /// `endpoint` is that of the transport's connection.
    #[inline]
    pub(super) unsafe fn new(slot: &'a Slot<T>, endpoint: &'a T::Endpoint) -> Self {
        // INVARIANT: By this function's contract.
        Self {
            slot,
            endpoint,
            _own: PhantomData,
        }
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

    /// The pages of the message, to be exposed.
    #[inline]
    pub(crate) fn message_pages(&self) -> impl Iterator<Item = BVec<'a>> + '_ {
        self.own(self.message().pages())
    }

    /// The whole message, to be exposed.
    #[inline]
    pub(crate) fn whole_message(&self) -> impl Iterator<Item = BVec<'a>> + '_ {
        let message = self.message();
        let front = Iterator::chain(message.head(), message.pages());
        self.own(Iterator::chain(front, message.tail()))
    }

    /// The pages of the room for the Reply, to be exposed.
    #[inline]
    pub(crate) fn room_pages(&self) -> impl Iterator<Item = BVec<'a>> + '_ {
        self.own(self.room().pages())
    }

    /// The whole room for the Reply, to be exposed.
    #[inline]
    pub(crate) fn whole_room(&self) -> impl Iterator<Item = BVec<'a>> + '_ {
        let room = self.room();
        let front = Iterator::chain(room.head(), room.pages());
        self.own(Iterator::chain(front, room.tail()))
    }

    /// `bvecs` are of this Call's message, or of the room for its Reply.
    #[inline]
    fn own<'s>(
        &self,
        bvecs: impl Iterator<Item = BVec<'s>> + 's,
    ) -> impl Iterator<Item = BVec<'a>> + 's {
        // SAFETY: SUNRPC keeps both throughout `'a` (I1).
        bvecs.map(|bvec| unsafe { bvec.kept() })
    }

    /// Lets a Reply take the Call as soon as it is posted. `inflight` is noted until then.
    #[inline]
    pub(crate) fn commit(self, inflight: T::Inflight) -> Committing<'a, T> {
        Committing {
            call: self,
            inflight,
        }
    }
}

/// A Call that is about to be posted.
pub(crate) struct Committing<'a, T: Types> {
    call: Call<'a, T>,
    inflight: T::Inflight,
}

// SAFETY: What exposes the memory goes into the slot. SUNRPC keeps the memory of a Call until
// `buf_free`, which has it fenced if it finds it in the slot. Before that it waits until the
// request is not pinned, as it is while what exposes it is out of the slot. The slot is emptied
// when the endpoint, which the transport owns, has been dropped. `'a` is the Call's own (I2).
unsafe impl<'a, T: Types> Keep<'a, T::Exposed> for Committing<'a, T> {
    type Endpoint = T::Endpoint;
    type Kept = Committed<'a, T>;

    #[inline]
    fn endpoint(&self) -> &'a T::Endpoint {
        self.call.endpoint
    }

    /// To send a Call with privacy once more, SUNRPC encrypts it into other pages, and frees these.
    #[inline]
    fn frees_early(&self) -> bool {
        self.call.is_protected()
    }

    #[inline]
    fn keep(self, exposed: T::Exposed) -> Committed<'a, T> {
        let Self { call, inflight } = self;
        // SAFETY: The send lock is held, and the slot is idle (I1).
        unsafe {
            call.slot
                .slot_state
                .commit(Outstanding { exposed, inflight })
        };
        // INVARIANT: As for the Call; committed just now.
        Committed { slot: call.slot }
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
}
