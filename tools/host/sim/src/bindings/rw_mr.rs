// SPDX-License-Identifier: GPL-2.0

//! RDMA Reads over iWARP, whose sinks are registered, as by `rdma_rw_init_mr_wrs_bvec()` in
//! `drivers/infiniband/core/rw.c`. The regions are those of the queue pair. Each Read invalidates
//! its own.

use kernel::error::{code, Result};
use kernel::ffi::c_int;
use kernel::sched;

use super::*;

/// The work requests of one region.
struct Op {
    mr: PoolMr,
    register: ib_reg_wr,
    read: ib_rdma_wr,
    sink: ib_sge,
}

/// A transfer by Reads into registered memory.
pub(super) struct Registered {
    qp: u32,
    ops: Box<[Op]>,
}

/// `rdma_rw_fr_page_list_len()`.
fn pages_per_mr() -> usize {
    fabric(|f| f.device.attrs.max_fast_reg_page_list_len.min(256)) as usize
}

/// Divides `sges` among regions. The core gives each region as many entries of the mapping as the
/// region has pages. Where the IOMMU merges, pages that adjoin are one entry: `__finalise_sg()`.
fn divide(sges: &[ib_sge]) -> Vec<&[ib_sge]> {
    let merges = fabric(|f| f.device.merges);
    let entries: Vec<_> = sges.chunk_by(|a, b| merges && !gap(a, b)).collect();
    let mut rest = sges;
    let parts = entries.chunks(pages_per_mr()).map(|entries| {
        let part;
        (part, rest) = rest.split_at(entries.iter().map(|entry| entry.len()).sum());
        part
    });
    parts.collect()
}

/// Whether a region cannot have `next` behind `sge`: only its first and last page may be partial.
fn gap(sge: &ib_sge, next: &ib_sge) -> bool {
    let size = kernel::page::PAGE_SIZE as u64;
    (sge.addr + u64::from(sge.length)) % size != 0 || next.addr % size != 0
}

/// The regions of a new queue pair: `rdma_rw_init_mrs()`.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn init_mrs(pd: *mut ib_pd, count: u32) -> Result<Vec<PoolMr>> {
    let depth = pages_per_mr() as u32;
    let mut pool = Vec::new();
    for _ in 0..count {
        // SAFETY: The domain is there.
        let raw = unsafe { ib_alloc_mr(pd, ib_mr_type_IB_MR_TYPE_MEM_REG, depth) };
        match kernel::error::from_err_ptr(raw) {
            Ok(raw) => pool.push(PoolMr { raw }),
            Err(error) => {
                cleanup_mrs(pool);
                return Err(error);
            }
        }
    }
    Ok(pool)
}

/// `rdma_rw_cleanup_mrs()`.
pub(super) fn cleanup_mrs(pool: Vec<PoolMr>) {
    for mr in pool {
        // SAFETY: The region is there, and no work request refers to it.
        unsafe {
            fabric(|f| f.mrs.remove(&((*mr.raw).rkey >> 8)));
            drop(Box::from_raw(mr.raw));
        }
    }
}

impl Registered {
    /// Prepares Reads of `remote_addr` into memory that is mapped at `sges`. Returns the number of
    /// work requests.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the queue pair has no more regions.
    pub(super) fn new(
        qp: u32,
        sges: &[ib_sge],
        mut remote_addr: u64,
        rkey: u32,
    ) -> Result<(Self, c_int)> {
        let mut ops: Vec<Op> = Vec::new();
        let mut entries = 0;
        for part in divide(sges) {
            let Some(mr) = fabric(|f| f.qp(qp).pool.pop()) else {
                // The server knows how many there are, and waits.
                if fabric(|f| f.qp(qp).regions > 0) {
                    sched::fail(format_args!("QP {qp} has no region left for a Read"));
                }
                Self {
                    qp,
                    ops: ops.into(),
                }
                .put();
                return Err(code::EAGAIN);
            };
            let mut op = Op::new(mr, remote_addr, rkey);
            entries += 2;
            // SAFETY: The region is there.
            let covered = unsafe { op.map(part) };
            ops.push(op);
            if !covered {
                Self {
                    qp,
                    ops: ops.into(),
                }
                .put();
                return Err(code::EINVAL);
            }
            remote_addr += part.iter().map(|sge| u64::from(sge.length)).sum::<u64>();
        }
        Ok((
            Self {
                qp,
                ops: ops.into(),
            },
            entries,
        ))
    }

