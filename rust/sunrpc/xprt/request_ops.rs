// SPDX-License-Identifier: GPL-2.0

//! The operations on a request: its slot, its buffers, its credit, and sending it.

use core::ptr;

use kernel::{
    prelude::*,
    sync::barrier::smp_mb, //
};

use crate::{
    bindings,
    sunrpc::error::SendError,
    trace::trace, //
};

use super::{
    backchannel::BackchannelReply,
    call::Call,
    claim::Abandoned,
    connection_ops::close,
    rpc_xprt::{
        Xprt, //
        XprtState,
    },
    slot::{
        FreeSlot,
        Slot, //
    },
    slot_state::Refusal,
    transport::Transport, //
};

/// Finds a slot for a task, or has it wait for one.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, as are all of the following.
pub(super) unsafe extern "C" fn alloc_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    if let Some(slot) = live.free.get() {
        // SAFETY: The task is the caller's; the slot is now the task's.
        unsafe {
            (*task).tk_rqstp = slot.rqst();
            (*task).tk_status = 0;
        }
        return;
    }
    // SAFETY: As above.
    unsafe {
        (*task).tk_status = -bindings::EAGAIN.cast_signed();
        bindings::xprt_add_backlog_noncongested(raw, task);
    }
    // A slot that was freed before the task was in the backlog found nobody to wake. The task is
    // there before this looks for the slot: pairs with putting it back in `give_slot`.
    smp_mb();
    if let Some(slot) = live.free.get() {
        // SAFETY: As above.
        unsafe { give_slot(raw, live, slot) };
    }
}

/// Gives a slot to a task that waits for one, or puts it where the next finds it.
///
/// # Safety
///
/// `raw` is the transport that `live` is part of.
unsafe fn give_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    live: &XprtState<T>,
    mut slot: FreeSlot<T>,
) {
    loop {
        // SAFETY: By this function's contract, and since the slot is ours alone. The task that is
        // woken owns the slot, zeroed.
        unsafe {
            let rqst = slot.rqst();
            if bindings::xprt_wake_up_backlog(raw, rqst) {
                return;
            }
            rqst.write_bytes(0, 1);
        }
        // Whoever has come to the backlog since, and did not find the slot, is seen below. Putting
        // it there is a full barrier: pairs with the one in `alloc_slot`.
        live.free.put(slot);
        // SAFETY: The transport is alive; SUNRPC changes the number under the queue's lock.
        if unsafe { (&raw const (*raw).backlog.qlen).read_volatile() } == 0 {
            return;
        }
        match live.free.get() {
            Some(again) => slot = again,
            // Whoever has it looks at the backlog as well, if it does not use it.
            None => return,
        }
    }
}

/// # Safety
///
/// See [`alloc_slot`]; the task is done with the request.
pub(super) unsafe extern "C" fn free_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    rqst: *mut bindings::rpc_rqst,
) {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    // SAFETY: From `alloc_slot`.
    let slot = unsafe { Slot::<T>::from_rqst(rqst) };
    // SAFETY: SUNRPC has taken the request out of its queues and waited until nobody had it pinned,
    // so that no Reply can arrive for it.
    if let Some(reply) = unsafe { slot.take_reply() } {
        live.transport.recycle(reply);
    }
    // SAFETY: The task gives it up. `buf_free` has settled it.
    unsafe { give_slot(raw, live, FreeSlot::new(slot)) };
}

