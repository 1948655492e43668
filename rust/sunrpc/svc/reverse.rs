// SPDX-License-Identifier: GPL-2.0

//! Reverse Calls (RFC 8167): the service calls its client back over the connection that the client made.
//!
//! For that SUNRPC wants an `rpc_xprt` beside the `svc_xprt`. It has no connection of its own and is
//! connected from the start; each of the two holds the other, until the `svc_xprt` is dropped. What
//! little state it has is all SUNRPC's.

use super::class::Connection;
use super::class::Listener;
use super::class::Ops;
use super::rqst::Receiving;
use super::xprt;
use crate::bindings;
use crate::bindings::addr::SockAddr;
use crate::sunrpc::addr::AddressStrings;
use crate::sunrpc::xdr::XdrBuf;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::sync::atomic::ordering::Relaxed;
use kernel::sync::atomic::Atomic;
use kernel::time::msecs_to_jiffies;
use kernel::types::Opaque;

/// Reverse Calls that may be outstanding on a connection; each message asks for as many credits.
pub(crate) const SLOTS: u32 = 2;

/// Octets that SUNRPC may assume to fit a reverse Call. Callbacks are far shorter.
const MAX_PAYLOAD: usize = 4096;

/// How long a reverse Call waits for its Reply.
const TIMEOUT_MS: u32 = 60_000;

/// Why a reverse Call was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The connection is at its end, and reverse Calls with it.
    NotConnected,
    /// The Call is too long to be sent without chunks.
    TooBig,
}

/// `struct rpc_xprt` with what it points to; C allocates it and counts references to it.
#[repr(C)]
struct Reverse {
    raw: Opaque<bindings::rpc_xprt>,
    strings: UnsafeCell<AddressStrings>,
    timeout: Opaque<bindings::rpc_timeout>,
}

/// `struct xprt_class` with its netids: none, which an empty one says.
#[repr(C)]
struct Class {
    base: Opaque<bindings::xprt_class>,
    netids: [*const c_char; 1],
}

const _: () = assert!(
    offset_of!(Class, netids) == size_of::<bindings::xprt_class>(),
    "the flexible array of netids starts where the structure ends"
);

/// The class, once registered; its transports refer to it, and keep the module.
static CLASS: Atomic<*mut c_void> = Atomic::new(ptr::null_mut());

/// The registration of the reverse transports of `L`'s connections.
#[pin_data(PinnedDrop)]
pub(crate) struct ReverseRegistration<L: Listener> {
    #[pin]
    class: Opaque<Class>,
    _listener: PhantomData<L>,
}

// SAFETY: Registration and its end may happen on different threads.
unsafe impl<L: Listener> Send for ReverseRegistration<L> {}
// SAFETY: A shared reference offers nothing.
unsafe impl<L: Listener> Sync for ReverseRegistration<L> {}

impl<L: Listener> ReverseRegistration<L> {
    /// Registers the class.
    pub(crate) fn new(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            class <- Opaque::try_ffi_init(move |slot: *mut Class| {
                // SAFETY: `slot` is writable, and all zeroes is valid for it.
                unsafe {
                    slot.write_bytes(0, 1);
                    (*slot).netids = [c"".as_char_ptr()];
                    let base = (*slot).base.get();
                    (*base).ident = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA;
                    (*base).setup = Some(setup::<L>);
                    (*base).owner = module.as_ptr();
                    let name = c"rdma backchannel".to_bytes_with_nul();
                    for (place, octet) in (*base).name.iter_mut().zip(name) {
                        *place = *octet;
                    }
                    let list = &raw mut (*base).list;
                    (*list).next = list;
                    (*list).prev = list;
                    CLASS.store(base.cast(), Relaxed);
                    // SUNRPC holds the module while it makes a transport, and a transport holds it.
                    to_result(bindings::xprt_register_transport(base))
                }
            }),
            _listener: PhantomData,
        })
    }
}

#[pinned_drop]
impl<L: Listener> PinnedDrop for ReverseRegistration<L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::xprt_unregister_transport((*self.class.get()).base.get()) };
    }
}

/// # Safety
///
/// Called by SUNRPC with what to make a transport for.
unsafe extern "C" fn setup<L: Listener>(
    args: *mut bindings::xprt_create,
) -> *mut bindings::rpc_xprt {
    // SAFETY: By this function's contract.
    match unsafe { create::<L>(args) } {
        Ok(raw) => raw,
        Err(error) => error.to_ptr(),
    }
}

