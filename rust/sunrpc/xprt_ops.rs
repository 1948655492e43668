// SPDX-License-Identifier: GPL-2.0

//! The operations that SUNRPC calls on a client's transport, one C function each.
//!
//! Where they run: `alloc_slot`, `buf_alloc`, `send_request`, `buf_free` and `free_slot` in the task
//! that makes the RPC, or in `rpciod`; `close` in `xprtiod`, with the send lock; the connect worker
//! in a worker that takes long, with the send lock; `destroy` in a system worker, alone.

use super::reclaim;
use super::refusal;
use super::refusal::Refusal;
use super::reverse;
use super::reverse::ReverseReply;
use super::slot::task_of;
use super::slot::Call;
use super::slot::Slot;
use super::xprt::peer_of;
use super::xprt::SendError;
use super::xprt::Transport;
use super::xprt::Xprt;
use crate::admin::trace::trace;
use crate::bindings;
use core::ffi::c_void;
use core::ptr;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::sync::barrier::smp_mb;
use kernel::time::msecs_to_jiffies;

/// The first pause before another attempt to connect, if the last one was good for nothing.
const FIRST_PAUSE_MS: u32 = 5_000;

/// The table for transports of `T`.
pub(super) struct Ops<T: Transport>(core::marker::PhantomData<T>);

impl<T: Transport> Ops<T> {
    pub(super) const TABLE: bindings::rpc_xprt_ops = bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(alloc_slot::<T>),
        free_slot: Some(free_slot::<T>),
        release_request: Some(release_request::<T>),
        wait_for_reply_request: Some(refusal::wait_for_reply_request::<T>),
        timer: Some(timer),
        rpcbind: Some(bindings::rpcb_getport_async),
        set_port: Some(set_port::<T>),
        connect: Some(connect::<T>),
        buf_alloc: Some(buf_alloc::<T>),
        buf_free: Some(buf_free::<T>),
        prepare_request: Some(prepare_request::<T>),
        send_request: Some(send_request::<T>),
        close: Some(close::<T>),
        destroy: Some(destroy::<T>),
        set_connect_timeout: Some(set_connect_timeout::<T>),
        print_stats: Some(print_stats::<T>),
        enable_swap: Some(reclaim::enable_swap),
        disable_swap: Some(reclaim::disable_swap),
        inject_disconnect: Some(inject_disconnect::<T>),
        bc_setup: Some(reverse::ops::setup::<T>),
        bc_maxpayload: Some(reverse::ops::max_payload::<T>),
        bc_num_slots: Some(reverse::ops::num_slots::<T>),
        bc_free_rqst: Some(reverse::free_reverse::<T>),
        bc_destroy: Some(reverse::ops::destroy::<T>),
        ..pin_init::zeroed()
    };

    /// The table, for as long as the module is there.
    pub(super) fn table() -> &'static bindings::rpc_xprt_ops {
        const { &Self::TABLE }
    }
}

