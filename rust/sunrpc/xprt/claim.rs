// SPDX-License-Identifier: GPL-2.0

//! An RPC between the arrival of its Reply and the wakeup of its task.
//!
//! C: rpc_rdma.c, rpcrdma_inline_fixup(), rpcrdma_unpin_rqst(), rpcrdma_complete_rqst()

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

use crate::{
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
        c_ref::read_once,
        call_name::CallName,
        locked_rqst::QueuedRqst,
        rpc_rqst::RqstRef,
        xdr::ReplyRoom, //
    },
    trace::Task, //
};

use super::{
    handle::{
        Header,
        XprtHandle, //
    },
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

/// Where the parts of an inline payload go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    /// The offset of the payload in the Receive buffer.
    pub(crate) payload: usize,
    /// How many bytes of the payload are the head, which stays in the Receive buffer.
    pub(crate) head: u32,
    /// The offset in the payload, and the length, of the part that is copied to the pages.
    pub(crate) copy: (u32, u32),
    /// The new `page_len`, unless it would grow; `None` leaves it.
    pub(crate) pages: Option<u32>,
    /// The offset in the payload, and the length, of the part that is copied to the tail.
    pub(crate) tail: (u32, u32),
    /// The length of the Reply that SUNRPC is told.
    pub(crate) length: u32,
}

/// An RPC that was found by the XID of its Reply.
///
/// # Invariants
///
/// - I1: The request is pinned, so slot, request, task and transport stay.
/// - I2: The owner of this value has the claim of the slot.
/// - I3: This value is dropped before the connection has ended, and `destroy` ends the connection
///   before it frees the transport.
pub(crate) struct Pinned<T: Types>(NonNull<Slot<T>>);

// SAFETY: A slot may be used, and its request unpinned, in any thread.
unsafe impl<T: Types> Send for Pinned<T> {}

