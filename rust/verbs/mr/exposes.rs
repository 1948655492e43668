// SPDX-License-Identifier: GPL-2.0

//! A context that exposes memory: what the completions of registrations and invalidations call.
//!
//! C: frwr_ops.c, frwr_wc_fastreg()

use kernel::prelude::*;

use crate::{
    bindings,
    lib::fence::{
        Fenced,
        Unreachable, //
    },
    trace::trace,
    verbs::endpoint::{
        completion::{
            handler,
            OnCompletion,
            SendCq,
            SendWorker,
            WcStatus, //
        },
        ep::Endpoint,
        ops::EndpointOps, //
    }, //
};

use super::{
    mapper::MrMapper,
    mr_alloc::{
        Mr,
        MrSpec, //
    },
    mr_pool::MrPool, //
};

/// A context that exposes memory to its peer.
pub(crate) trait Exposes: EndpointOps {
    /// The owner of memory that is being fenced.
    type Owner: Send + 'static;
    /// What travels along with the owner.
    type Token: Send + 'static;

    /// Handles MRs that are invalidated, or whose QP is in the error state. The send CQ's worker.
    fn invalidated(
        worker: &SendWorker<'_, Self>,
        owner: Result<Fenced<Self::Owner>, Unreachable<Self::Owner>>,
        token: Self::Token,
    );

    /// Handles a registration that has failed or was flushed. The send CQ's worker.
    fn not_registered(worker: &SendWorker<'_, Self>, status: WcStatus);
}

/// An owner of memory that waits for LOCAL_INVs, and what travels along with it.
pub(crate) struct Waiting<O, U> {
    pub(super) owner: O,
    pub(super) token: U,
}

/// What the LOCAL_INVs of a context carry.
pub(in crate::verbs) type WaitingFor<C> = Waiting<<C as Exposes>::Owner, <C as Exposes>::Token>;

impl<O: Send + 'static, U: Send + 'static> MrMapper<Waiting<O, U>> {
    /// Maps memory on an open endpoint, up to `pages` pages with each MR, and with up to `most` MRs
    /// for a message. There are no MRs yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the endpoint is not open.
    pub(crate) fn for_endpoint<C: Exposes<Owner = O, Token = U>>(
        ep: &Endpoint<C>,
        pages: u32,
        gaps: bool,
        most: u32,
    ) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        let spec = MrSpec {
            depth: pages,
            gaps,
            most,
            reg_done: handler::<C, Registration>(),
        };
        let pool = MrPool::new(pd, spec)?;
        // Posted work requests refer to the pool.
        ep.hold_until_drained(pool.clone())?;
        Ok(Self::new(pool))
    }
}

/// The registration of an MR of a pool that [`MrMapper::for_endpoint`] made. It is not signalled.
enum Registration {}

impl<C: Exposes> OnCompletion<C> for Registration {
    type Queue = SendCq;

    unsafe fn completed(
        worker: &SendWorker<'_, C>,
        wc: &bindings::ib_wc,
        cqe: *mut bindings::ib_cqe,
    ) {
        // SAFETY: The CQE is that of a registration, whose MR stays until the queues are drained.
        let id = unsafe { Mr::<WaitingFor<C>>::of_reg_cqe(cqe) }.id();
        trace!(xprtrdma_wc_fastreg(
            worker.send_cid(id as i32),
            wc.status,
            wc.vendor_err
        ));
        let status = WcStatus::of(wc.status);
        // Some devices report work requests that are not signalled.
        if status != WcStatus::Success {
            C::not_registered(worker, status);
        }
    }
}
