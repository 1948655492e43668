// SPDX-License-Identifier: GPL-2.0

//! A Reply on its way to the task that waits for it.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

use crate::{
    bindings,
    lib::{
        fence::{
            ExposedOn,
            Fenced,
            Locked,
            Owner,
            Reachable, //
        },
        foreign_buf::ForeignBuf, //
    },
    sunrpc::{
        locks,
        xdr::ReplyRoom, //
    },
    trace::Task, //
};

use super::{
    handle::XprtHandle,
    slot::Slot,
    slot_state::{
        ClaimedEmpty,
        InflightClaim, //
    },
    types::{
        Connection,
        Outstanding,
        Types, //
    }, //
};

/// Which bytes of an inline payload go where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    /// Where in the Receive buffer the payload starts.
    pub(crate) payload: usize,
    /// Bytes of the payload that are the head, in place.
    pub(crate) head: u32,
    /// Offset in the payload, and bytes, of what is copied to the start of the pages.
    pub(crate) copy: (u32, u32),
    /// The new length of the pages, which does not grow; `None` leaves it.
    pub(crate) pages: Option<u32>,
    /// Offset in the payload, and bytes, of what is copied to the start of the tail.
    pub(crate) tail: (u32, u32),
    /// What SUNRPC is told is the length of the Reply.
    pub(crate) length: u32,
}

/// An RPC that has been found by its Reply: SUNRPC keeps it in place until this is dropped.
///
/// # Invariants
///
/// The request in the slot is pinned, so that slot, request, task and transport stay. The Exchange
/// is claimed by whoever has this.
pub(crate) struct Pinned<T: Types>(NonNull<Slot<T>>);

// SAFETY: Whoever has the claim may use the slot, and unpin the request, on any thread.
unsafe impl<T: Types> Send for Pinned<T> {}

impl<T: Types> Pinned<T> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: In place, by the type's invariants.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn rqst(&self) -> *mut bindings::rpc_rqst {
        self.slot().rqst()
    }

    /// The room that the consumer has prepared.
    #[inline]
    pub(crate) fn room(&self) -> &ReplyRoom {
        // SAFETY: In place, and SUNRPC leaves it alone until the RPC is completed.
        unsafe { ReplyRoom::from_raw(&raw mut (*self.rqst()).rq_rcv_buf) }
    }

    /// The task that waits, for traces.
    pub(crate) fn task(&self) -> Task {
        // SAFETY: The task waits for this.
        unsafe { self.slot().task() }
    }

    /// Lets SUNRPC release the request, after a `last` look at it with `queue_lock`.
    #[inline]
    fn unpin(self, last: impl FnOnce(&Slot<T>)) {
        let this = ManuallyDrop::new(self);
        // SAFETY: Not used any more.
        unsafe { this.unpin_after(last) };
    }

    /// # Safety
    ///
    /// Nothing here is used afterwards.
    #[inline]
    unsafe fn unpin_after(&self, last: impl FnOnce(&Slot<T>)) {
        let rqst = self.rqst();
        // SAFETY: Pinned until the end of this block, and the transport with it. No more of the
        // request than that is touched once it is unpinned.
        unsafe {
            let _locked = locks::queue((*rqst).rq_xprt);
            last(self.slot());
            bindings::xprt_unpin_rqst(rqst);
        }
    }
}

impl<T: Types> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: Being dropped.
        unsafe { self.unpin_after(|_| {}) };
    }
}

/// An RPC that waits for its Reply and has been found by it: nobody else can answer it. What it
/// exposes is still exposed, and stays where others find it: dropping this leaves the RPC as it
/// was, to be answered, given up, or sent again on the next connection.
///
/// # Invariants
///
/// The claim is that of the pinned slot.
pub(crate) struct Claimed<T: Types> {
    // Dropped in this order: whoever waits for the request to be unpinned finds that there is
    // something to fence, and the claim does not outlive the slot.
    claim: InflightClaim<'static, Outstanding<T>>,
    pinned: Pinned<T>,
}

impl<T: Types> Deref for Claimed<T> {
    type Target = Pinned<T>;

    #[inline]
    fn deref(&self) -> &Pinned<T> {
        &self.pinned
    }
}