    /// Links the work requests in front of `then`. The last one gets `cqe` if nothing follows.
    pub(super) fn link(&mut self, cqe: *mut ib_cqe, then: *mut ib_send_wr) -> *mut ib_send_wr {
        let mut next = then;
        for op in self.ops.iter_mut().rev() {
            // SAFETY: The region is there; the others are plain members.
            unsafe {
                op.update_key();
                let read = &mut op.read.wr;
                read.sg_list = &raw mut op.sink;
                read.num_sge = 1;
                read.next = next;
                read.send_flags = 0;
                *read.__bindgen_anon_1.wr_cqe.as_mut() = silent_cqe();
                if next.is_null() {
                    read.send_flags = ib_send_flags_IB_SEND_SIGNALED;
                    *read.__bindgen_anon_1.wr_cqe.as_mut() = cqe;
                }
                op.register.wr.next = read;
                next = &raw mut op.register.wr;
            }
        }
        next
    }

    /// Returns the regions.
    pub(super) fn put(self) {
        fabric(|f| {
            let qp = f.qp(self.qp);
            qp.pool.extend(self.ops.iter().map(|op| op.mr));
        });
    }
}

impl Op {
    fn new(mr: PoolMr, remote_addr: u64, rkey: u32) -> Self {
        let mut op = Self {
            mr,
            register: ib_reg_wr::default(),
            read: ib_rdma_wr {
                remote_addr,
                rkey,
                ..ib_rdma_wr::default()
            },
            sink: ib_sge::default(),
        };
        op.register.wr.opcode = ib_wr_opcode_IB_WR_REG_MR;
        op.register.access = (ib_access_flags_IB_ACCESS_LOCAL_WRITE
            | ib_access_flags_IB_ACCESS_REMOTE_WRITE) as c_int;
        op.read.wr.opcode = ib_wr_opcode_IB_WR_RDMA_READ;
        // SAFETY: A plain member.
        unsafe { *op.register.wr.__bindgen_anon_1.wr_cqe.as_mut() = silent_cqe() };
        op
    }

    /// `ib_map_mr_sg()`: whether all parts could be mapped. Each but the first has to start with a
    /// page, and each but the last to end with one. All together have as many pages as the region.
    ///
    /// # Safety
    ///
    /// The region is there.
    unsafe fn map(&mut self, parts: &[ib_sge]) -> bool {
        let size = kernel::page::PAGE_SIZE as u64;
        let count = |sge: &ib_sge| {
            let end = sge.addr + u64::from(sge.length);
            end.div_ceil(size) - sge.addr / size
        };
        let pages: u64 = parts.iter().map(count).sum();
        let room = pages_per_mr() as u64;
        if pages > room {
            sched::fail(format_args!("{pages} pages in a region of {room}"));
        }
        if parts.windows(2).any(|pair| gap(&pair[0], &pair[1])) {
            say!("{pages} pages have gaps");
            return false;
        }
        let segments: Vec<(u64, u32)> = parts.iter().map(|sge| (sge.addr, sge.length)).collect();
        let mr = self.mr.raw;
        // SAFETY: By this function's contract.
        unsafe {
            (*mr).iova = parts[0].addr;
            (*mr).length = length(&segments) as u64;
            fabric(|f| {
                let known = f.mrs.get_mut(&((*mr).rkey >> 8)).expect("a region");
                known.segments = segments;
                known.of_core = true;
            });
            self.sink.addr = (*mr).iova;
            self.sink.length = (*mr).length as u32;
        }
        true
    }

    /// `rdma_rw_update_lkey()`.
    ///
    /// # Safety
    ///
    /// The region is there.
    unsafe fn update_key(&mut self) {
        let mr = self.mr.raw;
        // SAFETY: By this function's contract.
        unsafe {
            let key = (*mr).lkey & !0xff | ((*mr).lkey + 1) & 0xff;
            (*mr).lkey = key;
            (*mr).rkey = key;
            self.register.mr = mr;
            self.register.key = key;
            self.sink.lkey = key;
        }
    }
}

pub(super) fn silent_cqe() -> *mut ib_cqe {
    &raw const SILENT as *mut ib_cqe
}

/// The completion of a work request inside a chain, which the core ignores unless it fails.
static SILENT: Silent = Silent(ib_cqe { done: Some(silent) });

#[repr(transparent)]
struct Silent(ib_cqe);

// SAFETY: It is never written.
unsafe impl Sync for Silent {}

unsafe extern "C" fn silent(_cq: *mut ib_cq, _wc: *mut ib_wc) {}
