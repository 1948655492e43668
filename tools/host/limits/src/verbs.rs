// SPDX-License-Identifier: GPL-2.0

//! Plain values of the room of that name.

#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAttrs {
    pub(crate) max_qp_wr: u32,
    pub(crate) max_cqe: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_sge_rd: u32,
    pub(crate) max_fast_reg_pages: u32,
    pub(crate) max_qp_rd_atom: u32,
    pub(crate) max_qp_init_rd_atom: u32,
    pub(crate) mem_mgt_extensions: bool,
    pub(crate) sg_gaps: bool,
    pub(crate) registers_to_read: bool,
    pub(crate) supported: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueDepths {
    pub(crate) send_wr: u32,
    pub(crate) recv_wr: u32,
    pub(crate) send_sge: u32,
    pub(crate) rdma_ctxs: u32,
    pub(crate) send_cqe: u32,
    pub(crate) recv_cqe: u32,
}

pub(crate) struct SenderSizes {
    pub(crate) messages: u32,
    pub(crate) buffer: usize,
    pub(crate) sges: u32,
    pub(crate) batch: u32,
    pub(crate) region_pages: u32,
    pub(crate) gaps: bool,
}
