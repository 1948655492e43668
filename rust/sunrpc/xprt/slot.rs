// SPDX-License-Identifier: GPL-2.0

//! A slot: the `rpc_rqst` of an RPC, with its buffers and the state of its Call.
//!
//! A slot has one owner. SUNRPC owns it from `alloc_slot` to `free_slot`. While the Call is
//! outstanding, the receive worker may access parts of it: see [`slot_state`](super::slot_state).
//!
//! C: xprt_rdma.h, struct rpcrdma_req
//! C: transport.c, xprt_rdma_allocate()
//! C: verbs.c, rpcrdma_req_create(), rpcrdma_req_reset(), rpcrdma_req_destroy()
//! C: verbs.c, rpcrdma_reply_put()

use core::{
    cell::UnsafeCell,
    mem::offset_of,
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    types::Opaque, //
};

use crate::{
    bindings,
    lib::llist::{
        Link,
        Linked, //
    },
    sunrpc::{
        rpc_rqst::RqstRef,
        xprt_ref::XprtRef, //
    }, //
};

use super::{
    buffer::Buffer,
    slot_state::SlotState,
    types::{
        Outstanding,
        Types, //
    }, //
};

/// The slot of one RPC.
///
/// # Invariants
///
/// - I1: Only the owner of the claim of `slot_state` accesses `reply`, and SUNRPC's owner of the
///   slot while there is no claim.
/// - I2: Only SUNRPC's owner of the slot accesses the buffers.
#[repr(C)]
pub(crate) struct Slot<T: Types> {
    rqst: Opaque<bindings::rpc_rqst>,
    /// Links free slots.
    free: Link,
    pub(super) slot_state: SlotState<Outstanding<T>>,
    reply: UnsafeCell<Option<T::Reply>>,
    call_buffer: UnsafeCell<Buffer>,
    reply_buffer: UnsafeCell<Buffer>,
}

// SAFETY: All fields but `rqst` are `Send`. Nothing in an `rpc_rqst` is bound to a thread.
unsafe impl<T: Types> Send for Slot<T> {}
// SAFETY: By I1 and I2 access to the cells is serialised. SUNRPC serialises access to `rqst`.
unsafe impl<T: Types> Sync for Slot<T> {}

impl<T: Types> Slot<T> {
    /// A slot whose first RPC allocates the buffers.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<KBox<Self>> {
        Self::with_buffers(0, 0)
    }

    /// A slot with buffers of `call` and `reply` bytes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn with_buffers(call: usize, reply: usize) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                rqst: Opaque::zeroed(),
                free: Link::new(),
                slot_state: SlotState::new(),
                reply: UnsafeCell::new(None),
                call_buffer: UnsafeCell::new(Buffer::new(call)?),
                reply_buffer: UnsafeCell::new(Buffer::new(reply)?),
            },
            GFP_KERNEL,
        )?)
    }

    /// The slot of a request.
    ///
    /// # Safety
    ///
    /// `rqst` is in a `Slot<T>`.
    #[inline]
    pub(super) unsafe fn of(rqst: RqstRef<'_>) -> &Self {
        // SAFETY: `rqst` is the first member. A slot stays as long as its request.
        unsafe { &*rqst.raw().cast() }
    }

    /// The `rpc_rqst`.
    #[inline]
    pub(super) fn rqst(&self) -> *mut bindings::rpc_rqst {
        self.rqst.get()
    }

    /// Sets `rq_snd_buf` to the Call buffer, where the callback service writes the Reply to a
    /// backchannel Call.
    ///
    /// # Safety
    ///
    /// The caller owns the slot, and uses no reference into it.
    pub(super) unsafe fn provide_reply_space(&self) {
        // SAFETY: The caller owns the slot and so the request. By I2 it alone accesses the buffer,
        // which stays as long as the slot.
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

    /// The stored Reply, which the consumer reads. In the slot of a backchannel Call, the message
    /// that contained the Call.
    ///
    /// # Safety
    ///
    /// The caller has claimed the slot; or it is SUNRPC's owner of the slot, and no Reply can be
    /// matched to it within the lifetime. It makes no other reference meanwhile.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the claim has one owner")]
    pub(super) unsafe fn reply(&self) -> &mut Option<T::Reply> {
        // SAFETY: By I1 the caller has sole access.
        unsafe { &mut *self.reply.get() }
    }

    /// Takes the message that contained a backchannel Call, from a slot that no request uses.
    pub(super) fn take_message(&mut self) -> Option<T::Reply> {
        self.reply.get_mut().take()
    }

    /// Stores the message that contains a backchannel Call, in a slot that no request uses yet.
    pub(super) fn store_message(&mut self, message: T::Reply) {
        *self.reply.get_mut() = Some(message);
    }

    /// Forgets the credit of a connection that has ended.
    ///
    /// # Safety
    ///
    /// The caller holds the `transport_lock` of the slot's transport.
    pub(super) unsafe fn forget_credit(&self) {
        // SAFETY: `transport_lock` guards `rq_cong` of a request that is in use. That of a free
        // slot is zero, and is only ever set to zero again.
        unsafe { (*self.rqst()).rq_cong = 0 };
    }
}

/// The slot of a task that has the slot to itself.
///
/// # Invariants
///
/// - I1: The slot is SUNRPC's, from `alloc_slot` to `free_slot`. Throughout `'a`, the caller is the
///   task that has the slot, or works for it, and there is no other such right.
/// - I2: No Reply can be matched to the slot within `'a`.
#[must_use]
pub(super) struct OwnedSlot<'a, T: Types>(&'a Slot<T>);

