// SPDX-License-Identifier: GPL-2.0

//! Posting a message that exposes its pages: MRs that are registered in front of the Send that
//! names them.

use crate::{
    lib::{
        bvec::BVec,
        fence::{
            Owner,
            Reachable, //
        },
        pages::Span, //
    },
    verbs::{
        endpoint::{
            ep::Endpoint,
            send_queue::{
                Permit, //
                PostError,
            }, //
        },
        mr::{
            exposes::{
                Exposes,
                Waiting, //
            },
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

/// The pages of a message, as the owner of memory that MRs expose.
pub(crate) struct Exposure(());

/// What waits for the LOCAL_INVs of an exposed message, with what the context adds.
pub(crate) type ExposureWaiter<U> = Waiting<Exposure, U>;

/// The registered MRs of an exposed message.
pub(crate) type ExposedPages<U> = Reachable<Exposure, MrList<Registered, ExposureWaiter<U>>>;

impl<W> Owner<MrList<Registered, W>> for Exposure {
    /// The MRs stay registered until the endpoint is dropped.
    fn keep_exposed(self, _: MrList<Registered, W>) {}
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
    ) -> Result<MrList<Mapped<'static>, U>, MapError> {
        let mut mrs = MrList::none();
        mr_mapper.map(self.all_bvecs(spans), Access::Read, &mut mrs)?;
        // SAFETY: By promise P1 the message stays until the MRs are unmapped.
        Ok(unsafe { mrs.kept() })
    }

    #[inline]
    fn all_bvecs<'s>(
        &'s self,
        spans: impl Iterator<Item = Span> + 's,
    ) -> impl Iterator<Item = BVec<'s>> {
        spans.flat_map(|span| self.bvecs(span))
    }

    /// [`SendCtxt::post`], behind the registrations of `mrs`, for which there must be entries of
    /// the Send Queue beside the permit's. `keep` is given the regions before the peer can know of
    /// them; it must not sleep. The message has been told its slot: [`SendCtxt::set_slot`].
    ///
    /// # Errors
    ///
    /// As for [`SendCtxt::post`]; the regions stay with whoever keeps them.
    pub(crate) fn post_exposing<C: Responder + Exposes<Owner = Exposure>>(
        self,
        ep: &Endpoint<C>,
        permit: Permit<'_>,
        bytes: usize,
        invalidate: Option<u32>,
        mrs: MrList<Mapped<'_>, ExposureWaiter<C::Token>>,
        keep: impl FnOnce(ExposedPages<C::Token>),
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
                // The message keeps its pages.
                keep(Reachable::new(Exposure(()), registered));
                first
            })
        };
        drop(exposing);
        posted
    }
}
