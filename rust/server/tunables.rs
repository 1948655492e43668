// SPDX-License-Identifier: GPL-2.0

//! Sysctl files under `/proc/sys/sunrpc/svc_rdma`.
//!
//! Names and ranges are those of the C module. Files without effect, and counters that are always
//! 0, exist for scripts that read or write them.
//!
//! C: svc_rdma.c, svc_rdma_proc_init()

use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

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
pub(super) static MAX_REQUESTS: Tunable = Tunable::new(128, 4, 16384);

/// Backchannel Calls that may be outstanding on a connection, if the client grants as many credits.
/// The default is the number of slots that NFS clients offer for callbacks.
pub(super) static MAX_BC_REQUESTS: Tunable = Tunable::new(16, 1, 64);

/// Length of the longest message that can be received, and sent unless [`MAX_REPLY_SIZE`] is set.
pub(super) static MAX_REQ_SIZE: Tunable = Tunable::new(4096, 1024, 262_144);

/// Length of the longest message that can be sent; 0 means [`MAX_REQ_SIZE`].
pub(super) static MAX_REPLY_SIZE: Tunable = Tunable::new(0, 0, 262_144);

/// Whether Replies may invalidate handles of their Calls.
pub(super) static REMOTE_INVALIDATION: Tunable = Tunable::new(1, 0, 1);

/// Whether a Reply that fits inline is sent inline although the client offers a Reply chunk.
pub(super) static SHORT_REPLIES: Tunable = Tunable::new(1, 0, 1);

/// Total size of the Send and Receive buffers of all connections.
pub(super) static MESSAGE_BYTES: Gauge = Gauge::new();

/// Whether to expose Replies to clients that support pulled Replies.
pub(super) static PULLED_REPLIES: Tunable = Tunable::new(1, 0, 1);

/// Replies that may be exposed on a connection.
pub(super) static MAX_EXPOSED_REPLIES: Tunable = Tunable::new(16, 1, 256);

/// Pages that may be exposed on all connections together.
pub(super) static MAX_EXPOSED_PAGES: Tunable = Tunable::new(pages(64 << 20), 1, i32::MAX as u32);

/// Pages that are exposed.
pub(super) static EXPOSED_PAGES: Gauge = Gauge::new();

/// Seconds that a client has to read an exposed Reply.
pub(super) static EXPOSED_SECONDS: Tunable = Tunable::new(30, 1, 600);

/// Pages that the Read chunks of admitted clients may occupy, on all connections together. All
/// other clients share half as many more. Beyond its limit each connection reads one Call at a
/// time.
pub(super) static MAX_READ_PAGES: Tunable = Tunable::new(pages(256 << 20), 1, i32::MAX as u32);

/// Pages that the Read chunks of admitted clients occupy.
pub(super) static READ_PAGES: Gauge = Gauge::new();

/// Pages that the Read chunks of other clients occupy.
pub(super) static UNADMITTED_READ_PAGES: Gauge = Gauge::new();

/// Calls that had to wait because of [`MAX_READ_PAGES`].
pub(super) static DEFERRED_READS: Counter = Counter::new();

/// Seconds after which a connection with outstanding WRs, none of which completes, is closed.
pub(super) static STALL_SECONDS: Tunable = Tunable::new(90, 3, 3600);

/// Connections that were closed because of [`STALL_SECONDS`].
pub(super) static STALLED: Counter = Counter::new();

/// Connections that were closed because the client sent far more than it was granted.
pub(super) static FLOODED: Counter = Counter::new();

/// Replies that were exposed.
pub(super) static EXPOSED: Counter = Counter::new();

/// Exposed Replies that the client did not read in time.
pub(super) static EXPIRED: Counter = Counter::new();

/// Without effect: the device limits the number of outstanding Reads.
static MAX_OUTBOUND_READ_REQUESTS: Tunable = Tunable::new(16, 1, 255);

/// Segments for which RDMA Reads were prepared.
pub(super) static READS: Counter = Counter::new();

/// Messages received.
pub(super) static RECEIVES: Counter = Counter::new();

/// RDMA Writes that were prepared: one for each part of a Reply in each segment.
pub(super) static WRITES: Counter = Counter::new();

/// Messages and RDMA Reads that had to wait for room on a Send Queue.
pub(super) static SQ_STARVED: Counter = Counter::new();

/// A counter that is always 0, as in the C module.
static UNUSED: Tunable = Tunable::constant(0);

/// The pages of `bytes` of memory.
const fn pages(bytes: usize) -> u32 {
    // CAST: Fewer than 2^32.
    (bytes / PAGE_SIZE) as u32
}

static TABLE: [Entry; 31] = [
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
    Entry::tunable(c"max_pulled_pages", &MAX_READ_PAGES),
    Entry::gauge(c"pulled_pages", &READ_PAGES),
    Entry::gauge(c"pulled_pages_strangers", &UNADMITTED_READ_PAGES),
    Entry::counter(c"rdma_stat_held_back", &DEFERRED_READS),
    Entry::tunable(c"stall_seconds", &STALL_SECONDS),
    Entry::counter(c"rdma_stat_stalled", &STALLED),
    Entry::counter(c"rdma_stat_flooded", &FLOODED),
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

/// Creates the files.
///
/// # Errors
///
/// As for [`Registration::new`].
pub(crate) fn register() -> Result<Registration> {
    Registration::new(c"sunrpc/svc_rdma", &TABLE)
}
