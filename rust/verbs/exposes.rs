// SPDX-License-Identifier: GPL-2.0

//! What either end has in common that exposes memory: its regions are registered and invalidated.

use super::endpoint::Context;
use super::endpoint::SendWorker;
use super::fence::Fenced;
use super::fence::QueueEnded;
use super::region::Region;
use super::responder::Ended;
use crate::admin::trace::trace;
use crate::bindings;

/// A context that exposes memory to its peer.
pub(crate) trait Exposes: Context {
    /// What waits for an invalidation.
    type Token: Send + 'static;

    /// Regions have been invalidated, or the queue pair has ended. The send queue's worker.
    fn invalidated(
        worker: &SendWorker<'_, Self>,
        token: Self::Token,
        how: Result<Fenced, QueueEnded>,
    );

    /// A registration has failed; those that succeed do not report. The send queue's worker.
    fn not_registered(worker: &SendWorker<'_, Self>, how: Ended);
}

/// A registration that failed.
///
/// # Safety
///
/// Called by the RDMA core for a region of a pool that was made for `C`.
pub(super) unsafe extern "C" fn not_registered<C: Exposes>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: The endpoint outlives its queues, and this is its send queue's worker.
    let worker = unsafe { SendWorker::<C>::of(cq) };
    // SAFETY: A valid completion, of a work request whose `wr_cqe` is in a region.
    let (wc, id) = unsafe {
        let cqe = *(*wc).__bindgen_anon_1.wr_cqe.as_ref();
        let region = kernel::container_of!(cqe, Region<C::Token>, reg_cqe);
        (&*wc, (*region).id())
    };
    trace!(xprtrdma_wc_fastreg(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    C::not_registered(&worker, Ended::of(wc.status));
}
