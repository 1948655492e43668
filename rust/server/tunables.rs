// SPDX-License-Identifier: GPL-2.0

//! The server's files under `/proc/sys/sunrpc/svc_rdma`.
//!
//! Names and ranges are those that administrators know; what nobody has counted or obeyed for years
//! is still there to be read.

use kernel::prelude::*;

use crate::{
    lib::counter::{
        Counter,
        Gauge, //
    },
    sysctl::{
        Entry,
        Registration,
        Tunable, //
    }, //
};

/// Calls that a client may have outstanding on a connection.
pub(crate) static MAX_REQUESTS: Tunable = Tunable::new(128, 4, 16384);

/// Reverse Calls that may be outstanding on a connection, if the client grants as much: as many as
/// the slots that NFS clients offer for callbacks.
pub(crate) static MAX_BC_REQUESTS: Tunable = Tunable::new(16, 1, 64);

/// Bytes of the longest message that is received, and also sent unless [`MAX_REPLY_SIZE`] says
/// otherwise.
pub(crate) static MAX_REQ_SIZE: Tunable = Tunable::new(4096, 1024, 262_144);

/// Bytes of the longest message that is sent; 0 is for as many as are received.
pub(crate) static MAX_REPLY_SIZE: Tunable = Tunable::new(0, 0, 262_144);

/// Whether Replies may invalidate what their Calls expose.
pub(crate) static REMOTE_INVALIDATION: Tunable = Tunable::new(1, 0, 1);

/// Whether a Reply that fits a message is sent in it though the client offers a Reply chunk.
pub(crate) static SHORT_REPLIES: Tunable = Tunable::new(1, 0, 1);

/// Bytes of the messages that the server's connections can send and receive.
pub(crate) static MESSAGE_BYTES: Gauge = Gauge::new();

/// Whether to expose Replies to clients that can pull them.
pub(crate) static PULLED_REPLIES: Tunable = Tunable::new(1, 0, 1);

/// Replies that may be exposed on a connection.
pub(crate) static MAX_EXPOSED_REPLIES: Tunable = Tunable::new(16, 1, 256);

/// Pages that may be exposed on all connections together.
pub(crate) static MAX_EXPOSED_PAGES: Tunable = Tunable::new(16384, 1, i32::MAX as u32);

/// Pages that are exposed.
pub(crate) static EXPOSED_PAGES: Gauge = Gauge::new();

/// Seconds that a client has to pull a Reply.
pub(crate) static EXPOSED_SECONDS: Tunable = Tunable::new(30, 1, 600);

/// Pages that Calls may be pulled to on all connections of clients that an export has admitted. All
/// others together have half as many more. Beyond that each connection pulls one Call at a time.
pub(crate) static MAX_PULLED_PAGES: Tunable = Tunable::new(65536, 1, i32::MAX as u32);

/// Pages that Calls of admitted clients are pulled to.
pub(crate) static PULLED_PAGES: Gauge = Gauge::new();

/// Pages that Calls of other clients are pulled to.
pub(crate) static STRANGERS_PAGES: Gauge = Gauge::new();

/// Times that a Call was not pulled at once because of that.
pub(crate) static HELD_BACK: Counter = Counter::new();

/// Seconds that nothing of what a connection has under way may end.
pub(crate) static STALL_SECONDS: Tunable = Tunable::new(90, 3, 3600);

/// Connections that were ended because of that.
pub(crate) static STALLED: Counter = Counter::new();

/// Replies that were exposed.
pub(crate) static EXPOSED: Counter = Counter::new();

/// Replies that were not pulled in time.
pub(crate) static EXPIRED: Counter = Counter::new();

/// Without effect: devices say how many Reads they can have outstanding.
static MAX_OUTBOUND_READ_REQUESTS: Tunable = Tunable::new(16, 1, 255);

/// RDMA Reads that were prepared, one for each segment.
pub(crate) static READS: Counter = Counter::new();

/// Messages received.
pub(crate) static RECEIVES: Counter = Counter::new();

/// RDMA Writes that were prepared, one for each segment and part of a Reply.
pub(crate) static WRITES: Counter = Counter::new();

/// Times that a thread found no room on a Send Queue.
pub(crate) static SQ_STARVED: Counter = Counter::new();

/// What has not been counted since before this module.
static UNUSED: Tunable = Tunable::constant(0);

static TABLE: [Entry; 30] = [
    Entry::tunable(c"max_requests", &MAX_REQUESTS),
    Entry::tunable(c"max_bc_requests", &MAX_BC_REQUESTS),
    Entry::tunable(c"max_req_size", &MAX_REQ_SIZE),
    Entry::tunable(c"max_reply_size", &MAX_REPLY_SIZE),
    Entry::tunable(c"remote_invalidation", &REMOTE_INVALIDATION),
    Entry::tunable(c"short_replies", &SHORT_REPLIES),
    Entry::gauge(c"message_octets", &MESSAGE_BYTES),
    Entry::tunable(c"max_outbound_read_requests", &MAX_OUTBOUND_READ_REQUESTS),
    Entry::tunable(c"pulled_replies", &PULLED_REPLIES),
    Entry::tunable(c"max_exposed_replies", &MAX_EXPOSED_REPLIES),
    Entry::tunable(c"max_exposed_pages", &MAX_EXPOSED_PAGES),
    Entry::gauge(c"exposed_pages", &EXPOSED_PAGES),
    Entry::tunable(c"exposed_seconds", &EXPOSED_SECONDS),
    Entry::counter(c"rdma_stat_exposed", &EXPOSED),
    Entry::counter(c"rdma_stat_expired", &EXPIRED),
    Entry::tunable(c"max_pulled_pages", &MAX_PULLED_PAGES),
    Entry::gauge(c"pulled_pages", &PULLED_PAGES),
    Entry::gauge(c"pulled_pages_strangers", &STRANGERS_PAGES),
    Entry::counter(c"rdma_stat_held_back", &HELD_BACK),
    Entry::tunable(c"stall_seconds", &STALL_SECONDS),
    Entry::counter(c"rdma_stat_stalled", &STALLED),
    Entry::counter(c"rdma_stat_read", &READS),
    Entry::counter(c"rdma_stat_recv", &RECEIVES),
    Entry::counter(c"rdma_stat_write", &WRITES),
    Entry::counter(c"rdma_stat_sq_starve", &SQ_STARVED),
    Entry::tunable(c"rdma_stat_rq_starve", &UNUSED),
    Entry::tunable(c"rdma_stat_rq_poll", &UNUSED),
    Entry::tunable(c"rdma_stat_rq_prod", &UNUSED),
    Entry::tunable(c"rdma_stat_sq_poll", &UNUSED),
    Entry::tunable(c"rdma_stat_sq_prod", &UNUSED),
];

/// Makes the files.
///
/// # Errors
///
/// As for [`Registration::new`].
pub(crate) fn register() -> Result<Registration> {
    Registration::new(c"sunrpc/svc_rdma", &TABLE)
}
