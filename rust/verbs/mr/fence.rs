// SPDX-License-Identifier: GPL-2.0

//! Fencing: memory is neither read nor freed while the peer can reach it (RFC 8166 Section 4.4.1).
//!
//! C: frwr_ops.c, frwr_unmap_async(), frwr_unmap_sync(), frwr_wc_localinv_done()

use kernel::{
    prelude::*,
    sync::SpinLockGuard, //
};

use crate::{
    bindings,
    trace::trace,
    verbs::endpoint::{
        bad_wr::BadWr,
        completion::{
            SendWorker,
            WcStatus, //
        },
        ep::Endpoint,
        ops::EndpointOps, //
    }, //
};

use super::{
    exposes::Exposes,
    mr_alloc::{
        Mr,
        Posted, //
    },
    mr_list::{
        MrList,
        Registered, //
    },
    proof::{
        Fenced,
        QpEnded, //
    }, //
};

impl<C: EndpointOps> Endpoint<C> {
    /// Publishing MRs and posting their registrations is one critical section.
    ///
    /// A hostile peer may answer before the post. A LOCAL_INV ahead of its REG_MR would leave the
    /// MR valid while its pages are reused. Therefore an invalidation takes this lock before it is
    /// posted. Innermost, except for the lock of whatever the MRs are published in.
    #[inline]
    pub(in crate::verbs) fn exposing(&self) -> SpinLockGuard<'_, ()> {
        self.exposing.lock()
    }
}

impl<W: Send + 'static> MrList<Registered, W> {
    /// Invalidates the MRs. `token` comes back by [`Exposes::invalidated`] when they are invalid or
    /// the QP is in the error state.
    ///
    /// Posts one chain, of which only the last LOCAL_INV is signalled: the work requests of one
    /// Send Queue complete in order. Needs no lock.
    ///
    /// # Errors
    ///
    /// The token comes back if the chain could not be posted. The QP is in the error state then, to
    /// bring it there this may sleep.
    #[inline]
    pub(crate) fn invalidate<C: Exposes<Token = W>>(
        self,
        ep: &Endpoint<C>,
        token: W,
    ) -> Result<(), (Error, W, QpEnded)> {
        if !self.pd().is_some_and(|pd| ep.owns(pd)) {
            ep.set_qp_error();
            return Err((EINVAL, token, QpEnded::new()));
        }
        // The endpoint, which is borrowed, keeps the pool until its queues are drained.
        let Some(chain) = self.prepare_inv(passed::<C>, invalidated::<C>) else {
            ep.set_qp_error();
            return Err((EINVAL, token, QpEnded::new()));
        };
        // SAFETY: The pool stays, as above.
        let last = unsafe { chain.last.as_ref() };
        let first = chain.first;
        // SAFETY: The right to the last MR is part of the chain.
        unsafe { last.put_posted(Posted { first, token }) };
        // The thread that posted the registrations has left `ib_post_send()` after this.
        drop(ep.exposing());
        // SAFETY: The chain is well formed. It is part of MRs, which the pool keeps until the
        // queues are drained, and its CQEs expect this endpoint's kind of context.
        let Err((error, left)) = (unsafe { ep.post_send_raw(chain.inv) }) else {
            return Ok(());
        };
        ep.set_qp_error();
        if left == BadWr::Unknown {
            // If the chain was posted, the token comes back with its completion; if it was not, the
            // token stays in the last MR until the pool is told of the end of the queues.
            return Ok(());
        }
        // The last LOCAL_INV was not posted. Those before it may have been: these work requests
        // stay in place, and only the memory is unmapped.
        // SAFETY: The completion that would take the token does not come.
        match unsafe { last.take_posted() } {
            // SAFETY: The QP is in the error state.
            Some(posted) => Err((error, unsafe { posted.retire() }, QpEnded::new())),
            None => Ok(()),
        }
    }
}

impl<W> Posted<W> {
    /// Makes the MRs idle; returns what has waited for that.
    ///
    /// # Safety
    ///
    /// All of them are invalid, and a reference to their endpoint is in use.
    #[inline]
    unsafe fn reclaim(self) -> W {
        let mut next = Some(self.first);
        while let Some(mut mr) = next {
            next = mr.own_mut().next.take();
            // SAFETY: By this function's contract.
            unsafe { mr.put_back() };
        }
        self.token
    }

    /// Unmaps the MRs, which are not used again; returns what has waited for that.
    ///
    /// # Safety
    ///
    /// Their QP is in the error state, and a reference to their endpoint is in use.
    #[cold]
    unsafe fn retire(self) -> W {
        let mut next = Some(self.first);
        while let Some(mut mr) = next {
            next = mr.own_mut().next.take();
            // SAFETY: By this function's contract.
            unsafe { mr.unmap() };
        }
        self.token
    }
}

/// Completion of a LOCAL_INV that is not the last of its chain: reported only if it failed, and
/// then the last one fails as well.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a LOCAL_INV that
/// [`MrList::invalidate`] posted there.
unsafe extern "C" fn passed<C: Exposes>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The CQE is that of a LOCAL_INV, whose MR stays until the queues are drained.
    let id = unsafe { Mr::<C::Token>::of_inv_cqe(cqe).as_ref() }.id();
    trace!(xprtrdma_wc_li(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
}

/// Completion of the last LOCAL_INV of a chain, and so of all.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a LOCAL_INV that
/// [`MrList::invalidate`] posted there.
unsafe extern "C" fn invalidated<C: Exposes>(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The CQE is that of a LOCAL_INV, whose MR stays until the queues are drained.
    let last = unsafe { Mr::<C::Token>::of_inv_cqe(cqe).as_ref() };
    trace!(xprtrdma_wc_li_done(
        worker.send_cid(last.id().cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    // SAFETY: The device has completed the chain, and this completion comes once.
    let Some(posted) = (unsafe { last.take_posted() }) else {
        return;
    };
    let (token, how) = match WcStatus::of(wc.status) {
        // SAFETY: The last LOCAL_INV succeeded, and so have those before it.
        WcStatus::Success => (unsafe { posted.reclaim() }, Ok(Fenced::new())),
        // SAFETY: Only a QP in the error state flushes.
        WcStatus::Flushed => (unsafe { posted.retire() }, Err(QpEnded::new())),
        WcStatus::Error(_) => {
            // The completion may come before the QP has entered the error state.
            worker.set_qp_error();
            // SAFETY: In the error state now.
            (unsafe { posted.retire() }, Err(QpEnded::new()))
        }
    };
    C::invalidated(&worker, token, how);
}
