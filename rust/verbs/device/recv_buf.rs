// SPDX-License-Identifier: GPL-2.0

//! The memory of Receive buffers, which may outlive its mapping.
//!
//! A message is read in its buffer, by a task that may take as long as it likes: it may be frozen,
//! as all are before a suspend. The memory waits for that task. The mapping ends with the domain,
//! or a device that is to go would wait as well.

use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        Flags, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    bindings,
    lib::counter::Gauge, //
};

use super::pd::Pd;

const DIRECTION: bindings::dma_data_direction = bindings::dma_data_direction_DMA_FROM_DEVICE;

/// How many mappings there is room for at first.
const FIRST_ROOM: usize = 64;

/// A place for a mapping.
enum MapEntry {
    /// The mapping.
    Taken { addr: u64, size: usize },
    /// The next place that is free.
    Free(Option<usize>),
}

struct State {
    places: KVVec<MapEntry>,
    /// The first place that is free.
    free: Option<usize>,
}

/// What is mapped for a domain's Receive buffers.
///
/// # Invariants
///
/// Until [`Self::end`], the domain is there and keeps `device`; after that there are no places. One
/// that is taken has a mapping for that device, of the memory of a [`RecvBuffer`] that is there.
#[pin_data]
pub(in crate::verbs) struct Mappings {
    device: NonNull<bindings::ib_device>,
    /// Bytes of the buffers.
    bytes: &'static Gauge,
    #[pin]
    state: SpinLock<State>,
}

// SAFETY: Devices may be used from any thread.
unsafe impl Send for Mappings {}
// SAFETY: As above.
unsafe impl Sync for Mappings {}

