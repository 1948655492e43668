// SPDX-License-Identifier: GPL-2.0

//! The requester's memory as its device sees it: registrations, and who may do what with them.

use crate::rng::Rng;
use rpcrdma_core::wire::Segment;
use std::collections::BTreeMap;

/// What a registration allows the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// RDMA Read.
    Read,
    /// RDMA Write.
    Write,
}

/// Which buffer of which RPC a registration covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The RPC.
    pub xid: u32,
    /// Where in its Call or Reply buffer.
    pub start: usize,
}

/// A registration that is valid.
#[derive(Clone, Copy, Debug)]
struct Registration {
    access: Access,
    place: Place,
    segment: Segment,
}

/// All registrations of one connection.
#[derive(Debug, Default)]
pub struct Memory {
    valid: BTreeMap<u32, Registration>,
}

/// The peer touched what it may not: the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl Memory {
    /// Registers `length` bytes at `place`, under a handle never used before.
    pub fn register(
        &mut self,
        rng: &mut Rng,
        access: Access,
        place: Place,
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
            place,
            segment,
        };
        self.valid.insert(handle, registration);
        segment
    }

    /// Makes a handle invalid; whether it was valid.
    pub fn invalidate(&mut self, handle: u32) -> bool {
        self.valid.remove(&handle).is_some()
    }

    /// Whether the peer can still use a handle.
    pub fn is_valid(&self, handle: u32) -> bool {
        self.valid.contains_key(&handle)
    }

    /// All handles that the peer can use.
    pub fn handles(&self) -> Vec<u32> {
        self.valid.keys().copied().collect()
    }

    /// Where an access by the peer goes.
    pub fn access(&self, access: Access, part: &Segment) -> Result<Place, AccessError> {
        let registration = self.valid.get(&part.handle).ok_or(AccessError)?;
        let skip = part.offset.wrapping_sub(registration.segment.offset);
        let end = skip
            .checked_add(u64::from(part.length))
            .ok_or(AccessError)?;
        if registration.access != access || end > u64::from(registration.segment.length) {
            return Err(AccessError);
        }
        Ok(Place {
            start: registration.place.start + skip as usize,
            ..registration.place
        })
    }
}
