// SPDX-License-Identifier: GPL-2.0

//! How far a slot's RPC is, and who may touch what it exposes.
//!
//! While a Call waits for its Reply, its [`Transport::Inflight`] (the memory that the peer may
//! reach) is up for whoever takes it first:
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
//! A claim is a token, an [`InflightClaim`]. The claimer leaves the Exchange in place until it is
//! fenced. If that does not happen the slot is Sent again, so that whoever gives up the RPC, or the
//! end of the connection, finds what the peer can still reach.
//!
//! Refused: refused, or found impossible to send, before its task waited for a Reply; see
//! [`refusal`](super::refusal). Done and Refused become Idle when SUNRPC has seen the answer or
//! wants to send the Call again.
//!
//! With one claimer at a time, a Reply to a Call that was not sent yet, a second Reply, a signal
//! and a disconnect cannot interfere.
//!
//! [`Transport::Inflight`]: super::types::Types::Inflight

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop, //
};

use kernel::sync::atomic::{
    ordering::{
        Acquire,
        Release, //
    },
    Atomic, //
};

/// No Exchange; SUNRPC or nobody owns it.
const IDLE: u32 = 0;
/// The Call may be on the wire; the Exchange is there.
const SENT: u32 = 1;
/// Somebody has claimed the Exchange, and will go back to `SENT`, or take it out and go on to
/// another phase.
const CLAIMED: u32 = 2;
/// The RPC is being completed. SUNRPC owns the slot, but may not know that yet. So it is in all
/// phases from this one on.
const DONE: u32 = 3;
/// The RPC was refused, and the Call is to be sent again ([`Refusal::SendAgain`]); SUNRPC owns the
/// slot and does not know that.
const REFUSED_ONCE: u32 = 4;
/// The RPC was refused for good; as above.
const REFUSED: u32 = 5;
/// The Call is too long to be sent; as above.
const REFUSED_TOO_BIG: u32 = 6;

/// How a refused RPC goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The Call is sent again over this connection, with the same XID.
    SendAgain,
    /// It ends with `EIO`.
    Fail,
    /// It ends with `EMSGSIZE`: the Call does not fit the transport.
    TooBig,
}

/// The phase of an RPC, with its Exchange.
///
/// # Invariants
///
/// `slot_state` leaves `IDLE` only by the send lock's holder, `SENT` only for `CLAIMED`, `CLAIMED`
/// only by the one [`InflightClaim`] or [`ClaimedEmpty`] that there is then, and the phases from
/// `DONE` on only by SUNRPC's owner of the slot.
///
/// `inflight` is touched only by that claim, and by the send lock's holder while `slot_state` is
/// `IDLE`. It is there when `slot_state` is `SENT`, and is not in any other phase but `CLAIMED`.
pub(super) struct SlotState<E> {
    slot_state: Atomic<u32>,
    inflight: UnsafeCell<Option<E>>,
}

// SAFETY: Access to the cell is serialised as the type's invariants say.
unsafe impl<E: Send> Sync for SlotState<E> {}

impl<E> SlotState<E> {
    /// Idle.
    pub(super) const fn new() -> Self {
        // INVARIANT: No Exchange, and nobody has a claim.
        Self {
            slot_state: Atomic::new(IDLE),
            inflight: UnsafeCell::new(None),
        }
    }