impl<T: Types> Pinned<T> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: By I1 the slot stays as long as this value.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn rqst(&self) -> RqstRef<'_> {
        // SAFETY: By I1 request, task and transport stay as long as this value.
        unsafe { RqstRef::new(self.slot().rqst()) }
    }

    /// The buffer for the Reply.
    #[inline]
    pub(crate) fn room(&self) -> &ReplyRoom {
        // SAFETY: By I1 the request stays. The consumer does not access the buffer before the RPC
        // is completed, which takes the claim that by I2 the owner of this value has.
        unsafe { ReplyRoom::from_raw(&raw mut (*self.rqst().raw()).rq_rcv_buf) }
    }

    /// The XID of the RPC.
    pub(crate) fn xid(&self) -> u32 {
        self.rqst().xid()
    }

    /// The waiting task, for traces.
    pub(crate) fn task(&self) -> Task {
        self.rqst().trace_task()
    }

    /// The name of the RPC, for log messages.
    pub(crate) fn name(&self) -> CallName<'_> {
        CallName::of_task(self.rqst().task())
    }

    /// Calls `last` with `queue_lock` held, and unpins the request before the lock is released.
    #[inline]
    fn unpin(self, last: impl FnOnce(QueuedRqst<'_>)) {
        Self::unpin_after(ManuallyDrop::new(self), last);
    }

    /// As [`Self::unpin`], for a value whose drop is suppressed.
    #[inline]
    fn unpin_after(this: ManuallyDrop<Self>, last: impl FnOnce(QueuedRqst<'_>)) {
        let rqst = this.rqst();
        // By I3 the transport, whose lock this is, stays until this function has returned.
        let _locked = rqst.xprt().lock_queue();
        // SAFETY: `queue_lock` is held. By I1 the request is pinned. This function has consumed the
        // value, so this is the only unpin.
        unsafe {
            let rqst = QueuedRqst::new(rqst);
            last(rqst);
            rqst.unpin();
        }
    }
}

impl<T: Types> Drop for Pinned<T> {
    fn drop(&mut self) {
        // INVARIANT: I1 to I3: by those of `self`, whose place the new value takes.
        Self::unpin_after(ManuallyDrop::new(Self(self.0)), |_| {});
    }
}

/// An outstanding RPC that was found by its Reply and claimed. No other thread can complete it. Its
/// memory is still exposed. Dropping this leaves the RPC outstanding.
///
/// # Invariants
///
/// - I1: `claim` is the claim of the slot in `pinned`.
pub(crate) struct Claimed<T: Types> {
    // Dropped in this order. A task that waits for the request to be unpinned must find the slot
    // Sent, so that it fences what is exposed. The claim must not outlive the slot.
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
/// an RPC whose memory the peer cannot reach leaves it unanswered, and SUNRPC sends the Call again
/// on the next connection.
///
/// # Invariants
///
/// - I1: `claimed_empty` is the claim of the slot in `pinned`.
pub(crate) struct Fencing<T: Types> {
    // Dropped in this order: the claim must not outlive the slot.
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
    /// Finds the outstanding RPC with this XID and claims it. The caller is a worker of the
    /// connection, and passes the claim only to code that the end of the connection waits for.
    #[inline]
    pub(crate) fn claim(&self, xid: u32) -> Option<Claimed<T>> {
        let locked = self.xprt().lock_queue();
        let rqst = locked.lookup(xid)?;
        // SAFETY: A request in the receive queue comes from `alloc_slot`, so it is in a slot of
        // `T`. It stays while `queue_lock` is held, and once it is pinned as long as the claim.
        let slot = unsafe { Slot::<T>::of(RqstRef::new(rqst.raw())) };
        let claim = slot.slot_state.claim()?;
        rqst.pin();
        // INVARIANT: I1 of `Claimed`, I1 and I2 of `Pinned`: claimed and pinned above. I3: as the
        // caller promises, see P8 in `Documentation/architecture.rst`.
        Some(Claimed {
            claim,
            pinned: Pinned(NonNull::from(slot)),
        })
    }
}

impl<T: Types> Claimed<T> {
    /// What the transport has noted about the Call.
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

    /// Takes the RPC out of its slot, to fence its memory.
    #[inline]
    pub(crate) fn withdraw(self) -> Reachable<Fencing<T>, T::Exposed> {
        let Self { claim, pinned } = self;
        let (claimed_empty, outstanding) = claim.take();
        // INVARIANT: I1: by I1 of `self`.
        let rpc = Fencing {
            claimed_empty,
            inflight: outstanding.inflight,
            pinned,
        };
        // SAFETY: `Committing::keep` put into the slot what exposes memory of the RPC.
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

/// An RPC that its task has given up.
///
/// # Invariants
///
/// - I1: The task waits, throughout `'a`, until the peer can no longer reach the memory.
/// - I2: `'a` is that of this RPC alone: it cannot be shortened, and no caller can choose it.
/// - I3: `connection` is that of the RPC's transport.
pub(crate) struct Abandoned<'a, T: Types> {
    claimed_empty: ClaimedEmpty<'a, Outstanding<T>>,
    inflight: T::Inflight,
    connection: &'a Connection<T>,
    _own: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl<'a, T: Types> Abandoned<'a, T> {
    /// # Safety
    ///
    /// I1 to I3 hold.
    pub(super) unsafe fn withdraw(
        claim: InflightClaim<'a, Outstanding<T>>,
        connection: &'a Connection<T>,
    ) -> Reachable<Self, T::Exposed> {
        let (claimed_empty, outstanding) = claim.take();
        // INVARIANT: I1 to I3: by this function's contract.
        let rpc = Self {
            claimed_empty,
            inflight: outstanding.inflight,
            connection,
            _own: PhantomData,
        };
        // SAFETY: `Committing::keep` put into the slot what exposes memory of the RPC.
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

// SAFETY: A Call is posted on the endpoint of its transport's connection ([`Keep`]), which by I3
// this is. A transport has one connection at a time, and drops it before it has another.
//
// [`Keep`]: crate::lib::fence::Keep
unsafe impl<T: Types> ExposedOn for Abandoned<'_, T> {
    type Endpoint = T::Endpoint;

    fn endpoint(&self) -> &T::Endpoint {
        &self.connection.ep
    }
}

impl<T: Types> Fenced<Fencing<T>> {
    /// Completes the RPC with a Reply of which at least a part is in `reply`. Returns an older
    /// message that the slot held, and the number of bytes copied.
    #[inline(always)]
    pub(crate) fn complete(self, reply: T::Reply, scatter: &Scatter) -> (Option<T::Reply>, usize) {
        let bytes = reply.bytes();
        let payload = bytes.get(scatter.payload..).unwrap_or(&[]);
        let part = |(offset, len): (u32, u32)| {
            let end = offset.checked_add(len)? as usize;
            payload.get(offset as usize..end).filter(|_| len != 0)
        };
        let copied = part(scatter.copy).map_or(0, |from| self.room().store_pages(from));
        if let Some(from) = part(scatter.tail) {
            self.room().store_tail(from);
        }
        let head = payload.get(..scatter.head as usize).unwrap_or(payload);
        let head = reply.kvec_of(head);
        let rqst = self.rqst().raw();
        // SAFETY: By I1 of `Pinned` the request stays. The consumer does not access the buffers
        // before `wake`. It then reads the head in the Receive buffer, or decrypts it there. The
        // slot stores `reply`, and no other thread accesses its bytes, until the consumer has done
        // so.
        unsafe {
            // SUNRPC compares the two buffers, so each change is made to both.
            for buf in [&raw mut (*rqst).rq_rcv_buf, &raw mut (*rqst).rq_private_buf] {
                (*buf).head[0] = head;
                if let Some(pages) = scatter.pages {
                    (*buf).page_len = pages.min((*buf).page_len);
                }
                // When SUNRPC's decoder shortens head or pages, it lengthens the tail if `buflen`
                // exceeds the sum of the parts. There is no memory behind the tail. CAST: The parts
                // of a message are shorter than 4 GiB together.
                let ends = (*buf).head[0].iov_len + (*buf).tail[0].iov_len;
                (*buf).buflen = (*buf).page_len + ends as u32;
            }
        }
        // SAFETY: By I1 this value has the claim of the slot.
        let old = unsafe { self.slot().reply().replace(reply) };
        self.into_inner().wake(scatter.length);
        (old, copied)
    }

    /// Completes the RPC with a Reply of `length` bytes, which the peer has written to the
    /// consumer's buffers.
    pub(crate) fn complete_in_place(self, length: u32) {
        self.into_inner().wake(length);
    }
}

impl<T: Types> Fencing<T> {
    #[inline]
    fn wake(self, length: u32) {
        self.release_with_queue_lock(|rqst, claimed_empty| {
            claimed_empty.answered();
            // SAFETY: A request that comes from `alloc_slot` has a client's transport.
            unsafe { Header::last_answer(rqst.xprt()) }.note(rqst.number());
            // The consumer reads `length` bytes, so they must not exceed the buffer. It rejects
            // lengths that are no multiple of 4 (placement.rs names the peers that send them).
            let room = read_once!(rqst.fields(), rq_private_buf.buflen);
            let length = length.saturating_add(3).min(room);
            // CAST: Shorter than 2 GiB.
            rqst.complete((length & !3) as i32);
        });
    }

    /// Calls `last` with `queue_lock` held, and then unpins the request. Before that, the task
    /// cannot release the request.
    #[inline]
    pub(super) fn release_with_queue_lock(
        self,
        last: impl FnOnce(QueuedRqst<'_>, ClaimedEmpty<'_, Outstanding<T>>),
    ) {
        let Self {
            claimed_empty,
            pinned,
            ..
        } = self;
        pinned.unpin(|rqst| last(rqst, claimed_empty));
    }
}
