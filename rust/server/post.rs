// SPDX-License-Identifier: GPL-2.0

//! From a message to the Send Queue, as soon as there is room for it.

use kernel::prelude::*;

use super::{
    connection::Connection,
    exposed::Exposing,
    traces,
    tunables, //
};
use crate::{
    sunrpc::svc::XprtTimer,
    verbs::{
        NotPosted,
        Permit,
        ReserveError,
        Responder, //
        SendCtxt,
    }, //
};

/// Why a Call is not served.
pub(super) enum NotServed {
    /// The client is told, and may go on.
    Refused,
    /// The connection is at its end, and whoever learns of it closes it.
    Lost,
}

impl From<Error> for NotServed {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

/// What was to be posted comes back if nothing of it was.
pub(super) type Posted<T = SendCtxt> = Result<(), (Option<T>, NotServed)>;

/// How a failed post ends: its connection is lost.
#[inline]
pub(super) fn lost<T>(not_posted: NotPosted<T>) -> (Option<T>, NotServed) {
    match not_posted {
        NotPosted::Refused(back) => (Some(back), NotServed::Lost),
        NotPosted::Stranded => (None, NotServed::Lost),
    }
}

impl Connection {
    /// Posts a message.
    #[inline]
    pub(super) fn post(&self, message: SendCtxt, bytes: usize, invalidate: Option<u32>) -> Posted {
        let permit = match self.reserve_for(&message) {
            Ok(permit) => permit,
            Err(why) => return Err((Some(message), why)),
        };
        message
            .post(&self.ep, permit, bytes, invalidate)
            .map_err(lost)
    }

    /// Posts a message that exposes what is left of its Reply.
    #[cold]
    pub(super) fn post_exposing(
        &self,
        mut message: SendCtxt,
        bytes: usize,
        invalidate: Option<u32>,
        exposing: Exposing,
    ) -> Posted {
        let exposed = self.ep.context().exposed();
        let Exposing { place, mrs } = exposing;
        let permit = match self.reserve_for(&message) {
            Ok(permit) => permit,
            Err(why) => {
                drop(mrs);
                exposed.withdraw(place);
                return Err((Some(message), why));
            }
        };
        message.set_place(place);
        let deadline = XprtTimer::in_seconds(tunables::EXPOSED_SECONDS.get());
        let mut wanted = true;
        let keep = |mrs| wanted = exposed.keep(place, mrs, deadline);
        match message.post_exposing(&self.ep, permit, bytes, invalidate, mrs, keep) {
            Ok(()) => {
                tunables::EXPOSED.inc();
                self.ep.context().timer().set(deadline);
                if !wanted {
                    exposed.release_early(&self.ep, place)
                }
                Ok(())
            }
            Err(NotPosted::Refused(message)) => {
                exposed.strand(place, message);
                Err((None, NotServed::Lost))
            }
            Err(NotPosted::Stranded) => Err((None, NotServed::Lost)),
        }
    }

    /// Reserves what a message takes: its share of the queue, if it needs less.
    #[inline]
    fn reserve_for(&self, message: &SendCtxt) -> Result<Permit<'_>, NotServed> {
        self.reserve(message.entries().max(self.share), message.serial())
    }

    /// Reserves so many entries of the Send Queue, or has the thread wait for them, for what has
    /// this number in traces.
    ///
    /// # Errors
    ///
    /// `Refused` if the queue could never hold as many, `Lost` if the connection has ended, or is
    /// to be ended.
    #[inline]
    pub(super) fn reserve(&self, entries: u32, serial: i32) -> Result<Permit<'_>, NotServed> {
        let ctx = self.ep.context();
        let queue = ctx.sending().queue();
        let permit = match queue.reserve(entries, || self.starved(serial)) {
            Ok(permit) => permit,
            Err(ReserveError::TooLong) => return Err(NotServed::Refused),
            Err(ReserveError::Closed | ReserveError::Stalled) => return Err(NotServed::Lost),
        };
        ctx.stall_detector();
        if permit.waited() {
            traces::queue_has_room(&self.ep, serial);
            ctx.waited(&self.ep);
        }
        Ok(permit)
    }

    /// Notes that a thread finds no room on the Send Queue.
    #[cold]
    fn starved(&self, serial: i32) {
        tunables::SQ_STARVED.inc();
        traces::queue_full(&self.ep, serial);
    }
}
