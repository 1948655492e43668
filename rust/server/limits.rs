// SPDX-License-Identifier: GPL-2.0

//! Queue depths and message sizes of a connection: the tunables, within what its device supports.
//!
//! C: svc_rdma.h, struct svcxprt_rdma

use core::mem;

use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

use super::tunables;
use crate::{
    verbs::{
        DeviceAttrs,
        QueueDepths, //
    },
    wire::private_data::{
        self,
        round_down, //
    }, //
};

/// Backchannel Calls that may be outstanding if the device has no room for many Receives.
const FEW_BACKCHANNEL: u32 = 2;

/// Credits that a new connection grants. It grants more when the client uses them: an idle
/// connection has few Receive buffers.
const FIRST_CREDITS: u32 = 16;

/// Receives that are posted together, to ring fewer doorbells.
const BATCH: u32 = 7;

/// Entries that `ib_drain_qp()` needs on a queue.
const DRAIN: u32 = 1;

/// A Call may have one Read chunk, one Write chunk and one Reply chunk.
const CHUNKS_PER_CALL: u32 = 3;

/// MRs that one exposed Reply may need: for its head, pages and tail, and one more where two of
/// these meet in a page.
pub(super) const EXPOSED_SEGMENTS: u32 = 4;

/// Each MR is registered and invalidated.
const ENTRIES_PER_SLOT: u32 = 2 * EXPOSED_SEGMENTS;

/// Entries that RDMA Reads or Writes of 1 MiB need, with five SGEs each.
const ENTRIES_PER_CALL: u32 = 64;

/// The Send Queue holds the work requests of one READ or WRITE of the largest size for this many
/// credits, and of [`FEW_LARGE_CALLS`] at least. Others wait, and are posted as these complete: a
/// device works on a few at a time.
const CREDITS_PER_LARGE_CALL: u32 = 16;
const FEW_LARGE_CALLS: u32 = 8;

/// Segments of a chunk into which an RDMA Read or Write may be split, in addition to its pages.
const SEGMENTS: u32 = 16;

/// A client that no export has admitted uses 1 in this many entries of its Send Queue.
const UNADMITTED_SHARE: u32 = 2;

/// Length of a buffer whose allocation does not fail, and for which fragmented bounce buffers have
/// room. That does not depend on the page size.
const SMALL: u32 = 4096;

/// The limits of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Calls that the client may have outstanding: the most credits to grant.
    pub(super) credits: u32,
    /// Backchannel Calls that may be outstanding: the credits to ask for.
    pub(super) backchannel: u32,
    /// Receives that must be posted if all credits are granted: for Calls, and in addition for the
    /// Replies to backchannel Calls (RFC 8167 Section 4.3.2) and the RDMA_DONEs of exposed Replies.
    pub(super) receives: u32,
    /// Replies that may be exposed.
    pub(super) exposed_slots: u32,
    /// Receives that are posted beyond `receives`, each time fewer are posted.
    pub(super) batch: u32,
    /// Length of the longest message that can be received, and so of a Receive buffer.
    pub(super) receive_size: u32,
    /// Length of the longest message that can be sent.
    pub(super) send_size: u32,
    /// Whether Replies may invalidate handles of their Calls.
    pub(super) invalidate: bool,
    /// SGEs of a Send.
    pub(super) sges: u32,
}

impl Limits {
    /// The limits that `device` allows. `exposed_slots` is the number of Replies that are to be
    /// exposed; it becomes 0 if that many would reduce the credits.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device cannot serve a single Call.
    pub(super) fn for_device(device: &DeviceAttrs, exposed_slots: u32) -> Result<Self> {
        let receive_size = round_down(tunables::MAX_REQ_SIZE.get());
        let send_size = match tunables::MAX_REPLY_SIZE.get() {
            0 => receive_size,
            size => round_down(size),
        };
        let wanted = tunables::MAX_REQUESTS.get();
        let backchannel = tunables::MAX_BC_REQUESTS.get();
        let room = device.max_qp_wr.min(device.max_cqe);
        let (backchannel, batch) = if wanted.saturating_add(backchannel + DRAIN + BATCH) <= room {
            (backchannel, BATCH)
        } else {
            (backchannel.min(FEW_BACKCHANNEL), 1)
        };
        let used = wanted.saturating_add(backchannel + DRAIN + batch);
        let exposed_entries = exposed_slots.saturating_mul(1 + ENTRIES_PER_SLOT);
        let exposed_slots = if exposed_entries.saturating_add(used) <= room {
            exposed_slots
        } else {
            0
        };
        // Everything else has its Receives before the credits do.
        let credits = wanted.min(room.saturating_sub(backchannel + DRAIN + batch));
        if credits == 0 {
            return Err(EINVAL);
        }
        // Transport header, head and tail, and the pages of the longest message without chunks.
        let sges = 4 + send_size / PAGE_SIZE as u32;
        Ok(Self {
            credits,
            backchannel,
            receives: credits + backchannel + exposed_slots,
            exposed_slots,
            batch,
            receive_size,
            send_size,
            invalidate: tunables::REMOTE_INVALIDATION.get() != 0,
            sges: sges.min(device.max_send_sge),
        })
    }

    /// Makes messages smaller after an allocation failure; `false` if they are small.
    pub(super) fn shrink(&mut self) -> bool {
        private_data::shrink(&mut self.send_size, &mut self.receive_size, SMALL)
    }

