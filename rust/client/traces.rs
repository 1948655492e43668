// SPDX-License-Identifier: GPL-2.0

//! Trace events of Calls and Replies. The arguments are computed only if an event is enabled.

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
        xprtrdma_decode_seg,
        xprtrdma_mr_fastreg,
        xprtrdma_mr_localinv,
        xprtrdma_mr_map,
        xprtrdma_mr_reminv,
        ChunkType,
        Task, //
    },
    verbs::Endpoint,
    wire::{
        fixed_words,
        ChunkLists,
        Header,
        Malformed,
        RdmaError,
        WriteChunk, //
    }, //
};

use super::{
    answer::{
        MappedMrs,
        RegisteredMrs, //
    },
    ep::ClientEp, //
};

/// The form of a Call.
pub(super) fn call(plan: CallPlan, message: &XdrBuf) -> ChunkType {
    match plan {
        CallPlan::Inline { .. } if message.page_len() == 0 => ChunkType::Inline,
        CallPlan::Inline { pull_up: true } => ChunkType::PullUp,
        CallPlan::Inline { pull_up: false } => ChunkType::Mapped,
        CallPlan::ReadChunk { .. } => ChunkType::ReadChunk,
        CallPlan::PositionZero => ChunkType::PositionZero,
    }
}

/// The chunk that a Call offers for its Reply.
pub(super) fn reply(plan: ReplyPlan) -> ChunkType {
    match plan {
        ReplyPlan::Inline | ReplyPlan::Pull => ChunkType::Inline,
        ReplyPlan::WriteChunk => ChunkType::WriteChunk,
        ReplyPlan::ReplyChunk => ChunkType::ReplyChunk,
    }
}

/// The lengths of head, pages and tail.
pub(super) fn lens(buf: &XdrBuf) -> [u32; 3] {
    [buf.head_len(), buf.page_len(), buf.tail_len()]
}

/// The segments of the Write list and of the Reply chunk that a Reply returns.
#[inline(always)]
pub(super) fn returned(chunks: &ChunkLists<'_>) {
    if xprtrdma_decode_seg::enabled() {
        decoded(chunks.writes.chunks().chain(chunks.reply));
    }
}

#[cold]
fn decoded<'a>(chunks: impl Iterator<Item = WriteChunk<'a>>) {
    for segment in chunks.flat_map(|chunk| chunk.segments()) {
        trace!(xprtrdma_decode_seg(
            segment.handle,
            segment.length,
            segment.offset
        ));
    }
}

/// The MRs of a Call, of which the first `reads` are those of the Read chunk.
#[inline]
pub(super) fn exposed(task: impl FnOnce() -> Task, mrs: &MappedMrs<'_>, reads: u32, plan: &Plan) {
    if xprtrdma_mr_map::enabled()
        || xprtrdma_chunk_read::enabled()
        || xprtrdma_chunk_write::enabled()
        || xprtrdma_chunk_reply::enabled()
    {
        chunks(task(), mrs, reads, plan.call, plan.reply);
    }
}

#[cold]
fn chunks(task: Task, mrs: &MappedMrs<'_>, reads: u32, call: CallPlan, reply: ReplyPlan) {
    let position = match call {
        CallPlan::ReadChunk { position } => position,
        _ => 0,
    };
    for (number, mr) in (1..).zip(mrs.traced()) {
        trace!(xprtrdma_mr_map(task, &mr));
        let last = number == reads || number == mrs.len();
        if number <= reads {
            trace!(xprtrdma_chunk_read(task, position, &mr, last));
        } else if reply == ReplyPlan::WriteChunk {
            trace!(xprtrdma_chunk_write(task, &mr, last));
        } else {
            trace!(xprtrdma_chunk_reply(task, &mr, last));
        }
    }
}

/// MRs that are about to be registered.
#[inline]
pub(super) fn registered(task: impl FnOnce() -> Task, mrs: &MappedMrs<'_>) {
    if xprtrdma_mr_fastreg::enabled() {
        let task = task();
        for mr in mrs.traced() {
            trace!(xprtrdma_mr_fastreg(task, &mr));
        }
    }
}

/// MRs that are about to be invalidated by LOCAL_INV.
#[inline]
pub(super) fn local_inv(task: impl FnOnce() -> Task, mrs: &RegisteredMrs) {
    if xprtrdma_mr_localinv::enabled() {
        let task = task();
        for mr in mrs.traced() {
            trace!(xprtrdma_mr_localinv(task, &mr));
        }
    }
}

/// The MR that a message of the peer has invalidated.
#[inline]
pub(super) fn remote_inv(task: impl FnOnce() -> Task, mrs: &RegisteredMrs, handle: u32) {
    if xprtrdma_mr_reminv::enabled() {
        if let Some(mr) = mrs.traced().find(|mr| mr.handle == handle) {
            trace!(xprtrdma_mr_reminv(task(), &mr));
        }
    }
}

/// A malformed message.
#[cold]
pub(super) fn malformed(ep: &Endpoint<ClientEp>, bytes: &[u8]) {
    let [xid, version, _, procedure] = fixed_words(bytes);
    let peer = ep.peer_addr();
    match Header::decode(bytes) {
        Err(Malformed::Short) => {
            trace!(xprtrdma_reply_short_err(peer, xid, version, procedure));
        }
        Err(Malformed::Version { .. }) => {
            trace!(xprtrdma_reply_vers_err(peer, xid, version, procedure));
        }
        // No RPC was looked up.
        Err(Malformed::Error {
            code: Some(code), ..
        }) => {
            trace!(xprtrdma_err_unrecognized(Task::NONE, xid, code));
        }
        _ => trace!(xprtrdma_reply_hdr_err(peer, xid, version, procedure)),
    }
}

/// A message that answers no pending RPC.
#[cold]
pub(super) fn unmatched(ep: &Endpoint<ClientEp>, bytes: &[u8]) {
    let [xid, version, _, procedure] = fixed_words(bytes);
    trace!(xprtrdma_reply_rqst_err(
        ep.peer_addr(),
        xid,
        version,
        procedure
    ));
}

/// RDMA_ERROR: the server could not serve a Call.
#[cold]
pub(super) fn rdma_error(task: Task, xid: u32, error: &RdmaError) {
    match *error {
        RdmaError::Vers { low, high } => trace!(xprtrdma_err_vers(task, xid, low, high)),
        RdmaError::Chunk => trace!(xprtrdma_err_chunk(task, xid)),
    }
}
