// SPDX-License-Identifier: GPL-2.0

//! A Call, as seen by the code that sends it.

use core::marker::PhantomData;

use crate::{
    bindings,
    lib::{
        bvec::{
            BVec,
            BVecs,
            WholePage, //
        },
        fence::Keep, //
    },
    sunrpc::{
        c_ref::read_once,
        locked_rqst::Transmission,
        rpc_rqst::RqstRef,
        xdr::{
            ReplyRoom,
            XdrBuf, //
        }, //
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

/// A Call that is being sent. No Reply matches it before it is [committed](Self::commit).
///
/// # Invariants
///
/// - I1: It exists only in `send_request`, throughout `'a`, as `rqst` does. So the request keeps
///   its credential, and no other thread changes the buffer for the Reply.
/// - I2: The slot, which is that of `rqst`, is idle. `endpoint` is that of the transport's
///   connection.
/// - I3: `'a` is that of this Call alone: it cannot be shortened, and no caller can choose it.
pub(crate) struct Call<'a, T: Types> {
    slot: &'a Slot<T>,
    rqst: Transmission<'a>,
    endpoint: &'a T::Endpoint,
    _own: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a, T: Types> Call<'a, T> {
    /// # Safety
    ///
    /// I1 to I3 hold.
    #[inline]
    pub(super) unsafe fn new(
        slot: &'a Slot<T>,
        rqst: Transmission<'a>,
        endpoint: &'a T::Endpoint,
    ) -> Self {
        // INVARIANT: I1 to I3: by this function's contract.
        Self {
            slot,
            rqst,
            endpoint,
            _own: PhantomData,
        }
    }

    /// The XID.
    #[inline]
    pub(crate) fn xid(&self) -> u32 {
        self.rqst.xid()
    }

    /// The task of the RPC, for traces.
    #[inline]
    pub(crate) fn task(&self) -> Task {
        self.rqst.trace_task()
    }

    /// A number that identifies the procedure and its program.
    #[inline]
    pub(crate) fn procedure(&self) -> u32 {
        let task = self.rqst.task();
        let (client, procedure) = (
            read_once!(task, tk_client),
            read_once!(task, tk_msg.rpc_proc),
        );
        // SAFETY: The task stays. It keeps its client, which each task with a Call has, and its
        // procedure.
        let (program, index) = unsafe { ((*client).cl_prog, (*procedure).p_statidx) };
        index.wrapping_add(program.wrapping_mul(31))
    }

    /// Whether the Call was transmitted before, on this connection or an earlier one.
    #[inline]
    pub(crate) fn was_sent(&self) -> bool {
        // `rq_ntrans` counts the transmission in progress, too.
        read_once!(self.rqst.fields(), rq_ntrans) > 1
    }

    /// The RPC message.
    #[inline]
    pub(crate) fn message(&self) -> &XdrBuf {
        self.rqst.message()
    }

    /// The buffer for the Reply.
    #[inline]
    pub(crate) fn room(&self) -> &ReplyRoom {
        // SAFETY: By I1 SUNRPC does not change the buffer during `send_request`. By I2 no Reply is
        // written to it.
        unsafe { ReplyRoom::from_raw(&raw mut (*self.rqst.raw()).rq_rcv_buf) }
    }

    /// Whether GSS integrity or privacy covers the message. No part of it may then be reduced (RFC
    /// 8166 Section 8.2.2.3).
    #[inline]
    pub(crate) fn is_protected(&self) -> bool {
        // SAFETY: By I1 the request has its credential, which keeps its flavor.
        let flags = unsafe { (*(*(*self.rqst.raw()).rq_cred).cr_auth).au_flags };
        flags & (1 << bindings::RPCAUTH_AUTH_DATATOUCH) != 0
    }

    /// The pages of the message, to be exposed.
    #[inline]
    pub(crate) fn message_pages(&self) -> impl BVecs<'a> + '_ {
        self.own(self.message().pages())
    }

    /// The whole message, to be exposed.
    #[inline]
    pub(crate) fn whole_message(&self) -> impl BVecs<'a> + '_ {
        let message = self.message();
        let front = Iterator::chain(message.head(), message.pages());
        self.own(Iterator::chain(front, message.tail()))
    }

    /// The pages of the buffer for the Reply, to be exposed.
    #[inline]
    pub(crate) fn room_pages(&self) -> impl BVecs<'a> + '_ {
        self.own(self.room().pages())
    }

    /// The pages of the buffer for the Reply, and then the first `roundup` bytes of its tail.
    #[cold]
    pub(crate) fn room_pages_and_roundup(&self, roundup: u32) -> impl BVecs<'a> + '_ {
        let room = self.room();
        // The roundup is in one word, so in one page.
        let tail = room.tail().take(1).map(move |bvec| bvec.split(roundup).0);
        self.own(Iterator::chain(room.pages(), tail))
    }

    /// The whole buffer for the Reply, to be exposed.
    #[inline]
    pub(crate) fn whole_room(&self) -> impl BVecs<'a> + '_ {
        let room = self.room();
        let front = Iterator::chain(room.head(), room.pages());
        self.own(Iterator::chain(front, room.tail()))
    }

    /// `bvecs` are those of this Call's message, or of the buffer for its Reply.
    #[inline]
    fn own<'s, I: BVecs<'s>>(&self, bvecs: I) -> OwnBVecs<'s, 'a, I> {
        // INVARIANT: I1: SUNRPC keeps both throughout `'a` (I1 of `Call`).
        OwnBVecs {
            bvecs,
            _lifetimes: PhantomData,
        }
    }

    /// Prepares the post. From the post on, a Reply matches the Call, and finds `inflight`.
    #[inline]
    pub(crate) fn commit(self, inflight: T::Inflight) -> Committing<'a, T> {
        Committing {
            call: self,
            inflight,
        }
    }
}

