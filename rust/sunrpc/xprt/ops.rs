// SPDX-License-Identifier: GPL-2.0

//! The table of operations that SUNRPC calls on a client's transport.
//!
//! | operation                                             | runs in                             |
//! |-------------------------------------------------------|-------------------------------------|
//! | `alloc_slot`, `buf_alloc`, `buf_free`, `free_slot`    | the task of the RPC, or `rpciod`    |
//! | `send_request`                                        | a task that holds the send lock     |
//! | `close`                                               | `xprtiod`, or a task that could not |
//! |                                                       | send, with the send lock            |
//! | the connect worker                                    | `system_dfl_long_wq`, with the send |
//! |                                                       | lock                                |
//! | `destroy`                                             | a system worker, alone              |
//! | `print_stats`, `get_srcaddr`, `get_srcport`           | a task that reads a file            |
//!
//! C: transport.c, xprt_rdma_print_stats()

use core::{
    marker::PhantomData,
    ptr, //
};

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    str::CString,
    time::msecs_to_jiffies, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr,
    sunrpc::{
        c_ref::read_once,
        time::jiffies, //
    }, //
};

use super::{
    backchannel_ops,
    connection_ops,
    reclaim,
    refusal,
    request_ops,
    rpc_xprt::XprtState,
    transport::Transport, //
};

/// The table for transports of `T`.
pub(super) struct Ops<T: Transport>(PhantomData<T>);

impl<T: Transport> Ops<T> {
    /// The table. It stays while the module is loaded.
    pub(super) const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(request_ops::alloc_slot::<T>),
        free_slot: Some(request_ops::free_slot::<T>),
        release_request: Some(request_ops::release_request::<T>),
        wait_for_reply_request: Some(refusal::wait_for_reply_request::<T>),
        timer: Some(connection_ops::timer::<T>),
        rpcbind: Some(bindings::rpcb_getport_async),
        set_port: Some(connection_ops::set_port),
        connect: Some(connection_ops::connect::<T>),
        buf_alloc: Some(request_ops::buf_alloc::<T>),
        buf_free: Some(request_ops::buf_free::<T>),
        prepare_request: Some(request_ops::prepare_request::<T>),
        send_request: Some(request_ops::send_request::<T>),
        close: Some(connection_ops::close::<T>),
        destroy: Some(connection_ops::destroy::<T>),
        set_connect_timeout: Some(connection_ops::set_connect_timeout),
        print_stats: Some(print_stats::<T>),
        get_srcaddr: Some(get_srcaddr::<T>),
        get_srcport: Some(get_srcport::<T>),
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
}

/// `print_stats`: prints the `xprt:` line of `mountstats`.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`, with a valid `seq`.
unsafe extern "C" fn print_stats<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    seq: *mut bindings::seq_file,
) {
    // SAFETY: By this function's contract.
    let (state, seq) = unsafe { (XprtState::<T>::from_raw(raw), SeqFile::from_raw(seq)) };
    // Other threads change these words meanwhile. Each value may be old or new.
    let xprt = state.xprt();
    let last_used = read_once!(xprt, last_used);
    let second = msecs_to_jiffies(1_000).max(1);
    let idle = if xprt.is_connected() {
        // `last_used` was read before the clock, so it is not later.
        jiffies().wrapping_sub(last_used) / second
    } else {
        0
    };
    kernel::seq_print!(
        seq,
        "\txprt:\trdma 0 {} {} {} {} {} {} {} {} {} ",
        read_once!(xprt, stat.bind_count),
        read_once!(xprt, stat.connect_count),
        read_once!(xprt, stat.connect_time) / second,
        idle,
        read_once!(xprt, stat.sends),
        read_once!(xprt, stat.recvs),
        read_once!(xprt, stat.bad_xids),
        read_once!(xprt, stat.req_u),
        read_once!(xprt, stat.bklog_u)
    );
    state.transport.print_stats(seq);
}

/// `get_srcaddr`: prints this end's address into `buf`, for sysfs and debugfs. Returns the length
/// of the text, or a negative errno.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`. `buf` has `len` writable bytes.
unsafe extern "C" fn get_srcaddr<T: Transport>(
    raw: *mut bindings::rpc_xprt,
    buf: *mut c_char,
    len: usize,
) -> c_int {
    // SAFETY: By this function's contract.
    let Some(addr) = (unsafe { local_addr::<T>(raw) }) else {
        return -(bindings::ENOTCONN as c_int);
    };
    let Ok(text) = CString::try_from_fmt(format_args!("{}", addr.ip())) else {
        return ENOMEM.to_errno();
    };
    let text = text.to_bytes_with_nul();
    if text.len() > len {
        return EINVAL.to_errno();
    }
    // SAFETY: `buf` has at least `text.len()` writable bytes by this function's contract and the
    // comparison above. `text` is an allocation of this function.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len()) };
    // An address is shorter than 64 bytes.
    (text.len() - 1) as c_int
}

/// `get_srcport`: this end's port, or 0 if there is no connection.
///
/// # Safety
///
/// SUNRPC calls this between `setup` and `destroy`.
unsafe extern "C" fn get_srcport<T: Transport>(raw: *mut bindings::rpc_xprt) -> c_ushort {
    // SAFETY: By this function's contract.
    unsafe { local_addr::<T>(raw) }.map_or(0, |addr| addr.port())
}

/// The address of this end, if there is a connection. Also `None` while another thread has the
/// mutex `link`, which it may hold until the device answers.
///
/// # Safety
///
/// `raw` is a transport of `T`, between `setup` and `destroy`.
unsafe fn local_addr<T: Transport>(raw: *mut bindings::rpc_xprt) -> Option<SockAddr> {
    // SAFETY: By this function's contract.
    let state = unsafe { XprtState::<T>::from_raw(raw) };
    state.try_with_link(|connection| connection.and_then(|connection| T::local_addr(connection)))
}
