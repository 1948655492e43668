// SPDX-License-Identifier: GPL-2.0

//! Posting of Sends and RDMA Reads, at once or when the Send Queue has room.
//!
//! C: svc_rdma_sendto.c, svc_rdma_post_send(), svc_rdma_post_send_err()
//! C: svc_rdma_sendto.c, svc_rdma_wake_send_waiters()

use kernel::prelude::*;

use super::{
    call::Call,
    connection::Connection,
    ep::ServerEp,
    exposed::Exposing,
    read_admission,
    release,
    send_backlog::{
        Chain,
        Next, //
    },
    traces,
    tunables, //
};
use crate::{
    lib::close_reason::CloseReason,
    sunrpc::svc::XprtTimer,
    verbs::{
        CallRead,
        Endpoint,
        Permit,
        PostError,
        SendCtxt, //
    }, //
};

/// Why a Call is not served.
#[derive(Clone, Copy)]
pub(super) enum NotServed {
    /// The client gets an error. The connection stays.
    Refused,
    /// The connection is lost, and the caller closes it.
    Lost,
}

impl From<Error> for NotServed {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

/// The result of posting `T`: `Ok` if `T` was posted, or waits for room on the Send Queue. The
/// error returns `T` if none of its WRs was posted.
pub(super) type PostResult<T = SendCtxt> = Result<(), (Option<T>, NotServed)>;

/// Converts a failed post: the connection is lost.
#[inline]
fn lost<T>(not_posted: PostError<T>) -> (Option<T>, NotServed) {
    match not_posted {
        PostError::NotPosted(returned) => (Some(returned), NotServed::Lost),
        PostError::PartlyPosted => (None, NotServed::Lost),
    }
}

/// Posts the first `len` bytes of `ctxt`. The Send invalidates the client's handle `invalidate`.
#[inline(always)]
pub(super) fn post(
    conn: &Connection,
    ctxt: SendCtxt,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    let entries = ctxt.entries().max(conn.min_sq_entries);
    match reserve(&conn.ep, entries) {
        Some(permit) => post_reserved(&conn.ep, permit, ctxt, len, invalidate),
        None => {
            let chain = Chain::Send {
                ctxt,
                len,
                invalidate,
            };
            wait(&conn.ep, chain, entries).map_err(|(chain, why)| (abandon(&conn.ep, chain), why))
        }
    }
}

/// Posts a message for which entries of the Send Queue are reserved.
#[inline(never)]
fn post_reserved(
    ep: &Endpoint<ServerEp>,
    permit: Permit<'_>,
    ctxt: SendCtxt,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    ctxt.post(ep, permit, len, invalidate).map_err(lost)
}

/// [`post`] for a Send that exposes its Reply to the client.
#[cold]
pub(super) fn post_exposing(
    conn: &Connection,
    exposing: Exposing,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    let entries = exposing.ctxt.entries().max(conn.min_sq_entries);
    match reserve(&conn.ep, entries) {
        Some(permit) => post_exposed(&conn.ep, permit, exposing, len, invalidate),
        None => {
            let chain = Chain::Exposing {
                exposing,
                len,
                invalidate,
            };
            wait(&conn.ep, chain, entries).map_err(|(chain, why)| (abandon(&conn.ep, chain), why))
        }
    }
}

fn post_exposed(
    ep: &Endpoint<ServerEp>,
    permit: Permit<'_>,
    exposing: Exposing,
    len: usize,
    invalidate: Option<u32>,
) -> PostResult {
    let ctx = ep.context();
    let exposed = &ctx.exposed;
    let Exposing { slot, ctxt } = exposing;
    let deadline = XprtTimer::in_seconds(tunables::EXPOSED_SECONDS.get());
    let mut wanted = true;
    let hold = |mrs| wanted = exposed.hold(slot, mrs, deadline);
    match ctxt.post(ep, permit, len, invalidate, slot, hold) {
        Ok(()) => {
            tunables::EXPOSED.inc();
            ctx.timer.arm(deadline);
            if !wanted {
                release::release_early(ep, slot);
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

/// Posts the RDMA Reads of a Call.
#[inline]
pub(super) fn post_read(
    ep: &Endpoint<ServerEp>,
    read: CallRead<Call>,
) -> Result<(), (Option<CallRead<Call>>, NotServed)> {
    let entries = read.entries();
    match reserve(ep, entries) {
        Some(permit) => read.post(ep, permit).map_err(lost),
        None => wait(ep, Chain::Read(read), entries).map_err(|(chain, why)| match chain {
            Chain::Read(read) => (Some(read), why),
            _ => (None, why),
        }),
    }
}

/// Reserves `entries` of the Send Queue, unless another chain waits for entries.
#[inline]
fn reserve(ep: &Endpoint<ServerEp>, entries: u32) -> Option<Permit<'_>> {
    let ctx = ep.context();
    let queue = ep.sender().queue();
    let permit = ctx.send_backlog.reserve(queue, entries)?;
    ctx.entries_reserved(queue);
    Some(permit)
}

/// Queues a chain until `entries` of the Send Queue are free.
///
/// # Errors
///
/// The chain, with `Refused` if the Send Queue is shorter, or `Lost` if the backlog cannot take it.
#[cold]
fn wait(ep: &Endpoint<ServerEp>, chain: Chain, entries: u32) -> Result<(), (Chain, NotServed)> {
    let ctx = ep.context();
    if entries > ep.sender().queue().depth() {
        return Err((chain, NotServed::Refused));
    }
    tunables::SQ_STARVED.inc();
    ctx.counters.send_waits.add(1);
    traces::queue_full(ep, chain.serial());
    if let Err(chain) = ctx.send_backlog.push(chain, entries) {
        return Err((chain, NotServed::Lost));
    }
    post_waiting(ep);
    Ok(())
}

/// Posts waiting chains as long as the Send Queue has room. Called when a chain has been added, or
/// another has completed: the connection makes progress, and SUNRPC must not close it as idle.
#[cold]
pub(super) fn post_waiting(ep: &Endpoint<ServerEp>) {
    let ctx = ep.context();
    let queue = ep.sender().queue();
    if let Some(xprt) = ctx.xprt() {
        xprt.clear_old();
        if queue.is_shared() && xprt.is_peer_valid() {
            queue.share_all();
        }
    }
    while let Some(next) = ctx.send_backlog.next(queue) {
        ctx.entries_reserved(queue);
        let is_last = next.is_last;
        if !post_next(ep, next) {
            ctx.close(CloseReason::PostFailed);
            return;
        }
        if is_last {
            ctx.send_queue_has_room();
        }
    }
}

/// Posts a chain that has waited; `false` if the connection is lost.
fn post_next(ep: &Endpoint<ServerEp>, next: Next<'_>) -> bool {
    let Next { permit, chain, .. } = next;
    traces::queue_has_room(ep, chain.serial());
    let posted = match chain {
        Chain::Send {
            ctxt,
            len,
            invalidate,
        } => post_reserved(ep, permit, ctxt, len, invalidate),
        Chain::Exposing {
            exposing,
            len,
            invalidate,
        } => post_exposed(ep, permit, exposing, len, invalidate),
        Chain::Read(read) => {
            return match read.post(ep, permit) {
                Ok(()) => true,
                Err(not_posted) => {
                    if let PostError::NotPosted(read) = not_posted {
                        release_read(ep, read);
                    }
                    false
                }
            };
        }
    };
    match posted {
        Ok(()) => true,
        Err((returned, _)) => {
            if let Some(ctxt) = returned {
                ep.sender().put(ep, ctxt);
            }
            false
        }
    }
}

/// Dismantles a chain that was not posted; returns its Send context, if it has one.
fn abandon(ep: &Endpoint<ServerEp>, chain: Chain) -> Option<SendCtxt> {
    match chain {
        Chain::Send { ctxt, .. } => Some(ctxt),
        Chain::Exposing { exposing, .. } => {
            ep.context().exposed.withdraw(exposing.slot);
            Some(exposing.ctxt.into_ctxt())
        }
        Chain::Read(read) => {
            release_read(ep, read);
            None
        }
    }
}

/// Releases a Call whose Reads were not posted.
pub(super) fn release_read(ep: &Endpoint<ServerEp>, read: CallRead<Call>) {
    let ctx = ep.context();
    if let Some(mut buffer) = read.abandon(ep) {
        read_admission::end(ctx, &mut buffer.user_mut().call);
        ctx.recv_queue.put(buffer);
    }
}

/// Releases the waiting chains of a connection that has ended.
pub(super) fn release_waiting(ep: &Endpoint<ServerEp>) {
    let ctx = ep.context();
    while let Some(chain) = ctx.send_backlog.remove() {
        if let Some(ctxt) = abandon(ep, chain) {
            ep.sender().put(ep, ctxt);
        }
    }
}
