// SPDX-License-Identifier: GPL-2.0

//! Slots: what SUNRPC calls an `rpc_rqst`, and what an RPC over this transport needs beside it.
//!
//! A slot has one owner at a time. SUNRPC owns it from `alloc_slot` to `free_slot`; while a Call
//! waits for its Reply, its [`Transport::Exchange`] (the memory that the peer may reach) is up for
//! whoever takes it first:
//!
//! ```text
//! Idle --not to be sent (send lock)--> Refused
//! Idle --commit (send lock)--> Sent --claim (receive worker)--> Claimed --complete--> Done
//!                               |                              |\--refuse--> Refused --wait--> Done
//!                               | <---- nothing fenced --------|
//!                               |                              \--queue pair ended--> Idle
//!                               |-- abandon (buf_free), sweep (disconnect) --> Idle
//! ```
//!
//! The claimer leaves the Exchange in the slot until it is fenced. If that does not happen the slot
//! is Sent again, so that whoever gives up the RPC, or the end of the connection, finds what the
//! peer can still reach.
//!
//! Refused: refused, or found impossible to send, before its task waited for a Reply; see
//! [`refusal`](super::refusal). Done and Refused become Idle when SUNRPC has seen the answer or
//! wants to send the Call again.
//!
//! With one owner at a time, a Reply to a Call that was not sent yet, a second Reply, a signal and
//! a disconnect cannot interfere.

use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::{
            Acquire,
            Release, //
        },
        Atomic, //
    },
    types::Opaque, //
};

use crate::bindings::{
    self,
    list::{
        Link,
        Linked, //
    }, //
};

use super::{
    buffer::Buffer,
    refusal::Refusal,
    transport::Transport, //
};

/// No Exchange in the slot; SUNRPC or nobody owns it.
const IDLE: u32 = 0;
/// The Call may be on the wire; the Exchange is in the slot.
const SENT: u32 = 1;
/// Somebody has claimed the Exchange, and will bring the slot back to `SENT`, or take it out and
/// bring the slot to another phase.
const CLAIMED: u32 = 2;
/// The RPC is being completed. SUNRPC owns the slot, but may not know that yet. So it is in all
/// phases from this one on.
const DONE: u32 = 3;
/// The RPC was refused, and the Call is to be sent again; SUNRPC owns the slot and does not know
/// that.
const REFUSED_ONCE: u32 = 4;
/// The RPC was refused for good; as above.
const REFUSED: u32 = 5;
/// The Call is too long to be sent; as above.
const REFUSED_TOO_BIG: u32 = 6;

/// Octets for Calls and for Replies that a slot has from the start; most need no more.
const INITIAL_BUFFER: usize = 2048;

/// One RPC's place.
///
/// # Invariants
///
/// `exchange` is touched only by whoever set `phase` to `CLAIMED`, and by the send lock's holder
/// while `phase` is `IDLE`. It is there when `phase` becomes `SENT`, and is not when it becomes
/// anything else but `CLAIMED`. `reply` is touched only by the claimer, and by SUNRPC's owner of
/// the slot when there is none. The buffers belong to SUNRPC's owner.
#[repr(C)]
pub(crate) struct Slot<T: Transport> {
    rqst: Opaque<bindings::rpc_rqst>,
    /// Links the free slots.
    free: Link,
    phase: Atomic<u32>,
    exchange: UnsafeCell<Option<T::Exchange>>,
    reply: UnsafeCell<Option<T::Reply>>,
    call_buffer: UnsafeCell<Buffer>,
    reply_buffer: UnsafeCell<Buffer>,
}

// SAFETY: Access to the cells is serialised as the type's invariants say; `rpc_rqst` is SUNRPC's.
unsafe impl<T: Transport> Send for Slot<T> {}
// SAFETY: As above.
unsafe impl<T: Transport> Sync for Slot<T> {}

impl<T: Transport> Slot<T> {
    /// A slot with buffers that do for most RPCs.
    pub(super) fn new() -> Result<KBox<Self>> {
        Self::with_buffers(INITIAL_BUFFER, INITIAL_BUFFER)
    }

