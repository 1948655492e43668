// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a connection and its two completion queues.
//!
//! C: verbs.c, rpcrdma_xprt_drain()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::{
    ffi::c_void,
    ptr::NonNull, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

use super::{
    attrs::QueueDepths,
    pd::Pd, //
};

/// The queues of an open endpoint. The endpoint destroys the QP before it drops them.
///
/// # Invariants
///
/// - I1: `qp` is valid until the endpoint destroys it. It is in `pd` and uses the two CQs.
pub(in crate::verbs) struct Queues {
    qp: NonNull<bindings::ib_qp>,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    pd: Arc<Pd>,
    depths: QueueDepths,
}

// SAFETY: Verbs may be called from any thread, and I1 does not depend on the thread.
unsafe impl Send for Queues {}
// SAFETY: As above. A shared reference posts, drains, or reads constants.
unsafe impl Sync for Queues {}

/// A completion queue, handled by a worker of its own.
///
/// # Invariants
///
/// - I1: The CQ is valid, and no QP uses it when it is dropped.
struct CompletionQueue(NonNull<bindings::ib_cq>);

impl CompletionQueue {
    /// Allocates a CQ with `context` as its `cq_context`.
    ///
    /// # Safety
    ///
    /// The completion handlers of all work requests that use this CQ expect `context`. No QP uses
    /// the CQ when it is dropped.
    unsafe fn new(pd: &Pd, context: *mut c_void, entries: u32) -> Result<Self> {
        let entries = c_int::try_from(entries)?;
        // SAFETY: The domain keeps the device.
        let cq = from_err_ptr(unsafe {
            bindings::__ib_alloc_cq_any(
                pd.device(),
                context,
                entries,
                bindings::ib_poll_context_IB_POLL_WORKQUEUE,
                c"rpcrdma".to_bytes_with_nul().as_ptr(),
            )
        })?;
        // INVARIANT: I1: just allocated; the rest by this function's contract.
        Ok(Self(NonNull::new(cq).ok_or(ENOMEM)?))
    }

    /// Identifies the CQ in trace events.
    fn id(&self) -> u32 {
        // SAFETY: The CQ is valid (I1).
        unsafe { (*self.0.as_ptr()).res.id }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // This waits for the worker.
        // SAFETY: The CQ is valid and no QP uses it (I1).
        unsafe { bindings::ib_free_cq(self.0.as_ptr()) };
    }
}

impl Queues {
    /// Allocates the CQs and creates the QP of `id`.
    ///
    /// # Errors
    ///
    /// `EINVAL`, `ENOMEM`, or the device's error.
    ///
    /// # Safety
    ///
    /// - `id` is valid, bound to the domain's device, and has no QP. `port` is that of `id`.
    /// - `event` expects `context` as `qp_context`, and all completion handlers expect it as
    ///   `cq_context`. What it points to stays valid until the queues are dropped.
    /// - The caller destroys the QP, by `id`, before it drops the queues.
    pub(in crate::verbs) unsafe fn new(
        id: *mut bindings::rdma_cm_id,
        pd: Arc<Pd>,
        want: &QueueDepths,
        context: *mut c_void,
        event: unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void),
        port: u32,
    ) -> Result<Self> {
        // SAFETY: By this function's contract, which also covers the destruction of the QP.
        let new_cq = |entries| unsafe { CompletionQueue::new(&pd, context, entries) };
        let (send_cq, recv_cq) = (new_cq(want.send_cqe)?, new_cq(want.recv_cqe)?);
        let mut attr: bindings::ib_qp_init_attr = pin_init::zeroed();
        attr.event_handler = Some(event);
        attr.qp_context = context;
        attr.send_cq = send_cq.0.as_ptr();
        attr.recv_cq = recv_cq.0.as_ptr();
        attr.cap.max_send_wr = want.send_wr;
        attr.cap.max_recv_wr = want.recv_wr;
        attr.cap.max_send_sge = want.send_sge;
        attr.cap.max_recv_sge = 1;
        attr.cap.max_rdma_ctxs = want.rdma_ctxs;
        attr.sq_sig_type = bindings::ib_sig_type_IB_SIGNAL_REQ_WR;
        attr.qp_type = bindings::ib_qp_type_IB_QPT_RC;
        attr.port_num = port;
        // SAFETY: `id` is valid and has no QP by this function's contract. `attr` is complete.
        to_result(unsafe { bindings::rdma_create_qp(id, pd.as_ptr(), &mut attr) })?;
        // SAFETY: `id` is valid, and `rdma_create_qp` has set the field.
        let qp = NonNull::new(unsafe { (*id).qp }).ok_or(EINVAL)?;
        // INVARIANT: I1: just created, in `pd` and with these CQs.
        Ok(Self {
            qp,
            send_cq,
            recv_cq,
            pd,
            depths: QueueDepths {
                send_wr: attr.cap.max_send_wr,
                recv_wr: attr.cap.max_recv_wr,
                send_sge: attr.cap.max_send_sge,
                ..*want
            },
        })
    }

    /// The QP, valid until the endpoint destroys it (I1).
    #[inline]
    pub(in crate::verbs) fn qp(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }

    /// The protection domain of the QP.
    pub(in crate::verbs) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The depths that the device has granted.
    pub(in crate::verbs) fn depths(&self) -> &QueueDepths {
        &self.depths
    }

    /// Identifies the receive CQ in trace events.
    pub(in crate::verbs) fn recv_cq_id(&self) -> u32 {
        self.recv_cq.id()
    }

    /// Identifies the send CQ in trace events.
    pub(in crate::verbs) fn send_cq_id(&self) -> u32 {
        self.send_cq.id()
    }

    /// Moves the QP to the error state, and returns when all completions of what was posted before
    /// have been handled.
    ///
    /// The Receive Queue is drained first, because the handler of a Reply may still post to the
    /// Send Queue. When this returns, all completion handlers that ran before have returned: one
    /// worker handles all completions of a CQ, that of the drain's marker among them.
    ///
    /// # Safety
    ///
    /// The QP has not been destroyed.
    pub(in crate::verbs) unsafe fn drain(&self) {
        let qp = self.qp.as_ptr();
        // SAFETY: The QP is valid by this function's contract.
        unsafe {
            bindings::ib_drain_rq(qp);
            bindings::ib_drain_sq(qp);
        }
    }
}
