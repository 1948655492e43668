// SPDX-License-Identifier: GPL-2.0

//! A Reply on its way to the task that waits for it.

use super::slot::task_of;
use super::slot::Slot;
use super::xdr::XdrBuf;
use super::xprt::Transport;
use super::xprt::XprtHandle;
use crate::admin::trace::Task;
use crate::bindings;
use crate::bindings::parked::Parked;
use core::ptr::NonNull;

/// Which octets of an inline payload go where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    /// Where in the Receive buffer the payload starts.
    pub(crate) payload: usize,
    /// Octets of the payload that are the head, in place.
    pub(crate) head: u32,
    /// Offset in the payload, and octets, of what is copied to the start of the pages.
    pub(crate) copy: (u32, u32),
    /// The new length of the pages; `None` leaves it.
    pub(crate) pages: Option<u32>,
    /// Offset in the payload, and octets, of the tail, in place; no octets leave the tail.
    pub(crate) tail: (u32, u32),
    /// What SUNRPC is told is the length of the Reply.
    pub(crate) length: u32,
}

/// An RPC that waits for its Reply and has been found by it: nobody else can answer it, and SUNRPC
/// keeps it in place until it is completed or dropped. Dropping it leaves it without an answer, to be
/// sent again on the next connection.
///
/// # Invariants
///
/// The slot is claimed by this and its request pinned, so that slot, request, task and transport
/// stay.
pub(crate) struct Claimed<T: Transport>(NonNull<Slot<T>>);

// SAFETY: Whoever has the claim may use it, on any thread.
unsafe impl<T: Transport> Send for Claimed<T> {}
// SAFETY: A shared reference only reads what is constant while claimed.
unsafe impl<T: Transport> Sync for Claimed<T> {}

impl<T: Transport> XprtHandle<T> {
    /// Finds the RPC with this number that was sent and has not been answered, and takes what it
    /// exposes.
    #[inline]
    pub(crate) fn claim(&self, xid: u32) -> Option<(Claimed<T>, T::Exchange)> {
        let raw = self.raw();
        // SAFETY: The transport's memory is there. `queue_lock` is held where SUNRPC asks for it.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).queue_lock);
            let rqst = bindings::xprt_lookup_rqst(raw, xid.to_be());
            // What is in the queue of those that wait came out of our `alloc_slot`.
            let found = NonNull::new(rqst).and_then(|rqst| {
                let slot = Slot::<T>::from_rqst(rqst.as_ptr());
                let exchange = slot.claim()?;
                bindings::xprt_pin_rqst(rqst.as_ptr());
                // INVARIANT: Just claimed and pinned.
                Some((Claimed(NonNull::from(slot)), exchange))
            });
            bindings::spin_unlock(&raw mut (*raw).queue_lock);
            found
        }
    }
}

impl<T: Transport> Claimed<T> {
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
    pub(crate) fn room(&self) -> &XdrBuf {
        // SAFETY: In place, and SUNRPC leaves it alone until the RPC is completed.
        unsafe { XdrBuf::from_raw(&raw mut (*self.rqst()).rq_rcv_buf) }
    }

    /// The task that waits, for traces.
    pub(crate) fn task(&self) -> Task {
        // SAFETY: The task waits for this.
        unsafe { task_of(self.rqst()) }
    }

    /// Gives the RPC back as it was: what claimed it is not its Reply, which may still come.
    #[cold]
    pub(crate) fn resume(self, exchange: T::Exchange) {
        // SAFETY: Claimed by us. Who sends is done with the Call, or it would not be claimed.
        unsafe { self.slot().restore(exchange) };
        let this = core::mem::ManuallyDrop::new(self);
        this.unpin();
    }

    /// Lets SUNRPC release the request.
    #[inline]
    fn unpin(&self) {
        let rqst = self.rqst();
        // SAFETY: Pinned until the end of this block, and the transport with it. No more of the
        // request than that is touched once it is unpinned.
        unsafe {
            let raw = (*rqst).rq_xprt;
            bindings::spin_lock(&raw mut (*raw).queue_lock);
            bindings::xprt_unpin_rqst(rqst);
            bindings::spin_unlock(&raw mut (*raw).queue_lock);
        }
    }

    /// Completes the RPC with a Reply of which at least a part is in `reply`. Gives back an older
    /// message that the request held, and how many octets were copied.
    #[inline]
    pub(crate) fn complete(
        self,
        _fence: T::Fence,
        reply: T::Reply,
        scatter: &Scatter,
    ) -> (Option<T::Reply>, usize) {
        let octets = reply.octets();
        let payload = octets.get(scatter.payload..).unwrap_or(&[]);
        let run = |(offset, len): (u32, u32)| {
            let end = offset.checked_add(len)? as usize;
            payload.get(offset as usize..end)
        };
        let copied = match run(scatter.copy) {
            Some(from) if !from.is_empty() => self.room().store_pages(from),
            _ => 0,
        };
        let tail = run(scatter.tail).filter(|tail| !tail.is_empty());
        let head = payload.get(..scatter.head as usize).unwrap_or(payload);
        // SAFETY: The consumer waits until it is woken below. It then reads head and tail in the
        // Receive buffer, which the slot keeps until the consumer has done so.
        unsafe {
            let rcv = &raw mut (*self.rqst()).rq_rcv_buf;
            let private = &raw mut (*self.rqst()).rq_private_buf;
            // SUNRPC compares the two: what is changed in one is changed in the other.
            for buf in [rcv, private] {
                (*buf).head[0].iov_base = head.as_ptr().cast_mut().cast();
                (*buf).head[0].iov_len = head.len();
                if let Some(tail) = tail {
                    (*buf).tail[0].iov_base = tail.as_ptr().cast_mut().cast();
                    (*buf).tail[0].iov_len = tail.len();
                }
                if let Some(pages) = scatter.pages {
                    (*buf).page_len = pages;
                }
            }
        }
        // SAFETY: Claimed by us.
        let old = unsafe { self.slot().put_reply(reply) };
        self.wake(scatter.length);
        (old, copied)
    }

    /// Completes the RPC with a Reply of `length` octets that is where the consumer expects it.
    pub(crate) fn complete_in_place(self, _fence: T::Fence, length: u32) {
        self.wake(length);
    }

    #[inline]
    fn wake(self, length: u32) {
        self.slot().answered();
        self.last_with_queue_lock(|slot| {
            // SAFETY: Pinned, and the lock is held. CAST: Bounded by what the consumer has prepared.
            unsafe { bindings::xprt_complete_rqst((*slot.rqst()).rq_task, length.cast_signed()) };
        });
    }

    /// Gives up the claim. Whoever `last` leaves the slot to cannot go on with it before this is done.
    #[inline]
    pub(super) fn last_with_queue_lock(self, last: impl FnOnce(&Slot<T>)) {
        let this = core::mem::ManuallyDrop::new(self);
        let rqst = this.rqst();
        // SAFETY: Pinned until the end of this block, and the transport with it. No more of the
        // request than that is touched once it is unpinned.
        unsafe {
            let raw = (*rqst).rq_xprt;
            bindings::spin_lock(&raw mut (*raw).queue_lock);
            last(this.slot());
            bindings::xprt_unpin_rqst(rqst);
            bindings::spin_unlock(&raw mut (*raw).queue_lock);
        }
    }
}

impl<T: Transport> Drop for Claimed<T> {
    fn drop(&mut self) {
        self.slot().settle();
        self.unpin();
    }
}
