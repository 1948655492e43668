// SPDX-License-Identifier: GPL-2.0

//! An `rpc_xprt` whose memory is there, with the operations that any thread may call on it.
//!
//! C: rpc_rdma.c, __rpcrdma_update_cwnd_locked()
//!
//! C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)

use kernel::{
    prelude::*,
    sync::{
        lock::{
            spinlock::SpinLockBackend,
            Lock, //
        },
        SpinLockGuard, //
    }, //
};

use crate::{
    bindings,
    lib::sockaddr::SockAddr, //
};

use super::c_ref::{
    read_once,
    CRef,
    Flags, //
};

/// A transport of this module, which `NewXprt::init` of [`xprt_base`](super::xprt_base) has
/// initialised.
pub(crate) type XprtRef<'a> = CRef<'a, bindings::rpc_xprt>;

// All functions that are called here take locks of the transport at most, set flags atomically, or
// read words that do not tear: so any thread may call them.
// By I1 of `CRef` the memory is there.
impl<'a> XprtRef<'a> {
    /// The address that the transport connects to. An administrator may write another one through
    /// sysfs, and rpcbind another port. The holder of the send lock reads a whole address. Other
    /// callers, such as traces, may read parts of both.
    pub(super) fn peer(self) -> Option<SockAddr> {
        // SAFETY: By I1 the memory is there. `addr` is at least as large as a `SockAddr`.
        unsafe {
            SockAddr::from_raw(
                (&raw const (*self.raw()).addr).cast(),
                size_of::<SockAddr>(),
            )
        }
    }

    /// Takes `queue_lock`. It guards the queue of requests to be sent and the tree of requests that
    /// wait for a Reply. It comes before `transport_lock`.
    #[inline]
    pub(super) fn lock_queue(self) -> LockedQueue<'a> {
        // SAFETY: By I1 the lock is initialised and stays for `'a`.
        let lock =
            unsafe { Lock::<_, SpinLockBackend>::from_raw(&raw mut (*self.raw()).queue_lock) };
        // INVARIANT: I1: the lock is that of `self`.
        LockedQueue {
            xprt: self,
            _guard: lock.lock(),
        }
    }

    /// Takes `transport_lock`. It guards the congestion window, the credits of the requests, and
    /// the timeouts.
    #[inline]
    pub(super) fn lock(self) -> LockedXprt<'a> {
        // SAFETY: By I1 the lock is initialised and stays for `'a`.
        let lock =
            unsafe { Lock::<_, SpinLockBackend>::from_raw(&raw mut (*self.raw()).transport_lock) };
        // INVARIANT: I1: the lock is that of `self`.
        LockedXprt {
            xprt: self,
            _guard: lock.lock(),
        }
    }

    /// The flags in `state`.
    #[inline]
    pub(super) fn flags(self) -> Flags<'a> {
        // SAFETY: By I1 the word is there. SUNRPC and this module change it by atomic operations.
        unsafe { Flags::new(&raw mut (*self.raw()).state) }
    }

    /// Whether SUNRPC considers the transport connected.
    #[inline]
    pub(super) fn is_connected(self) -> bool {
        self.flags().test(1 << bindings::XPRT_CONNECTED)
    }

    /// Whether the idle timer has expired since the last RPC. Without the send lock, the answer may
    /// be out of date.
    ///
    /// `xprt_schedule_autodisconnect()` sets `last_used` at the end of each RPC, and starts the
    /// timer if no request waits for a Reply. `last_used` is before `expires` then. The timer
    /// itself, `xprt_init_autodisconnect()`, sets a later `last_used`. So does the end of an RPC
    /// while others wait for their Replies, if RPCs have overlapped for longer than the timeout.
    /// When the last of these has its Reply, the answer is wrong until that RPC ends. A request
    /// that waits for a Reply stops the timer.
    pub(super) fn is_idle(self) -> bool {
        let has_timer = read_once!(self, idle_timeout) != 0;
        let waits = !read_once!(self, recv_queue.rb_node).is_null();
        let past = read_once!(self, last_used).wrapping_sub(read_once!(self, timer.expires));
        // CAST: Jiffies wrap around: a negative difference is a time before `expires`.
        has_timer && !waits && past as c_long >= 0
    }

    /// Makes SUNRPC close the connection. A client connects again for its next RPC.
    pub(super) fn force_disconnect(self) {
        // SAFETY: By I1 the memory is there.
        unsafe { bindings::xprt_force_disconnect(self.raw()) };
    }

    /// Tells SUNRPC that there is no connection any more, and wakes the waiting tasks.
    pub(super) fn disconnect_done(self) {
        // SAFETY: By I1 the memory is there.
        unsafe { bindings::xprt_disconnect_done(self.raw()) };
    }

    /// Wakes all tasks in `pending`, with an error.
    pub(super) fn wake_pending(self, errno: c_int) {
        // SAFETY: By I1 the memory is there.
        unsafe { bindings::xprt_wake_pending_tasks(self.raw(), errno) };
    }

    /// Clears `XPRT_CONNECTING`.
    pub(super) fn clear_connecting(self) {
        // SAFETY: By I1 the memory is there.
        unsafe { bindings::rpcrdma_xprt_clear_connecting(self.raw()) };
    }

    /// Wakes the task that waits for space to send, if there is one.
    #[inline]
    pub(super) fn write_space(self) {
        // SAFETY: By I1 the memory is there.
        unsafe { bindings::xprt_write_space(self.raw()) };
    }

    /// Takes a reference to the transport; `false` if there is none left.
    pub(super) fn get(self) -> bool {
        // SAFETY: By I1 the memory is there. The count never leaves zero.
        !unsafe { bindings::xprt_get(self.raw()) }.is_null()
    }
}

