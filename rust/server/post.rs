// SPDX-License-Identifier: GPL-2.0

//! Send Queue reservation, and posting of a Send.
//!
//! C: svc_rdma_sendto.c, svc_rdma_post_send(), svc_rdma_post_send_err(), svc_rdma_sq_wait()

use kernel::prelude::*;

use super::{
    connection::Connection,
    exposed::Exposing,
    release,
    traces,
    tunables, //
};
use crate::{
    sunrpc::svc::XprtTimer,
    verbs::{
        Permit,
        PostError,
        ReserveError,
        SendCtxt, //
    }, //
};

/// Why a Call is not served.
pub(super) enum NotServed {
    /// The client gets an error, and may go on.
    Refused,
    /// The connection is lost, and the caller closes it.
    Lost,
}

impl From<Error> for NotServed {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

/// The result of posting `T`, which the error returns if none of its WRs was posted.
pub(super) type PostResult<T = SendCtxt> = Result<(), (Option<T>, NotServed)>;

/// A failed post: the connection is lost.
#[inline]
pub(super) fn lost<T>(not_posted: PostError<T>) -> (Option<T>, NotServed) {
    match not_posted {
        PostError::NotPosted(returned) => (Some(returned), NotServed::Lost),
        PostError::PartlyPosted => (None, NotServed::Lost),
    }
}

/// Posts the first `len` bytes of `ctxt`. The Send invalidates the client's handle `invalidate`.
#[inline]
pub(super) fn post(
    conn: &Connection,
    ctxt: SendCtxt,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    let permit = match reserve_at_least(conn, ctxt.entries(), ctxt.serial()) {
        Ok(permit) => permit,
        Err(why) => return Err((Some(ctxt), why)),
    };
    ctxt.post(&conn.ep, permit, len, invalidate).map_err(lost)
}

/// The same for a Send whose Reply the client is to read.
#[cold]
pub(super) fn post_exposing(
    conn: &Connection,
    exposing: Exposing,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    let ctx = conn.ep.context();
    let exposed = &ctx.exposed;
    let Exposing { slot, ctxt } = exposing;
    let permit = match reserve_at_least(conn, ctxt.entries(), ctxt.serial()) {
        Ok(permit) => permit,
        Err(why) => {
            exposed.withdraw(slot);
            return Err((Some(ctxt.into_ctxt()), why));
        }
    };
    let deadline = XprtTimer::in_seconds(tunables::EXPOSED_SECONDS.get());
    let mut wanted = true;
    let hold = |mrs| wanted = exposed.hold(slot, mrs, deadline);
    match ctxt.post(&conn.ep, permit, len, invalidate, slot, hold) {
        Ok(()) => {
            tunables::EXPOSED.inc();
            ctx.timer.arm(deadline);
            if !wanted {
                release::release_early(&conn.ep, slot);
            }
            Ok(())
        }
        Err(PostError::NotPosted(ctxt)) => {
            exposed.withdraw(slot);
            Err((Some(ctxt.into_ctxt()), NotServed::Lost))
        }
        Err(PostError::PartlyPosted) => Err((None, NotServed::Lost)),
    }
}

/// Reserves the entries that a Send needs, but no fewer than the minimum of the connection.
#[inline]
fn reserve_at_least(conn: &Connection, entries: u32, serial: i32) -> Result<Permit<'_>, NotServed> {
    reserve(conn, entries.max(conn.min_sq_entries), serial)
}

/// Reserves `entries` of the Send Queue, and waits if fewer are free. Traces show `serial`.
///
/// # Errors
///
/// `Refused` if the queue is not as long, `Lost` if the connection has ended, or the caller has to
/// close it.
#[inline]
pub(super) fn reserve(
    conn: &Connection,
    entries: u32,
    serial: i32,
) -> Result<Permit<'_>, NotServed> {
    let ctx = conn.ep.context();
    let permit = match ctx
        .sender
        .queue()
        .reserve(entries, || starved(conn, serial))
    {
        Ok(permit) => permit,
        Err(ReserveError::TooLong) => return Err(NotServed::Refused),
        Err(ReserveError::Closed | ReserveError::Stalled) => return Err(NotServed::Lost),
    };
    ctx.entries_reserved();
    if permit.waited() {
        traces::queue_has_room(&conn.ep, serial);
        ctx.send_queue_waited(&conn.ep);
    }
    Ok(permit)
}

/// Counts a thread that has to wait for the Send Queue.
#[cold]
fn starved(conn: &Connection, serial: i32) {
    tunables::SQ_STARVED.inc();
    traces::queue_full(&conn.ep, serial);
}