/// # Safety
///
/// See [`alloc_slot`]; the task has its slot.
pub(super) unsafe extern "C" fn buf_alloc<T: Transport>(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract.
    let (rqst, raw) = unsafe { ((*task).tk_rqstp, (*(*task).tk_rqstp).rq_xprt) };
    // SAFETY: The task owns its slot.
    match unsafe { Slot::<T>::from_rqst(rqst).provide_buffers() } {
        Ok(0) => 0,
        Ok(bytes) => {
            // SAFETY: By this function's contract.
            unsafe { Xprt::<T>::from_raw(raw).live() }
                .transport
                .buffers_grown(bytes);
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// See [`alloc_slot`]; the task has its slot, and SUNRPC has taken the request out of its queues.
pub(super) unsafe extern "C" fn buf_free<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    let (rqst, raw) = unsafe { ((*task).tk_rqstp, (*(*task).tk_rqstp).rq_xprt) };
    // SAFETY: The task's own.
    let slot = unsafe { Slot::<T>::from_rqst(rqst) };
    if slot.slot_state.is_sent() {
        // SAFETY: By this function's contract.
        abandon(unsafe { Xprt::<T>::from_raw(raw).live() }, slot);
    }
    // SAFETY: The task owns its slot.
    unsafe { slot.slot_state.renew() };
}

/// Gives the credit of a request back, unless the peer still has the Call.
///
/// # Safety
///
/// See [`alloc_slot`]; the task has its slot, or that of a reverse Call, SUNRPC has taken the
/// request out of its queues, and `transport_lock` is held.
pub(super) unsafe extern "C" fn release_request<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let slot = Slot::<T>::from_rqst(rqst);
        if is_backchannel(rqst) {
            // It was none of the credits that are counted.
            (*rqst).rq_cong = 0;
        } else if (*rqst).rq_cong != 0 && slot.slot_state.is_sent() && {
            let live = Xprt::<T>::from_raw((*rqst).rq_xprt).live();
            live.credits.keep(slot.xid(), (*rqst).rq_timeout)
        } {
            (*rqst).rq_cong = 0;
        } else {
            bindings::xprt_release_rqst_cong(task);
        }
    }
}

/// Whether a request that is being sent, or was, is the Reply to a reverse Call. Requests of
/// SUNRPC's own making have their Call in one of our buffers; reverse Calls have none.
///
/// # Safety
///
/// The request is the caller's.
#[inline]
unsafe fn is_backchannel(rqst: *mut bindings::rpc_rqst) -> bool {
    // SAFETY: By this function's contract.
    unsafe { (*rqst).rq_buffer.is_null() }
}

/// SUNRPC is about to wait for a Reply. It has no use any more for one that it has seen before, and
/// that may belong to another connection.
///
/// # Safety
///
/// See [`alloc_slot`]; `buf` is a message of the request. If it is the Reply's, the request is in
/// no queue yet.
pub(super) unsafe extern "C" fn prepare_request<T: Transport>(
    rqst: *mut bindings::rpc_rqst,
    buf: *mut bindings::xdr_buf,
) -> c_int {
    // SAFETY: By this function's contract; no Reply can arrive for a request that is in no queue.
    unsafe {
        if ptr::eq(buf, &raw const (*rqst).rq_rcv_buf) {
            let slot = Slot::<T>::from_rqst(rqst);
            slot.slot_state.renew();
            if let Some(reply) = slot.take_reply() {
                let live = Xprt::<T>::from_raw((*rqst).rq_xprt).live();
                live.transport.recycle(reply);
            }
        }
    }
    0
}

/// Takes back what a Call exposes that was sent and will not be waited for any longer.
#[cold]
fn abandon<T: Transport>(live: &XprtState<T>, slot: &Slot<T>) {
    live.with_link(|connection| {
        let Some(claim) = slot.slot_state.claim() else {
            return;
        };
        // SAFETY: The task gives up its own request.
        trace!(xprtrdma_mrs_zap(unsafe { slot.task() }));
        match connection {
            Some(connection) => {
                // SAFETY: The task waits here, and `fence` cannot choose the lifetime. The
                // connection stays for this function.
                let rpc = unsafe { Abandoned::withdraw(claim, connection) };
                drop(live.transport.fence(connection, rpc));
            }
            None => {
                // Nothing is exposed on a connection that is gone.
                let (claimed_empty, outstanding) = claim.take();
                drop(outstanding);
                claimed_empty.settle();
            }
        }
    });
}

