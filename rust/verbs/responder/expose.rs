// SPDX-License-Identifier: GPL-2.0

//! Messages whose pages the peer is to read: their MRs are registered in front of the Send.
//!
//! A message owns its pages until the peer can no longer reach them: [`SendCtxt`] ->
//! [`ExposingSendCtxt`], with mapped MRs -> the device -> [`SentExposing`], from the completion ->
//! `SendCtxt` again, in exchange for the [`Fenced`] [`Exposure`] that the invalidation of its MRs
//! results in.
//!
//! Not in the C module: this is the extension "pulled Replies".

use core::mem::ManuallyDrop;

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    }, //
};

use crate::{
    lib::{
        fence::{
            Fenced,
            Owner,
            Reachable, //
        },
        llist::{
            ByList,
            Wrapper, //
        },
        pages::Span,
        sync::Atomic, //
    },
    verbs::{
        device::pd::Pd,
        endpoint::ep::Endpoint,
        mr::{
            exposes::Waiting,
            frwr::{
                Access,
                MapError, //
            },
            ib_mr::Exposed,
            mapper::MrMapper,
            mr_list::{
                Mapped,
                MrList,
                Registered, //
            }, //
        },
        rw::rw_ctxt::RwOps, //
    }, //
};

use super::send_ctxt::{
    Exposing,
    SendCtxt, //
};

/// The number of the next exposure. 64 bits do not wrap around.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// The pages of one posted message, as the owner of memory that MRs expose.
///
/// # Invariants
///
/// - I1: No other exposure ever has this number.
pub(crate) struct Exposure(u64);

impl Exposure {
    #[inline]
    fn id(&self) -> u64 {
        self.0
    }
}

/// What waits for the LOCAL_INVs of an exposed message, with what the context adds.
pub(crate) type ExposureWaiter<U> = Waiting<Exposure, U>;

/// The registered MRs of an exposed message.
pub(crate) type ExposedPages<U> = Reachable<Exposure, MrList<Registered, ExposureWaiter<U>>>;

impl<W> Owner<MrList<Registered, W>> for Exposure {
    /// The message keeps its pages until the endpoint has been dropped.
    fn keep_exposed(self, _: MrList<Registered, W>) {}
}

/// A message with MRs that are mapped to its pages.
///
/// # Invariants
///
/// - I1: The MRs are mapped to pages of `ctxt`, which are not released before the MRs.
pub(crate) struct ExposingSendCtxt<U> {
    // Dropped in this order.
    mrs: MrList<Mapped<'static>, ExposureWaiter<U>>,
    ctxt: SendCtxt,
}

impl SendCtxt {
    /// Maps the bytes of `spans` for the peer to read.
    ///
    /// # Errors
    ///
    /// As for [`MrMapper::map`], with the message.
    pub(crate) fn expose<U: Send + 'static>(
        self,
        mr_mapper: &mut MrMapper<ExposureWaiter<U>>,
        spans: impl Iterator<Item = Span>,
    ) -> Result<ExposingSendCtxt<U>, (MapError, Self)> {
        let mut mrs = MrList::none();
        if let Err(error) = mr_mapper.map(self.bvecs(spans), Access::Read, &mut mrs) {
            drop(mrs);
            return Err((error, self));
        }
        // INVARIANT: I1: just mapped.
        Ok(ExposingSendCtxt {
            // SAFETY: The message keeps its pages, and is kept beside the MRs.
            mrs: unsafe { mrs.kept() },
            ctxt: self,
        })
    }
}

impl<U> ExposingSendCtxt<U> {
    /// The buffer for the header, and the MRs that it names.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut [u8], impl Iterator<Item = Exposed> + Clone + '_) {
        (self.ctxt.buffer_mut(), self.mrs.exposed())
    }

    /// The number of Send Queue entries that posting needs beside those of the MRs.
    #[inline]
    pub(crate) fn entries(&self) -> u32 {
        self.ctxt.entries()
    }

    /// The number of the message in traces.
    #[inline]
    pub(crate) fn serial(&self) -> i32 {
        self.ctxt.serial()
    }

    /// Unmaps the MRs.
    #[inline]
    pub(crate) fn into_ctxt(self) -> SendCtxt {
        // I1: `mrs` first.
        let Self { mrs, ctxt } = self;
        drop(mrs);
        ctxt
    }

    /// The protection domain of the MRs, if there are any.
    #[inline]
    pub(super) fn mr_pd(&self) -> Option<&Arc<Pd>> {
        self.mrs.pd()
    }

    /// The message, to be prepared for posting.
    #[inline]
    pub(super) fn ctxt_mut(&mut self) -> &mut SendCtxt {
        &mut self.ctxt
    }

    /// Takes the MRs out, to be registered; the message is marked with the `slot`. The last one of
    /// the results is what the MRs expose.
    ///
    /// # Safety
    ///
    /// The MRs are registered or dropped before the message is used for anything but being posted.
    #[inline]
    pub(super) unsafe fn into_parts(
        self,
        slot: usize,
    ) -> (
        MrList<Mapped<'static>, ExposureWaiter<U>>,
        SendCtxt,
        Exposure, //
    ) {
        let Self { mrs, mut ctxt } = self;
        let id = NEXT_ID.fetch_add(1, Relaxed);
        ctxt.0.exposing = Some(Exposing { id, slot });
        // INVARIANT: I1: a new number.
        (mrs, ctxt, Exposure(id))
    }
}

/// A message whose Send has completed, or could not be posted. The peer may still be able to reach
/// its pages.
///
/// # Invariants
///
/// - I1: The message has `exposing`, and keeps its pages until the [`Exposure`] of that number is
///   fenced, or the endpoint has been dropped.
pub(crate) struct SentExposing(ManuallyDrop<SendCtxt>);

impl SentExposing {
    #[inline]
    pub(super) fn new(ctxt: SendCtxt) -> Self {
        // INVARIANT: I1: it is not accessible any more.
        Self(ManuallyDrop::new(ctxt))
    }

    /// Drops the Writes, but keeps the pages.
    pub(crate) fn unmap<C: RwOps>(&mut self, ep: &Endpoint<C>) {
        self.0.unmap(ep);
    }

    /// The bytes of the message.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// The message, for [`ReplySender::put`](super::sender::ReplySender::put).
    ///
    /// # Errors
    ///
    /// Both, if `fenced` is another message's.
    pub(crate) fn release(
        self,
        fenced: Fenced<Exposure>,
    ) -> Result<SendCtxt, (Self, Fenced<Exposure>)> {
        if self.0 .0.exposing.is_none_or(|own| own.id != fenced.id()) {
            return Err((self, fenced));
        }
        let mut ctxt = self.into_inner();
        ctxt.0.exposing = None;
        Ok(ctxt)
    }

    #[inline]
    fn into_inner(self) -> SendCtxt {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: Not used again.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl Drop for SentExposing {
    fn drop(&mut self) {
        if self.0 .0.buffer.pd().is_fenced() {
            // SAFETY: Not used again. The peer cannot reach the pages: the endpoint's MRs have been
            // unmapped.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        } else {
            pr_err!("the pages of an exposed Reply are leaked: the peer may still reach them\n");
        }
    }
}

// SAFETY: Uses no `ByList`.
unsafe impl Wrapper for SentExposing {
    type Entry = SendCtxt;

    #[inline]
    fn into_entry(self, _: ByList) -> Self::Entry {
        self.into_inner()
    }

    #[inline]
    fn from_entry(ctxt: Self::Entry, _: ByList) -> Self {
        Self::new(ctxt)
    }
}
