// SPDX-License-Identifier: GPL-2.0

//! The operations that SUNRPC calls on a client's transport, one C function each.
//!
//! Where they run: `alloc_slot`, `buf_alloc`, `send_request`, `buf_free` and `free_slot` in the
//! task that makes the RPC, or in `rpciod`; `close` in `xprtiod`, or in the task that found that it
//! cannot send, always with the send lock; the connect worker in a worker that takes long, with the
//! send lock; `destroy` in a system worker, alone.

use core::ptr;

use kernel::{
    seq_file::SeqFile,
    time::msecs_to_jiffies, //
};

use crate::bindings;

use super::{
    backchannel_ops,
    connection_ops,
    reclaim,
    refusal,
    request_ops,
    rpc_xprt::Xprt,
    transport::Transport, //
};

/// The table for transports of `T`.
pub(super) struct Ops<T: Transport>(core::marker::PhantomData<T>);

impl<T: Transport> Ops<T> {
    pub(super) const TABLE: bindings::rpc_xprt_ops = bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(request_ops::alloc_slot::<T>),
        free_slot: Some(request_ops::free_slot::<T>),
        release_request: Some(request_ops::release_request::<T>),
        wait_for_reply_request: Some(refusal::wait_for_reply_request::<T>),
        timer: Some(connection_ops::timer),
        rpcbind: Some(bindings::rpcb_getport_async),
        set_port: Some(connection_ops::set_port::<T>),
        connect: Some(connection_ops::connect::<T>),
        buf_alloc: Some(request_ops::buf_alloc::<T>),
        buf_free: Some(request_ops::buf_free::<T>),
        prepare_request: Some(request_ops::prepare_request::<T>),
        send_request: Some(request_ops::send_request::<T>),
        close: Some(connection_ops::close::<T>),
        destroy: Some(connection_ops::destroy::<T>),
        set_connect_timeout: Some(connection_ops::set_connect_timeout::<T>),
        print_stats: Some(print_stats::<T>),
        enable_swap: Some(reclaim::enable_swap),
        disable_swap: Some(reclaim::disable_swap),
        inject_disconnect: Some(connection_ops::inject_disconnect::<T>),
        bc_setup: Some(backchannel_ops::setup::<T>),
        bc_maxpayload: Some(backchannel_ops::max_payload::<T>),
        bc_num_slots: Some(backchannel_ops::num_slots::<T>),
        bc_free_rqst: Some(backchannel_ops::free_backchannel::<T>),
        bc_destroy: Some(backchannel_ops::destroy::<T>),
        ..pin_init::zeroed()
    };

    /// The table, for as long as the module is there.
    pub(super) fn table() -> &'static bindings::rpc_xprt_ops {
        const { &Self::TABLE }
    }
}

/// # Safety
///
/// Called by SUNRPC between `setup` and `destroy`.
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
