// SPDX-License-Identifier: GPL-2.0

//! What a trace tells of Calls and Replies. Nothing here runs unless somebody listens.

use crate::{
    engine::requester::call::{
        CallPlan,
        Plan,
        ReplyPlan, //
    },
    sunrpc::xdr::XdrBuf,
    trace::{
        trace,
        xprtrdma_chunk_read,
        xprtrdma_chunk_reply,
        xprtrdma_chunk_write,
        xprtrdma_mr_fastreg,
        xprtrdma_mr_localinv,
        xprtrdma_mr_map,
        xprtrdma_mr_reminv,
        Conveyance,
        Task, //
    },
    verbs::{
        Endpoint,
        Mapped,
        Regions,
        Registered, //
    },
    wire::{
        fixed_words,
        Header,
        Malformed,
        RdmaError, //
    }, //
};

use super::{
    channel::Channel,
    complete::FenceWaiter, //
};

/// How a Call travels, in a trace's words.
pub(super) fn call(plan: CallPlan, message: &XdrBuf) -> Conveyance {
    match plan {
        CallPlan::Inline { .. } if message.page_len() == 0 => Conveyance::Inline,
        CallPlan::Inline { pull_up: true } => Conveyance::PullUp,
        CallPlan::Inline { pull_up: false } => Conveyance::Mapped,
        CallPlan::ReadChunk { .. } => Conveyance::ReadChunk,
        CallPlan::PositionZero => Conveyance::PositionZero,
    }
}

/// What a Call offers for its Reply, in a trace's words.
pub(super) fn reply(plan: ReplyPlan) -> Conveyance {
    match plan {
        ReplyPlan::Inline | ReplyPlan::Pull => Conveyance::Inline,
        ReplyPlan::WriteChunk => Conveyance::WriteChunk,
        ReplyPlan::ReplyChunk => Conveyance::ReplyChunk,
    }
}

/// The lengths of a message's parts.
pub(super) fn extent(buf: &XdrBuf) -> [u32; 3] {
    [buf.head_len(), buf.page_len(), buf.tail_len()]
}

/// The regions of a Call, of which the first `reads` are those of Read chunks.
#[inline]
pub(super) fn exposed(
    task: impl FnOnce() -> Task,
    regions: &Regions<Mapped, FenceWaiter>,
    reads: u32,
    plan: &Plan,
) {
    if xprtrdma_mr_map::enabled()
        || xprtrdma_chunk_read::enabled()
        || xprtrdma_chunk_write::enabled()
        || xprtrdma_chunk_reply::enabled()
    {
        chunks(task(), regions, reads, plan);
    }
}

#[cold]
fn chunks(task: Task, regions: &Regions<Mapped, FenceWaiter>, reads: u32, plan: &Plan) {
    let position = match plan.call {
        CallPlan::ReadChunk { position } => position,
        _ => 0,
    };
    for (number, region) in (1..).zip(regions.traced()) {
        trace!(xprtrdma_mr_map(task, &region));
        let last = number == reads || number == regions.len();
        if number <= reads {
            trace!(xprtrdma_chunk_read(task, position, &region, last));
        } else if plan.reply == ReplyPlan::WriteChunk {
            trace!(xprtrdma_chunk_write(task, &region, last));
        } else {
            trace!(xprtrdma_chunk_reply(task, &region, last));
        }
    }
}

/// Regions that are about to be registered.
#[inline]
pub(super) fn registered(task: impl FnOnce() -> Task, regions: &Regions<Registered, FenceWaiter>) {
    if xprtrdma_mr_fastreg::enabled() {
        let task = task();
        for region in regions.traced() {
            trace!(xprtrdma_mr_fastreg(task, &region));
        }
    }
}

/// Regions that are about to be invalidated by this end.
#[inline]
pub(super) fn invalidated_here(
    task: impl FnOnce() -> Task,
    regions: &Regions<Registered, FenceWaiter>,
) {
    if xprtrdma_mr_localinv::enabled() {
        let task = task();
        for region in regions.traced() {
            trace!(xprtrdma_mr_localinv(task, &region));
        }
    }
}

/// A region that the peer says it has invalidated.
#[inline]
pub(super) fn invalidated_there(
    task: impl FnOnce() -> Task,
    regions: &Regions<Registered, FenceWaiter>,
    handle: u32,
) {
    if xprtrdma_mr_reminv::enabled() {
        if let Some(region) = regions.traced().find(|region| region.handle == handle) {
            trace!(xprtrdma_mr_reminv(task(), &region));
        }
    }
}

/// A message that is not understood.
#[cold]
pub(super) fn not_understood(ep: &Endpoint<Channel>, octets: &[u8]) {
    let [xid, version, _, procedure] = fixed_words(octets);
    let peer = ep.peer_addr();
    match Header::decode(octets) {
        Err(Malformed::Short) => {
            trace!(xprtrdma_reply_short_err(peer, xid, version, procedure));
        }
        Err(Malformed::Version { .. }) => {
            trace!(xprtrdma_reply_vers_err(peer, xid, version, procedure));
        }
        _ => trace!(xprtrdma_reply_hdr_err(peer, xid, version, procedure)),
    }
}

/// A message that answers no Call of ours.
#[cold]
pub(super) fn not_asked_for(ep: &Endpoint<Channel>, octets: &[u8]) {
    let [xid, version, _, procedure] = fixed_words(octets);
    trace!(xprtrdma_reply_rqst_err(
        ep.peer_addr(),
        xid,
        version,
        procedure
    ));
}

/// The peer could not serve a Call.
#[cold]
pub(super) fn refused(task: Task, xid: u32, error: &RdmaError) {
    match *error {
        RdmaError::Vers { low, high } => trace!(xprtrdma_err_vers(task, xid, low, high)),
        RdmaError::Chunk => trace!(xprtrdma_err_chunk(task, xid)),
    }
}
