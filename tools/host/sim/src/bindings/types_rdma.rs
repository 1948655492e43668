// SPDX-License-Identifier: GPL-2.0

//! Structures of the RDMA core: verbs and the connection manager.

use core::ffi::c_void;

use kernel::bindings::spinlock;
use kernel::ffi::{c_char, c_int, c_uint};
use pin_init::Zeroable;

use super::types::*;

// Verbs.
structures! {
    ib_device_attr {
        device_cap_flags: u64,
        kernel_cap_flags: u64,
        max_qp_wr: c_int,
        max_cqe: c_int,
        max_send_sge: c_int,
        max_sge_rd: c_int,
        max_sgl_rd: c_uint,
        max_fast_reg_page_list_len: c_uint,
        max_qp_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
    }
    ib_device_ops { driver_id: c_uint, }
    ib_device { attrs: ib_device_attr, ops: ib_device_ops, name: [c_char; 64], }
    ib_client {
        name: *const c_char,
        add: Option<unsafe extern "C" fn(*mut ib_device) -> c_int>,
        remove: Option<unsafe extern "C" fn(*mut ib_device, *mut c_void)>,
    }
    rdma_restrack_entry { id: c_uint, }
    ib_pd { device: *mut ib_device, local_dma_lkey: c_uint, number: c_uint, }
    ib_cq { cq_context: *mut c_void, res: rdma_restrack_entry, number: c_uint, }
    ib_qp { device: *mut ib_device, qp_num: c_uint, }
    ib_mr {
        lkey: c_uint,
        rkey: c_uint,
        iova: u64,
        length: u64,
        res: rdma_restrack_entry,
    }
    ib_cqe { done: Option<unsafe extern "C" fn(*mut ib_cq, *mut ib_wc)>, }
    ib_sge { addr: u64, length: c_uint, lkey: c_uint, }
    wr_id { wr_cqe: UnionField<*mut ib_cqe>, }
    ex { invalidate_rkey: UnionField<c_uint>, }
    ib_send_wr {
        next: *mut ib_send_wr,
        __bindgen_anon_1: wr_id,
        sg_list: *mut ib_sge,
        num_sge: c_int,
        opcode: c_uint,
        send_flags: c_int,
        ex: ex,
    }
    ib_rdma_wr { wr: ib_send_wr, remote_addr: u64, rkey: c_uint, }
    ib_reg_wr { wr: ib_send_wr, mr: *mut ib_mr, key: c_uint, access: c_int, }
    ib_recv_wr {
        next: *mut ib_recv_wr,
        __bindgen_anon_1: wr_id,
        sg_list: *mut ib_sge,
        num_sge: c_int,
    }
    ib_wc {
        __bindgen_anon_1: wr_id,
        status: ib_wc_status,
        opcode: c_uint,
        vendor_err: c_uint,
        byte_len: c_uint,
        ex: ex,
        wc_flags: c_int,
    }
    ib_qp_cap {
        max_send_wr: c_uint,
        max_recv_wr: c_uint,
        max_send_sge: c_uint,
        max_recv_sge: c_uint,
        max_rdma_ctxs: c_uint,
    }
    ib_event { event: c_uint, }
    ib_qp_init_attr {
        event_handler: Option<unsafe extern "C" fn(*mut ib_event, *mut c_void)>,
        qp_context: *mut c_void,
        send_cq: *mut ib_cq,
        recv_cq: *mut ib_cq,
        cap: ib_qp_cap,
        sq_sig_type: c_uint,
        qp_type: c_uint,
        port_num: c_uint,
    }
    ib_qp_attr { qp_state: c_uint, }
    rdma_rw_ctx { state: *mut c_void, }
}

// The connection manager.
structures! {
    rdma_addr { src_addr: __kernel_sockaddr_storage, dst_addr: __kernel_sockaddr_storage, }
    rdma_route { addr: rdma_addr, }
    rdma_conn_param {
        private_data: *const c_void,
        private_data_len: u8,
        responder_resources: u8,
        initiator_depth: u8,
        retry_count: u8,
        rnr_retry_count: u8,
    }
    rdma_cm_event_param { conn: UnionField<rdma_conn_param>, }
    rdma_cm_event { event: c_uint, status: c_int, param: rdma_cm_event_param, }
}

pub(crate) type rdma_cm_event_handler =
    Option<unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_cm_event) -> c_int>;

#[repr(C)]
pub(crate) struct rdma_cm_id {
    pub(crate) device: *mut ib_device,
    pub(crate) context: *mut c_void,
    pub(crate) qp: *mut ib_qp,
    pub(crate) event_handler: rdma_cm_event_handler,
    pub(crate) route: rdma_route,
    pub(crate) port_num: c_uint,
    pub(crate) handler_mutex: spinlock,
    pub(crate) number: usize,
}