/// An answered RPC whose memory is being fenced. Only a [`Fenced`] one can be completed. Dropping
/// one that the peer cannot reach leaves it without an answer, to be sent again on the next
/// connection.
///
/// # Invariants
///
/// As for [`Claimed`].
pub(crate) struct Fencing<T: Types> {
    // Dropped in this order.
    claimed_empty: ClaimedEmpty<'static, Outstanding<T>>,
    inflight: T::Inflight,
    pinned: Pinned<T>,
}

impl<T: Types> Deref for Fencing<T> {
    type Target = Pinned<T>;

    #[inline]
    fn deref(&self) -> &Pinned<T> {
        &self.pinned
    }
}

impl<T: Types> XprtHandle<T> {
    /// Finds the RPC with this number that was sent and has not been answered.
    #[inline]
    pub(crate) fn claim(&self, xid: u32) -> Option<Claimed<T>> {
        let raw = self.raw();
        // SAFETY: The transport's memory is there. `queue_lock` is held where SUNRPC asks for it.
        // What is in the queue of those that wait came out of our `alloc_slot`, and stays while the
        // lock is held. Once it is pinned, it stays for longer than the claim.
        unsafe {
            let _locked = locks::queue(raw);
            let rqst = bindings::xprt_lookup_rqst(raw, xid.to_be());
            let slot = Slot::<T>::from_rqst(NonNull::new(rqst)?.as_ptr());
            let claim = slot.slot_state.claim()?;
            bindings::xprt_pin_rqst(rqst);
            // INVARIANT: Just claimed and pinned.
            Some(Claimed {
                claim,
                pinned: Pinned(NonNull::from(slot)),
            })
        }
    }
}

impl<T: Types> Claimed<T> {
    /// What the transport has noted of the Call.
    #[inline]
    pub(crate) fn inflight(&self) -> T::Inflight {
        self.claim.inflight().inflight
    }

    /// What exposes memory of the RPC.
    #[inline]
    pub(crate) fn exposed(&self) -> &T::Exposed {
        &self.claim.inflight().exposed
    }

    /// What exposes memory of the RPC, for the room that has made it.
    #[inline]
    pub(crate) fn exposed_mut(&mut self) -> Locked<'_, T::Exposed> {
        Locked::new(&mut self.claim.inflight_mut().exposed)
    }

    /// Takes the RPC out, for its memory to be fenced.
    #[inline]
    pub(crate) fn withdraw(self) -> Reachable<Fencing<T>, T::Exposed> {
        let Self { claim, pinned } = self;
        let (claimed_empty, outstanding) = claim.take();
        // INVARIANT: Claim and pin are those of `self`.
        let rpc = Fencing {
            claimed_empty,
            inflight: outstanding.inflight,
            pinned,
        };
        // SAFETY: What exposed memory of the RPC was put into its slot.
        unsafe { Reachable::new(rpc, outstanding.exposed) }
    }
}

impl<T: Types> Owner<T::Exposed> for Fencing<T> {
    fn keep_exposed(self, exposed: T::Exposed) {
        let inflight = self.inflight;
        // Before the request is unpinned.
        self.claimed_empty
            .put_back(Outstanding { exposed, inflight });
    }
}

/// An RPC whose task has given it up.
///
/// # Invariants
///
/// - I1: The task waits, throughout `'a`, until the peer can no longer reach the memory.
/// - I2: `'a` is that of this RPC alone.
pub(crate) struct Abandoned<'a, T: Types> {
    claimed_empty: ClaimedEmpty<'a, Outstanding<T>>,
    inflight: T::Inflight,
    connection: &'a Connection<T>,
    _own: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a, T: Types> Abandoned<'a, T> {
    /// # Safety
    ///
    /// The type's invariants hold. `connection` is that of the transport.
    pub(super) unsafe fn withdraw(
        claim: InflightClaim<'a, Outstanding<T>>,
        connection: &'a Connection<T>,
    ) -> Reachable<Self, T::Exposed> {
        let (claimed_empty, outstanding) = claim.take();
        // INVARIANT: By this function's contract.
        let rpc = Self {
            claimed_empty,
            inflight: outstanding.inflight,
            connection,
            _own: PhantomData,
        };
        // SAFETY: What exposed memory of the RPC was put into its slot.
        unsafe { Reachable::new(rpc, outstanding.exposed) }
    }
}