    /// Whether the peer may still answer the slot's Call.
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        self.slot_state.load(Acquire) == SENT
    }

    /// Whether a Call may be sent from the slot.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.slot_state.load(Acquire) == IDLE
    }

    /// Puts the Exchange up; from now on a Reply can take it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and the slot is idle.
    #[inline]
    pub(super) unsafe fn commit(&self, inflight: E) {
        // SAFETY: By this function's contract and the type's invariants. The cell is empty: whoever
        // takes the Exchange empties it before the slot is idle again.
        unsafe { self.inflight.get().write(Some(inflight)) };
        self.slot_state.store(SENT, Release);
    }

    /// Claims the Exchange, if it is there and nobody else has.
    #[inline]
    pub(super) fn claim(&self) -> Option<InflightClaim<'_, E>> {
        self.slot_state.cmpxchg(SENT, CLAIMED, Acquire).ok()?;
        // INVARIANT: Claimed just now; what was sent has its Exchange.
        Some(InflightClaim(self, PhantomData))
    }

    /// Notes what SUNRPC is to be told of a Call that cannot be sent.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and the slot is idle.
    #[cold]
    pub(super) unsafe fn refuse_unsent(&self, refusal: Refusal) {
        self.refused(refusal);
    }

    /// The caller has the right to end the present phase.
    #[cold]
    fn refused(&self, refusal: Refusal) {
        let slot_state = match refusal {
            Refusal::SendAgain => REFUSED_ONCE,
            Refusal::Fail => REFUSED,
            Refusal::TooBig => REFUSED_TOO_BIG,
        };
        self.slot_state.store(slot_state, Release);
    }

    /// What SUNRPC is to be told, if the RPC was refused. It has been answered then.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot.
    #[inline]
    pub(super) unsafe fn take_refusal(&self) -> Option<Refusal> {
        let refusal = match self.slot_state.load(Acquire) {
            REFUSED_ONCE => Refusal::SendAgain,
            REFUSED => Refusal::Fail,
            REFUSED_TOO_BIG => Refusal::TooBig,
            _ => return None,
        };
        self.slot_state.store(DONE, Release);
        Some(refusal)
    }

    /// Whether the Call has been answered.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.slot_state.load(Acquire) >= DONE
    }

    /// SUNRPC knows of the answer, or has no use for it any more: the slot may be used again.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot.
    #[inline]
    pub(super) unsafe fn renew(&self) {
        if self.is_answered() {
            self.slot_state.store(IDLE, Release);
        }
    }
}

/// The claim of a slot whose Call waits for its Reply, and of what that exposes. Dropping it leaves
/// the Call as it was, to be answered or given up.
///
/// # Invariants
///
/// `slot_state` is `CLAIMED`, for the owner of this alone, and the Exchange is there.
#[must_use = "the Call cannot be answered meanwhile"]
pub(super) struct InflightClaim<'a, E>(&'a SlotState<E>, PhantomData<E>);

impl<'a, E> InflightClaim<'a, E> {
    /// What the Call exposes.
    #[inline]
    pub(super) fn inflight(&self) -> &E {
        // SAFETY: Claimed by us, and there, by the type's invariants. Nobody changes it meanwhile:
        // that takes a mutable reference.
        unsafe { (*self.0.inflight.get()).as_ref().unwrap_unchecked() }
    }

    /// What the Call exposes.
    #[inline]
    pub(super) fn inflight_mut(&mut self) -> &mut E {
        // SAFETY: Claimed by us, and there, by the type's invariants.
        unsafe { (*self.0.inflight.get()).as_mut().unwrap_unchecked() }
    }

    /// Takes out what the Call exposes.
    #[inline]
    pub(super) fn take(self) -> (ClaimedEmpty<'a, E>, E) {
        let slot_state = ManuallyDrop::new(self).0;
        // SAFETY: Claimed by us, and there, by the type's invariants.
        let inflight = unsafe { (*slot_state.inflight.get()).take().unwrap_unchecked() };
        // INVARIANT: Still claimed, and taken out just now.
        (ClaimedEmpty(slot_state), inflight)
    }
}

impl<E> Drop for InflightClaim<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.0.slot_state.store(SENT, Release);
    }
}

/// A claimed slot that the Exchange was taken out of. Dropping it leaves the Call without an
/// answer; it may be sent again.
///
/// # Invariants
///
/// `slot_state` is `CLAIMED`, for the owner of this alone, and there is no Exchange.
#[must_use = "the Call is as good as not sent if this is dropped"]
pub(super) struct ClaimedEmpty<'a, E>(&'a SlotState<E>);

impl<E> ClaimedEmpty<'_, E> {
    /// The Call has no answer.
    #[inline]
    pub(super) fn settle(self) {}

    /// Puts the Exchange back: the Call waits for its Reply as before.
    #[cold]
    pub(super) fn put_back(self, inflight: E) {
        let slot_state = ManuallyDrop::new(self).0;
        // SAFETY: Claimed by us, by the type's invariants.
        unsafe { *slot_state.inflight.get() = Some(inflight) };
        slot_state.slot_state.store(SENT, Release);
    }

    /// The Call has an answer, which SUNRPC is told of next. Until it knows, it may want to send
    /// the Call once more.
    #[inline]
    pub(super) fn answered(self) {
        ManuallyDrop::new(self).0.slot_state.store(DONE, Release);
    }

    /// The Call was refused: notes what SUNRPC is to be told when it waits for the Reply.
    #[cold]
    pub(super) fn refused(self, refusal: Refusal) {
        ManuallyDrop::new(self).0.refused(refusal);
    }
}

impl<E> Drop for ClaimedEmpty<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.0.slot_state.store(IDLE, Release);
    }
}
