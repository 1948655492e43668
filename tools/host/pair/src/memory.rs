// SPDX-License-Identifier: GPL-2.0

//! The registered memory of an end, and the checks of its device.

use crate::rng::Rng;
use rpcrdma_core::wire::Segment;
use std::collections::BTreeMap;

/// The access that a registration allows the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// RDMA Read.
    Read,
    /// RDMA Write.
    Write,
}

/// The location of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The buffer: at the client, an XID; at the server, the slot of an exposed Reply.
    pub buffer: u32,
    /// Offset in the buffer, in bytes.
    pub offset: usize,
}

/// A valid registration.
#[derive(Clone, Copy, Debug)]
struct Registration {
    access: Access,
    location: Location,
    segment: Segment,
}

/// All registrations of one connection.
#[derive(Debug, Default)]
pub struct Memory {
    valid: BTreeMap<u32, Registration>,
}

/// The peer has accessed memory that it may not access. The connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl Memory {
    /// Registers `length` bytes at `location`, under a random handle that is not in use.
    pub fn register(
        &mut self,
        rng: &mut Rng,
        access: Access,
        location: Location,
        length: u32,
    ) -> Segment {
        let handle = loop {
            let handle = rng.any() as u32;
            if handle != 0 && !self.valid.contains_key(&handle) {
                break handle;
            }
        };
        let segment = Segment {
            handle,
            length,
            offset: rng.any(),
        };
        let registration = Registration {
            access,
            location,
            segment,
        };
        self.valid.insert(handle, registration);
        segment
    }

    /// Invalidates a handle. Returns whether it was valid.
    pub fn invalidate(&mut self, handle: u32) -> bool {
        self.valid.remove(&handle).is_some()
    }

    /// Whether the peer can use a handle.
    pub fn is_valid(&self, handle: u32) -> bool {
        self.valid.contains_key(&handle)
    }

    /// All handles that the peer can use.
    pub fn handles(&self) -> Vec<u32> {
        self.valid.keys().copied().collect()
    }

    /// The location of an access by the peer.
    ///
    /// # Errors
    ///
    /// [`AccessError`] if the registration does not allow the access.
    pub fn access(&self, access: Access, part: &Segment) -> Result<Location, AccessError> {
        let registration = self.valid.get(&part.handle).ok_or(AccessError)?;
        let skip = part.offset.wrapping_sub(registration.segment.offset);
        let end = skip
            .checked_add(u64::from(part.length))
            .ok_or(AccessError)?;
        if registration.access != access || end > u64::from(registration.segment.length) {
            return Err(AccessError);
        }
        Ok(Location {
            offset: registration.location.offset + skip as usize,
            ..registration.location
        })
    }
}
