// SPDX-License-Identifier: GPL-2.0

//! Releases exposed Replies: after RDMA_DONE, or when they expire.
//!
//! Not in the C module: this is the extension "pulled Replies".

use super::{
    ep::ServerEp,
    exposed::{
        Expired,
        HandleOf,
        Released,
        ToRelease, //
    },
    tunables, //
};
use crate::{
    lib::{
        close_reason::CloseReason,
        fence::Fenced, //
    },
    sunrpc::svc::XprtTimer,
    verbs::{
        Endpoint,
        Exposure,
        SentExposing, //
    }, //
};

/// Time limit of a release. LOCAL_INV completes after the WRs posted before it, and a client that
/// posts no Receives delays those WRs for as long as it likes. Beyond this limit the connection is
/// closed.
const RELEASE_SECONDS: u32 = 30;

/// Releases a Reply whose RDMA_DONE has arrived before its Send was posted.
#[cold]
pub(super) fn release_early(ep: &Endpoint<ServerEp>, slot: usize) {
    if let Some(reply) = ep.context().exposed.take_mrs(slot) {
        release(ep, slot, reply);
    }
}

/// Handles an RDMA_DONE, which has invalidated a handle of `invalidated`, if any.
pub(super) fn done(ep: &Endpoint<ServerEp>, xid: u32, invalidated: Option<HandleOf>) {
    if let Some((slot, reply)) = ep.context().exposed.done(xid) {
        release(ep, slot, reply);
    }
    if invalidated.is_some_and(|of| of != HandleOf::Reply(xid)) {
        // The handle may be that of another Reply, whose memory is then unprotected.
        ep.context().close(CloseReason::WrongHandle);
    }
}

/// Releases the Replies that the client has not read in time, and closes the connection if that
/// takes too long; returns the time of the next check.
pub(super) fn expire(ep: &Endpoint<ServerEp>) -> Option<u64> {
    let exposed = &ep.context().exposed;
    // A Reply is counted before the timer is armed for it.
    if exposed.usage().0 == 0 {
        return None;
    }
    let now = XprtTimer::now();
    let grace = XprtTimer::jiffies(RELEASE_SECONDS);
    if exposed.is_overdue(now, grace) {
        ep.context().close(CloseReason::ReleaseOverdue);
        return None;
    }
    loop {
        match exposed.expired(now, grace) {
            Expired::Next(next) => return next,
            Expired::Slot(slot, reply) => {
                tunables::EXPIRED.inc();
                release(ep, slot, reply);
            }
        }
    }
}

/// Invalidates the MRs of a Reply that are still valid.
fn release(ep: &Endpoint<ServerEp>, slot: usize, reply: ToRelease) {
    let mut mrs = reply.mrs;
    if let Some(handle) = reply.invalidated {
        // If not, the handle is that of another domain's MR.
        if !mrs.exposed_mut().take_invalidated(ep, handle) {
            ep.context().close(CloseReason::WrongHandle);
        }
    }
    match mrs.try_fence() {
        Ok(fenced) => invalidated(ep, slot, fenced),
        Err(mrs) => {
            if mrs.invalidate(ep, slot).is_err() {
                ep.context().close(CloseReason::PostFailed);
            }
        }
    }
}

/// Notes that the MRs of a Reply are invalid.
pub(super) fn invalidated(ep: &Endpoint<ServerEp>, slot: usize, fenced: Fenced<Exposure>) {
    put(ep, ep.context().exposed.invalidated(slot, fenced));
}

/// Notes that the Send of a Reply has completed.
pub(super) fn sent(ep: &Endpoint<ServerEp>, slot: usize, mut sent: SentExposing) {
    sent.unmap(ep);
    put(ep, ep.context().exposed.sent(slot, sent));
}

/// Releases the pages of a Reply, if its Send has completed and its MRs are invalid.
fn put(ep: &Endpoint<ServerEp>, released: Option<Released>) {
    if let Some(released) = released {
        ep.sender().put(ep, released.ctxt);
    }
}
