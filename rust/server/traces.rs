// SPDX-License-Identifier: GPL-2.0

//! Trace events of Calls and Replies. The arguments are computed only if an event is enabled.

use crate::{
    engine::inbound::Response,
    trace::{
        svcrdma_decode_rseg,
        svcrdma_decode_wseg,
        svcrdma_encode_wseg,
        trace,
        Cid, //
    },
    verbs::Endpoint,
    wire::{
        fixed_words,
        Body,
        ChunkLists,
        ErrorReply,
        Header,
        Malformed,
        RdmaError,
        Segment, //
    }, //
};

use super::ep::ServerEp;

/// A Call whose header was decoded, and is `header` bytes long.
#[inline]
pub(super) fn call(
    ep: &Endpoint<ServerEp>,
    serial: i32,
    bytes: &[u8],
    header: usize,
    // By value: the lists need not be in memory unless an event is enabled.
    chunks: ChunkLists<'_>,
) {
    trace!(svcrdma_decode_rqst(
        ep.recv_cid(serial),
        fixed_words(bytes),
        header as u32
    ));
    if svcrdma_decode_rseg::enabled() || svcrdma_decode_wseg::enabled() {
        offered(ep.recv_cid(serial), chunks);
    }
}

/// The segments that a Call offers.
#[cold]
fn offered(cid: Cid, chunks: ChunkLists<'_>) {
    for (number, read) in (0..).zip(chunks.reads.segments()) {
        let Segment {
            handle,
            length,
            offset,
        } = read.segment;
        trace!(svcrdma_decode_rseg(
            cid,
            number,
            read.position,
            handle,
            length,
            offset
        ));
    }
    for chunk in chunks.writes.chunks().chain(chunks.reply) {
        for (number, segment) in (0..).zip(chunk.segments()) {
            let Segment {
                handle,
                length,
                offset,
            } = segment;
            trace!(svcrdma_decode_wseg(cid, number, handle, length, offset));
        }
    }
}

/// A message that is answered with an error, or dropped.
#[cold]
pub(super) fn refused(ep: &Endpoint<ServerEp>, serial: i32, bytes: &[u8], response: &Response) {
    let cid = ep.recv_cid(serial);
    match (Header::decode(bytes), response) {
        (Err(Malformed::Short), _) => {
            trace!(svcrdma_decode_short_err(cid, bytes.len() as u32));
        }
        (Err(Malformed::Version { .. }), _) => {
            trace!(svcrdma_decode_badvers_err(cid, fixed_words(bytes)));
        }
        (Err(Malformed::Procedure { .. }), _) => {
            trace!(svcrdma_decode_badproc_err(cid, fixed_words(bytes)));
        }
        (Err(Malformed::Lists { .. }), _) | (Ok(_), Response::Answer(_)) => {
            trace!(svcrdma_decode_parse_err(cid, fixed_words(bytes)));
        }
        (Err(Malformed::Error { .. }), _) | (Ok(_), Response::Drop) => dropped(ep, serial, bytes),
    }
}

/// A message that is dropped.
#[cold]
pub(super) fn dropped(ep: &Endpoint<ServerEp>, serial: i32, bytes: &[u8]) {
    trace!(svcrdma_decode_drop_err(
        ep.recv_cid(serial),
        fixed_words(bytes)
    ));
}

/// The error that answers a Call.
#[cold]
pub(super) fn error(error: &ErrorReply) {
    match error.error {
        RdmaError::Vers { .. } => trace!(svcrdma_err_vers(error.xid)),
        RdmaError::Chunk => trace!(svcrdma_err_chunk(error.xid)),
    }
}

/// A Reply whose `header` was encoded.
#[inline]
pub(super) fn reply(ep: &Endpoint<ServerEp>, serial: i32, header: &[u8]) {
    if svcrdma_encode_wseg::enabled() {
        returned(ep.send_cid(serial), header);
    }
}

/// The segments that a Reply returns.
#[cold]
fn returned(cid: Cid, header: &[u8]) {
    let chunks = match Header::decode(header) {
        Ok(header) => match header.body {
            Body::Msg { chunks, .. } | Body::NoMsg { chunks } => chunks,
            Body::Done | Body::Error(_) => return,
        },
        Err(_) => return,
    };
    for chunk in chunks.writes.chunks().chain(chunks.reply) {
        for (number, segment) in (0..).zip(chunk.segments()) {
            let Segment {
                handle,
                length,
                offset,
            } = segment;
            trace!(svcrdma_encode_wseg(cid, number, handle, length, offset));
        }
    }
}

/// A result does not fit its Write chunk of `segments` segments: `left` bytes are left.
#[cold]
pub(super) fn too_small(ep: &Endpoint<ServerEp>, serial: i32, segments: u32, left: u32) {
    trace!(svcrdma_small_wrch_err(
        ep.send_cid(serial),
        left,
        segments,
        segments
    ));
}

/// A chain has to wait for the Send Queue.
#[cold]
pub(super) fn queue_full(ep: &Endpoint<ServerEp>, serial: i32) {
    let (free, depth) = ep.sender().queue().state();
    trace!(svcrdma_sq_full(ep.send_cid(serial), free, depth));
}

/// A chain has waited for the Send Queue, and is posted.
#[cold]
pub(super) fn queue_has_room(ep: &Endpoint<ServerEp>, serial: i32) {
    let (free, depth) = ep.sender().queue().state();
    trace!(svcrdma_sq_retry(ep.send_cid(serial), free, depth));
}
