// SPDX-License-Identifier: GPL-2.0

//! Sysctl files under `/proc/sys/sunrpc`. New values apply to later connections.
//!
//! C: transport.c, xprt_rdma_init()

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
    },
    wire::private_data::{
        MAX_SIZE,
        MIN_SIZE, //
    }, //
};

/// RPCs that a new transport may have outstanding.
pub(super) static SLOTS: Tunable = Tunable::new(128, 4, 16384);

/// Length of the longest message that can be received.
pub(super) static INLINE_READ: Tunable = Tunable::new(4096, MIN_SIZE, MAX_SIZE);

/// Length of the longest message that can be sent.
pub(super) static INLINE_WRITE: Tunable = Tunable::new(4096, MIN_SIZE, MAX_SIZE);

/// Backchannel Calls that may be outstanding on a new transport. The default is the number of slots
/// that NFSv4.1 clients offer.
pub(super) static BACKCHANNEL_CALLS: Tunable = Tunable::new(16, 1, 64);

/// Whether the server may invalidate handles of a Call.
pub(super) static REMOTE_INVALIDATION: Tunable = Tunable::new(1, 0, 1);

/// Total size of the Send and Receive buffers of all connections.
pub(super) static MESSAGE_BYTES: Gauge = Gauge::new();

/// Which Replies to pull: 0 for none, 1 for those that are not usually long, 2 for all.
pub(super) static PULLED_REPLIES: Tunable = Tunable::new(1, 0, 2);

/// Seconds within which one of the Replies that are pulled must be read.
pub(super) static STALL_SECONDS: Tunable = Tunable::new(90, 3, 3600);

/// Replies that were pulled.
pub(super) static PULLED: Counter = Counter::new();

/// RDMA_DONEs that were sent.
pub(super) static DONES: Counter = Counter::new();

// Without effect, as in the C module. They exist for scripts that write them.
static PADDING: Tunable = Tunable::new(0, 0, PAGE_SIZE as u32);
static STRATEGY: Tunable = Tunable::new(5, 0, 6);
static PAD_OPTIMIZE: Tunable = Tunable::new(0, 0, i32::MAX as u32);

static TABLE: [Entry; 13] = [
    Entry::tunable(c"rdma_slot_table_entries", &SLOTS),
    Entry::tunable(c"rdma_max_inline_read", &INLINE_READ),
    Entry::tunable(c"rdma_max_inline_write", &INLINE_WRITE),
    Entry::tunable(c"rdma_max_bc_requests", &BACKCHANNEL_CALLS),
    Entry::tunable(c"rdma_pulled_replies", &PULLED_REPLIES),
    Entry::tunable(c"rdma_stall_seconds", &STALL_SECONDS),
    Entry::counter(c"rdma_stat_pulled", &PULLED),
    Entry::counter(c"rdma_stat_done", &DONES),
    Entry::tunable(c"rdma_remote_invalidation", &REMOTE_INVALIDATION),
    Entry::gauge(c"rdma_message_octets", &MESSAGE_BYTES),
    Entry::tunable(c"rdma_inline_write_padding", &PADDING),
    Entry::tunable(c"rdma_memreg_strategy", &STRATEGY),
    Entry::tunable(c"rdma_pad_optimize", &PAD_OPTIMIZE),
];

/// Creates the files.
///
/// # Errors
///
/// As for [`Registration::new`].
pub(crate) fn register() -> Result<Registration> {
    Registration::new(c"sunrpc", &TABLE)
}
