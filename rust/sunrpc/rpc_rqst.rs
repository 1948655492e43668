// SPDX-License-Identifier: GPL-2.0

//! An `rpc_rqst` that stays in place: a Call of a client, or a backchannel Call of a server.
//!
//! C header: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h)

use core::ptr::NonNull;

use kernel::prelude::*;

use crate::{
    bindings,
    trace::Task, //
};

use super::{
    c_ref::{
        read_once,
        CRef, //
    },
    xprt_ref::XprtRef, //
};

/// A task that stays in place, and with it its client.
pub(super) type TaskRef<'a> = CRef<'a, bindings::rpc_task>;

impl<'a> TaskRef<'a> {
    /// The client; `None` for a task without one.
    #[inline]
    pub(super) fn client(self) -> Option<CRef<'a, bindings::rpc_clnt>> {
        let client = NonNull::new(read_once!(self, tk_client))?;
        // SAFETY: A task has a reference to its client.
        Some(unsafe { CRef::new(client.as_ptr()) })
    }
}

/// A request.
///
/// # Invariants
///
/// - I1: The request, its task and its transport are not freed within `'a`, because the caller is
///   the task, has pinned the request, or holds `queue_lock` while the request is in a queue.
#[derive(Clone, Copy)]
pub(super) struct RqstRef<'a>(CRef<'a, bindings::rpc_rqst>);

impl<'a> RqstRef<'a> {
    /// # Safety
    ///
    /// I1 holds.
    #[inline]
    pub(super) unsafe fn new(raw: *mut bindings::rpc_rqst) -> Self {
        // SAFETY: By this function's contract.
        // INVARIANT: I1: by this function's contract.
        Self(unsafe { CRef::new(raw) })
    }

    /// The request of a task.
    ///
    /// # Safety
    ///
    /// The caller is `task`, or SUNRPC on its behalf, and `task` keeps its request within `'a`.
    #[inline]
    pub(super) unsafe fn of_task(task: *mut bindings::rpc_task) -> Self {
        // SAFETY: By this function's contract the task has a request.
        unsafe { Self::new((*task).tk_rqstp) }
    }

    /// The C structure.
    #[inline]
    pub(super) fn raw(self) -> *mut bindings::rpc_rqst {
        self.0.raw()
    }

    /// The C structure, for its fields.
    #[inline]
    pub(super) fn fields(self) -> CRef<'a, bindings::rpc_rqst> {
        self.0
    }

    /// The transport.
    #[inline]
    pub(super) fn xprt(self) -> XprtRef<'a> {
        let xprt = read_once!(self.0, rq_xprt);
        // SAFETY: By I1 the request stays, and with it its transport, which never changes.
        unsafe { XprtRef::new(xprt) }
    }

    /// The XID.
    #[inline]
    pub(super) fn xid(self) -> u32 {
        u32::from_be(read_once!(self.0, rq_xid))
    }

    /// The serial number of the Call on its transport. SUNRPC counts the XIDs of a transport in the
    /// byte order of the CPU, and uses them in the order of the network without conversion.
    #[inline]
    pub(super) fn number(self) -> u32 {
        read_once!(self.0, rq_xid)
    }

    /// The time after which SUNRPC calls the transport's `timer`, in jiffies.
    pub(super) fn timeout(self) -> c_ulong {
        read_once!(self.0, rq_timeout)
    }

    /// Whether the connection on which the Call was sent has ended.
    pub(super) fn has_lost_connection(self) -> bool {
        let xprt = self.xprt();
        let current = read_once!(xprt, connect_cookie);
        read_once!(self.0, rq_connect_cookie) != current || !xprt.is_connected()
    }

    /// Whether SUNRPC sends a Call again only on another connection (NFSv4).
    pub(super) fn is_sent_once(self) -> bool {
        let flags = read_once!(self.task(), tk_flags);
        u32::from(flags) & bindings::RPC_TASK_NO_RETRANS_TIMEOUT != 0
    }

    /// The task.
    #[inline]
    pub(super) fn task(self) -> TaskRef<'a> {
        let task = read_once!(self.0, rq_task);
        // SAFETY: By I1 the task stays.
        unsafe { TaskRef::new(task) }
    }

    /// The task, for traces. Until Linux 7.1 a kernel that cannot trace has no numbers of tasks.
    #[inline]
    pub(super) fn trace_task(self) -> Task {
        let task = self.task();
        Task {
            #[cfg(CONFIG_TRACEPOINTS)]
            id: u32::from(read_once!(task, tk_pid)),
            #[cfg(not(CONFIG_TRACEPOINTS))]
            id: 0,
            client: task
                .client()
                .map_or(u32::MAX, |client| read_once!(client, cl_clid)),
        }
    }

    /// Sets the number of bytes sent. The sender and a thread that takes an answer may set it
    /// concurrently.
    pub(super) fn set_bytes_sent(self, bytes: usize) {
        // SAFETY: By I1 the request stays. Single accesses do not tear.
        unsafe { (&raw mut (*self.raw()).rq_xmit_bytes_sent).write_volatile(bytes) };
    }

    /// Whether a Call was [sent](super::locked_rqst::Transmission::count), and not answered since.
    pub(super) fn was_sent(self) -> bool {
        read_once!(self.0, rq_xmit_bytes_sent) != 0
    }

    /// Whether the task waits for a Reply after the Call is sent.
    #[inline]
    pub(super) fn expects_reply(self) -> bool {
        // SAFETY: By I1 the task stays, and with it its procedure.
        unsafe { bindings::rpcrdma_rpc_reply_expected(self.task().raw()) }
    }
}
