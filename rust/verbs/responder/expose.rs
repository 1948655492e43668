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
                Ended,
                SendWorker, //
            },
            ep::Endpoint,
            ops::Context,
            send_queue::{
                NotPosted,
                Permit, //
            }, //
        },
        mr::{
            fence::{
                Fenced,
                QueueEnded, //
            },
            frwr::{
                Access,
                MapError,
                Region, //
            },
            mapper::Registrar,
            mr_list::{
                Mapped,
                Regions,
                Registered, //
            },
            mr_pool::RegionPool, //
        }, //
    }, //
};

use super::{
    send_ctxt::Message,
    sender::Responder, //
};

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

impl<U: Send + 'static> Registrar<U> {
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
        let domain = ep.domain().ok_or(EINVAL)?;
        let pool = RegionPool::new(domain, pages, gaps, not_registered::<C>)?;
        // What is posted refers to it.
        ep.keep(pool.clone())?;
        Ok(Self::new(pool))
    }
}

impl Message {
    /// Maps the octets of `spans` for the peer to read; the pages stay in the message.
    ///
    /// # Errors
    ///
    /// As for [`Registrar::map`].
    pub(crate) fn map<U: Send + 'static>(
        &self,
        registrar: &mut Registrar<U>,
        spans: impl Iterator<Item = Span>,
    ) -> Result<Regions<Mapped, U>, MapError> {
        let mut regions = Regions::none();
        let pieces = spans.flat_map(|span| self.pieces(span));
        registrar.map(pieces, Access::Read, &mut regions)?;
        Ok(regions)
    }

    /// [`Message::post`], behind the registrations of `regions`, for which there must be entries of
    /// the Send Queue beside the permit's. `keep` is given the regions before the peer can know of
    /// them; it must not sleep. The message has been told its place: [`Message::set_place`].
    ///
    /// # Errors
    ///
    /// As for [`Message::post`]; the regions stay with whoever keeps them.
    pub(crate) fn post_exposing<C: Responder + Exposes>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        octets: usize,
        invalidate: Option<u32>,
        regions: Regions<Mapped, C::Token>,
        keep: impl FnOnce(Regions<Registered, C::Token>),
    ) -> Result<(), NotPosted<Self>> {
        if !regions.domain().is_some_and(|domain| ep.owns(domain)) {
            return Err(NotPosted::Refused(self));
        }
        let mut exposing = None;
        // SAFETY: The regions stay in place while their pool does, which the endpoint keeps; the
        // Send does so until it has completed.
        let posted = unsafe {
            self.post_behind(ep, permit, octets, invalidate, |send| {
                let (first, registered) = regions.register(send);
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
    let id = unsafe { (*kernel::container_of!(cqe, Region<C::Token>, reg_cqe)).id() };
    trace!(xprtrdma_wc_fastreg(
        worker.send_cid(id.cast_signed()),
        wc.status,
        wc.vendor_err
    ));
    C::not_registered(&worker, Ended::of(wc.status));
}
