// SPDX-License-Identifier: GPL-2.0

//! Exposing the pages of a Reply: regions that are registered in front of the message that names them.

use super::domain::Domain;
use super::endpoint::Endpoint;
use super::exposes::not_registered;
use super::exposes::Exposes;
use super::message::Message;
use super::message::NotPosted;
use super::region::Access;
use super::region::MapError;
use super::regions::Mapped;
use super::regions::RegionPool;
use super::regions::Regions;
use super::regions::Registered;
use super::regions::Registrar;
use super::responder::Responder;
use super::send_queue::Permit;
use crate::bindings::pages::Span;
use core::ptr;
use kernel::prelude::*;

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
    ) -> core::result::Result<Regions<Mapped, U>, MapError> {
        let mut regions = Regions::none();
        let pieces = spans.flat_map(|span| self.pieces(span));
        registrar.map(pieces, Access::Read, &mut regions)?;
        Ok(regions)
    }

    /// [`Message::post`], behind the registrations of `regions`, for which there must be entries of the
    /// Send Queue beside the permit's. `keep` is given the regions before the peer can know of them; it
    /// must not sleep. The message has been told its place: [`Message::set_place`].
    ///
    /// # Errors
    ///
    /// As for [`Message::post`]; the regions stay with who keeps them.
    pub(crate) fn post_exposing<C: Responder + Exposes>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        octets: usize,
        invalidate: Option<u32>,
        regions: Regions<Mapped, C::Token>,
        keep: impl FnOnce(Regions<Registered, C::Token>),
    ) -> core::result::Result<(), NotPosted> {
        let domain = |domain| ptr::from_ref::<Domain>(domain);
        if regions.domain().map(|own| domain(own)) != ep.domain().map(|own| domain(own)) {
            return Err(NotPosted::Refused(self));
        }
        let mut exposing = None;
        // SAFETY: The regions stay in place while their pool does, which the endpoint keeps; the Send
        // does so until it has completed.
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
