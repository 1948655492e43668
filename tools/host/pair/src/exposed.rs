// SPDX-License-Identifier: GPL-2.0

//! The exposed Replies of the server on one connection.

use crate::memory::Access;
use crate::memory::Location;
use crate::memory::Memory;
use crate::rng::Rng;
use rpcrdma_core::engine::responder::exposed::ExposedSlot;
use rpcrdma_core::engine::responder::exposed::ExposedSlots;
use rpcrdma_core::wire::Segment;

/// Most segments of an exposed Reply.
pub(crate) const MAX_SEGMENTS: u32 = 4;

/// The memory of an exposed Reply.
#[derive(Debug, Default)]
struct ExposedReply {
    bytes: Vec<u8>,
    handles: Vec<u32>,
}

/// The exposed Replies of a connection.
#[derive(Debug)]
pub struct ExposedReplies {
    /// The registered memory of the server.
    pub memory: Memory,
    slots: ExposedSlots<Vec<ExposedSlot>>,
    /// One for each slot.
    replies: Vec<ExposedReply>,
    /// Slots whose handles are being invalidated.
    releasing: Vec<usize>,
    /// Time from exposure to expiry.
    expiry: u64,
    now: u64,
}

impl ExposedReplies {
    /// The state of a new connection with `slots` slots.
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            memory: Memory::default(),
            slots: ExposedSlots::new(vec![ExposedSlot::Free; slots as usize]),
            replies: (0..slots).map(|_| ExposedReply::default()).collect(),
            releasing: Vec::new(),
            expiry: u64::MAX,
            now: 0,
        }
    }

    /// Number of slots.
    pub(crate) fn slot_count(&self) -> u32 {
        self.slots.as_slice().len() as u32
    }

    /// Whether all slots are free.
    pub fn is_empty(&self) -> bool {
        let mut slots = self.slots.as_slice().iter();
        slots.all(|slot| *slot == ExposedSlot::Free)
    }

    /// Registers the rest of a Reply. `None` if it gets no slot.
    pub(crate) fn expose(
        &mut self,
        rng: &mut Rng,
        xid: u32,
        bytes: Vec<u8>,
    ) -> Option<Vec<Segment>> {
        let slot = self.slots.expose(xid).ok()?;
        let mut segments = Vec::new();
        let mut offset = 0;
        while offset < bytes.len() {
            let rest = (bytes.len() - offset) as u32;
            let len = match segments.len() + 1 == MAX_SEGMENTS as usize {
                true => rest,
                false => rng.range(1, rest),
            };
            let location = Location {
                buffer: slot as u32,
                offset,
            };
            segments.push(self.memory.register(rng, Access::Read, location, len));
            offset += len as usize;
        }
        self.slots
            .set_deadline(slot, self.now.saturating_add(self.expiry));
        self.replies[slot] = ExposedReply {
            bytes,
            handles: segments.iter().map(|segment| segment.handle).collect(),
        };
        Some(segments)
    }

    /// Handles an RDMA_DONE, whose Send has invalidated a handle. Returns whether the handle
    /// belongs to that Reply.
    pub(crate) fn done(&mut self, xid: u32, invalidated: Option<u32>) -> bool {
        let mut own = invalidated.is_none();
        if let Some(slot) = self.slots.done(xid) {
            let handles = &mut self.replies[slot].handles;
            let before = handles.len();
            handles.retain(|handle| Some(*handle) != invalidated);
            own |= handles.len() != before;
            self.releasing.push(slot);
        }
        own
    }

    /// Sets the time after which Replies expire.
    pub fn set_expiry(&mut self, expiry: u64) {
        self.expiry = expiry;
    }

    /// Advances the time, and begins the invalidation of expired Replies.
    pub fn tick(&mut self) {
        self.now += 1;
        while let Some(slot) = self.slots.expired(self.now) {
            self.releasing.push(slot);
        }
    }

    /// The local invalidation of a Reply's handles completes.
    pub fn release(&mut self, rng: &mut Rng) {
        if self.releasing.is_empty() {
            return;
        }
        let index = rng.below(self.releasing.len());
        let slot = self.releasing.swap_remove(index);
        for handle in std::mem::take(&mut self.replies[slot]).handles {
            // The client may have invalidated the handle in the meantime.
            self.memory.invalidate(handle);
        }
        self.slots.released(slot);
    }

    /// The client's device reads an exposed Reply.
    pub fn device_reads(&self, location: Location, len: u32) -> Vec<u8> {
        let bytes = &self.replies[location.buffer as usize].bytes;
        bytes[location.offset..location.offset + len as usize].to_vec()
    }
}
