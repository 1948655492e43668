// SPDX-License-Identifier: GPL-2.0

//! What an administrator sets: files under `/proc/sys/sunrpc`. They hold for connections made
//! later.

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
        round_down,
        MAX_SIZE,
        MIN_SIZE, //
    }, //
};

static SLOTS: Tunable = Tunable::new(128, 4, 16384);
static INLINE_READ: Tunable = Tunable::new(4096, MIN_SIZE, MAX_SIZE);
static INLINE_WRITE: Tunable = Tunable::new(4096, MIN_SIZE, MAX_SIZE);
static BACKCHANNEL_CALLS: Tunable = Tunable::new(16, 1, 64);
static REMOTE_INVALIDATION: Tunable = Tunable::new(1, 0, 1);

/// Bytes of the messages that this end's connections can send and receive.
pub(super) static MESSAGE_BYTES: Gauge = Gauge::new();

/// 0: not at all, 1: those that are not usually long, 2: whatever they are.
static PULLED_REPLIES: Tunable = Tunable::new(1, 0, 2);

/// Replies that were pulled.
pub(super) static PULLED: Counter = Counter::new();

/// RDMA_DONEs that were sent.
pub(super) static DONES: Counter = Counter::new();

// These do nothing, and never did in living memory; scripts set them all the same.
static PADDING: Tunable = Tunable::new(0, 0, PAGE_SIZE as u32);
static STRATEGY: Tunable = Tunable::new(5, 0, 6);
static PAD_OPTIMIZE: Tunable = Tunable::new(0, 0, i32::MAX as u32);

static TABLE: [Entry; 12] = [
    Entry::tunable(c"rdma_slot_table_entries", &SLOTS),
    Entry::tunable(c"rdma_max_inline_read", &INLINE_READ),
    Entry::tunable(c"rdma_max_inline_write", &INLINE_WRITE),
    Entry::tunable(c"rdma_max_bc_requests", &BACKCHANNEL_CALLS),
    Entry::tunable(c"rdma_pulled_replies", &PULLED_REPLIES),
    Entry::counter(c"rdma_stat_pulled", &PULLED),
    Entry::counter(c"rdma_stat_done", &DONES),
    Entry::tunable(c"rdma_remote_invalidation", &REMOTE_INVALIDATION),
    Entry::gauge(c"rdma_message_octets", &MESSAGE_BYTES),
    Entry::tunable(c"rdma_inline_write_padding", &PADDING),
    Entry::tunable(c"rdma_memreg_strategy", &STRATEGY),
    Entry::tunable(c"rdma_pad_optimize", &PAD_OPTIMIZE),
];

/// Makes the files.
pub(super) fn register() -> Result<Registration> {
    Registration::new(c"sunrpc", &TABLE)
}

/// RPCs that a new transport lets be outstanding.
pub(super) fn slots() -> u32 {
    SLOTS.get()
}

/// Reverse Calls that a new transport lets be outstanding. The default is as many as NFSv4.1 makes.
pub(super) fn backchannel_calls() -> u32 {
    BACKCHANNEL_CALLS.get()
}

/// Whether to pull Replies from servers that can expose them.
pub(super) fn pulled_replies() -> bool {
    PULLED_REPLIES.get() != 0
}

/// Whether to pull them even if a Reply chunk would be cheaper.
pub(super) fn all_pulled() -> bool {
    PULLED_REPLIES.get() == 2
}

/// Bytes that this end can receive in one message, in whole units.
pub(super) fn receive_size() -> u32 {
    round_down(INLINE_READ.get())
}

/// Bytes that this end may send in one message, in whole units.
pub(super) fn send_size() -> u32 {
    round_down(INLINE_WRITE.get())
}

/// Whether the peer may invalidate what is exposed to it.
pub(super) fn remote_invalidation() -> bool {
    REMOTE_INVALIDATION.get() != 0
}