/// A transport whose `queue_lock` is held.
///
/// # Invariants
///
/// - I1: The guard is that of the `queue_lock` of `xprt`.
pub(super) struct LockedQueue<'a> {
    xprt: XprtRef<'a>,
    _guard: SpinLockGuard<'a, ()>,
}

impl<'a> LockedQueue<'a> {
    /// The transport.
    #[inline]
    pub(super) fn xprt(&self) -> XprtRef<'a> {
        self.xprt
    }
}

/// A transport whose `transport_lock` is held.
///
/// # Invariants
///
/// - I1: The guard is that of the `transport_lock` of `xprt`.
pub(super) struct LockedXprt<'a> {
    xprt: XprtRef<'a>,
    _guard: SpinLockGuard<'a, ()>,
}

impl LockedXprt<'_> {
    /// Sets the congestion window to `calls` outstanding Calls.
    #[inline]
    pub(super) fn set_window(&self, calls: u32) {
        // SAFETY: By I1 the lock is held, which guards the window.
        unsafe { (*self.xprt.raw()).cwnd = (calls as usize) << bindings::RPC_CWNDSHIFT };
    }

    /// The congestion window: how many Calls may be outstanding.
    pub(super) fn window(&self) -> usize {
        // SAFETY: By I1 the lock is held, which guards the window.
        unsafe { (*self.xprt.raw()).cwnd >> bindings::RPC_CWNDSHIFT }
    }

    /// How many Calls are outstanding.
    pub(super) fn outstanding(&self) -> usize {
        // SAFETY: By I1 the lock is held, which guards the number.
        unsafe { (*self.xprt.raw()).cong >> bindings::RPC_CWNDSHIFT }
    }

    /// Forgets all credits in use: those of the requests are forgotten next.
    pub(super) fn reset_credits_in_use(&self) {
        // SAFETY: By I1 the lock is held, which guards the number.
        unsafe { (*self.xprt.raw()).cong = 0 };
    }

    /// Sets the time without an RPC, in jiffies, after which SUNRPC closes the connection; 0 for
    /// never. A timer that runs already stops at the next RPC.
    pub(super) fn set_idle_timeout(&self, timeout: c_ulong) {
        // SAFETY: By I1 the lock is held, with which SUNRPC reads the timeout. If SUNRPC has not
        // initialised the timer as that of a connection, it must not start.
        unsafe {
            if (*self.xprt.raw()).timer.function.is_some() {
                (*self.xprt.raw()).idle_timeout = timeout;
            }
        }
    }

    /// Shortens the timeout of a connection attempt to `connect`, and the reconnect delay to
    /// `reconnect` at most, in jiffies. With the former, an RPC waits for its Reply for `connect`,
    /// and no less than `least`.
    pub(super) fn shorten_timeouts(&self, connect: c_ulong, reconnect: c_ulong, least: c_ulong) {
        let raw = self.xprt.raw();
        // SAFETY: By I1 the lock is held, which guards the timeouts against other writers. SUNRPC
        // reads them without a lock. `NewXprt::init` has set `timeout` to that of the `XprtBase`.
        unsafe {
            if connect < (*raw).connect_timeout {
                let timeout = (*raw).timeout.cast_mut();
                (*timeout).to_initval = connect.max(least);
                (*timeout).to_maxval = connect.max(least);
                (*raw).connect_timeout = connect;
            }
            if reconnect < (*raw).max_reconnect_timeout {
                (*raw).max_reconnect_timeout = reconnect;
            }
        }
    }
}
