// SPDX-License-Identifier: GPL-2.0

//! The DMA mappings of a protection domain's Receive buffers.
//!
//! A task of the client that reads a Reply may keep its buffer for any length of time: tasks are
//! frozen before a suspend. Were the mapping to last as long as the buffer, the removal of a device
//! would wait for that task. So the mapping ends with the domain, and the memory with the last
//! reader. On the server, an nfsd thread that executes a Call keeps the connection, and so the
//! domain: the removal waits for that thread.

use core::{
    mem,
    ptr::NonNull, //
};

use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        Flags, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    bindings,
    lib::{
        counter::Gauge,
        sync::Atomic, //
    }, //
};

pub(super) const DIRECTION: bindings::dma_data_direction =
    bindings::dma_data_direction_DMA_FROM_DEVICE;

/// Entries that the table has room for at first.
const INITIAL_CAPACITY: usize = 64;

/// Mappings to end without releasing the lock.
const BATCH: usize = 64;

/// The number of the next domain. 64 bits do not wrap around.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// An entry of the table.
enum MapEntry {
    /// A mapping.
    Mapped { addr: u64, size: usize },
    /// The next free entry.
    Free(Option<usize>),
}

struct Table {
    entries: KVVec<MapEntry>,
    /// The first free entry.
    free: Option<usize>,
}

/// The mappings of a domain's Receive buffers.
///
/// # Invariants
///
/// - I1: `device` is valid until [`Self::end`] is called.
/// - I2: After [`Self::end`] the table is empty.
/// - I3: An entry that is `Mapped` is a mapping for `device` of the memory of a live
///   [`RecvBuffer`](super::recv_buf::RecvBuffer), and the only record of it.
#[pin_data]
pub(in crate::verbs) struct Mappings {
    id: u64,
    device: NonNull<bindings::ib_device>,
    /// Bytes of the buffers.
    bytes: &'static Gauge,
    #[pin]
    table: SpinLock<Table>,
}

// SAFETY: `ib_dma_*` may be called for a device from any thread, and I1 does not depend on the
// thread. All else is `Send`.
unsafe impl Send for Mappings {}
// SAFETY: As above; the table is behind its lock, the rest is constant or atomic.
unsafe impl Sync for Mappings {}

impl Mappings {
    /// Makes an empty table.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller keeps `device` until it has called [`Self::end`].
    pub(super) unsafe fn new(
        device: NonNull<bindings::ib_device>,
        bytes: &'static Gauge,
    ) -> Result<Arc<Self>> {
        let entries = KVVec::with_capacity(INITIAL_CAPACITY, GFP_KERNEL)?;
        // INVARIANT: I1: by this function's contract. I2, I3: there is no entry.
        Arc::pin_init(
            pin_init!(Self {
                id: NEXT_ID.fetch_add(1, Relaxed),
                device,
                bytes,
                table <- new_spinlock!(
                    Table { entries, free: None },
                    "Mappings::table"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Reserves an entry.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the table cannot grow.
    pub(super) fn reserve(&self, flags: Flags) -> Result<usize> {
        loop {
            let wanted = {
                let mut guard = self.table.lock();
                let table = &mut *guard;
                if let Some((entry, MapEntry::Free(next))) = table
                    .free
                    .and_then(|entry| Some((entry, table.entries.get(entry)?)))
                {
                    table.free = *next;
                    return Ok(entry);
                }
                let entry = table.entries.len();
                if table
                    .entries
                    .push_within_capacity(MapEntry::Free(None))
                    .is_ok()
                {
                    return Ok(entry);
                }
                2 * entry
            };
            // The vector that loses is freed after the lock is released.
            let mut other = KVVec::with_capacity(wanted, flags | __GFP_NOWARN)?;
            let mut table = self.table.lock();
            if other.capacity() > table.entries.capacity() {
                for entry in table.entries.drain_all() {
                    // Cannot fail: `other` has the larger capacity.
                    let _ = other.push_within_capacity(entry);
                }
                mem::swap(&mut table.entries, &mut other);
            }
            drop(table);
        }
    }

    /// Records a mapping in a reserved entry, and counts it.
    ///
    /// # Safety
    ///
    /// - The domain is alive.
    /// - `addr` maps `size` bytes of a [`RecvBuffer`](super::recv_buf::RecvBuffer) for the domain's
    ///   device, and the buffer calls [`Self::unmap`] before it frees its memory.
    /// - `entry` comes from [`Self::reserve`].
    pub(super) unsafe fn set(&self, entry: usize, addr: u64, size: usize) {
        // INVARIANT: I2: the domain is alive. I3: by this function's contract.
        if let Some(slot) = self.table.lock().entries.get_mut(entry) {
            *slot = MapEntry::Mapped { addr, size };
        }
        self.bytes.add(size);
    }

    /// Takes `size` bytes out of the count.
    pub(super) fn uncount(&self, size: usize) {
        self.bytes.sub(size);
    }

    /// Ends the mapping in `entry`, if it has one, and frees the entry.
    ///
    /// # Safety
    ///
    /// `entry` comes from [`Self::reserve`], and the caller does not use it again. The buffer is
    /// not posted.
    pub(super) unsafe fn unmap(&self, entry: usize) {
        let mut guard = self.table.lock();
        let table = &mut *guard;
        if let Some(slot) = table.entries.get_mut(entry) {
            self.unmap_one(mem::replace(
                slot,
                MapEntry::Free(table.free.replace(entry)),
            ));
        }
    }

    /// Ends all mappings.
    ///
    /// There may be tens of thousands, and with an IOMMU each takes some microseconds, so that the
    /// lock is released now and then.
    ///
    /// # Safety
    ///
    /// No QP of the domain is left, so that the device accesses no buffer, and none is mapped any
    /// more.
    pub(super) unsafe fn end(&self) {
        while self.end_some() {}
    }

    /// Ends up to [`BATCH`] mappings; returns whether there are more.
    ///
    /// Under the lock: [`Self::unmap`] returns, and its caller frees the memory, only after the
    /// mapping has ended.
    fn end_some(&self) -> bool {
        let mut table = self.table.lock();
        // Nothing is reserved any more.
        table.free = None;
        for _ in 0..BATCH {
            match table.entries.pop() {
                Some(entry) => self.unmap_one(entry),
                None => return false,
            }
        }
        true
    }

    /// Ends the mapping of an entry that was just taken out of the table, with the lock held.
    fn unmap_one(&self, entry: MapEntry) {
        if let MapEntry::Mapped { addr, size } = entry {
            // SAFETY: The entry was in the table, so the device is valid (I1, I2), and this is the
            // last use of the mapping (I3). No sync is due: received data was synced on
            // completion, and its reader may have modified the buffer since.
            unsafe {
                bindings::rpcrdma_dma_unmap_unsynced(self.device.as_ptr(), addr, size, DIRECTION);
            }
        }
    }

    /// The number of the domain. No other domain ever has it, and it is never zero.
    #[inline]
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The device, valid until the domain has ended (I1).
    #[inline]
    pub(super) fn device(&self) -> *mut bindings::ib_device {
        self.device.as_ptr()
    }
}
