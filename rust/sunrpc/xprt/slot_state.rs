// SPDX-License-Identifier: GPL-2.0

//! The state of a slot's RPC, and the right to access what its Call exposes.
//!
//! While a Call waits for its Reply, its [`Outstanding`] (what exposes its memory to the peer) may
//! be claimed. The first thread that claims it gets it:
//!
//! ```text
//! Idle --refuse_unsent (send lock)--> Refused
//! Idle --commit (send lock)--> Sent --claim (receive worker)--> Claimed --answered--> Done
//!                               |                              |\--refused--> Refused --wait--> Done
//!                               | <-- InflightClaim dropped ---|
//!                               |                              \--ClaimedEmpty dropped--> Idle
//!                               |-- abandon (buf_free), sweep (disconnect) --> Idle
//! ```
//!
//! A claim is a token, an [`InflightClaim`]. Its owner leaves the [`Outstanding`] in place until
//! fencing starts. If fencing does not start, or fails, the state returns to Sent, so that
//! `buf_free` or the disconnect still finds what the peer can reach.
//!
//! Refused: the peer refused the Call, or this end found that it cannot be sent, before the task
//! waited for a Reply; see [`refusal`](super::refusal). Done and Refused return to Idle when SUNRPC
//! has seen the result or is about to send the Call again.
//!
//! There is one claim at a time. So a Reply to a Call that has not been sent, a second Reply, a
//! signal and a disconnect cannot interfere with each other.
//!
//! The C module instead counts references to a `struct rpcrdma_req` (`rl_kref`).
//!
//! [`Outstanding`]: super::types::Outstanding

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::ManuallyDrop, //
};

use kernel::sync::atomic::ordering::{
    Acquire,
    Relaxed,
    Release, //
};

use crate::lib::sync::Atomic;

/// No Call is outstanding. The slot is free, or its RPC owns it.
const IDLE: u32 = 0;
/// The Call may be on the wire, and the `Outstanding` is there.
const SENT: u32 = 1;
/// The `Outstanding` is claimed. The claim's owner returns to `SENT`, or takes it out and goes on
/// to another state.
const CLAIMED: u32 = 2;
/// The RPC is being completed. From this state on, SUNRPC owns the slot, but may not know that yet.
const DONE: u32 = 3;
/// The Call was refused and will be sent again ([`Refusal::SendAgain`]). SUNRPC does not know yet.
const REFUSED_SEND_AGAIN: u32 = 4;
/// The Call was refused, and the RPC fails ([`Refusal::Fail`]). SUNRPC does not know yet.
const REFUSED_FAIL: u32 = 5;
/// The Call is too long ([`Refusal::TooBig`]). SUNRPC does not know yet.
const REFUSED_TOO_BIG: u32 = 6;

/// What becomes of an RPC that ends without a Reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// SUNRPC sends the Call again over this connection, with the same XID.
    SendAgain,
    /// The RPC ends with `EIO`.
    Fail,
    /// The RPC ends with `EMSGSIZE`: the transport cannot carry the Call.
    TooBig,
}

/// The state of a slot's RPC, with its `Outstanding`.
///
/// # Invariants
///
/// - I1: Only the holder of the send lock changes `state` from `IDLE`; a claim changes it from
///   `SENT` to `CLAIMED`; only that claim's [`InflightClaim`] or [`ClaimedEmpty`] changes it from
///   `CLAIMED`; and only SUNRPC's owner of the slot changes it from `DONE` and the states after it.
/// - I2: `inflight` is `Some` in `SENT`, and in `CLAIMED` while there is an [`InflightClaim`]. It
///   is `None` otherwise.
/// - I3: Only the claim accesses `inflight`, and the holder of the send lock in `IDLE`.
pub(super) struct SlotState<E> {
    state: Atomic<u32>,
    inflight: UnsafeCell<Option<E>>,
}

// SAFETY: By I3 one thread at a time accesses the cell, and moves the `E` to its own thread.
unsafe impl<E: Send> Sync for SlotState<E> {}

impl<E> SlotState<E> {
    /// Idle.
    pub(super) const fn new() -> Self {
        // INVARIANT: I2: There is no `Outstanding` in `IDLE`.
        Self {
            state: Atomic::new(IDLE),
            inflight: UnsafeCell::new(None),
        }
    }