/// # Safety
///
/// As for [`setup`].
unsafe fn create<L: Listener>(args: *mut bindings::xprt_create) -> Result<*mut bindings::rpc_xprt> {
    // SAFETY: By this function's contract; whoever asks holds the `svc_xprt`.
    unsafe {
        let forward = (*args).bc_xprt;
        if forward.is_null() || !ptr::eq((*forward).xpt_ops, Ops::<L>::CONNECTION) {
            return Err(EINVAL);
        }
        let addr = SockAddr::from_raw((*args).dstaddr, (*args).addrlen).ok_or(EINVAL)?;
        let module = (*(*forward).xpt_class).xcl_owner;
        // `destroy` runs when it pleases, perhaps after the `svc_xprt` has let go of the module.
        if !bindings::try_module_get(module) {
            return Err(ENODEV);
        }
        let raw = bindings::xprt_alloc((*args).net, size_of::<Reverse>(), SLOTS, SLOTS);
        if raw.is_null() {
            bindings::module_put(module);
            return Err(ENOMEM);
        }
        let this = raw.cast::<Reverse>();
        let timeout = (*this).timeout.get();
        (*timeout).to_initval = msecs_to_jiffies(TIMEOUT_MS);
        (*timeout).to_maxval = msecs_to_jiffies(TIMEOUT_MS);
        (*raw).timeout = timeout;
        (*raw).ops = Calls::<L::Connection>::TABLE;
        (*raw).xprt_class = CLASS.load(Relaxed).cast();
        (*raw).prot = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA;
        (*raw).max_payload = MAX_PAYLOAD;
        (*raw).addrlen = addr.len();
        ptr::copy_nonoverlapping(
            addr.as_ptr().cast::<u8>(),
            (&raw mut (*raw).addr).cast(),
            addr.len(),
        );
        AddressStrings::publish((&raw mut (*this).strings).cast(), raw, &addr);
        for flag in [bindings::XPRT_BOUND, bindings::XPRT_CONNECTED] {
            bindings::set_bit(flag as usize, &raw mut (*raw).state);
        }
        // The `svc_xprt` puts its reference when it is dropped.
        bindings::xprt_get(raw);
        (*raw).bc_xprt = forward;
        (*forward).xpt_bc_xprt = raw;
        Ok(raw)
    }
}

/// The operations of the reverse transports of connections `C`.
struct Calls<C: Connection>(PhantomData<C>);

impl<C: Connection> Calls<C> {
    const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        release_request: Some(bindings::xprt_release_rqst_cong),
        wait_for_reply_request: Some(bindings::xprt_wait_for_reply_request_def),
        buf_alloc: Some(buf_alloc),
        buf_free: Some(buf_free),
        send_request: Some(send_request::<C>),
        close: Some(close),
        destroy: Some(destroy),
        print_stats: Some(print_stats),
        ..pin_init::zeroed()
    };
}

/// One allocation for the Call and the Reply. The Call is copied from there when it is sent, so that it
/// may be freed, or sent again, whenever SUNRPC likes.
///
/// # Safety
///
/// Called by SUNRPC, as are all of the following; the task has its slot.
unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: By this function's contract. The service may be needed to free memory, so this does not
    // wait for some; SUNRPC tries again in a while.
    unsafe {
        let rqst = (*task).tk_rqstp;
        let flags = bindings::GFP_NOWAIT | bindings::__GFP_NOWARN;
        let len = (*rqst).rq_callsize.saturating_add((*rqst).rq_rcvsize);
        let memory = bindings::rpcrdma_kmalloc_node(len, flags, bindings::NUMA_NO_NODE);
        if memory.is_null() {
            return -bindings::ENOMEM.cast_signed();
        }
        (*rqst).rq_buffer = memory;
        (*rqst).rq_rbuffer = memory.byte_add((*rqst).rq_callsize);
        0
    }
}

/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
    // SAFETY: From `buf_alloc`.
    unsafe { bindings::kfree((*(*task).tk_rqstp).rq_buffer) };
}

/// # Safety
///
/// See [`buf_alloc`]; the request is being sent, one at a time.
unsafe extern "C" fn send_request<C: Connection>(rqst: *mut bindings::rpc_rqst) -> c_int {
    // SAFETY: By this function's contract. Who has SUNRPC make reverse Calls holds the `svc_xprt`.
    let sent = unsafe {
        let raw = (*rqst).rq_xprt;
        if !bindings::xprt_request_get_cong(raw, rqst) {
            return -bindings::EBADSLT.cast_signed();
        }
        (*rqst).rq_xtime = bindings::ktime_get();
        let message = XdrBuf::from_raw(&raw mut (*rqst).rq_snd_buf);
        let xid = u32::from_be((*rqst).rq_xid);
        let sent = xprt::data::<C>((*raw).bc_xprt).call_back(xid, message);
        if sent.is_ok() {
            (*rqst).rq_xmit_bytes_sent += message.len() as usize;
        }
        sent
    };
    match sent {
        Ok(()) => 0,
        Err(CallError::NotConnected) => -bindings::ENOTCONN.cast_signed(),
        Err(CallError::TooBig) => -bindings::EMSGSIZE.cast_signed(),
    }
}