    /// A slot with buffers for so many octets to send and to receive.
    pub(super) fn with_buffers(call: usize, reply: usize) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                rqst: Opaque::zeroed(),
                free: Link::new(),
                phase: Atomic::new(IDLE),
                exchange: UnsafeCell::new(None),
                reply: UnsafeCell::new(None),
                call_buffer: UnsafeCell::new(Buffer::new(call)?),
                reply_buffer: UnsafeCell::new(Buffer::new(reply)?),
            },
            GFP_KERNEL,
        )?)
    }

    /// The slot around an `rpc_rqst`.
    ///
    /// # Safety
    ///
    /// `rqst` is in a live slot of a `T`.
    #[inline]
    pub(super) unsafe fn from_rqst<'a>(rqst: *mut bindings::rpc_rqst) -> &'a Self {
        // SAFETY: By this function's contract; it is the first member.
        unsafe { &*rqst.cast() }
    }

    /// SUNRPC's part.
    #[inline]
    pub(super) fn rqst(&self) -> *mut bindings::rpc_rqst {
        self.rqst.get()
    }

    /// Makes room for a Call and a Reply; returns how many octets had to be allocated.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot, in `buf_alloc`.
    #[inline]
    pub(super) unsafe fn provide_buffers(&self) -> Result<usize> {
        // SAFETY: By this function's contract, these cells and the request's sizes are ours.
        unsafe {
            let rqst = self.rqst();
            let call = &mut *self.call_buffer.get();
            let reply = &mut *self.reply_buffer.get();
            let mut grown = 0;
            if call.grow((*rqst).rq_callsize)? {
                grown += (*rqst).rq_callsize;
            }
            if reply.grow((*rqst).rq_rcvsize)? {
                grown += (*rqst).rq_rcvsize;
            }
            (*rqst).rq_buffer = call.as_ptr();
            (*rqst).rq_rbuffer = reply.as_ptr();
            Ok(grown)
        }
    }

    /// Puts the buffer for a reverse Reply where SUNRPC's callback service writes it.
    ///
    /// # Safety
    ///
    /// The caller owns the slot, and nothing in it is in use.
    pub(super) unsafe fn provide_reply_space(&self) {
        // SAFETY: By this function's contract.
        unsafe {
            let buffer = &*self.call_buffer.get();
            let snd = &raw mut (*self.rqst()).rq_snd_buf;
            (*snd) = pin_init::zeroed();
            (*snd).head[0].iov_base = buffer.as_ptr();
            (*snd).head[0].iov_len = buffer.len();
            // CAST: A few KiB.
            (*snd).buflen = buffer.len() as u32;
        }
    }

    /// Takes out the Reply that the consumer has read.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot, and no Reply can arrive for it.
    #[inline]
    pub(super) unsafe fn take_reply(&self) -> Option<T::Reply> {
        // SAFETY: By this function's contract.
        unsafe { (*self.reply.get()).take() }
    }

    /// The message that is kept in place.
    ///
    /// # Safety
    ///
    /// Nobody puts another there, or takes it, while the result is used.
    pub(super) unsafe fn reply(&self) -> Option<&T::Reply> {
        // SAFETY: By this function's contract.
        unsafe { (*self.reply.get()).as_ref() }
    }

    /// Keeps `reply` in place until [`Self::take_reply`]; gives back one from an earlier round.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot, or is its only owner.
    #[inline]
    pub(super) unsafe fn put_reply(&self, reply: T::Reply) -> Option<T::Reply> {
        // SAFETY: By this function's contract.
        unsafe { (*self.reply.get()).replace(reply) }
    }

    /// Whether the peer may still answer the slot's Call.
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        self.phase.load(Acquire) == SENT
    }

    /// Whether a Call may be sent from the slot.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.phase.load(Acquire) == IDLE
    }

    /// Puts the Exchange up; from now on a Reply can take it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and the slot is idle.
    #[inline]
    pub(super) unsafe fn commit(&self, exchange: T::Exchange) {
        // SAFETY: By this function's contract and the type's invariants. The cell is empty: whoever
        // takes the Exchange empties it before the slot is idle again.
        unsafe { self.exchange.get().write(Some(exchange)) };
        self.phase.store(SENT, Release);
    }

    /// Claims the Exchange, if it is there and nobody else has. The claimer has it from
    /// [`Self::exchange`] and calls [`Self::unclaim`], or takes it out and calls [`Self::settle`]
    /// or another.
    #[inline]
    #[must_use = "whoever has claimed it must end that"]
    pub(super) fn claim_in_place(&self) -> bool {
        self.phase.cmpxchg(SENT, CLAIMED, Acquire).is_ok()
    }

    /// The Exchange, for the claimer of the slot.
    #[inline]
    pub(super) fn exchange(&self) -> *mut Option<T::Exchange> {
        self.exchange.get()
    }

    /// Ends what [`Self::claim_in_place`] began, with the Exchange still there: the Call may be
    /// answered or given up.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot, and has not taken out the Exchange.
    #[inline]
    pub(super) unsafe fn unclaim(&self) {
        self.phase.store(SENT, Release);
    }

    /// Takes the Exchange, if it is there and nobody else has. The taker calls [`Self::settle`].
    #[inline]
    pub(super) fn claim(&self) -> Option<T::Exchange> {
        if !self.claim_in_place() {
            return None;
        }
        // SAFETY: We have just claimed it.
        unsafe { (*self.exchange()).take() }
    }

    /// Ends what [`Self::claim`] began, without a Reply.
    #[inline]
    pub(super) fn settle(&self) {
        self.phase.store(IDLE, Release);
    }

    /// Ends what [`Self::claim`] began, with a Reply that SUNRPC is told of next. Until it knows,
    /// it may want to send the Call once more.
    #[inline]
    pub(super) fn answered(&self) {
        self.phase.store(DONE, Release);
    }

    /// Ends what [`Self::claim`] began, without a Reply, and notes what SUNRPC is to be told of it.
    /// Does the same for an idle slot whose Call cannot be sent, for the send lock's holder.
    #[cold]
    pub(super) fn remember(&self, refusal: Refusal) {
        let phase = match refusal {
            Refusal::SendAgain => REFUSED_ONCE,
            Refusal::Fail => REFUSED,
            Refusal::TooBig => REFUSED_TOO_BIG,
        };
        self.phase.store(phase, Release);
    }

    /// What SUNRPC is to be told, if the RPC was refused.
    #[inline]
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self.phase.load(Acquire) {
            REFUSED_ONCE => Some(Refusal::SendAgain),
            REFUSED => Some(Refusal::Fail),
            REFUSED_TOO_BIG => Some(Refusal::TooBig),
            _ => None,
        }
    }

    /// Whether the Call has been answered.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.phase.load(Acquire) >= DONE
    }

    /// SUNRPC knows of the answer, or has no use for it any more: the slot may be used again.
    #[inline]
    pub(super) fn renew(&self) {
        if self.is_answered() {
            self.settle();
        }
    }

    /// Forgets a congestion credit of a connection that is gone.
    ///
    /// # Safety
    ///
    /// The transport's `transport_lock` is held.
    pub(super) unsafe fn forget_credit(&self) {
        // SAFETY: By this function's contract.
        unsafe { (*self.rqst()).rq_cong = 0 };
    }

    /// The RPC's number, as on the wire.
    #[inline]
    pub(crate) fn xid(&self) -> u32 {
        // SAFETY: Constant while the slot is in use.
        u32::from_be(unsafe { (*self.rqst()).rq_xid })
    }
}

