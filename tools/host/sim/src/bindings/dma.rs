// SPDX-License-Identifier: GPL-2.0

//! The IOMMU: what a device may access, and when.
//!
//! Each mapping has bus addresses of its own, which are never used again. The device accesses a
//! copy of the memory, as with bounce buffers: what the host wrote is there after mapping or
//! `sync_for_device`, and what the device wrote reaches the host by `sync_for_cpu` or unmapping. A
//! host that reads too early, or writes too late, sees or sends the wrong data.

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use std::collections::BTreeMap;

use kernel::ffi::c_int;
use kernel::sched;

use super::*;

/// The bus address that tells of a failure.
const FAILED: u64 = u64::MAX;

struct Mapping {
    host: usize,
    direction: dma_data_direction,
    copy: Vec<u8>,
}

#[derive(Default)]
struct Iommu {
    mappings: BTreeMap<u64, Mapping>,
    next: u64,
}

thread_local! {
    static IOMMU: RefCell<Iommu> = RefCell::default();
    static FAILS: Cell<u32> = const { Cell::new(0) };
    static UNMAPPED: Cell<Option<fn(u64, usize)>> = const { Cell::new(None) };
}

/// Sets the hook for the bus address and length of what is unmapped.
pub(crate) fn on_unmap(hook: fn(u64, usize)) {
    UNMAPPED.set(Some(hook));
}

/// Has one in `n` mappings fail.
pub(crate) fn fail_maps(n: u32) {
    FAILS.set(n);
}

/// The number of mappings.
pub(crate) fn mappings() -> usize {
    IOMMU.with_borrow(|iommu| iommu.mappings.len())
}

/// Forgets everything, after a run that has failed.
pub(crate) fn abandon() {
    IOMMU.with_borrow_mut(|iommu| iommu.mappings.clear());
    FAILS.set(0);
}

/// Memory is freed: the device must not have it.
pub(crate) fn freed(start: usize, len: usize, what: &'static str) {
    let mapped = IOMMU.with_borrow(|iommu| {
        iommu.mappings.iter().find_map(|(bus, mapping)| {
            let end = mapping.host + mapping.copy.len();
            (mapping.host < start + len && start < end).then_some(*bus)
        })
    });
    if let Some(bus) = mapped {
        sched::fail(format_args!(
            "{what} is freed while it is mapped to {bus:#x}"
        ));
    }
}

fn map(host: *mut u8, len: usize, direction: dma_data_direction) -> u64 {
    map_at(host.addr() as u64 & 0xfff, host, len, direction)
}

/// Maps memory to bus addresses from `offset` in a page on.
fn map_at(offset: u64, host: *mut u8, len: usize, direction: dma_data_direction) -> u64 {
    sched::preempt();
    if sched::one_in(FAILS.get()) {
        say!("a mapping fails");
        return FAILED;
    }
    let mut copy = vec![0; len];
    // SAFETY: The caller maps memory that is there.
    unsafe { host.copy_to(copy.as_mut_ptr(), len) };
    let (start, end) = (host.addr(), host.addr() + len);
    let twice = IOMMU.with_borrow(|iommu| {
        iommu.mappings.values().any(|other| {
            let writes = [direction, other.direction];
            writes.contains(&dma_data_direction_DMA_FROM_DEVICE)
                && other.host < end
                && start < other.host + other.copy.len()
        })
    });
    if twice {
        sched::fail("memory is mapped twice, once to be written");
    }
    IOMMU.with_borrow_mut(|iommu| {
        // As many pages as the memory, and one that nothing is mapped to.
        let start = (1 << 40) + (iommu.next << 12) + offset;
        iommu.next += (len as u64 >> 12) + 3;
        let mapping = Mapping {
            host: host.expose_provenance(),
            direction,
            copy,
        };
        iommu.mappings.insert(start, mapping);
        start
    })
}

fn host_of(mapping: &Mapping) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(mapping.host)
}

fn unmap(bus: u64, len: usize, direction: dma_data_direction, sync: bool) {
    sched::preempt();
    let mapping = IOMMU.with_borrow_mut(|iommu| iommu.mappings.remove(&bus));
    let Some(mapping) = mapping else {
        sched::fail(format_args!("{bus:#x} is unmapped and not mapped"));
    };
    if mapping.copy.len() != len || mapping.direction != direction {
        sched::fail(format_args!(
            "{bus:#x} is unmapped otherwise than it was mapped"
        ));
    }
    if let Some(hook) = UNMAPPED.get() {
        hook(bus, len);
    }
    if sync && direction == dma_data_direction_DMA_FROM_DEVICE {
        // SAFETY: Memory that is mapped is not freed: `freed` looks after that.
        unsafe { host_of(&mapping).copy_from(mapping.copy.as_ptr(), len) };
    }
}

/// Calls `f` with the mapping that contains all of these bytes, and the offset of the first.
fn with_mapping<R>(
    bus: u64,
    len: usize,
    f: impl FnOnce(&mut Mapping, usize) -> R,
) -> Result<R, String> {
    IOMMU.with_borrow_mut(|iommu| {
        let found = iommu.mappings.range_mut(..=bus).next_back();
        let within = found
            .filter(|(start, mapping)| bus + len as u64 <= **start + mapping.copy.len() as u64);
        match within {
            Some((start, mapping)) => Ok(f(mapping, (bus - start) as usize)),
            None => Err(format!("{len} bytes at {bus:#x} are not mapped")),
        }
    })
}

