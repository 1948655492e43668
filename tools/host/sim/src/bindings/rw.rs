// SPDX-License-Identifier: GPL-2.0

//! `rdma_rw_ctx_*()`: RDMA Reads and Writes of local memory.

use core::cell::Cell;
use core::ffi::c_void;

use kernel::error::code;
use kernel::ffi::c_int;

use super::rw_mr::{silent_cqe, Registered};
use super::*;

thread_local! {
    static DESCENDING: Cell<usize> = const { Cell::new(0) };
}

/// The most neighbouring pages in descending order that a device was to write to by one transfer.
pub(crate) fn most_descending() -> usize {
    DESCENDING.get()
}

fn note_descending(bvecs: &[bio_vec]) {
    let descends = |a: &bio_vec, b: &bio_vec| b.bv_page.wrapping_add(1) == a.bv_page;
    let most = bvecs.chunk_by(descends).map(<[_]>::len).max();
    DESCENDING.set(DESCENDING.get().max(most.unwrap_or(0)));
}

/// What is behind `rdma_rw_ctx`.
struct Transfer {
    wrs: Vec<ib_rdma_wr>,
    sges: Vec<ib_sge>,
    /// Over iWARP, a Read has these instead of `wrs`.
    registered: Option<Registered>,
}

/// `max_write_sge` and `max_read_sge` of a queue pair.
fn sges_per_wr(qp: *mut ib_qp, direction: dma_data_direction) -> usize {
    let sges = unsafe { qp_sges((*qp).qp_num) };
    if direction == dma_data_direction_DMA_TO_DEVICE {
        sges
    } else {
        sges.min(fabric(|f| f.device.attrs.max_sge_rd) as usize)
    }
}

pub(crate) unsafe extern "C" fn rdma_rw_mr_factor(
    _dev: *mut ib_device,
    _port: u32,
    pages: u32,
) -> u32 {
    let most = fabric(|f| f.device.attrs.max_fast_reg_page_list_len.min(256));
    pages.div_ceil(most.max(1))
}

pub(crate) unsafe extern "C" fn rdma_rw_max_send_wr(
    _dev: *mut ib_device,
    _port: u32,
    contexts: u32,
    _create_flags: u32,
) -> u32 {
    // Each Read may invalidate and register a region.
    let factor = if fabric(|f| f.device.iwarp) { 3 } else { 1 };
    contexts.saturating_mul(factor)
}

pub(crate) unsafe extern "C" fn rdma_rw_ctx_init_bvec(
    ctx: *mut rdma_rw_ctx,
    qp: *mut ib_qp,
    _port: u32,
    bvecs: *const bio_vec,
    count: u32,
    _iter: bvec_iter,
    remote_addr: u64,
    rkey: u32,
    direction: dma_data_direction,
) -> c_int {
    kernel::lockdep::might_sleep("rdma_rw_ctx_init_bvec()");
    let device = device();
    if kernel::memory::fails(kernel::alloc::flags::GFP_KERNEL, "a transfer") {
        return code::ENOMEM.to_errno();
    }
    let bvecs = unsafe { core::slice::from_raw_parts(bvecs, count as usize) };
    if direction == dma_data_direction_DMA_FROM_DEVICE {
        note_descending(bvecs);
    }
    let mut sges: Vec<ib_sge> = Vec::new();
    for bvec in bvecs {
        let (offset, len) = (bvec.bv_offset as usize, bvec.bv_len as usize);
        let addr = unsafe { rpcrdma_dma_map_page(device, bvec.bv_page, offset, len, direction) };
        if unsafe { rpcrdma_dma_mapping_error(device, addr) } != 0 {
            unmap(&sges, direction);
            return code::EIO.to_errno();
        }
        sges.push(ib_sge {
            addr,
            length: bvec.bv_len,
            lkey: 7,
        });
    }
    let iwarp = fabric(|f| f.device.iwarp);
    if iwarp && direction == dma_data_direction_DMA_FROM_DEVICE {
        let number = unsafe { (*qp).qp_num };
        return match Registered::new(number, &sges, remote_addr, rkey) {
            Ok((registered, entries)) => {
                let transfer = Transfer {
                    wrs: Vec::new(),
                    sges,
                    registered: Some(registered),
                };
                unsafe { (*ctx).state = Box::into_raw(Box::new(transfer)).cast() };
                entries
            }
            Err(error) => {
                unmap(&sges, direction);
                error.to_errno()
            }
        };
    }
    let opcode = if direction == dma_data_direction_DMA_TO_DEVICE {
        ib_wr_opcode_IB_WR_RDMA_WRITE
    } else {
        ib_wr_opcode_IB_WR_RDMA_READ
    };
    let mut wrs: Vec<ib_rdma_wr> = Vec::new();
    let mut at = remote_addr;
    for part in sges.chunks(sges_per_wr(qp, direction)) {
        let mut wr = ib_rdma_wr {
            remote_addr: at,
            rkey,
            ..Default::default()
        };
        wr.wr.opcode = opcode;
        wr.wr.sg_list = part.as_ptr().cast_mut();
        wr.wr.num_sge = part.len() as c_int;
        at += part.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
        wrs.push(wr);
    }
    let entries = wrs.len() as c_int;
    let transfer = Transfer {
        wrs,
        sges,
        registered: None,
    };
    unsafe { (*ctx).state = Box::into_raw(Box::new(transfer)).cast() };
    entries
}

fn unmap(sges: &[ib_sge], direction: dma_data_direction) {
    for sge in sges {
        let len = sge.length as usize;
        unsafe { rpcrdma_dma_unmap_page(device(), sge.addr, len, direction) };
    }
}

pub(crate) unsafe extern "C" fn rdma_rw_ctx_wrs(
    ctx: *mut rdma_rw_ctx,
    _qp: *mut ib_qp,
    _port: u32,
    cqe: *mut ib_cqe,
    then: *mut ib_send_wr,
) -> *mut ib_send_wr {
    let transfer = unsafe { &mut *(*ctx).state.cast::<Transfer>() };
    if let Some(registered) = &mut transfer.registered {
        return registered.link(cqe, then);
    }
    let mut next = then;
    for (nth, wr) in transfer.wrs.iter_mut().rev().enumerate() {
        wr.wr.next = next;
        wr.wr.send_flags = 0;
        if nth == 0 && then.is_null() {
            wr.wr.send_flags = ib_send_flags_IB_SEND_SIGNALED;
            unsafe { *wr.wr.__bindgen_anon_1.wr_cqe.as_mut() = cqe };
        } else {
            unsafe { *wr.wr.__bindgen_anon_1.wr_cqe.as_mut() = silent_cqe() };
        }
        next = &raw mut wr.wr;
    }
    next
}

pub(crate) unsafe extern "C" fn rdma_rw_ctx_destroy_bvec(
    ctx: *mut rdma_rw_ctx,
    _qp: *mut ib_qp,
    _port: u32,
    _bvecs: *const bio_vec,
    count: u32,
    direction: dma_data_direction,
) {
    let none = core::ptr::null_mut();
    let state: *mut c_void = unsafe { core::mem::replace(&mut (*ctx).state, none) };
    let transfer = unsafe { Box::from_raw(state.cast::<Transfer>()) };
    assert_eq!(transfer.sges.len(), count as usize);
    if let Some(registered) = transfer.registered {
        registered.put();
    }
    unmap(&transfer.sges, direction);
}
