// SPDX-License-Identifier: GPL-2.0

//! What either end that exposes memory has in common, and exposing the pages of a Reply: regions
//! that are registered in front of the message that names them.

use kernel::prelude::*;

use crate::{
    bindings,
    lib::pages::Span,
    trace::trace,
    verbs::{
        endpoint::{
            completion::{
                SendWorker, //
                WcStatus,
            },
            ep::Endpoint,
            ops::EndpointOps,
            send_queue::{
                NotPosted,
                Permit, //
            }, //
        },
        mr::{
            fence::{
                Fenced,
                QpEnded, //
            },
            frwr::{
                Access,
                MapError,
                Mr, //
            },
            mapper::MrMapper,
            mr_list::{
                Mapped,
                MrList,
                Registered, //
            },
            mr_pool::MrPool, //
        }, //
    }, //
};

use super::{
    send_ctxt::SendCtxt,
    sender::Responder, //
};

/// A context that exposes memory to its peer.
pub(crate) trait Exposes: EndpointOps {
    /// What waits for an invalidation.
    type Token: Send + 'static;

    /// Regions have been invalidated, or the queue pair has ended. The send queue's worker.
    fn invalidated(worker: &SendWorker<'_, Self>, token: Self::Token, how: Result<Fenced, QpEnded>);

    /// A registration has failed; those that succeed do not report. The send queue's worker.
    fn not_registered(worker: &SendWorker<'_, Self>, how: WcStatus);
}

impl<U: Send + 'static> MrMapper<U> {
    /// What maps memory on an open endpoint, each region as many as `pages` pages; once for each
    /// endpoint. There are no regions yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the endpoint is not open.
    pub(crate) fn for_endpoint<C: Exposes<Token = U>>(
        ep: &Endpoint<C>,
        pages: u32,
        gaps: bool,
    ) -> Result<Self> {
        let pd = ep.pd().ok_or(EINVAL)?;
        let pool = MrPool::new(pd, pages, gaps, not_registered::<C>)?;
        // What is posted refers to it.
        ep.keep(pool.clone())?;
        Ok(Self::new(pool))
    }
}

impl SendCtxt {
    /// Maps the bytes of `spans` for the peer to read; the pages stay in the message.
    ///
    /// # Errors
    ///
    /// As for [`MrMapper::map`].
    pub(crate) fn map<U: Send + 'static>(
        &self,
        mr_mapper: &mut MrMapper<U>,
        spans: impl Iterator<Item = Span>,
    ) -> Result<MrList<Mapped, U>, MapError> {
        let mut mrs = MrList::none();
        let bvecs = spans.flat_map(|span| self.bvecs(span));
        mr_mapper.map(bvecs, Access::Read, &mut mrs)?;
        Ok(mrs)
    }

    /// [`SendCtxt::post`], behind the registrations of `mrs`, for which there must be entries of
    /// the Send Queue beside the permit's. `keep` is given the regions before the peer can know of
    /// them; it must not sleep. The message has been told its place: [`SendCtxt::set_place`].
    ///
    /// # Errors
    ///
    /// As for [`SendCtxt::post`]; the regions stay with whoever keeps them.
    pub(crate) fn post_exposing<C: Responder + Exposes>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        bytes: usize,
        invalidate: Option<u32>,
        mrs: MrList<Mapped, C::Token>,
        keep: impl FnOnce(MrList<Registered, C::Token>),
    ) -> Result<(), NotPosted<Self>> {
        if !mrs.pd().is_some_and(|pd| ep.owns(pd)) {
            return Err(NotPosted::Refused(self));
        }
        let mut exposing = None;
        // SAFETY: The regions stay in place while their pool does, which the endpoint keeps; the
        // Send does so until it has completed.
        let posted = unsafe {
            self.post_behind(ep, permit, bytes, invalidate, |send| {
                let (first, registered) = mrs.register(send);
                exposing = Some(ep.exposing());
                keep(registered);
                first
            })
        };
        drop(exposing);
        posted
    }
}

/// A registration that failed.
///
/// # Safety
///
/// Called by the RDMA core, on the send queue of an `Endpoint<C>`, for a region of its pool.
unsafe extern "C" fn not_registered<C: Exposes>(
    cq: *mut bindings::ib_cq,
    wc: *mut bindings::ib_wc,
) {
    // SAFETY: By this function's contract.
    let (worker, wc, cqe) = unsafe { SendWorker::<C>::enter(cq, wc) };
    // SAFETY: The `cqe` is in a region, which the endpoint keeps.
    let id = unsafe { (*kernel::container_of!(cqe, Mr<C::Token>, reg_cqe)).id() };
    trace!(xprtrdma_wc_fastreg(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    C::not_registered(&worker, WcStatus::of(wc.status));
}