/// Memory of a Call's message, or of the buffer for its Reply.
///
/// # Invariants
///
/// - I1: The pages stay throughout `'a`.
struct OwnBVecs<'s, 'a, I> {
    bvecs: I,
    _lifetimes: PhantomData<(BVec<'s>, BVec<'a>)>,
}

impl<'s, 'a, I: BVecs<'s>> Iterator for OwnBVecs<'s, 'a, I> {
    type Item = BVec<'a>;

    #[inline]
    fn next(&mut self) -> Option<BVec<'a>> {
        // SAFETY: By I1.
        self.bvecs
            .next()
            .map(|bvec| unsafe { bvec.with_lifetime() })
    }
}

impl<'s, 'a, I: BVecs<'s>> BVecs<'a> for OwnBVecs<'s, 'a, I> {
    #[inline]
    fn whole_pages(&mut self, most: usize) -> &[WholePage<'a>] {
        // SAFETY: By I1.
        unsafe { WholePage::with_lifetime(self.bvecs.whole_pages(most)) }
    }
}

/// A Call that is about to be posted.
pub(crate) struct Committing<'a, T: Types> {
    call: Call<'a, T>,
    inflight: T::Inflight,
}

// SAFETY: `exposed` goes into the slot. SUNRPC keeps the memory of a Call until `buf_free`, which
// fences what it finds in the slot. Before that SUNRPC waits until the request is unpinned: it is
// pinned while `exposed` is out of the slot. The disconnect empties the slot after it has dropped
// the endpoint. By I3 of `Call` no caller can choose `'a`.
unsafe impl<'a, T: Types> Keep<'a, T::Exposed> for Committing<'a, T> {
    type Endpoint = T::Endpoint;
    type Kept = Committed<'a, T>;

    #[inline]
    fn endpoint(&self) -> &'a T::Endpoint {
        self.call.endpoint
    }

    /// To send a Call with privacy again, SUNRPC encrypts it into other pages, and frees these.
    #[inline]
    fn frees_early(&self) -> bool {
        self.call.is_protected()
    }

    #[inline]
    fn keep(self, exposed: T::Exposed) -> Committed<'a, T> {
        let Self { call, inflight } = self;
        let outstanding = Outstanding { exposed, inflight };
        // SAFETY: By I1 of `Call` the send lock is held. By I2 the slot is idle.
        unsafe { call.slot.slot_state.commit(outstanding) };
        Committed(*call.rqst, PhantomData)
    }
}

/// A Call that a Reply may complete at any time. Its messages may no longer be accessed.
pub(crate) struct Committed<'a, T: Types>(RqstRef<'a>, PhantomData<T>);

impl<T: Types> Committed<'_, T> {
    /// The task of the RPC, for traces.
    pub(crate) fn task(&self) -> Task {
        self.0.trace_task()
    }
}
