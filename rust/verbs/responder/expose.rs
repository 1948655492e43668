// SPDX-License-Identifier: GPL-2.0

//! Posting a message that exposes its pages: MRs that are registered in front of the Send that
//! names them.

use crate::{
    lib::pages::Span,
    verbs::{
        endpoint::{
            ep::Endpoint,
            send_queue::{
                Permit, //
                PostError,
            }, //
        },
        mr::{
            exposes::Exposes,
            frwr::{
                Access,
                MapError, //
            },
            mapper::MrMapper,
            mr_list::{
                Mapped,
                MrList,
                Registered, //
            }, //
        }, //
    }, //
};

use super::{
    send_ctxt::SendCtxt,
    sender::Responder, //
};

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
    ) -> Result<(), PostError<Self>> {
        if !mrs.pd().is_some_and(|pd| ep.owns(pd)) {
            return Err(PostError::NotPosted(self));
        }
        let mut exposing = None;
        // SAFETY: The regions stay in place while their pool does, which the endpoint keeps; the
        // Send does so until it has completed.
        let posted = unsafe {
            self.post_behind(ep, permit, bytes, invalidate, |send| {
                // First of all: the thread that last posted one of these MRs may still be in
                // `ib_post_send()`, and follow the link that this changes.
                exposing = Some(ep.exposing());
                let (first, registered) = mrs.register(send);
                keep(registered);
                first
            })
        };
        drop(exposing);
        posted
    }
}