/// The device reads.
pub(crate) fn device_reads(bus: u64, len: usize) -> Vec<u8> {
    let read = with_mapping(bus, len, |mapping, at| {
        (mapping.direction, mapping.copy[at..at + len].to_vec())
    });
    match read {
        Ok((dma_data_direction_DMA_TO_DEVICE, bytes)) => bytes,
        Ok(_) => sched::fail(format_args!(
            "the device reads {bus:#x}, mapped to be written"
        )),
        Err(why) => sched::fail(format_args!("the device reads: {why}")),
    }
}

/// What the device has there, whether it may read it or not.
pub(crate) fn content(bus: u64, len: usize) -> Vec<u8> {
    match with_mapping(bus, len, |mapping, at| mapping.copy[at..at + len].to_vec()) {
        Ok(bytes) => bytes,
        Err(why) => sched::fail(why),
    }
}

/// The device writes.
pub(crate) fn device_writes(bus: u64, bytes: &[u8]) {
    let written = with_mapping(bus, bytes.len(), |mapping, at| {
        mapping.copy[at..at + bytes.len()].copy_from_slice(bytes);
        mapping.direction
    });
    match written {
        Ok(dma_data_direction_DMA_FROM_DEVICE) => {}
        Ok(_) => sched::fail(format_args!(
            "the device writes {bus:#x}, mapped to be read"
        )),
        Err(why) => sched::fail(format_args!("the device writes: {why}")),
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_map_single(
    dev: *mut ib_device,
    addr: *mut c_void,
    size: usize,
    direction: dma_data_direction,
) -> u64 {
    let node = kernel::memory::node_of(addr.addr());
    // SAFETY: By this function's contract.
    if node != unsafe { rpcrdma_ibdev_to_node(dev) } {
        sched::fail("a buffer is not on the NUMA node of its device");
    }
    map(addr.cast(), size, direction)
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_unmap_single(
    _dev: *mut ib_device,
    bus: u64,
    size: usize,
    direction: dma_data_direction,
) {
    unmap(bus, size, direction, true);
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_unmap_unsynced(
    _dev: *mut ib_device,
    bus: u64,
    size: usize,
    direction: dma_data_direction,
) {
    unmap(bus, size, direction, false);
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_map_page(
    _dev: *mut ib_device,
    page: *mut page,
    offset: usize,
    size: usize,
    direction: dma_data_direction,
) -> u64 {
    map(page.cast::<u8>().wrapping_add(offset), size, direction)
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_unmap_page(
    _dev: *mut ib_device,
    bus: u64,
    size: usize,
    direction: dma_data_direction,
) {
    unmap(bus, size, direction, true);
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_mapping_error(_dev: *mut ib_device, bus: u64) -> c_int {
    if bus == FAILED {
        -(ENOMEM as c_int)
    } else {
        0
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_map_sg(
    _dev: *mut ib_device,
    list: *mut scatterlist,
    count: c_int,
    direction: dma_data_direction,
) -> c_int {
    for i in 0..count as usize {
        let entry = unsafe { &mut *list.add(i) };
        // dma-iommu leaves a mark in the entry (SG_DMA_SWIOTLB), which misleads the next mapping.
        if entry.dma_length != 0 {
            sched::fail("a scatterlist has the mark of an earlier mapping");
        }
        let page: *mut u8 = core::ptr::with_exposed_provenance_mut(entry.page_link & !3);
        let len = entry.length as usize;
        let host = page.wrapping_add(entry.offset as usize);
        let bus = if len < kernel::page::PAGE_SIZE && fabric(|f| f.device.bounces) {
            // swiotlb_search_pool_area(): a slot of 2 KiB.
            map_at(sched::random() & 0x800, host, len, direction)
        } else {
            map(host, len, direction)
        };
        if bus == FAILED {
            for entry in (0..i).map(|i| unsafe { &*list.add(i) }) {
                unmap(
                    entry.dma_address,
                    entry.dma_length as usize,
                    direction,
                    false,
                );
            }
            return 0;
        }
        entry.dma_address = bus;
        entry.dma_length = entry.length;
    }
    count
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_unmap_sg(
    _dev: *mut ib_device,
    list: *mut scatterlist,
    count: c_int,
    direction: dma_data_direction,
) {
    for i in 0..count as usize {
        let entry = unsafe { &*list.add(i) };
        unmap(
            entry.dma_address,
            entry.dma_length as usize,
            direction,
            true,
        );
    }
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_sync_for_cpu(
    _dev: *mut ib_device,
    bus: u64,
    size: usize,
    _direction: dma_data_direction,
) {
    // SAFETY: `sync` gives two areas of `size` bytes that do not overlap.
    let copy = |host: *mut u8, copy: *mut u8| unsafe { host.copy_from_nonoverlapping(copy, size) };
    sync("CPU", bus, size, copy);
}

pub(crate) unsafe extern "C" fn rpcrdma_dma_sync_for_device(
    _dev: *mut ib_device,
    bus: u64,
    size: usize,
    _direction: dma_data_direction,
) {
    // SAFETY: As above.
    let copy = |host: *mut u8, copy: *mut u8| unsafe { host.copy_to_nonoverlapping(copy, size) };
    sync("device", bus, size, copy);
}

/// Copies between the memory of the host, which stays while it is mapped, and the copy that the
/// device sees.
fn sync(whom: &str, bus: u64, size: usize, copy: impl FnOnce(*mut u8, *mut u8)) {
    let synced = with_mapping(bus, size, |mapping, at| {
        let host = host_of(mapping).wrapping_add(at);
        copy(host.cast(), mapping.copy[at..].as_mut_ptr().cast());
    });
    if let Err(why) = synced {
        sched::fail(format_args!("sync for the {whom}: {why}"));
    }
}
