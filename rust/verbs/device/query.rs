// SPDX-License-Identifier: GPL-2.0

//! Reads the limits of a device.
//!
//! C: frwr_ops.c, frwr_query_device()
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use kernel::sync::atomic::Relaxed;

use crate::{
    bindings,
    lib::sync::Atomic, //
};

use super::{
    attrs::DeviceAttrs,
    ib_client::DeviceRef, //
};

/// Set once the core has been seen to register the memory of every `rdma_rw` context, which its
/// module parameter `force_mr` demands. The core does not export the parameter. It shows when the
/// core has no MR for the first context on a QP without any.
static CORE_REGISTERS_ALL: Atomic<bool> = Atomic::new(false);

/// Returns whether QPs need MRs for every `rdma_rw` context, as far as is known.
fn core_registers_all() -> bool {
    CORE_REGISTERS_ALL.load(Relaxed)
}

/// Notes that the core registers the memory of every `rdma_rw` context. Connections made from now
/// on have MRs for that.
pub(in crate::verbs) fn note_core_registers_all() {
    CORE_REGISTERS_ALL.store(true, Relaxed);
}

/// A limit of a device, which is an `int` or, since 7.3, a `u32`. A device that overflows the field
/// has no limit that matters.
fn count(limit: impl TryInto<u32>) -> u32 {
    limit.try_into().unwrap_or(i32::MAX.unsigned_abs())
}

impl DeviceAttrs {
    /// Reads the attributes of a device, of which a connection uses `port`.
    pub(in crate::verbs) fn query(device_ref: &DeviceRef, port: u32) -> Self {
        let device = device_ref.device();
        // SAFETY: The reference keeps the device. The attributes of a registered device are
        // constant.
        let a = unsafe { &(*device).attrs };
        // SAFETY: As above.
        let iwarp = unsafe { bindings::rpcrdma_protocol_iwarp(device, port) };
        // SAFETY: As above.
        let ib_or_roce = unsafe { bindings::rpcrdma_ib_or_roce(device, port) };
        let has = |cap: u64| a.device_cap_flags & cap != 0;
        Self {
            max_qp_wr: count(a.max_qp_wr),
            max_cqe: count(a.max_cqe),
            max_send_sge: count(a.max_send_sge),
            max_sge_rd: count(a.max_sge_rd),
            max_fast_reg_pages: a.max_fast_reg_page_list_len,
            max_qp_rd_atom: count(a.max_qp_rd_atom),
            max_qp_init_rd_atom: count(a.max_qp_init_rd_atom),
            mem_mgt_extensions: has(
                bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64
            ),
            refuses_local_inv: device_ref.refuses_all_invs(),
            sg_gaps: a.kernel_cap_flags & u64::from(bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG)
                != 0,
            registers_to_read: iwarp,
            // With `rdma_rw_ctx_init_bvec()` the core never registers for this reason.
            registers_long_reads: cfg!(not(rpcrdma_has_rdma_rw_ctx_init_bvec)) && a.max_sgl_rd != 0,
            registers_all: core_registers_all(),
            supported: iwarp || ib_or_roce,
        }
    }
}