impl<T: Types> Owner<T::Exposed> for Abandoned<'_, T> {
    fn keep_exposed(self, exposed: T::Exposed) {
        let inflight = self.inflight;
        self.claimed_empty
            .put_back(Outstanding { exposed, inflight });
    }
}

// SAFETY: A Call is posted on the endpoint of its transport's connection ([`Keep`]). There is one
// at a time, and the transport drops the last one before it has another.
//
// [`Keep`]: crate::lib::fence::Keep
unsafe impl<T: Types> ExposedOn for Abandoned<'_, T> {
    type Endpoint = T::Endpoint;

    fn endpoint(&self) -> &T::Endpoint {
        &self.connection.ep
    }
}

impl<T: Types> Fenced<Fencing<T>> {
    /// Completes the RPC with a Reply of which at least a part is in `reply`. Gives back an older
    /// message that the request held, and how many bytes were copied.
    #[inline]
    pub(crate) fn complete(self, reply: T::Reply, scatter: &Scatter) -> (Option<T::Reply>, usize) {
        let bytes = reply.bytes();
        let payload = bytes.get(scatter.payload..).unwrap_or(&[]);
        let run = |(offset, len): (u32, u32)| {
            let end = offset.checked_add(len)? as usize;
            payload.get(offset as usize..end).filter(|_| len != 0)
        };
        let copied = run(scatter.copy).map_or(0, |from| self.room().store_pages(from));
        if let Some(from) = run(scatter.tail) {
            self.room().store_tail(from);
        }
        let head = payload.get(..scatter.head as usize).unwrap_or(payload);
        let head = reply.place_of(head);
        // SAFETY: The consumer waits until it is woken below. It then reads the head in the Receive
        // buffer, or decrypts it there. The slot keeps that, and nobody else looks at it, until the
        // consumer has done so.
        unsafe {
            let rcv = &raw mut (*self.rqst()).rq_rcv_buf;
            let private = &raw mut (*self.rqst()).rq_private_buf;
            // SUNRPC compares the two: what is changed in one is changed in the other.
            for buf in [rcv, private] {
                (*buf).head[0] = head;
                if let Some(pages) = scatter.pages {
                    (*buf).page_len = pages.min((*buf).page_len);
                }
                // By what `buflen` exceeds the parts SUNRPC's decoder makes the tail longer, when
                // it makes head or pages shorter. There is no such room. CAST: Both are parts of a
                // message, which is shorter than 4 GiB.
                let ends = (*buf).head[0].iov_len + (*buf).tail[0].iov_len;
                (*buf).buflen = (*buf).page_len + ends as u32;
            }
        }
        // SAFETY: Claimed by us.
        let old = unsafe { self.slot().put_reply(reply) };
        self.into_inner().wake(scatter.length);
        (old, copied)
    }

    /// Completes the RPC with a Reply of `length` bytes that is where the consumer expects it.
    pub(crate) fn complete_in_place(self, length: u32) {
        self.into_inner().wake(length);
    }
}

impl<T: Types> Fencing<T> {
    #[inline]
    fn wake(self, length: u32) {
        let Self {
            claimed_empty,
            pinned,
            ..
        } = self;
        claimed_empty.answered();
        pinned.unpin(|slot| {
            // SAFETY: Pinned, and the lock is held.
            unsafe {
                let rqst = slot.rqst();
                // No more than its parts, for the consumer reads as much. CAST: Nor as 2 GiB.
                let length = length.min((*rqst).rq_private_buf.buflen);
                bindings::xprt_complete_rqst((*rqst).rq_task, length.cast_signed());
            }
        });
    }

    /// Gives up the claim. Whoever `last` leaves the slot to cannot go on with it before this is
    /// done.
    #[inline]
    pub(super) fn last_with_queue_lock(
        self,
        last: impl FnOnce(&Slot<T>, ClaimedEmpty<'_, Outstanding<T>>),
    ) {
        let Self {
            claimed_empty,
            pinned,
            ..
        } = self;
        pinned.unpin(|slot| last(slot, claimed_empty));
    }
}