/// The right to a slot that no RPC uses. Whoever has it may give the slot to one.
///
/// # Invariants
///
/// The slot is idle, has no Reply, and lives until the transport is destroyed. Nobody else has a
/// right to it.
#[must_use = "a slot that is not put back is lost"]
pub(super) struct FreeSlot<T: Transport>(NonNull<Slot<T>>);

// SAFETY: Slots may be used from any thread.
unsafe impl<T: Transport> Send for FreeSlot<T> {}

impl<T: Transport> FreeSlot<T> {
    /// # Safety
    ///
    /// As the type's invariants say.
    #[inline]
    pub(super) unsafe fn new(slot: &Slot<T>) -> Self {
        // INVARIANT: By this function's contract.
        Self(NonNull::from(slot))
    }

    /// SUNRPC's part.
    #[inline]
    pub(super) fn rqst(&self) -> *mut bindings::rpc_rqst {
        // SAFETY: Alive, by the type's invariants.
        unsafe { self.0.as_ref() }.rqst()
    }
}

// SAFETY: The link is a member of the slot, which stays in place; only whoever has the right to the
// slot uses it.
unsafe impl<T: Transport> Linked for FreeSlot<T> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        // SAFETY: A member of a valid object, hence not null.
        unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).free) }
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract, `link` is the member of a slot.
        // INVARIANT: By the same, the right to it was given up, and nobody has taken it.
        Self(unsafe { NonNull::new_unchecked(kernel::container_of!(link.as_ptr(), Slot<T>, free)) })
    }
}
