// SPDX-License-Identifier: GPL-2.0

//! Backchannel Calls (RFC 8167): the client's transport receives them, SUNRPC's callback service
//! executes them, and the Replies use the same connection.
//!
//! These Calls have slots of their own, allocated when a callback service is set up, so that
//! receiving a Call allocates no memory.
//!
//! C: xprt_rdma.h, struct rpcrdma_buffer
//! C: backchannel.c, xprt_rdma_bc_setup(), rpcrdma_bc_rqst_get(), rpcrdma_bc_receive_call()

use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    bindings,
    compat::sunrpc::xprt_enqueue_bc_request,
    lib::foreign_buf::ForeignBuf,
    sunrpc::{
        locked_rqst::Transmission,
        xdr::XdrBuf, //
    }, //
};

use super::{
    deferred_put::DeferredPut,
    handle::XprtHandle,
    slot::Slot,
    types::Types, //
};

/// The slots for backchannel Calls.
#[pin_data]
pub(crate) struct BackchannelPool<T: Types> {
    deferred_put: Arc<DeferredPut<T>>,
    #[pin]
    slots: SpinLock<Slots<T>>,
}

struct Slots<T: Types> {
    free: KVec<KBox<Slot<T>>>,
    /// The number of slots, free or in use. `free` has capacity for all of them.
    allocated: usize,
}

impl<T: Types> BackchannelPool<T> {
    /// A pool without slots.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(xprt: XprtHandle<T>) -> Result<Arc<Self>> {
        let deferred_put = DeferredPut::new(xprt)?;
        Arc::pin_init(
            pin_init!(Self {
                deferred_put,
                slots <- new_spinlock!(
                    Slots { free: KVec::new(), allocated: 0 },
                    "BackchannelPool::slots"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Allocates slots until there are `count`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn provide(&self, count: usize) -> Result {
        // The capacity for all slots comes first: `put` must never fail.
        let mut larger = KVec::with_capacity(count, GFP_KERNEL)?;
        loop {
            // The callback service assumes a page for the head of a Reply.
            let new = Slot::with_buffers(PAGE_SIZE, 0)?;
            let mut slots = self.slots.lock();
            if slots.allocated >= count {
                return Ok(());
            }
            if slots.free.capacity() < count {
                for slot in slots.free.drain_all() {
                    // Cannot fail: the capacity of `larger` exceeds the number of slots.
                    let _ = larger.push_within_capacity(slot);
                }
                core::mem::swap(&mut larger, &mut slots.free);
            }
            if slots.free.push_within_capacity(new).is_ok() {
                slots.allocated += 1;
            }
        }
    }

    fn take(&self) -> Option<KBox<Slot<T>>> {
        self.slots.lock().free.pop()
    }

    /// Puts a slot back.
    pub(super) fn put(&self, slot: KBox<Slot<T>>) {
        // Cannot fail: there is capacity for all slots.
        let _ = self.slots.lock().free.push_within_capacity(slot);
    }

    /// The work item that puts the last reference to the transport, when started.
    pub(super) fn deferred_put(&self) -> Arc<DeferredPut<T>> {
        self.deferred_put.clone()
    }

    /// Passes a backchannel Call to the callback service: `len` bytes of `message` from `start` on.
    /// The message stays in place until the service has read it.
    ///
    /// # Errors
    ///
    /// Returns the message if no slot is free, if there is no callback service, if the transport is
    /// being destroyed, or if the Call is longer than a page, to which the service copies it.
    pub(crate) fn enqueue(
        &self,
        xprt: &XprtHandle<T>,
        xid: u32,
        message: T::Reply,
        start: usize,
        len: usize,
    ) -> Result<(), T::Reply> {
        if !xprt.has_callback_service() {
            return Err(message);
        }
        let Some(mut slot) = self.take() else {
            return Err(message);
        };
        let call = message.bytes().get(start..start.saturating_add(len));
        let Some(call) = call.filter(|call| call.len() <= PAGE_SIZE) else {
            self.put(slot);
            return Err(message);
        };
        let call = message.kvec_of(call);
        // `xprt_enqueue_bc_request()` takes a reference for the request, and does not check for a
        // count of zero. This reference keeps the count above zero. `free_backchannel` puts both.
        if !xprt.xprt().get() {
            self.put(slot);
            return Err(message);
        }
        slot.store_message(message);
        // `free_backchannel` turns the slot back into a box.
        let slot: &Slot<T> = KBox::leak(slot);
        let (rqst, raw) = (slot.rqst(), xprt.xprt().raw());
        // SAFETY: The slot was free, so this function owns it until it is enqueued. `call` is
        // memory of `message`, which the slot keeps.
        unsafe {
            rqst.write_bytes(0, 1);
            (*rqst).rq_xprt = raw;
            (*rqst).rq_xid = xid.to_be();
            // Makes SUNRPC free the request with `bc_free_rqst`.
            (*rqst).rq_bc_pa_state = 1 << bindings::RPC_BC_PA_IN_USE;
            // The credits of the two directions are independent (RFC 8167 Section 4.1). SUNRPC
            // sends a request that has a credit ahead of those that wait for one. `release_request`
            // clears `rq_cong`.
            (*rqst).rq_cong = 1;
            let rcv = &raw mut (*rqst).rq_rcv_buf;
            (*rcv).head[0] = call;
            // CAST: No longer than a page.
            (*rcv).len = call.iov_len as u32;
            (*rqst).rq_private_buf.len = call.iov_len as u32;
            slot.provide_reply_space();
        }
        // SAFETY: The transport stays, since a reference was taken above. The service decrements
        // the count for each Call. It reads the message in place, and frees the request with
        // `free_backchannel`, which may happen in this call.
        unsafe {
            bindings::rpcrdma_bc_slot_inc(raw);
            xprt_enqueue_bc_request(rqst);
        }
        Ok(())
    }
}

/// The Reply to a backchannel Call, to be sent.
///
/// # Invariants
///
/// - I1: [`BackchannelPool::enqueue`] stored the Call's message in the slot. `rqst` is that of the
///   slot.
pub(crate) struct BackchannelReply<'a, T: Types> {
    slot: &'a Slot<T>,
    rqst: Transmission<'a>,
}

impl<'a, T: Types> BackchannelReply<'a, T> {
    /// # Safety
    ///
    /// I1 holds.
    pub(super) unsafe fn new(slot: &'a Slot<T>, rqst: Transmission<'a>) -> Self {
        // INVARIANT: I1: by this function's contract.
        Self { slot, rqst }
    }

    /// The XID.
    pub(crate) fn xid(&self) -> u32 {
        self.rqst.xid()
    }

    /// The message that contained the Call.
    pub(crate) fn call(&self) -> Option<&T::Reply> {
        // SAFETY: By I1 the message is in the slot. SUNRPC transmits the request, so it does not
        // call `free_backchannel`, which takes the message out.
        unsafe { self.slot.reply() }.as_ref()
    }

    /// The RPC message.
    pub(crate) fn message(&self) -> &XdrBuf {
        self.rqst.message()
    }
}
