// SPDX-License-Identifier: GPL-2.0

//! The contexts in which completion handlers run.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::{
    marker::PhantomData,
    ops::Deref, //
};

use crate::bindings;

use super::{
    ep::Endpoint,
    ops::EndpointOps, //
};

pub(in crate::verbs) use super::wc::Done;
pub(crate) use super::wc::WcStatus;

/// The receive CQ of an endpoint, as the `Q` of a [`Worker`].
pub(crate) enum RecvCq {}

/// The send CQ of an endpoint, as the `Q` of a [`Worker`].
pub(crate) enum SendCq {}

/// Proof that this code runs in the worker of CQ `Q` of an endpoint, one completion at a time. It
/// stays on the worker's thread: the raw pointer makes it neither `Send` nor `Sync`.
pub(crate) struct Worker<'a, C: EndpointOps, Q> {
    ep: &'a Endpoint<C>,
    _queue: PhantomData<(Q, *mut ())>,
}

/// Proof that this code runs in the worker of an endpoint's receive CQ.
pub(crate) type RecvWorker<'a, C> = Worker<'a, C, RecvCq>;

/// Proof that this code runs in the worker of an endpoint's send CQ.
pub(crate) type SendWorker<'a, C> = Worker<'a, C, SendCq>;

impl<'a, C: EndpointOps, Q> Worker<'a, C, Q> {
    /// Returns the proof, the completion, and the `cqe` of the completed work request.
    ///
    /// # Safety
    ///
    /// `cq` and `wc` are the arguments of a completion handler that runs throughout `'a`, and `cq`
    /// is CQ `Q` of an `Endpoint<C>`.
    #[inline]
    pub(in crate::verbs) unsafe fn enter(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) -> (Self, &'a bindings::ib_wc, *mut bindings::ib_cqe) {
        // SAFETY: By this function's contract. `cq_context` is the endpoint, which frees its CQs,
        // and so waits for their workers, before it is freed. `wr_cqe` is the union member in use:
        // the core has found the handler by it.
        let (ep, wc, cqe) = unsafe {
            (
                &*(*cq).cq_context.cast::<Endpoint<C>>(),
                &*wc,
                *(*wc).__bindgen_anon_1.wr_cqe.as_ref(),
            )
        };
        let worker = Self {
            ep,
            _queue: PhantomData,
        };
        (worker, wc, cqe)
    }
}

/// Handles the completion of work requests with a certain kind of `cqe`, on CQ [`Self::Queue`] of
/// an `Endpoint<C>`.
pub(in crate::verbs) trait OnCompletion<C: EndpointOps> {
    /// [`SendCq`] or [`RecvCq`].
    type Queue;

    /// Handles the completion `wc`.
    ///
    /// # Safety
    ///
    /// `wc` is the completion of a work request that was posted on the worker's endpoint. `cqe` is
    /// that work request's, and its `done` is the [`handler`] of this type. Each completion is
    /// handled once.
    unsafe fn completed(
        worker: &Worker<'_, C, Self::Queue>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    );
}

/// The `done` of a `cqe` whose completion `H` handles. It expects an `Endpoint<C>` in `cq_context`.
#[inline]
pub(in crate::verbs) fn handler<C: EndpointOps, H: OnCompletion<C>>() -> Done {
    done::<C, H>
}

/// Handles a completion.
///
/// # Safety
///
/// Only the RDMA core calls this, on CQ `H::Queue` of an `Endpoint<C>`, for a work request with a
/// `cqe` whose `done` is the [`handler`] of `H`.
unsafe extern "C" fn done<C: EndpointOps, H: OnCompletion<C>>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: These are the arguments of this handler, and by its contract.
    let (worker, wc, cqe) = unsafe { Worker::<C, H::Queue>::enter(cq, wc) };
    // SAFETY: By this function's contract. The core calls it once for each completion.
    unsafe { H::completed(&worker, wc, cqe) };
}

impl<C: EndpointOps, Q> Deref for Worker<'_, C, Q> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.ep
    }
}
