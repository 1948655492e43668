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

/// What a completion handler is told, and the `cqe` of the work request that has ended.
///
/// # Safety
///
/// `wc` is the completion that the RDMA core hands to a handler, which is still running.
#[inline]
pub(super) unsafe fn wc_and_cqe<'a>(
    wc: *mut bindings::ib_wc,
) -> (&'a bindings::ib_wc, *mut bindings::ib_cqe) {
    // SAFETY: By this function's contract; the core finds the handler by this member.
    unsafe { (&*wc, *(*wc).__bindgen_anon_1.wr_cqe.as_ref()) }
}

/// Proof of running in an endpoint's receive queue's worker, of which there is one at a time.
pub(crate) struct RecvWorker<'a, C: Context>(&'a Endpoint<C>);

/// Proof of running in an endpoint's send queue's worker, of which there is one at a time.
pub(crate) struct SendWorker<'a, C: Context>(&'a Endpoint<C>);

impl<C: Context> RecvWorker<'_, C> {
    /// # Safety
    ///
    /// To be called from a completion handler, with the receive queue of an `Endpoint<C>`.
    #[inline]
    pub(super) unsafe fn of(cq: *mut bindings::ib_cq) -> Self {
        // SAFETY: By this function's contract; the endpoint outlives its queues' handlers.
        Self(unsafe { &*(*cq).cq_context.cast::<Endpoint<C>>() })
    }
}

impl<C: Context> SendWorker<'_, C> {
    /// # Safety
    ///
    /// To be called from a completion handler, with the send queue of an `Endpoint<C>`.
    #[inline]
    pub(super) unsafe fn of(cq: *mut bindings::ib_cq) -> Self {
        // SAFETY: By this function's contract; the endpoint outlives its queues' handlers.
        Self(unsafe { &*(*cq).cq_context.cast::<Endpoint<C>>() })
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
