// SPDX-License-Identifier: GPL-2.0

//! Start, deferral and end of a Call's RDMA Reads, within the limits of [`super::read_throttle`].

use super::{
    call::{
        Buffer,
        Call, //
    },
    ep::{
        Incoming,
        ServerEp, //
    },
    tunables, //
};
use crate::sunrpc::svc::XprtHandle;

/// Charges the `pages` that `call` is read into; `false` if the caller has to [`defer`] the Call.
#[inline]
pub(super) fn begin(ctx: &ServerEp, call: &mut Call, pages: usize) -> bool {
    let admitted = ctx.xprt().is_some_and(XprtHandle::is_peer_valid);
    call.charge = ctx.read_throttle.begin(pages, admitted);
    call.charge.is_some()
}

/// Queues a Call until the Reads of another Call of this connection have completed.
#[cold]
pub(super) fn defer(ctx: &ServerEp, buffer: Buffer) {
    tunables::DEFERRED_READS.inc();
    let mut incoming = ctx.incoming.lock();
    wait(ctx, &mut incoming, buffer);
    if !ctx.read_throttle.defer() {
        incoming.read_backlog.retry();
        ctx.wake_for(incoming);
    }
}

/// Takes `count` MRs, at most the total number, for the Reads of a Call that has a charge;
/// otherwise queues the Call.
#[cold]
pub(super) fn take_mrs(ctx: &ServerEp, mut buffer: Buffer, count: u32) -> Option<Buffer> {
    let mut incoming = ctx.incoming.lock();
    let call = &mut buffer.user_mut().call;
    if incoming.read_backlog.take_mrs(call, count) {
        return Some(buffer);
    }
    if let Some(charge) = call.charge.take() {
        // The Calls that have the MRs wake all deferred ones when they end.
        ctx.read_throttle.end(charge);
    }
    wait(ctx, &mut incoming, buffer);
    None
}

#[cold]
fn wait(ctx: &ServerEp, incoming: &mut Incoming, buffer: Buffer) {
    incoming.read_backlog.wait(buffer);
    ctx.read_throttle.set_queued(incoming.read_backlog.len());
}

/// Removes a deferred Call that may try again.
#[inline]
pub(super) fn next(ctx: &ServerEp, incoming: &mut Incoming) -> Option<Buffer> {
    let next = incoming.read_backlog.next()?;
    let left = incoming.read_backlog.len();
    ctx.read_throttle.set_queued(left);
    if left == 0 {
        ctx.read_throttle.none_deferred();
    }
    Some(next)
}

/// Returns the charge and the MRs of a Call whose Reads have completed, or will not be posted.
#[inline]
pub(super) fn end(ctx: &ServerEp, call: &mut Call) {
    let deferred = match call.charge.take() {
        Some(charge) => ctx.read_throttle.end(charge),
        None => false,
    };
    if deferred || call.mrs > 0 {
        retry_deferred(ctx, call);
    }
}

#[cold]
fn retry_deferred(ctx: &ServerEp, call: &mut Call) {
    let mut incoming = ctx.incoming.lock();
    incoming.read_backlog.put_mrs(call);
    if incoming.read_backlog.retry() {
        ctx.wake_for(incoming);
    }
}