/// Finds a slot for a task, or has it wait for one.
///
/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`, as are all of the following.
unsafe extern "C" fn alloc_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    // SAFETY: Only slots of `T` are put in.
    if let Some(slot) = unsafe { live.free.take::<T>() } {
        // SAFETY: The task is the caller's; the slot is now the task's.
        unsafe {
            (*task).tk_rqstp = slot.as_ref().rqst();
            (*task).tk_status = 0;
        }
        return;
    }
    // SAFETY: As above.
    unsafe {
        (*task).tk_status = -bindings::EAGAIN.cast_signed();
        bindings::xprt_add_backlog_noncongested(raw, task);
    }
    // A slot that was freed before the task was in the backlog found nobody to wake. The task is there
    // before this looks for the slot: pairs with the barrier in `give_slot`.
    smp_mb();
    // SAFETY: As above.
    if let Some(slot) = unsafe { live.free.take::<T>() } {
        // SAFETY: Ours alone.
        unsafe { give_slot(raw, live, slot.as_ref()) };
    }
}

/// Gives a slot to who waits for one, or puts it where the next finds it.
///
/// # Safety
///
/// The slot is the caller's alone, idle and without a Reply.
unsafe fn give_slot<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    live: &super::xprt::Live<T>,
    slot: &Slot<T>,
) {
    let mut slot = NonNull::from(slot);
    loop {
        // SAFETY: By this function's contract, or just taken. Who is woken owns the slot, zeroed.
        unsafe {
            let rqst = slot.as_ref().rqst();
            if bindings::xprt_wake_up_backlog(raw, rqst) {
                return;
            }
            rqst.write_bytes(0, 1);
            live.free.put(slot.as_ref());
        }
        // Whoever has come to the backlog since, and did not find the slot, is seen here: pairs with the
        // barrier in `alloc_slot`.
        smp_mb();
        // SAFETY: The transport is alive; SUNRPC changes the number under the queue's lock.
        if unsafe { (&raw const (*raw).backlog.qlen).read_volatile() } == 0 {
            return;
        }
        // SAFETY: Only slots of `T` are put in.
        match unsafe { live.free.take::<T>() } {
            Some(again) => slot = again,
            // Who has it looks at the backlog as well, if it does not use it.
            None => return,
        }
    }
}

/// # Safety
///
/// See [`alloc_slot`]; the task is done with the request.
unsafe extern "C" fn free_slot<T: Transport>(
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
    unsafe { give_slot(raw, live, slot) };
}

/// # Safety
///
/// See [`alloc_slot`]; the task has its slot.
unsafe extern "C" fn buf_alloc<T: Transport>(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract.
    let (rqst, raw) = unsafe { ((*task).tk_rqstp, (*(*task).tk_rqstp).rq_xprt) };
    // SAFETY: The task owns its slot.
    match unsafe { Slot::<T>::from_rqst(rqst).provide_buffers() } {
        Ok(0) => 0,
        Ok(octets) => {
            // SAFETY: By this function's contract.
            unsafe { Xprt::<T>::from_raw(raw).live() }
                .transport
                .buffers_grown(octets);
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// See [`alloc_slot`]; the task has its slot, and SUNRPC has taken the request out of its queues.
unsafe extern "C" fn buf_free<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    let (rqst, raw) = unsafe { ((*task).tk_rqstp, (*(*task).tk_rqstp).rq_xprt) };
    // SAFETY: The task's own.
    let slot = unsafe { Slot::<T>::from_rqst(rqst) };
    if slot.is_sent() {
        // SAFETY: By this function's contract.
        abandon(unsafe { Xprt::<T>::from_raw(raw).live() }, slot);
    }
    slot.renew();
}

/// Gives the credit of a request back, unless the peer still has the Call.
///
/// # Safety
///
/// See [`alloc_slot`]; the task has its slot, or that of a reverse Call, SUNRPC has taken the request out of
/// its queues, and `transport_lock` is held.
unsafe extern "C" fn release_request<T: Transport>(task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let slot = Slot::<T>::from_rqst(rqst);
        if is_reverse(rqst) {
            // It was none of the credits that are counted.
            (*rqst).rq_cong = 0;
        } else if (*rqst).rq_cong != 0 && slot.is_sent() && {
            let live = Xprt::<T>::from_raw((*rqst).rq_xprt).live();
            live.credits.keep(slot.xid())
        } {
            (*rqst).rq_cong = 0;
        } else {
            bindings::xprt_release_rqst_cong(task);
        }
    }
}

/// Whether a request that is being sent, or was, is the Reply to a reverse Call. Requests of SUNRPC's own
/// making have their Call in one of our buffers; reverse Calls have none.
///
/// # Safety
///
/// The request is the caller's.
#[inline]
unsafe fn is_reverse(rqst: *mut bindings::rpc_rqst) -> bool {
    // SAFETY: By this function's contract.
    unsafe { (*rqst).rq_buffer.is_null() }
}

/// SUNRPC is about to wait for a Reply. It has no use any more for one that it has seen before, and
/// that may belong to another connection.
///
/// # Safety
///
/// See [`alloc_slot`]; `buf` is a message of the request, which is in no queue.
unsafe extern "C" fn prepare_request<T: Transport>(
    rqst: *mut bindings::rpc_rqst,
    buf: *mut bindings::xdr_buf,
) -> c_int {
    // SAFETY: By this function's contract, no Reply can arrive for the request.
    unsafe {
        if ptr::eq(buf, &raw const (*rqst).rq_rcv_buf) {
            let slot = Slot::<T>::from_rqst(rqst);
            slot.renew();
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
fn abandon<T: Transport>(live: &super::xprt::Live<T>, slot: &Slot<T>) {
    live.with_link(|connection| {
        let Some(exchange) = slot.claim() else {
            return;
        };
        // SAFETY: The task gives up its own request.
        trace!(xprtrdma_mrs_zap(unsafe { task_of(slot.rqst()) }));
        match connection {
            Some(connection) => drop(live.transport.fence(connection, exchange)),
            // Nothing is exposed on a connection that is gone.
            None => drop(exchange),
        }
        slot.settle();
    });
}

/// # Safety
///
/// See [`alloc_slot`]; the send lock is held and the request pinned.
unsafe extern "C" fn send_request<T: Transport>(rqst: *mut bindings::rpc_rqst) -> c_int {
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
    // SAFETY: The request is being sent.
    if unsafe { is_reverse(rqst) } {
        // SAFETY: Made in `send_request`.
        let reply = unsafe { ReverseReply::new(slot) };
        return match live.transport.send_reverse(connection, sender, &reply) {
            // Dropped: the error would be that of whoever holds the send lock. The server may call again.
            Err(SendError::TooBig | SendError::Io) => Ok(()),
            sent => sent,
        };
    }
    // Answered, as SUNRPC is being told at this moment, or is going to be when the task waits.
    if slot.is_answered() {
        return Ok(());
    }
    // Sent on this connection already, and not answered: sending it twice would upset the credits.
    if !slot.is_idle() {
        return Err(SendError::NotConnected);
    }
    // SAFETY: The request is being sent.
    unsafe {
        if !bindings::xprt_request_get_cong(raw, rqst) {
            return Err(SendError::NoCredit);
        }
        (*rqst).rq_xtime = bindings::ktime_get();
    }
    // SAFETY: Made in `send_request`.
    let call = unsafe { Call::new(slot) };
    if let Err(error) = live.transport.send(connection, sender, &call) {
        // SAFETY: The request is being sent.
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
/// Whoever holds the send lock sends what all have queued, and SUNRPC takes an error for that task's.
/// What is wrong with this Call alone must not end the RPC of another, and leave this one at the head of
/// the queue, to end the next: it passes for sent, and its own task is told when it comes to wait for
/// the Reply. A task that expects none would not come to that.
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
    if !unsafe { bindings::rpcrdma_rpc_reply_expected((*slot.rqst()).rq_task) } || !slot.is_idle() {
        return Err(error);
    }
    slot.remember(refusal);
    Ok(())
}

/// # Safety
///
/// See [`alloc_slot`]; the send lock is held.
unsafe extern "C" fn close<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe {
        Xprt::<T>::from_raw(raw).live().disconnect(raw);
        (*raw).connect_cookie = (*raw).connect_cookie.wrapping_add(1);
        bindings::xprt_disconnect_done(raw);
    }
}

/// A Reply is overdue. RDMA connections have no keep-alive, so only another connection tells.
///
/// # Safety
///
/// See [`alloc_slot`].
unsafe extern "C" fn timer(raw: *mut bindings::rpc_xprt, _task: *mut bindings::rpc_task) {
    // SAFETY: By this function's contract.
    unsafe { bindings::xprt_force_disconnect(raw) };
}

/// # Safety
///
/// See [`alloc_slot`]; one at a time.
unsafe extern "C" fn set_port<T: Transport>(raw: *mut bindings::rpc_xprt, port: c_ushort) {
    // SAFETY: By this function's contract. In both families' addresses the port is the second half
    // word, in network order.
    unsafe {
        let at = (&raw mut (*raw).addr).cast::<u16>().add(1);
        at.write(port.to_be());
        (*Xprt::<T>::from_raw(raw).strings.get()).set_port(port);
    }
}

/// Has the connect worker make a connection: at once, or after a pause if the last one was good for
/// nothing.
///
/// # Safety
///
/// See [`alloc_slot`]; the send lock is held by `task`.
unsafe extern "C" fn connect<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    task: *mut bindings::rpc_task,
) {
    // SAFETY: By this function's contract. The send lock goes to the worker, which gives it back.
    unsafe {
        if !bindings::xprt_lock_connect(raw, task, cookie(raw)) {
            return;
        }
        let pause = match (*raw).reestablish_timeout {
            0 => 0,
            _ => bindings::xprt_reconnect_delay(raw),
        };
        trace!(xprtrdma_op_connect(peer_of(raw), pause));
        let live = Xprt::<T>::from_raw(raw).live();
        bindings::queue_delayed_work_on(
            bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
            bindings::system_dfl_long_wq,
            live.connect_worker.get(),
            pause,
        );
    }
}

/// What names the connect worker as the holder of the send lock.
fn cookie(raw: *mut bindings::rpc_xprt) -> *mut c_void {
    raw.cast()
}

/// # Safety
///
/// Called by the workqueue for the `connect_worker` of a transport, which holds the send lock.
pub(super) unsafe extern "C" fn connect_worker<T: Transport>(work: *mut bindings::work_struct) {
    // SAFETY: By this function's contract. `destroy` waits for this worker.
    let (live, raw) = unsafe { Xprt::<T>::of_connect_worker(work) };
    // SAFETY: Alive, as above.
    let _scope = unsafe { reclaim::Scope::of(raw) };
    // SAFETY: The send lock is held. There is no connection, or one that SUNRPC does not know.
    unsafe { live.disconnect(raw) };
    let connected = live.transport.connect();
    // SAFETY: The send lock is held until it is given back below.
    unsafe {
        bindings::rpcrdma_xprt_clear_connecting(raw);
        let status = match connected {
            Ok(connection) => {
                live.connected(connection);
                let now = bindings::rpcrdma_jiffies();
                (*raw).connect_cookie = (*raw).connect_cookie.wrapping_add(1);
                let stat = &raw mut (*raw).stat;
                (*stat).connect_count = (*stat).connect_count.wrapping_add(1);
                (*stat).connect_time = (*stat)
                    .connect_time
                    .wrapping_add(now.wrapping_sub((*stat).connect_start));
                // Until a Reply shows that it is good for something.
                pause_before_next(raw);
                bindings::set_bit(bindings::XPRT_CONNECTED as usize, &raw mut (*raw).state);
                trace!(xprtrdma_connect(peer_of(raw), 0, 1));
                -bindings::EAGAIN.cast_signed()
            }
            Err(error) => {
                pause_before_next(raw);
                let errno = error.to_errno();
                trace!(xprtrdma_connect(peer_of(raw), errno, errno));
                errno
            }
        };
        // Nobody waits for a Reply of this connection before the lock is given back.
        bindings::xprt_wake_pending_tasks(raw, status);
        bindings::xprt_unlock_connect(raw, cookie(raw));
    }
}

/// # Safety
///
/// The send lock is held.
unsafe fn pause_before_next(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe { bindings::xprt_reconnect_backoff(raw, msecs_to_jiffies(FIRST_PAUSE_MS)) };
}

/// # Safety
///
/// The last call for a transport.
unsafe extern "C" fn destroy<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract; nobody else uses the transport, which is as good as the
    // send lock.
    unsafe {
        let live = Xprt::<T>::from_raw(raw).live();
        bindings::cancel_delayed_work_sync(live.connect_worker.get());
        live.credits.stop();
        live.disconnect(raw);
        Xprt::<T>::finish(raw.cast());
    }
}

/// # Safety
///
/// See [`alloc_slot`].
unsafe extern "C" fn set_connect_timeout<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    connect: c_ulong,
    reconnect: c_ulong,
) {
    // SAFETY: By this function's contract; these are `transport_lock`'s.
    unsafe {
        trace!(xprtrdma_op_set_cto(peer_of(raw), connect, reconnect));
        bindings::spin_lock(&raw mut (*raw).transport_lock);
        if connect < (*raw).connect_timeout {
            let each = connect.max(msecs_to_jiffies(2 * FIRST_PAUSE_MS));
            let timeout = Xprt::<T>::from_raw(raw).timeout.get();
            (*timeout).to_initval = each;
            (*timeout).to_maxval = each;
            (*raw).connect_timeout = connect;
        }
        if reconnect < (*raw).max_reconnect_timeout {
            (*raw).max_reconnect_timeout = reconnect;
        }
        bindings::spin_unlock(&raw mut (*raw).transport_lock);
    }
}

/// # Safety
///
/// See [`alloc_slot`].
unsafe extern "C" fn print_stats<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    seq: *mut bindings::seq_file,
) {
    // SAFETY: By this function's contract.
    let (live, seq) = unsafe { (Xprt::<T>::from_raw(raw).live(), SeqFile::from_raw(seq)) };
    // SAFETY: Counters that change as they are read.
    let stat = unsafe { ptr::read_volatile(&raw const (*raw).stat) };
    let second = msecs_to_jiffies(1_000).max(1);
    // SAFETY: As above. When it was used last is read before the time, or it might be later.
    let idle = unsafe {
        let last_used = ptr::read_volatile(&raw const (*raw).last_used);
        match (*raw).state & (1 << bindings::XPRT_CONNECTED) {
            0 => 0,
            _ => bindings::rpcrdma_jiffies().wrapping_sub(last_used) / second,
        }
    };
    kernel::seq_print!(
        seq,
        "\txprt:\trdma 0 {} {} {} {} {} {} {} {} {} ",
        stat.bind_count,
        stat.connect_count,
        stat.connect_time / second,
        idle,
        stat.sends,
        stat.recvs,
        stat.bad_xids,
        stat.req_u,
        stat.bklog_u
    );
    live.transport.print_stats(seq);
}

/// # Safety
///
/// See [`alloc_slot`]; in a task whose Call has been sent, which need not have the send lock any more.
unsafe extern "C" fn inject_disconnect<T: Transport>(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    let live = unsafe { Xprt::<T>::from_raw(raw).live() };
    live.with_link(|connection| {
        if let Some(connection) = connection {
            // SAFETY: The transport is alive.
            trace!(xprtrdma_op_inject_dsc(unsafe { peer_of(raw) }));
            T::inject_disconnect(connection);
        }
    });
}