impl Mappings {
    /// # Safety
    ///
    /// The caller keeps `device` until it has called [`Self::end`].
    pub(in crate::verbs) unsafe fn new(
        device: NonNull<bindings::ib_device>,
        bytes: &'static Gauge,
    ) -> Result<Arc<Self>> {
        let places = KVVec::with_capacity(FIRST_ROOM, GFP_KERNEL)?;
        // INVARIANT: By this function's contract; nothing is mapped yet.
        Arc::pin_init(
            pin_init!(Self {
                device,
                bytes,
                state <- new_spinlock!(
                    State { places, free: None },
                    "Mappings::state"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// A place for one more mapping, which nobody else gets.
    fn place(&self, flags: Flags) -> Result<usize> {
        loop {
            let wanted = {
                let mut guard = self.state.lock();
                let state = &mut *guard;
                if let Some((place, MapEntry::Free(next))) = state
                    .free
                    .and_then(|place| Some((place, state.places.get(place)?)))
                {
                    state.free = *next;
                    return Ok(place);
                }
                let place = state.places.len();
                if state
                    .places
                    .push_within_capacity(MapEntry::Free(None))
                    .is_ok()
                {
                    return Ok(place);
                }
                2 * place
            };
            // Freed without the lock, whichever of the two it is then.
            let mut other = KVVec::with_capacity(wanted, flags | __GFP_NOWARN)?;
            let mut state = self.state.lock();
            if other.capacity() > state.places.capacity() {
                for place in state.places.drain_all() {
                    // There is room for more.
                    let _ = other.push_within_capacity(place);
                }
                mem::swap(&mut state.places, &mut other);
            }
            drop(state);
        }
    }

    /// Ends the mapping in `place`, if there is one, and frees the place.
    fn unmap(&self, place: usize) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if let Some(it) = state.places.get_mut(place) {
            self.end_one(mem::replace(it, MapEntry::Free(state.free.replace(place))));
        }
    }

    /// Ends all mappings: the domain comes to its end, and so no queue pair can reach them.
    pub(in crate::verbs) fn end(&self) {
        let mut state = self.state.lock();
        state.free = None;
        // With the lock: the memory must not be freed before its mapping has ended.
        for place in state.places.drain_all() {
            self.end_one(place);
        }
    }

    fn end_one(&self, place: MapEntry) {
        if let MapEntry::Taken { addr, size } = place {
            // SAFETY: By the type's invariants; the lock is held, and this was the only record of
            // the mapping. What has been received has been synced: whoever reads it may also have
            // changed it.
            unsafe {
                bindings::rpcrdma_dma_unmap_unsynced(self.device.as_ptr(), addr, size, DIRECTION);
            }
        }
    }
}

/// The memory of a Receive buffer, mapped as long as its domain is there.
///
/// Whoever posts it must hold on to it until the completion; [`Recv`](super::Recv) sees to that.
///
/// # Invariants
///
/// `addr` is the mapping of `memory` that `mappings` has in `place`, until that has ended. `lkey`
/// is the domain's.
pub(in crate::verbs) struct RecvBuffer {
    memory: KVec<u8>,
    addr: u64,
    lkey: u32,
    place: usize,
    mappings: Arc<Mappings>,
}

impl RecvBuffer {
    /// Allocates and maps `size` bytes, all zero. Large sizes may fail; no warning is logged:
    /// whoever makes a connection retries smaller.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EIO` if the device cannot map the memory.
    pub(in crate::verbs) fn new(pd: &Pd, size: usize, flags: Flags) -> Result<Self> {
        let mut memory = KVec::from_elem(0u8, size, flags | __GFP_NOWARN)?;
        let mappings = pd.receives().clone();
        let place = mappings.place(flags)?;
        // SAFETY: `KVec` is physically contiguous; the domain keeps the device.
        let addr = unsafe {
            bindings::rpcrdma_dma_map_single(
                pd.device(),
                memory.as_mut_ptr().cast(),
                size,
                DIRECTION,
            )
        };
        // SAFETY: The domain keeps the device.
        let failed = unsafe { bindings::rpcrdma_dma_mapping_error(pd.device(), addr) } != 0;
        if failed {
            mappings.unmap(place);
            return Err(EIO);
        }
        // INVARIANT: Mapped above, and the domain is there.
        if let Some(it) = mappings.state.lock().places.get_mut(place) {
            *it = MapEntry::Taken { addr, size };
        }
        mappings.bytes.add(size);
        // INVARIANT: As above.
        Ok(Self {
            memory,
            addr,
            lkey: pd.lkey(),
            place,
            mappings,
        })
    }

    /// The size, in bytes.
    #[inline]
    pub(in crate::verbs) fn len(&self) -> usize {
        self.memory.len()
    }

    /// What the processor sees.
    #[inline]
    pub(in crate::verbs) fn as_slice(&self) -> &[u8] {
        &self.memory
    }

    /// Where the memory is, for who writes it when there is no reference to it.
    #[inline]
    pub(in crate::verbs) fn as_mut_ptr(&self) -> *mut u8 {
        self.memory.as_ptr().cast_mut()
    }

    /// Whether it is mapped for `pd`.
    #[inline]
    pub(in crate::verbs) fn is_for(&self, pd: &Pd) -> bool {
        Arc::ptr_eq(&self.mappings, pd.receives())
    }

    /// The [`Pd::id`] of the domain that it is, or was, mapped for.
    #[inline]
    pub(in crate::verbs) fn pd_id(&self) -> usize {
        id(&self.mappings)
    }

    /// A scatter/gather element for the whole.
    #[inline]
    pub(in crate::verbs) fn sge(&self) -> bindings::ib_sge {
        bindings::ib_sge {
            addr: self.addr,
            // CAST: No buffer of this module comes near 4 GiB.
            length: self.memory.len() as u32,
            lkey: self.lkey,
        }
    }

    /// Hands the buffer to the device.
    ///
    /// # Safety
    ///
    /// The domain is there.
    #[inline]
    pub(in crate::verbs) unsafe fn sync_for_device(&self) {
        // SAFETY: Mapped, by this function's contract and the type's invariants.
        unsafe {
            bindings::rpcrdma_dma_sync_for_device(
                self.mappings.device.as_ptr(),
                self.addr,
                self.memory.len(),
                DIRECTION,
            );
        }
    }

    /// Takes the first `len` bytes back from the device.
    ///
    /// # Safety
    ///
    /// The domain is there.
    #[inline]
    pub(in crate::verbs) unsafe fn sync_for_cpu(&self, len: usize) {
        // SAFETY: As above; `len` is limited to the buffer.
        unsafe {
            bindings::rpcrdma_dma_sync_for_cpu(
                self.mappings.device.as_ptr(),
                self.addr,
                len.min(self.memory.len()),
                DIRECTION,
            );
        }
    }
}

impl Drop for RecvBuffer {
    fn drop(&mut self) {
        self.mappings.bytes.sub(self.memory.len());
        // Not posted, since whoever posts holds it.
        self.mappings.unmap(self.place);
    }
}

/// A number that no other domain has while this one, or a buffer of it, is there. Never zero.
#[inline]
pub(in crate::verbs) fn id(mappings: &Arc<Mappings>) -> usize {
    ptr::from_ref::<Mappings>(mappings).addr()
}
