// SPDX-License-Identifier: GPL-2.0

//! What a connection may use: tunables, cut down to what its device can do.

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
    wire::private_data::round_down, //
};

/// Reverse Calls that may be outstanding if the device has no room for many Receives.
const FEW_BACKCHANNEL: u32 = 2;

/// Receives that are posted at a time, to ring fewer doorbells.
const BATCH: u32 = 7;

/// Entries that draining a queue takes.
const DRAIN: u32 = 1;

/// Each Call may have one Read chunk, one Write chunk and one Reply chunk.
const CHUNKS_PER_CALL: u32 = 3;

/// Regions in which one Reply may be exposed: its head, pages and tail, and one for a seam.
pub(super) const EXPOSED_SEGMENTS: u32 = 4;

/// Each is registered and invalidated.
const ENTRIES_PER_PLACE: u32 = 2 * EXPOSED_SEGMENTS;

/// Entries with which 1 MiB can be read or written, by five elements at a time.
const ENTRIES_PER_CALL: u32 = 64;

/// Bytes of a message for which there is always memory.
const SMALL: u32 = PAGE_SIZE as u32;

/// Numbers of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Calls that the client may have outstanding.
    pub(super) credits: u32,
    /// Reverse Calls that may be outstanding.
    pub(super) backchannel: u32,
    /// Receives that must stand: for Calls, and for the Replies to reverse Calls on top of those
    /// (RFC 8167 Section 4.3.2).
    pub(super) receives: u32,
    /// Replies that may be exposed. There is a Receive for the RDMA_DONE of each.
    pub(super) places: u32,
    /// Receives that are posted beyond that, each time it falls short.
    pub(super) batch: u32,
    /// Bytes of the longest message that is received, and so of a Receive.
    pub(super) receive: u32,
    /// Bytes of the longest message that is sent.
    pub(super) send: u32,
    /// Whether Replies may invalidate what their Calls expose.
    pub(super) invalidate: bool,
    /// Scatter/gather elements of a Send.
    pub(super) elements: u32,
}

impl Limits {
    /// What the device allows of what the administrator wants. The credits come last, from what
    /// there are Receives for. `places` is how many Replies are to be exposed.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device cannot serve a single Call.
    pub(super) fn new(device: &DeviceAttrs, places: u32) -> Result<Self> {
        let receive = round_down(tunables::MAX_REQ_SIZE.get());
        let send = match tunables::MAX_REPLY_SIZE.get() {
            0 => receive,
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
        // Only if it does not cost credits.
        let taken = wanted.saturating_add(backchannel + DRAIN + batch);
        let places = if places
            .saturating_mul(1 + ENTRIES_PER_PLACE)
            .saturating_add(taken)
            <= room
        {
            places
        } else {
            0
        };
        let credits = wanted.min(room.saturating_sub(backchannel + DRAIN + batch));
        if credits == 0 {
            return Err(EINVAL);
        }
        // Transport header, head and tail, and the pages of the longest message that has no chunk.
        let elements = 4 + send / PAGE_SIZE as u32;
        Ok(Self {
            credits,
            backchannel,
            receives: credits + backchannel + places,
            places,
            batch,
            receive,
            send,
            invalidate: tunables::REMOTE_INVALIDATION.get() != 0,
            elements: elements.min(device.max_send_sge),
        })
    }

    /// Makes messages smaller, since there is no memory in pieces that large; `false` if they are
    /// small.
    pub(super) fn shrink(&mut self) -> bool {
        let largest = self.receive.max(self.send);
        if largest <= SMALL {
            return false;
        }
        let most = round_down((largest / 2).max(SMALL));
        self.receive = self.receive.min(most);
        self.send = self.send.min(most);
        true
    }

    /// Transfers that may be under way, if the longest payload takes `each`.
    pub(super) fn transfers(&self, each: u32) -> u32 {
        self.credits
            .saturating_mul(CHUNKS_PER_CALL)
            .saturating_mul(each)
    }

    /// The queues, if the transfers take `entries` of the Send Queue.
    ///
    /// The core makes a region for each transfer that it is told of, if it holds that the device
    /// would be quicker with them. It uses none of them for what this module has it transfer,
    /// unless it must, so it is told of transfers only then: a region costs the device memory, and
    /// takes time to make.
    pub(super) fn depths(&self, transfers: u32, entries: u32, device: &DeviceAttrs) -> QueueDepths {
        let (rdma_ctxs, added) = if device.rw_needs_mrs() {
            (transfers, entries)
        } else {
            (0, 0)
        };
        let recv = self.receives + self.batch + DRAIN;
        let exposing = self.places * ENTRIES_PER_PLACE;
        let send = recv
            .saturating_add(entries)
            .saturating_add(exposing)
            .min(device.max_qp_wr);
        QueueDepths {
            send_wr: send.saturating_sub(added).max(recv.min(send)),
            recv_wr: recv,
            send_sge: self.elements,
            rdma_ctxs,
            send_cqe: send.min(device.max_cqe),
            recv_cqe: recv,
        }
    }

    /// Exposes no Replies.
    pub(super) fn expose_none(&mut self) {
        self.receives -= self.places;
        self.places = 0;
    }

    /// Halves the Send Queue of `depths`, as far as there is an entry for each Receive, room for
    /// one Call beside all that exposes Replies, and the contexts of one Call, each chunk of which
    /// takes `each`; `false` if that changes nothing.
    pub(super) fn halve(&self, depths: &mut QueueDepths, each: u32) -> bool {
        let half = |number: u32, least: u32| (number / 2).max(least.min(number));
        let least = match self.places {
            0 => 0,
            places => DRAIN + places * ENTRIES_PER_PLACE + ENTRIES_PER_CALL,
        };
        let halved = QueueDepths {
            send_wr: half(depths.send_wr, depths.recv_wr.max(least)),
            rdma_ctxs: half(depths.rdma_ctxs, each.saturating_mul(CHUNKS_PER_CALL)),
            ..*depths
        };
        mem::replace(depths, halved) != halved
    }

    /// Entries of the Send Queue that may be reserved, of queues that were opened.
    pub(super) fn send_entries(&self, opened: &QueueDepths) -> u32 {
        opened
            .send_wr
            .min(opened.send_cqe)
            .saturating_sub(DRAIN + self.places * ENTRIES_PER_PLACE)
            .max(1)
    }

    /// Entries of the Send Queue that a message reserves at least, of `entries` in all. So fewer
    /// than twice as many messages are under way as a client may wait for, `receives + credits`, if
    /// there are that many entries. Without this, a client that lets none complete could have one
    /// in every entry.
    pub(super) fn share(&self, entries: u32) -> u32 {
        let messages = self.receives.saturating_add(self.credits);
        entries.checked_div(messages).unwrap_or(0).max(1)
    }

    /// Receive buffers: as many as can be posted, and one for each Call that is being answered.
    pub(super) fn buffers(&self) -> u32 {
        self.receives + self.batch + self.credits
    }
}
