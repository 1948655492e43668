// SPDX-License-Identifier: GPL-2.0

//! A connection's queue pair and its two completion queues.

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

/// The queues of an open endpoint, whose drop destroys the queue pair before it drops these.
///
/// # Invariants
///
/// `qp` uses the two completion queues, all on the domain's device.
pub(in crate::verbs) struct Queues {
    qp: NonNull<bindings::ib_qp>,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    pd: Arc<Pd>,
    depths: QueueDepths,
}

// SAFETY: Verbs may be called from any thread.
unsafe impl Send for Queues {}
// SAFETY: As above.
unsafe impl Sync for Queues {}

/// # Invariants
///
/// A completion queue without users when it is dropped.
struct CompletionQueue(NonNull<bindings::ib_cq>);

impl CompletionQueue {
    /// # Safety
    ///
    /// `owner` is what the completion handlers of all that is posted to this queue expect.
    unsafe fn new(pd: &Pd, owner: *mut c_void, entries: u32) -> Result<Self> {
        let entries = c_int::try_from(entries)?;
        // SAFETY: The domain keeps the device.
        let cq = from_err_ptr(unsafe {
            bindings::__ib_alloc_cq_any(
                pd.device(),
                owner,
                entries,
                bindings::ib_poll_context_IB_POLL_WORKQUEUE,
                c"rpcrdma".as_char_ptr(),
            )
        })?;
        Ok(Self(NonNull::new(cq).ok_or(ENOMEM)?))
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: No queue pair uses it any more; waits for the worker.
        unsafe { bindings::ib_free_cq(self.0.as_ptr()) };
    }
}

impl Queues {
    /// Makes the completion queues and the queue pair and binds it to `id`.
    ///
    /// # Safety
    ///
    /// `id` is bound to the domain's device and has no queue pair. `owner` is what the completion
    /// handlers expect in `cq_context`, and `event` in `qp_context`; it stays until the queues are
    /// dropped. `port` is that of `id`, 1-based.
    pub(in crate::verbs) unsafe fn new(
        id: *mut bindings::rdma_cm_id,
        pd: Arc<Pd>,
        want: &QueueDepths,
        owner: *mut c_void,
        event: unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void),
        port: u32,
    ) -> Result<Self> {
        // SAFETY: By this function's contract.
        let send_cq = unsafe { CompletionQueue::new(&pd, owner, want.send_cqe)? };
        // SAFETY: By this function's contract.
        let recv_cq = unsafe { CompletionQueue::new(&pd, owner, want.recv_cqe)? };
        let mut attr: bindings::ib_qp_init_attr = pin_init::zeroed();
        attr.event_handler = Some(event);
        attr.qp_context = owner;
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
        // SAFETY: By this function's contract; `attr` is complete.
        to_result(unsafe { bindings::rdma_create_qp(id, pd.as_ptr(), &mut attr) })?;
        // SAFETY: `rdma_create_qp` has set it.
        let qp = NonNull::new(unsafe { (*id).qp }).ok_or(EINVAL)?;
        // INVARIANT: Just made with these queues, and bound to `id`.
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

    #[inline]
    pub(in crate::verbs) fn qp(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }

    pub(in crate::verbs) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    pub(in crate::verbs) fn depths(&self) -> &QueueDepths {
        &self.depths
    }

    pub(in crate::verbs) fn recv_cq_id(&self) -> u32 {
        // SAFETY: Valid while `self` is.
        unsafe { (*self.recv_cq.0.as_ptr()).res.id }
    }

    pub(in crate::verbs) fn send_cq_id(&self) -> u32 {
        // SAFETY: Valid while `self` is.
        unsafe { (*self.send_cq.0.as_ptr()).res.id }
    }

    /// Ends all that is posted and returns when the last completion has been handled.
    ///
    /// The Receive Queue goes first: the handler of a Reply may still post to the Send Queue. Each
    /// is drained twice, because a handler that was past the check for closing when the first
    /// marker was posted may have posted behind it; it had returned when that marker completed, on
    /// the same queue's worker, so the second marker is behind all.
    ///
    /// # Safety
    ///
    /// Only completion handlers may post meanwhile, and each checks first that this has not begun.
    pub(in crate::verbs) unsafe fn drain(&self) {
        for _ in 0..2 {
            // SAFETY: A valid queue pair.
            unsafe { bindings::ib_drain_rq(self.qp.as_ptr()) };
        }
        for _ in 0..2 {
            // SAFETY: A valid queue pair.
            unsafe { bindings::ib_drain_sq(self.qp.as_ptr()) };
        }
        // The handler of a Send may have been such a one, too.
        // SAFETY: A valid queue pair.
        unsafe { bindings::ib_drain_rq(self.qp.as_ptr()) };
    }
}