    /// Whether the Call is outstanding: the peer may still reply to it.
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        self.state.load(Acquire) == SENT
    }

    /// Whether the Call is on the wire, or an answer to it is being handled. An unordered read, for
    /// the state file.
    pub(super) fn is_outstanding(&self) -> bool {
        matches!(self.state.load(Relaxed), SENT | CLAIMED)
    }

    /// Whether a Call may be sent from the slot.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.state.load(Acquire) == IDLE
    }

    /// Stores the `Outstanding`. From now on a Reply can claim it.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and the slot is idle.
    #[inline]
    pub(super) unsafe fn commit(&self, inflight: E) {
        // SAFETY: By I3 the holder of the send lock may access the cell in `IDLE`. By I2 it is
        // `None`, so nothing is dropped.
        unsafe { self.inflight.get().write(Some(inflight)) };
        self.state.store(SENT, Release);
    }

    /// Claims the `Outstanding`; `None` if no Call is outstanding or another thread has claimed it.
    #[inline]
    pub(super) fn claim(&self) -> Option<InflightClaim<'_, E>> {
        self.state.cmpxchg(SENT, CLAIMED, Acquire).ok()?;
        // INVARIANT: I1 and I2 of `InflightClaim`: this thread has just changed the state from
        // `SENT`, in which the `Outstanding` is there.
        Some(InflightClaim(self, PhantomData))
    }

    /// Stores the result of a Call that cannot be sent.
    ///
    /// # Safety
    ///
    /// The caller holds the send lock, and the slot is idle.
    #[cold]
    pub(super) unsafe fn refuse_unsent(&self, refusal: Refusal) {
        self.store_refusal(refusal);
    }

    /// The caller has the right to change the state.
    #[cold]
    fn store_refusal(&self, refusal: Refusal) {
        let state = match refusal {
            Refusal::SendAgain => REFUSED_SEND_AGAIN,
            Refusal::Fail => REFUSED_FAIL,
            Refusal::TooBig => REFUSED_TOO_BIG,
        };
        self.state.store(state, Release);
    }

    /// Takes the stored refusal, if there is one. The state is then Done.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot.
    #[inline]
    pub(super) unsafe fn take_refusal(&self) -> Option<Refusal> {
        let refusal = match self.state.load(Acquire) {
            REFUSED_SEND_AGAIN => Refusal::SendAgain,
            REFUSED_FAIL => Refusal::Fail,
            REFUSED_TOO_BIG => Refusal::TooBig,
            _ => return None,
        };
        self.state.store(DONE, Release);
        Some(refusal)
    }

    /// Whether the Call has been answered or refused.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.state.load(Acquire) >= DONE
    }

    /// Returns from Done or Refused to Idle: SUNRPC knows the result, or no longer needs it.
    ///
    /// # Safety
    ///
    /// The caller is SUNRPC's owner of the slot.
    #[inline]
    pub(super) unsafe fn reset(&self) {
        if self.is_answered() {
            self.state.store(IDLE, Release);
        }
    }
}

/// The claim of a slot whose Call is outstanding, and of its `Outstanding`. Dropping it returns the
/// slot to Sent.
///
/// # Invariants
///
/// - I1: The state is `CLAIMED`, and there is no other claim.
/// - I2: The `Outstanding` is there.
#[must_use = "no Reply can be matched while the slot is claimed"]
pub(super) struct InflightClaim<'a, E>(&'a SlotState<E>, PhantomData<E>);

impl<'a, E> InflightClaim<'a, E> {
    /// What the Call exposes.
    #[inline]
    pub(super) fn inflight(&self) -> &E {
        // SAFETY: By I1 only this claim accesses the cell, and a change takes `&mut self`. By I2 it
        // is `Some`.
        unsafe { (*self.0.inflight.get()).as_ref().unwrap_unchecked() }
    }

    /// What the Call exposes.
    #[inline]
    pub(super) fn inflight_mut(&mut self) -> &mut E {
        // SAFETY: By I1 only this claim accesses the cell, and `self` is borrowed mutably. By I2 it
        // is `Some`.
        unsafe { (*self.0.inflight.get()).as_mut().unwrap_unchecked() }
    }

    /// Takes out what the Call exposes.
    #[inline]
    pub(super) fn take(self) -> (ClaimedEmpty<'a, E>, E) {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: By I1 only this claim accesses the cell. By I2 it is `Some`.
        let inflight = unsafe { (*slot.inflight.get()).take().unwrap_unchecked() };
        // INVARIANT: I1 of `ClaimedEmpty`: the claim was not dropped, and its cell is empty.
        (ClaimedEmpty(slot), inflight)
    }
}

impl<E> Drop for InflightClaim<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.0.state.store(SENT, Release);
    }
}

/// A claimed slot whose `Outstanding` has been taken out. Dropping it leaves the Call without an
/// answer, and SUNRPC may send it again.
///
/// # Invariants
///
/// - I1: The state is `CLAIMED`, there is no other claim, and `inflight` is `None`.
#[must_use = "dropping it leaves the Call without an answer"]
pub(super) struct ClaimedEmpty<'a, E>(&'a SlotState<E>);

impl<E> ClaimedEmpty<'_, E> {
    /// Leaves the Call without an answer.
    #[inline]
    pub(super) fn give_up(self) {}

    /// Puts the `Outstanding` back: the Call is outstanding as before.
    #[cold]
    pub(super) fn put_back(self, inflight: E) {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: By I1 only this claim accesses the cell.
        unsafe { *slot.inflight.get() = Some(inflight) };
        slot.state.store(SENT, Release);
    }

    /// The Call is answered, and the caller tells SUNRPC next. SUNRPC may try to send the Call
    /// once more before it knows.
    #[inline]
    pub(super) fn answered(self) {
        ManuallyDrop::new(self).0.state.store(DONE, Release);
    }

    /// The Call is refused. The task finds the refusal when it waits for the Reply.
    #[cold]
    pub(super) fn refused(self, refusal: Refusal) {
        ManuallyDrop::new(self).0.store_refusal(refusal);
    }
}

impl<E> Drop for ClaimedEmpty<'_, E> {
    #[inline]
    fn drop(&mut self) {
        self.0.state.store(IDLE, Release);
    }
}