impl<T: Types> Deref for OwnedSlot<'_, T> {
    type Target = Slot<T>;

    #[inline]
    fn deref(&self) -> &Slot<T> {
        self.0
    }
}

impl<'a, T: Types> OwnedSlot<'a, T> {
    /// # Safety
    ///
    /// I1 and I2 hold.
    #[inline]
    pub(super) unsafe fn new(slot: &'a Slot<T>) -> Self {
        // INVARIANT: I1 and I2: by this function's contract.
        Self(slot)
    }

    /// Sets `rq_buffer` and `rq_rbuffer`, and makes both buffers as long as the request needs.
    /// Returns how many bytes were allocated.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(super) fn provide_buffers(&mut self) -> Result<usize> {
        let rqst = self.rqst();
        // SAFETY: By I1 the caller has the request. By I2 of `Slot` it alone accesses the buffers,
        // which stay until SUNRPC gives up the slot.
        unsafe {
            let call = &mut *self.call_buffer.get();
            let reply = &mut *self.reply_buffer.get();
            let grown = call.grow((*rqst).rq_callsize)? + reply.grow((*rqst).rq_rcvsize)?;
            (*rqst).rq_buffer = call.as_ptr();
            (*rqst).rq_rbuffer = reply.as_ptr();
            Ok(grown)
        }
    }

    /// Returns the state from Done or Refused to Idle: SUNRPC knows the result, or no longer needs
    /// it.
    #[inline]
    pub(super) fn reset(&mut self) {
        // SAFETY: By I1 SUNRPC owns the slot, and the caller works for it.
        unsafe { self.slot_state.reset() };
    }

    /// Takes the stored Reply.
    #[inline]
    pub(super) fn take_reply(&mut self) -> Option<T::Reply> {
        // SAFETY: By I1 the caller owns the slot. By I2 there is no claim but that of a disconnect,
        // which does not access the Reply. The reference ends here.
        unsafe { self.reply() }.take()
    }

    /// Makes the head of `rq_rcv_buf` empty if it is in the message of a Reply that was taken. The
    /// task then waits for another Reply, since the verifier was bad, and has encoded no new Call.
    pub(super) fn empty_reply_head(&mut self) {
        let rqst = self.rqst();
        // SAFETY: By I1 the caller has the request. By I2 no other thread accesses the buffer.
        unsafe {
            let head = &raw mut (*rqst).rq_rcv_buf.head[0];
            if (*head).iov_base != (*rqst).rq_rbuffer {
                (*head).iov_base = (*rqst).rq_rbuffer;
                (*head).iov_len = 0;
            }
        }
    }

    /// Gives up the right of the task.
    #[inline]
    pub(super) fn into_free(self) -> FreeSlot<T> {
        // INVARIANT: I1: it comes from `alloc_slot`, whose slots stay as long as their transport.
        // I2: by I1 there is no other right to it.
        FreeSlot(NonNull::from(self.0))
    }
}

/// The right to a slot that no RPC uses.
///
/// # Invariants
///
/// - I1: The slot is not freed before its transport is destroyed.
/// - I2: There is no other right to the slot.
#[must_use = "a slot that is not put back is lost"]
pub(super) struct FreeSlot<T: Types>(NonNull<Slot<T>>);

// SAFETY: A `Slot` is `Send` and `Sync`, so the right to it may move to another thread.
unsafe impl<T: Types> Send for FreeSlot<T> {}

impl<T: Types> FreeSlot<T> {
    /// # Safety
    ///
    /// The slot satisfies I1 and I2.
    #[inline]
    pub(super) unsafe fn new(slot: &Slot<T>) -> Self {
        // INVARIANT: I1 and I2: by this function's contract.
        Self(NonNull::from(slot))
    }

    /// The `rpc_rqst`.
    #[inline]
    pub(super) fn rqst(&self) -> *mut bindings::rpc_rqst {
        // SAFETY: By I1 the slot has not been freed.
        unsafe { self.0.as_ref() }.rqst()
    }

    /// Gives the slot to a task in the backlog of `xprt`, and wakes the task. Returns the slot if
    /// there is no such task.
    pub(super) fn wake_waiter(self, xprt: XprtRef<'_>) -> Option<Self> {
        let rqst = self.rqst();
        // SAFETY: By I1 the slot has not been freed, and by I2 no one uses its request. The
        // function gives the request, zeroed, to the task that it wakes. If it wakes none, the
        // request still belongs to this function.
        unsafe {
            if bindings::xprt_wake_up_backlog(xprt.raw(), rqst) {
                return None;
            }
            rqst.write_bytes(0, 1);
        }
        Some(self)
    }
}

// SAFETY: `into_link` returns a member of the slot, which by I1 stays in place, and gives up the
// right to it. Only `from_link` uses the member, and gets the right back.
unsafe impl<T: Types> Linked for FreeSlot<T> {
    #[inline]
    fn into_link(self) -> NonNull<Link> {
        // SAFETY: A member of a valid object is not NULL.
        unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).free) }
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: By this function's contract `link` is the `free` of a slot.
        let slot = unsafe { link.byte_sub(offset_of!(Slot<T>, free)) };
        // INVARIANT: I1 and I2: `into_link` gave up the right to the slot, and by this function's
        // contract nothing took it since.
        Self(slot.cast())
    }
}
