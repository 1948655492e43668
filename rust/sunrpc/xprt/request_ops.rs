// SPDX-License-Identifier: GPL-2.0

//! The operations on a request: its slot, its buffers, its credit, and its transmission.
//!
//! C: transport.c, xprt_rdma_alloc_slot(), xprt_rdma_free_slot(), xprt_rdma_allocate()
//! C: transport.c, xprt_rdma_free(), xprt_rdma_send_request()
//! C: verbs.c, rpcrdma_buffer_get(), rpcrdma_buffer_put()
//! C: backchannel.c, xprt_rdma_bc_send_reply()

use core::{
    mem::offset_of,
    ptr, //
};

use kernel::prelude::*;

use crate::{
    bindings,
    compat::sunrpc::xprt_add_backlog_noncongested,
    lib::barrier::smp_mb,
    sunrpc::{
        c_ref::read_once,
        error::SendError,
        locked_rqst::{
            Releasing,
            Transmission, //
        },
        rpc_rqst::RqstRef, //
    },
    trace::trace, //
};

use super::{
    backchannel::BackchannelReply,
    call::Call,
    claim::Abandoned,
    rpc_xprt::{
        SendLock,
        XprtState, //
    },
    slot::{
        FreeSlot,
        Slot, //
    },
    slot_state::Refusal,
    transport::Transport, //
};

/// `alloc_slot`: gives a slot to a task, or queues the task for one.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, as all of the following.
pub(super) unsafe extern "C" fn alloc_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract.
    let state = unsafe { XprtState::<T>::from_raw(raw) };
    if let Some(slot) = state.free.get() {
        // SAFETY: The task is the caller's. The slot was free and now belongs to the task.
        unsafe {
            (*task).tk_rqstp = slot.rqst();
            (*task).tk_status = 0;
        }
        return;
    }
    // SAFETY: The task is the caller's, and the transport is alive.
    unsafe {
        (*task).tk_status = EAGAIN.to_errno();
        xprt_add_backlog_noncongested(raw, task);
    }
    // A slot that was freed before the task joined the backlog woke no task. The task must join the
    // backlog before this search for a slot. Pairs with the put in `give_slot`.
    smp_mb();
    if let Some(slot) = state.free.get() {
        give_slot(state, slot);
    }
}

/// Gives a free slot to a task in the backlog, or puts it back into the pool.
fn give_slot<T: Transport>(state: &XprtState<T>, slot: FreeSlot<T>) {
    let xprt = state.xprt();
    let mut next = Some(slot);
    // If the pool is empty, another thread has the slot, and checks the backlog too unless it uses
    // the slot.
    while let Some(slot) = next {
        let Some(slot) = slot.wake_waiter(xprt) else {
            return;
        };
        // The check below sees a task that has joined the backlog since and found no slot. `put` is
        // a full barrier. Pairs with the one in `alloc_slot`.
        state.free.put(slot);
        // SUNRPC writes the word under the queue's lock.
        if read_once!(xprt, backlog.qlen) == 0 {
            return;
        }
        next = state.free.get();
    }
}

/// `free_slot`: takes back the slot of a finished RPC.
///
/// # Safety
///
/// As for [`alloc_slot`]; the task has no more use for the request, which comes from `alloc_slot`.
pub(super) unsafe extern "C" fn free_slot<T: Transport>(
    _raw: *mut bindings::rpc_xprt,
    rqst: *mut bindings::rpc_rqst,
) {
    // SAFETY: By this function's contract. SUNRPC has removed the request from its queues and has
    // waited until it was unpinned, so no Reply can be matched to it.
    let (state, mut slot) = unsafe { XprtState::<T>::own(RqstRef::new(rqst)) };
    if let Some(reply) = slot.take_reply() {
        state.transport.recycle(reply);
    }
    // `buf_free` made the slot idle.
    give_slot(state, slot.into_free());
}

