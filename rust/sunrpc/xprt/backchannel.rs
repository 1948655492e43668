// SPDX-License-Identifier: GPL-2.0

//! Reverse Calls (RFC 8167): received by the client's transport, served by SUNRPC's callback
//! service, answered over the same connection.
//!
//! They use slots of their own, made when a callback service is announced, so that receiving one
//! needs no memory.

use core::ptr::NonNull;

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
    lib::foreign_buf::ForeignBuf,
    sunrpc::xdr::XdrBuf, //
};

use super::{
    deferred_put::DeferredPut,
    handle::XprtHandle,
    slot::Slot,
    types::Types, //
};

/// The slots for reverse Calls.
#[pin_data]
pub(crate) struct BackchannelPool<T: Types> {
    last_put: Arc<DeferredPut<T>>,
    #[pin]
    inner: SpinLock<Slots<T>>,
}

struct Slots<T: Types> {
    free: KVec<KBox<Slot<T>>>,
    /// How many there are, in the pool or in use. `free` has room for all of them.
    made: usize,
}

impl<T: Types> BackchannelPool<T> {
    pub(super) fn new(xprt: XprtHandle<T>) -> Result<Arc<Self>> {
        let last_put = DeferredPut::new(xprt)?;
        Arc::pin_init(
            pin_init!(Self {
                last_put,
                inner <- new_spinlock!(
                    Slots { free: KVec::new(), made: 0 },
                    "ReversePool::inner"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Sees to it that there are `count` slots.
    pub(super) fn provide(&self, count: usize) -> Result {
        // Room for all first: a slot that comes back must always find some.
        let mut room = KVec::with_capacity(count, GFP_KERNEL)?;
        loop {
            // The callback service takes it that a Reply's head has a page.
            let new = Slot::with_buffers(PAGE_SIZE, 0)?;
            let mut slots = self.inner.lock();
            if slots.made >= count {
                return Ok(());
            }
            if slots.free.capacity() < count {
                for slot in slots.free.drain_all() {
                    // Cannot fail: `room` is larger than all there are.
                    let _ = room.push_within_capacity(slot);
                }
                core::mem::swap(&mut room, &mut slots.free);
            }
            if slots.free.push_within_capacity(new).is_ok() {
                slots.made += 1;
            }
        }
    }

    fn take(&self) -> Option<KBox<Slot<T>>> {
        self.inner.lock().free.pop()
    }

    pub(super) fn put(&self, slot: KBox<Slot<T>>) {
        // Cannot fail: there is room for all that were made.
        let _ = self.inner.lock().free.push_within_capacity(slot);
    }

    /// Has the last reference to the transport put where that may wait.
    ///
    /// # Safety
    ///
    /// See [`DeferredPut::start`].
    pub(super) unsafe fn put_last(&self) {
        // SAFETY: By this function's contract.
        unsafe { self.last_put.clone().start() };
    }

    /// Hands a reverse Call, the `bytes` of `message` from `start` on, to the callback service.
    /// The message stays in place until the service has read it.
    ///
    /// # Errors
    ///
    /// The message comes back if there are more reverse Calls than this end allows, nobody to take
    /// one, or the transport is being destroyed. And so it does if it is longer than a page, for
    /// the callback service copies from it to a page.
    pub(crate) fn enqueue(
        &self,
        xprt: &XprtHandle<T>,
        xid: u32,
        message: T::Reply,
        start: usize,
        bytes: usize,
    ) -> Result<(), T::Reply> {
        if !xprt.has_callback_service() {
            return Err(message);
        }
        let Some(slot) = self.take() else {
            return Err(message);
        };
        let call = message.bytes().get(start..start.saturating_add(bytes));
        let Some(call) = call.filter(|call| call.len() <= PAGE_SIZE) else {
            self.put(slot);
            return Err(message);
        };
        let call = message.place_of(call);
        // SUNRPC takes a reference for the request, and does not look whether there was one to be
        // had. This one is there to see that. Both are put with the request, which may happen
        // here, if there is no callback service any more.
        // SAFETY: The memory is there.
        if unsafe { bindings::xprt_get(xprt.raw()) }.is_null() {
            self.put(slot);
            return Err(message);
        }
        let slot = NonNull::from(KBox::leak(slot));
        // SAFETY: The slot is ours alone until it is enqueued. The callback service reads the
        // message in place and frees the request, which ends in `free_backchannel`.
        unsafe {
            let slot = slot.as_ref();
            let rqst = slot.rqst();
            rqst.write_bytes(0, 1);
            (*rqst).rq_xprt = xprt.raw();
            (*rqst).rq_xid = xid.to_be();
            // What tells SUNRPC that the request is to be freed by `bc_free_rqst`.
            (*rqst).rq_bc_pa_state = 1 << bindings::RPC_BC_PA_IN_USE;
            // Directions do not wait for each other's credits (RFC 8167 Section 4.1): SUNRPC sends
            // what has a credit ahead of the Calls that wait for one. `release_request` takes it
            // back.
            (*rqst).rq_cong = 1;
            let rcv = &raw mut (*rqst).rq_rcv_buf;
            (*rcv).head[0] = call;
            // CAST: No more than a Receive buffer.
            (*rcv).len = call.iov_len as u32;
            (*rqst).rq_private_buf.len = call.iov_len as u32;
            slot.provide_reply_space();
            slot.put_reply(message);
            // The service takes one off for each Call.
            bindings::rpcrdma_bc_slot_inc(xprt.raw());
            bindings::xprt_enqueue_bc_request(rqst);
        }
        Ok(())
    }
}

/// The Reply to a reverse Call, to be sent.
///
/// # Invariants
///
/// Only inside `send_request`: the send lock is held, and SUNRPC keeps the request in place.
pub(crate) struct BackchannelReply<'a, T: Types> {
    slot: &'a Slot<T>,
}

impl<'a, T: Types> BackchannelReply<'a, T> {
    /// # Safety
    ///
    /// To be made in `send_request` for its argument, for as long as that runs.
    pub(super) unsafe fn new(slot: &'a Slot<T>) -> Self {
        // INVARIANT: By this function's contract.
        Self { slot }
    }

    /// The number of the reverse RPC.
    pub(crate) fn xid(&self) -> u32 {
        self.slot.xid()
    }

    /// The message that the Call came in.
    pub(crate) fn call(&self) -> Option<&T::Reply> {
        // SAFETY: `enqueue` put it into the slot, where it stays until SUNRPC lets go of the
        // request.
        unsafe { self.slot.reply() }
    }

    /// The RPC message.
    pub(crate) fn message(&self) -> &XdrBuf {
        // SAFETY: SUNRPC leaves the buffer alone while it is being sent.
        unsafe { XdrBuf::from_raw(&raw mut (*self.slot.rqst()).rq_snd_buf) }
    }
}
