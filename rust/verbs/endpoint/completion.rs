// SPDX-License-Identifier: GPL-2.0

//! Completions: in whose worker they are handled, and what they say.

use core::{
    marker::PhantomData,
    ops::Deref, //
};

use crate::bindings;

use super::{
    ep::Endpoint,
    ops::EndpointOps, //
};

/// How a chain of work requests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WcStatus {
    /// All of it was done.
    Success,
    /// The connection ended first.
    Flushed,
    /// The connection failed; the value is the `ib_wc_status`.
    Error(u32),
}

impl WcStatus {
    #[inline]
    pub(in crate::verbs) fn of(status: bindings::ib_wc_status) -> Self {
        match status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Self::Success,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Self::Flushed,
            other => Self::Error(other),
        }
    }
}

/// A completion handler.
pub(in crate::verbs) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// An endpoint's receive queue, as the `Q` of a [`Worker`].
pub(crate) enum RecvCq {}

/// An endpoint's send queue, likewise.
pub(crate) enum SendCq {}

/// Proof of running in the worker of an endpoint's queue `Q`, of which there is one at a time.
pub(crate) struct Worker<'a, C: EndpointOps, Q> {
    ep: &'a Endpoint<C>,
    _queue: PhantomData<Q>,
}

/// Proof of running in an endpoint's receive queue's worker.
pub(crate) type RecvWorker<'a, C> = Worker<'a, C, RecvCq>;

/// Proof of running in an endpoint's send queue's worker.
pub(crate) type SendWorker<'a, C> = Worker<'a, C, SendCq>;

impl<'a, C: EndpointOps, Q> Worker<'a, C, Q> {
    /// For a completion handler: the proof, the completion, and the `cqe` of the work request that
    /// has ended.
    ///
    /// # Safety
    ///
    /// `cq` and `wc` are the arguments of a completion handler that runs throughout `'a`, and `cq`
    /// is the queue `Q` of an `Endpoint<C>`.
    #[inline]
    pub(in crate::verbs) unsafe fn enter(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) -> (Self, &'a bindings::ib_wc, *mut bindings::ib_cqe) {
        // SAFETY: By this function's contract. The endpoint outlives its queues' handlers. `wr_cqe`
        // is the member in use: the core finds the handler by it.
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

impl<C: EndpointOps, Q> Deref for Worker<'_, C, Q> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.ep
    }
}
