// SPDX-License-Identifier: GPL-2.0

//! Slots: what SUNRPC calls an `rpc_rqst`, and what an RPC over this transport needs beside it.
//!
//! A slot has one owner at a time. SUNRPC owns it from `alloc_slot` to `free_slot`, and shares it
//! while a Call waits for its Reply: see [`slot_state`](super::phase).

use core::{
    cell::UnsafeCell,
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
    trace::Task, //
};

use super::{
    buffer::Buffer,
    slot_state::SlotState,
    types::{
        Outstanding,
        Types, //
    }, //
};

/// Bytes for Calls and for Replies that a slot has from the start; most need no more.
const INITIAL_BUFFER: usize = 2048;

/// One RPC's place.
///
/// # Invariants
///
/// `reply` is touched only by whoever has claimed the Exchange, and by SUNRPC's owner of the slot
/// when there is none. The buffers belong to SUNRPC's owner.
#[repr(C)]
pub(crate) struct Slot<T: Types> {
    rqst: Opaque<bindings::rpc_rqst>,
    /// Links the free slots.
    free: Link,
    pub(super) slot_state: SlotState<Outstanding<T>>,
    reply: UnsafeCell<Option<T::Reply>>,
    call_buffer: UnsafeCell<Buffer>,
    reply_buffer: UnsafeCell<Buffer>,
}

// SAFETY: Access to the cells is serialised as the type's invariants say; `rpc_rqst` is SUNRPC's.
unsafe impl<T: Types> Send for Slot<T> {}
// SAFETY: As above.
unsafe impl<T: Types> Sync for Slot<T> {}

impl<T: Types> Slot<T> {
    /// A slot with buffers that do for most RPCs.
    pub(super) fn new() -> Result<KBox<Self>> {
        Self::with_buffers(INITIAL_BUFFER, INITIAL_BUFFER)
    }

    /// A slot with buffers for so many bytes to send and to receive.
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

    /// Makes room for a Call and a Reply; returns how many bytes had to be allocated.
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

    /// The task that the request belongs to, for traces.
    ///
    /// # Safety
    ///
    /// The request has its task, which stays for the call.
    #[inline]
    pub(super) unsafe fn task(&self) -> Task {
        // SAFETY: By this function's contract.
        unsafe {
            let task = (*self.rqst()).rq_task;
            let client = (*task).tk_client;
            Task {
                id: u32::from((*task).tk_pid),
                client: if client.is_null() {
                    u32::MAX
                } else {
                    (*client).cl_clid
                },
            }
        }
    }
}

/// The right to a slot that no RPC uses. Whoever has it may give the slot to one.
///
/// # Invariants
///
/// The slot is idle, has no Reply, and lives until the transport is destroyed. Nobody else has a
/// right to it.
#[must_use = "a slot that is not put back is lost"]
pub(super) struct FreeSlot<T: Types>(NonNull<Slot<T>>);

// SAFETY: Slots may be used from any thread.
unsafe impl<T: Types> Send for FreeSlot<T> {}

impl<T: Types> FreeSlot<T> {
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
unsafe impl<T: Types> Linked for FreeSlot<T> {
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
