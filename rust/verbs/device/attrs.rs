// SPDX-License-Identifier: GPL-2.0

//! What a device can do, and what is asked of it: plain values.

/// What a device can do, as far as this module asks. Counts are the device's own, unsigned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAttrs {
    /// Work requests per queue.
    pub(crate) max_qp_wr: u32,
    /// Completions per completion queue.
    pub(crate) max_cqe: u32,
    /// Scatter/gather elements per Send.
    pub(crate) max_send_sge: u32,
    /// Scatter/gather elements per RDMA Read.
    pub(crate) max_sge_rd: u32,
    /// Pages that one fast registration can cover.
    pub(crate) max_fast_reg_pages: u32,
    /// RDMA Reads that it answers at a time, per queue pair.
    pub(crate) max_qp_rd_atom: u32,
    /// RDMA Reads that it starts at a time, per queue pair.
    pub(crate) max_qp_init_rd_atom: u32,
    /// Fast registration, local and remote invalidation.
    pub(crate) mem_mgt_extensions: bool,
    /// Registrations may have gaps.
    pub(crate) sg_gaps: bool,
    /// Memory that an RDMA Read goes to has to be registered: iWARP.
    pub(crate) registers_to_read: bool,
    /// So has the memory of all other transfers: the core was told so (`ib_core.force_mr`).
    pub(crate) registers_all: bool,
    /// A link that this module can serve: InfiniBand, RoCE or iWARP.
    pub(crate) supported: bool,
}

impl DeviceAttrs {
    /// Whether `rdma_rw` takes regions from the queue pair's pool: for Reads on iWARP, or for all
    /// with `ib_core.force_mr`.
    pub(crate) fn rw_needs_mrs(&self) -> bool {
        self.registers_to_read || self.registers_all
    }
}

/// How many work requests a connection's queues hold; what the device gave, after `open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueDepths {
    /// Work requests on the Send Queue, without those for `rdma_ctxs`.
    pub(crate) send_wr: u32,
    /// Work requests on the Receive Queue.
    pub(crate) recv_wr: u32,
    /// Scatter/gather elements of a Send.
    pub(crate) send_sge: u32,
    /// RDMA Read and Write contexts, for each of which the core makes room by itself, and a region
    /// if the device is better with regions.
    pub(crate) rdma_ctxs: u32,
    /// Entries of the send completion queue.
    pub(crate) send_cqe: u32,
    /// Entries of the receive completion queue.
    pub(crate) recv_cqe: u32,
}

/// Sizes of a connection's sending side.
#[derive(Clone, Copy)]
pub(crate) struct SenderSizes {
    /// Messages that may be on their way.
    pub(crate) messages: u32,
    /// Bytes that a message can be composed in.
    pub(crate) buffer: usize,
    /// Scatter/gather elements of a message.
    pub(crate) sges: u32,
    /// Work requests to post before one is to report its end.
    pub(crate) batch: u32,
    /// Pages that a region covers.
    pub(crate) mr_pages: u32,
    /// Whether a region may have gaps.
    pub(crate) gaps: bool,
}

/// Sizes of the messages of a connection.
#[derive(Clone, Copy)]
pub(crate) struct MessageSizes {
    /// Bytes of header and inline content that a message can be copied to.
    pub(crate) buffer: usize,
    /// Pages that a message can keep.
    pub(crate) pages: usize,
    /// Scatter/gather elements of a Send.
    pub(crate) sges: u32,
}
