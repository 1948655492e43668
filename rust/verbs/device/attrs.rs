// SPDX-License-Identifier: GPL-2.0

//! The limits of a device, and the sizes that a connection uses.
//!
//! Plain values: the host tests compile this file, too.

/// The pages of an MR for `rdma_rw`, if the device supports as many: `rdma_rw_fr_page_list_len()`.
const MAX_RW_MR_PAGES: u32 = 256;

/// The limits of a device, as far as this module uses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAttrs {
    /// Work requests of a queue.
    pub(crate) max_qp_wr: u32,
    /// Entries of a CQ.
    pub(crate) max_cqe: u32,
    /// Scatter/gather elements of a Send.
    pub(crate) max_send_sge: u32,
    /// Scatter/gather elements of an RDMA Read.
    pub(crate) max_sge_rd: u32,
    /// Pages that one MR can cover.
    pub(crate) max_fast_reg_pages: u32,
    /// RDMA Reads that a QP answers at a time.
    pub(crate) max_qp_rd_atom: u32,
    /// RDMA Reads that a QP may have outstanding.
    pub(crate) max_qp_init_rd_atom: u32,
    /// The device has fast registration, and local and remote invalidation.
    pub(crate) mem_mgt_extensions: bool,
    /// The device has refused every LOCAL_INV, whatever it reports.
    pub(crate) refuses_local_inv: bool,
    /// An MR may have gaps between its pages.
    pub(crate) sg_gaps: bool,
    /// The target of an RDMA Read must be registered, as on iWARP.
    pub(crate) registers_to_read: bool,
    /// The target of an RDMA Read of many scatter/gather elements must be registered, because the
    /// kernel prefers that for the device, and its `rdma_rw` has no alternative.
    pub(crate) registers_long_reads: bool,
    /// The memory of every transfer must be registered, by `ib_core.force_mr`.
    pub(crate) registers_all: bool,
    /// The port is InfiniBand, RoCE or iWARP.
    pub(crate) supported: bool,
}

impl DeviceAttrs {
    /// Returns whether `rdma_rw` takes MRs from the QP's pool.
    pub(crate) fn rw_needs_mrs(&self) -> bool {
        self.reads_need_mrs() || self.registers_all
    }

    /// Returns whether RDMA Reads take MRs from the QP's pool.
    pub(crate) fn reads_need_mrs(&self) -> bool {
        self.registers_to_read || self.registers_long_reads
    }

    /// The pages that an MR of the QP's pool covers.
    pub(crate) fn rw_mr_pages(&self) -> u32 {
        self.max_fast_reg_pages.clamp(1, MAX_RW_MR_PAGES)
    }
}

/// The depths of a connection's queues: requested from the device, or granted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueDepths {
    /// Work requests of the Send Queue. A request is without those of `rdma_ctxs`; what the device
    /// has granted includes them.
    pub(crate) send_wr: u32,
    /// Work requests of the Receive Queue.
    pub(crate) recv_wr: u32,
    /// Scatter/gather elements of a Send.
    pub(crate) send_sge: u32,
    /// `rdma_rw` contexts. The core adds the work requests for these, and MRs if the device needs
    /// them.
    pub(crate) rdma_ctxs: u32,
    /// Entries of the send CQ.
    pub(crate) send_cqe: u32,
    /// Entries of the receive CQ.
    pub(crate) recv_cqe: u32,
}

/// The sizes of a client's Sends and MRs.
#[derive(Clone, Copy)]
pub(crate) struct SenderSizes {
    /// Sends that may be outstanding.
    pub(crate) messages: u32,
    /// Bytes of the buffer of a Send.
    pub(crate) buffer: usize,
    /// Scatter/gather elements of a Send.
    pub(crate) sges: u32,
    /// Work requests to post before one is signalled.
    pub(crate) batch: u32,
    /// Pages that an MR covers.
    pub(crate) mr_pages: u32,
    /// An MR may have gaps between its pages.
    pub(crate) gaps: bool,
    /// MRs that a Call may have.
    pub(crate) mrs: u32,
}

/// The sizes of a server's messages.
#[derive(Clone, Copy)]
pub(crate) struct MessageSizes {
    /// Bytes of the buffer, for the header and copied payload.
    pub(crate) buffer: usize,
    /// Scatter/gather elements of a Send.
    pub(crate) sges: u32,
}
