// SPDX-License-Identifier: GPL-2.0

//! Completions: in whose worker they are handled, and what they say.

use core::ops::Deref;

use crate::bindings;

use super::{
    context::Context,
    endpoint::Endpoint, //
};

/// How a chain of work requests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All of it was done.
    Well,
    /// The connection ended first.
    Flushed,
    /// The connection failed; the value is the `ib_wc_status`.
    Failed(u32),
}

impl Ended {
    #[inline]
    pub(super) fn of(status: bindings::ib_wc_status) -> Self {
        match status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Self::Well,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Self::Flushed,
            other => Self::Failed(other),
        }
    }
}

/// A completion handler.
pub(super) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// Proof of running in an endpoint's receive queue's worker, of which there is one at a time.
pub(crate) struct RecvWorker<'a, C: Context>(&'a Endpoint<C>);

/// Proof of running in an endpoint's send queue's worker, of which there is one at a time.
pub(crate) struct SendWorker<'a, C: Context>(&'a Endpoint<C>);

/// Where a completion handler runs, how the work request ended, and its `cqe`.
///
/// # Safety
///
/// `cq` and `wc` are the arguments of a completion handler that runs throughout `'a`, and `cq` is a
/// queue of an `Endpoint<C>`.
#[inline]
unsafe fn told<'a, C: Context>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) -> (&'a Endpoint<C>, &'a bindings::ib_wc, *mut bindings::ib_cqe) {
    // SAFETY: By this function's contract. The endpoint outlives its queues' handlers; the core
    // finds the handler by the `cqe`.
    unsafe {
        (
            &*(*cq).cq_context.cast::<Endpoint<C>>(),
            &*wc,
            *(*wc).__bindgen_anon_1.wr_cqe.as_ref(),
        )
    }
}

impl<'a, C: Context> RecvWorker<'a, C> {
    /// For a completion handler: the proof, the completion, and the `cqe` of the work request that
    /// has ended.
    ///
    /// # Safety
    ///
    /// `cq` and `wc` are the arguments of a completion handler that runs throughout `'a`, and `cq`
    /// is the receive queue of an `Endpoint<C>`.
    #[inline]
    pub(super) unsafe fn enter(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) -> (Self, &'a bindings::ib_wc, *mut bindings::ib_cqe) {
        // SAFETY: By this function's contract.
        let (ep, wc, cqe) = unsafe { told(cq, wc) };
        (Self(ep), wc, cqe)
    }
}

impl<'a, C: Context> SendWorker<'a, C> {
    /// For a completion handler: the proof, the completion, and the `cqe` of the work request that
    /// has ended.
    ///
    /// # Safety
    ///
    /// `cq` and `wc` are the arguments of a completion handler that runs throughout `'a`, and `cq`
    /// is the send queue of an `Endpoint<C>`.
    #[inline]
    pub(super) unsafe fn enter(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) -> (Self, &'a bindings::ib_wc, *mut bindings::ib_cqe) {
        // SAFETY: By this function's contract.
        let (ep, wc, cqe) = unsafe { told(cq, wc) };
        (Self(ep), wc, cqe)
    }
}

impl<C: Context> Deref for RecvWorker<'_, C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.0
    }
}

impl<C: Context> Deref for SendWorker<'_, C> {
    type Target = Endpoint<C>;

    #[inline]
    fn deref(&self) -> &Endpoint<C> {
        self.0
    }
}