/// `buf_alloc`: provides the buffers for a Call and its Reply.
///
/// # Safety
///
/// As for [`alloc_slot`]; the task has its slot.
pub(super) unsafe extern "C" fn buf_alloc<T: Transport>(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract the task has its slot, which is in no queue yet.
    let (state, mut slot) = unsafe { XprtState::<T>::own(RqstRef::of_task(task)) };
    match slot.provide_buffers() {
        Ok(0) => 0,
        Ok(bytes) => {
            state.transport.count_buffer_growth(bytes);
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// `buf_free`: fences what the Call still exposes. The buffers stay with the slot.
///
/// # Safety
///
/// As for [`alloc_slot`]; the task has its slot, and SUNRPC has removed the request from its
/// queues.
pub(super) unsafe extern "C" fn buf_free<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract the task has its slot. SUNRPC has removed the request
    // from its queues and has waited until it was unpinned, so no Reply can be matched to it.
    let (rqst, (state, mut slot)) = unsafe {
        let rqst = RqstRef::of_task(task);
        (rqst, XprtState::<T>::own(rqst))
    };
    if slot.slot_state.is_sent() {
        abandon(state, &slot, rqst);
    }
    slot.reset();
}

/// Fences the memory that a sent Call exposes. Its task no longer waits for the Reply.
#[cold]
fn abandon<T: Transport>(state: &XprtState<T>, slot: &Slot<T>, rqst: RqstRef<'_>) {
    state.with_link(|connection| {
        let Some(claim) = slot.slot_state.claim() else {
            return;
        };
        trace!(xprtrdma_mrs_zap(rqst.trace_task()));
        match connection {
            Some(connection) => {
                // SAFETY: The caller is the RPC's task, which waits here. `fence` cannot choose the
                // lifetime. The connection is that of the transport, and stays for this function.
                let rpc = unsafe { Abandoned::withdraw(claim, connection) };
                drop(state.transport.fence(connection, rpc));
            }
            None => {
                // The end of the connection has made the memory unreachable.
                let (claimed_empty, outstanding) = claim.take();
                drop(outstanding);
                claimed_empty.give_up();
            }
        }
    });
}

/// `release_request`: releases the credit of a request, unless the peer still processes the Call.
///
/// # Safety
///
/// As for [`alloc_slot`]; the task has its slot, or that of a backchannel Call, SUNRPC has removed
/// the request from its queues, and `transport_lock` is held.
pub(super) unsafe extern "C" fn release_request<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    let rqst = unsafe { Releasing::of_task(task) };
    if is_backchannel(*rqst) {
        // `enqueue` set it; the congestion window did not count it.
        rqst.forget_credit();
        return;
    }
    // SAFETY: The slot comes from `alloc_slot`. `destroy` stops the credits.
    unsafe {
        let (state, slot) = XprtState::<T>::of_rqst(*rqst);
        let is_outstanding = slot.slot_state.is_sent();
        state.credits.release_request(rqst, is_outstanding);
    }
}

/// Whether a request is the Reply to a backchannel Call. Such a request has no Call buffer, since
/// `buf_alloc` is never called for it.
#[inline]
fn is_backchannel(rqst: RqstRef<'_>) -> bool {
    // Only `buf_alloc` sets the field.
    read_once!(rqst.fields(), rq_buffer).is_null()
}

/// `prepare_request`: SUNRPC is about to wait for a Reply. Releases an earlier Reply, which may
/// belong to another connection.
///
/// # Safety
///
/// As for [`alloc_slot`]; `buf` is a buffer of the request. If it is that for the Reply, the
/// request is in no queue yet.
pub(super) unsafe extern "C" fn prepare_request<T: Transport>(
    rqst: *mut bindings::rpc_rqst,
    buf: *mut bindings::xdr_buf,
) -> c_int {
    let reply_buffer = rqst.wrapping_byte_add(offset_of!(bindings::rpc_rqst, rq_rcv_buf));
    if ptr::addr_eq(buf, reply_buffer) {
        // SAFETY: By this function's contract SUNRPC owns the slot, which comes from `alloc_slot`,
        // and this runs on its behalf. No Reply is matched to a request that is in no queue.
        let (state, mut slot) = unsafe { XprtState::<T>::own(RqstRef::new(rqst)) };
        slot.reset();
        if let Some(reply) = slot.take_reply() {
            slot.empty_reply_head();
            state.transport.recycle(reply);
        }
    }
    0
}

/// `send_request`: sends a Call, or the Reply to a backchannel Call.
///
/// # Safety
///
/// As for [`alloc_slot`]; the send lock is held and the request is pinned.
pub(super) unsafe extern "C" fn send_request<T: Transport>(rqst: *mut bindings::rpc_rqst) -> c_int {
    // SAFETY: By this function's contract the request is pinned, and the send lock is held. The
    // slot comes from `alloc_slot`, or that of a backchannel Call from `enqueue`.
    let (rqst, mut lock, slot) = unsafe {
        let rqst = Transmission::new(rqst);
        let (state, slot) = XprtState::<T>::of_rqst(*rqst);
        (rqst, SendLock::assume(state), slot)
    };
    match transmit(rqst, &mut lock, slot) {
        Ok(()) => 0,
        Err(error) => {
            if error == SendError::NotConnected {
                lock.close();
            }
            error.to_errno()
        }
    }
}

/// `slot` is that of the request, and `lock` that of its transport.
#[inline]
fn transmit<T: Transport>(
    rqst: Transmission<'_>,
    lock: &mut SendLock<'_, T>,
    slot: &Slot<T>,
) -> Result<(), SendError> {
    let state = lock.state();
    let Some((connection, sender)) = lock.sender() else {
        return Err(SendError::NotConnected);
    };
    if !state.xprt().is_connected() {
        return Err(SendError::NotConnected);
    }
    if is_backchannel(*rqst) {
        // SAFETY: A request without a Call buffer comes from `enqueue`.
        let reply = unsafe { BackchannelReply::new(slot, rqst) };
        return match state.transport.send_backchannel(connection, sender, &reply) {
            // A responder that cannot send a Reply closes the connection (RFC 8166 Section 4.5.4).
            // SUNRPC would attribute any other error to the task that holds the send lock.
            Err(SendError::TooBig | SendError::Io) => Err(SendError::NotConnected),
            sent => sent,
        };
    }
    // The Call is answered. SUNRPC is being told, or will be when the task waits for the Reply.
    if slot.slot_state.is_answered() {
        return Ok(());
    }
    // The Call was sent on this connection and is not answered. A second transmission would need a
    // second credit.
    if !slot.slot_state.is_idle() {
        return Err(SendError::NotConnected);
    }
    rqst.begin()?;
    // SAFETY: This is `send_request`. The slot is idle. The connection is that of the transport,
    // and `send` cannot choose the lifetime.
    let call = unsafe { Call::new(slot, rqst, &connection.ep) };
    if let Err(error) = state.transport.send(connection, sender, call) {
        return not_sent(slot, rqst, error);
    }
    rqst.end();
    if !rqst.expects_reply() {
        // No Reply would return the credit.
        return Err(SendError::NotConnected);
    }
    Ok(())
}

/// Returns what `send_request` reports for a Call that was not sent.
///
/// The holder of the send lock transmits the requests of all tasks, and SUNRPC attributes an error
/// to the holder's task. An error that concerns this Call alone would end the RPC of another task,
/// and leave this Call at the head of the queue for the next. So this Call is reported as sent, and
/// its own task finds the refusal when it waits for the Reply. A task that expects no Reply would
/// not find the refusal.
#[cold]
fn not_sent<T: Transport>(
    slot: &Slot<T>,
    rqst: Transmission<'_>,
    error: SendError,
) -> Result<(), SendError> {
    let refusal = match error {
        SendError::TooBig => Refusal::TooBig,
        SendError::Io => Refusal::Fail,
        _ => return Err(error),
    };
    if !rqst.expects_reply() || !slot.slot_state.is_idle() {
        return Err(error);
    }
    // SAFETY: By I1 of `Transmission` the send lock is held, and the slot is idle.
    unsafe { slot.slot_state.refuse_unsent(refusal) };
    Ok(())
}