/// The `svc_xprt` is being closed: nothing outstanding will be answered.
///
/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn close(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract.
    unsafe {
        bindings::xprt_disconnect_done(raw);
        set_window(raw, 1);
    }
}

/// # Safety
///
/// `raw` is a transport.
unsafe fn set_window(raw: *mut bindings::rpc_xprt, credits: u32) {
    // SAFETY: By this function's contract; the window is `transport_lock`'s.
    unsafe {
        bindings::spin_lock(&raw mut (*raw).transport_lock);
        (*raw).cwnd = (credits as usize) << bindings::RPC_CWNDSHIFT;
        bindings::spin_unlock(&raw mut (*raw).transport_lock);
    }
}

/// # Safety
///
/// See [`buf_alloc`]; the last call for the transport.
unsafe extern "C" fn destroy(raw: *mut bindings::rpc_xprt) {
    // SAFETY: By this function's contract. The module's reference is that of `create`.
    unsafe {
        let module = (*(*raw).xprt_class).owner;
        bindings::xprt_free(raw);
        bindings::module_put(module);
    }
}

/// # Safety
///
/// See [`buf_alloc`].
unsafe extern "C" fn print_stats(raw: *mut bindings::rpc_xprt, seq: *mut bindings::seq_file) {
    // SAFETY: By this function's contract; counters that change as they are read.
    let (seq, stat) = unsafe {
        let stat = ptr::read_volatile(&raw const (*raw).stat);
        (SeqFile::from_raw(seq), stat)
    };
    // Of the 27 numbers that readers expect, these are the ones that mean something here.
    kernel::seq_print!(
        seq,
        "\txprt:\trdma 0 0 0 0 0 {} {} {} {} {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        stat.sends,
        stat.recvs,
        stat.bad_xids,
        stat.req_u,
        stat.bklog_u
    );
}

impl<C: Connection> Receiving<'_, C> {
    /// Completes the reverse Call `xid` with its Reply, and takes the `credits` granted; does nothing if
    /// there is no such Call.
    pub(crate) fn answer(&self, xid: u32, credits: u32, reply: &[u8]) {
        let window = self.with_reverse_call(xid, |rqst| {
            // SAFETY: The request waits, and is locked. The consumer looks at its buffer once it has
            // been completed.
            unsafe {
                let head = &raw const (*rqst).rq_rcv_buf.head[0];
                (&raw mut (*rqst).rq_private_buf).copy_from(&raw const (*rqst).rq_rcv_buf, 1);
                if (*head).iov_len < reply.len() {
                    (*(*rqst).rq_task).tk_status = -bindings::EIO.cast_signed();
                    return 0;
                }
                (*head)
                    .iov_base
                    .cast::<u8>()
                    .copy_from_nonoverlapping(reply.as_ptr(), reply.len());
                // CAST: No more than a Receive buffer.
                reply.len() as c_int
            }
        });
        if let Some(raw) = window {
            // Who has no credit left could never be told of more.
            // SAFETY: The request's transport keeps it.
            unsafe { set_window(raw, credits.clamp(1, SLOTS)) };
        }
    }

    /// Ends the reverse Call `xid`, which the client has refused; does nothing if there is no such Call.
    pub(crate) fn refuse(&self, xid: u32) {
        self.with_reverse_call(xid, |rqst| {
            // SAFETY: The request waits, and is locked.
            unsafe { (*(*rqst).rq_task).tk_status = -bindings::EIO.cast_signed() };
            0
        });
    }

    /// Finds the reverse Call `xid` and completes it with as many octets as `work` returns. Returns the
    /// reverse transport if there was such a Call.
    ///
    /// The lock of those that wait is held meanwhile.
    fn with_reverse_call(
        &self,
        xid: u32,
        work: impl FnOnce(*mut bindings::rpc_rqst) -> c_int,
    ) -> Option<*mut bindings::rpc_xprt> {
        // SAFETY: The request has a reference to its transport, which has one to the reverse transport,
        // if there is one, until it ends.
        unsafe {
            let forward = (*self.as_ptr()).rq_xprt;
            let raw = (&raw const (*forward).xpt_bc_xprt).read_volatile();
            if raw.is_null() {
                return None;
            }
            bindings::spin_lock(&raw mut (*raw).queue_lock);
            let rqst = bindings::xprt_lookup_rqst(raw, xid.to_be());
            if !rqst.is_null() {
                bindings::xprt_complete_rqst((*rqst).rq_task, work(rqst));
            }
            bindings::spin_unlock(&raw mut (*raw).queue_lock);
            (!rqst.is_null()).then_some(raw)
        }
    }
}