/// # Safety
///
/// See [`alloc_slot`]; the send lock is held and the request pinned.
pub(super) unsafe extern "C" fn send_request<T: Transport>(rqst: *mut bindings::rpc_rqst) -> c_int {
    // SAFETY: By this function's contract.
    let raw = unsafe { (*rqst).rq_xprt };
    // SAFETY: By this function's contract.
    let sent = unsafe { transmit::<T>(raw, rqst) };
    match sent {
        Ok(()) => 0,
        Err(SendError::NotConnected) => {
            // SAFETY: The send lock is held, and nothing of the connection is in use.
            unsafe { close::<T>(raw) };
            SendError::NotConnected.to_errno()
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// As for [`send_request`].
#[inline]
unsafe fn transmit<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    rqst: *mut bindings::rpc_rqst,
) -> Result<(), SendError> {
    // SAFETY: By this function's contract.
    let (live, slot) = unsafe { (Xprt::<T>::from_raw(raw).live(), Slot::<T>::from_rqst(rqst)) };
    // SAFETY: The send lock is held.
    let Some((connection, sender)) = (unsafe { live.sending() }) else {
        return Err(SendError::NotConnected);
    };
    // SAFETY: A valid word; bits of it change by themselves.
    if unsafe { (&raw const (*raw).state).read_volatile() } & (1 << bindings::XPRT_CONNECTED) == 0 {
        return Err(SendError::NotConnected);
    }
    // SAFETY: `xprt_transmit` has pinned the request.
    if unsafe { is_backchannel(rqst) } {
        // SAFETY: Made in `send_request`.
        let reply = unsafe { BackchannelReply::new(slot) };
        return match live.transport.send_backchannel(connection, sender, &reply) {
            // Who cannot send a Reply closes the connection (RFC 8166 Section 4.5.4). Any other
            // error would be that of whoever holds the send lock.
            Err(SendError::TooBig | SendError::Io) => Err(SendError::NotConnected),
            sent => sent,
        };
    }
    // Answered, as SUNRPC is being told at this moment, or is going to be when the task waits.
    if slot.slot_state.is_answered() {
        return Ok(());
    }
    // Sent on this connection already, and not answered: sending it twice would upset the credits.
    if !slot.slot_state.is_idle() {
        return Err(SendError::NotConnected);
    }
    // SAFETY: `xprt_transmit` has pinned the request, and the send lock is held: what asks for
    // a credit wants both, and `rq_xtime` is the sender's.
    unsafe {
        if !bindings::xprt_request_get_cong(raw, rqst) {
            return Err(SendError::NoCredit);
        }
        (*rqst).rq_xtime = bindings::ktime_get();
    }
    // SAFETY: Made in `send_request`.
    let call = unsafe { Call::new(slot, &connection.ep) };
    if let Err(error) = live.transport.send(connection, sender, call) {
        // SAFETY: By this function's contract.
        return unsafe { not_sent(slot, error) };
    }
    // SAFETY: The request stays pinned until `send_request` has returned.
    unsafe {
        (*rqst).rq_xmit_bytes_sent += (*rqst).rq_snd_buf.len as usize;
        // There is no Reply that would give the credit back.
        if !bindings::rpcrdma_rpc_reply_expected((*rqst).rq_task) {
            return Err(SendError::NotConnected);
        }
    }
    Ok(())
}

/// What comes of a Call that was not sent.
///
/// Whoever holds the send lock sends what all have queued, and SUNRPC takes an error for that
/// task's. What is wrong with this Call alone must not end the RPC of another, and leave this one
/// at the head of the queue, to end the next: it passes for sent, and its own task is told when it
/// comes to wait for the Reply. A task that expects none would not come to that.
///
/// # Safety
///
/// As for [`send_request`], whose slot this is.
#[cold]
unsafe fn not_sent<T: Transport>(slot: &Slot<T>, error: SendError) -> Result<(), SendError> {
    let refusal = match error {
        SendError::TooBig => Refusal::TooBig,
        SendError::Io => Refusal::Fail,
        _ => return Err(error),
    };
    // SAFETY: By this function's contract the request has its task.
    let waits = unsafe { bindings::rpcrdma_rpc_reply_expected((*slot.rqst()).rq_task) };
    if !waits || !slot.slot_state.is_idle() {
        return Err(error);
    }
    // SAFETY: The send lock is held, and the slot is idle.
    unsafe { slot.slot_state.refuse_unsent(refusal) };
    Ok(())
}