    /// R/W contexts of the RDMA core that may be in use, if the largest chunk takes `per_chunk`.
    pub(super) fn rw_ctxts(&self, per_chunk: u32) -> u32 {
        self.credits
            .saturating_mul(CHUNKS_PER_CALL)
            .saturating_mul(per_chunk)
    }

    /// Entries of the Send Queue for RDMA Reads and Writes, if one READ or WRITE moves up to
    /// `payload_pages`. `entries` are those that the RDMA core counts for all credits. They include
    /// the MRs of a device that needs them, and remain as they are there.
    pub(super) fn rw_entries(&self, entries: u32, payload_pages: u32, device: &DeviceAttrs) -> u32 {
        if device.rw_needs_mrs() {
            return entries;
        }
        let large_calls = (self.credits / CREDITS_PER_LARGE_CALL).max(FEW_LARGE_CALLS);
        let per_call = payload_pages
            .div_ceil(self.sges.max(1))
            .saturating_add(SEGMENTS);
        entries.min(large_calls.saturating_mul(per_call))
    }

    /// The queues to create, if `rw_ctxts` R/W contexts take `entries` of the Send Queue.
    ///
    /// If the RDMA core considers MRs faster on the device, it allocates an MR for each R/W context
    /// that is requested. This module uses such MRs only if the device requires them, and so
    /// requests R/W contexts only then: an MR costs device memory and time.
    pub(super) fn queue_depths(
        &self,
        rw_ctxts: u32,
        entries: u32,
        device: &DeviceAttrs,
    ) -> QueueDepths {
        // The core itself adds entries for the contexts that it is told of.
        let (rdma_ctxs, added) = if device.rw_needs_mrs() {
            (rw_ctxts, entries)
        } else {
            (0, 0)
        };
        let recv = self.receives + self.batch + DRAIN;
        let exposing = self.exposed_slots * ENTRIES_PER_SLOT;
        let send = recv
            .saturating_add(entries)
            .saturating_add(exposing)
            .min(device.max_qp_wr);
        QueueDepths {
            send_wr: send.saturating_sub(added).max(recv.min(send)),
            recv_wr: recv,
            send_sge: self.sges,
            rdma_ctxs,
            send_cqe: send.min(device.max_cqe),
            recv_cqe: recv,
        }
    }

    /// Exposes no Replies.
    pub(super) fn expose_none(&mut self) {
        self.receives -= self.exposed_slots;
        self.exposed_slots = 0;
    }

    /// Halves the Send Queue of `depths`, but leaves an entry for each Receive, entries for one
    /// Call in addition to all exposed Replies, and the R/W contexts of one Call, each chunk of
    /// which takes `per_chunk`. `false` if that changes nothing.
    pub(super) fn halve(&self, depths: &mut QueueDepths, per_chunk: u32) -> bool {
        let half = |number: u32, least: u32| (number / 2).max(least.min(number));
        let least = match self.exposed_slots {
            0 => 0,
            slots => DRAIN + slots * ENTRIES_PER_SLOT + ENTRIES_PER_CALL,
        };
        let halved = QueueDepths {
            send_wr: half(depths.send_wr, depths.recv_wr.max(least)),
            rdma_ctxs: half(depths.rdma_ctxs, per_chunk.saturating_mul(CHUNKS_PER_CALL)),
            ..*depths
        };
        mem::replace(depths, halved) != halved
    }

    /// Entries of the Send Queue that may be reserved, once the queues exist.
    pub(super) fn send_entries(&self, opened: &QueueDepths) -> u32 {
        opened
            .send_wr
            .min(opened.send_cqe)
            .saturating_sub(DRAIN + self.exposed_slots * ENTRIES_PER_SLOT)
            .max(1)
    }

    /// Entries that may be reserved before an export has admitted the client, of the `entries` of
    /// the Send Queue. This limits the messages that such clients can make the server allocate.
    pub(super) fn unadmitted_entries(&self, entries: u32) -> u32 {
        (entries / UNADMITTED_SHARE).max(2 * ENTRIES_PER_CALL)
    }

    /// Entries that each Send reserves at least, of the `entries` of the Send Queue. This limits
    /// outstanding Sends to less than twice the number of messages that a client may wait for,
    /// `receives + credits`, if there are that many entries. Without this minimum, a client that
    /// lets no Send complete could have one in every entry.
    pub(super) fn min_sq_entries(&self, entries: u32) -> u32 {
        let messages = self.receives.saturating_add(self.credits);
        entries.checked_div(messages).unwrap_or(0).max(1)
    }

    /// Chains that may wait for the Send Queue: one for each Call in progress, which has a Receive
    /// buffer, and one for each backchannel Call.
    pub(super) fn max_waiting(&self) -> u32 {
        self.buffers().saturating_add(self.backchannel)
    }

    /// Credits to grant at first.
    pub(super) fn first_credits(&self) -> u32 {
        self.credits.min(FIRST_CREDITS)
    }

    /// Receives that must be posted in addition to one for each credit.
    pub(super) fn other_receives(&self) -> u32 {
        self.receives - self.credits
    }

    /// Receives that are posted at first.
    pub(super) fn first_posted(&self) -> u32 {
        self.first_credits() + self.other_receives() + self.batch
    }

    /// Receive buffers: as many as can be posted, and one for each Call in progress.
    pub(super) fn buffers(&self) -> u32 {
        self.receives + self.batch + self.credits
    }
}
