// SPDX-License-Identifier: GPL-2.0

//! Compares the layout of the structures that C and Rust share.
//!
//! The C compiler's values are in `layout.c`, in the same order. [`check`] compares both lists when
//! the module is loaded.

use core::mem::{
    offset_of,
    size_of, //
};

use kernel::prelude::{
    pr_err,
    Result, //
};

use super::*;

macro_rules! layout {
    ($($what:expr, $name:literal;)*) => {
        const LAYOUT: &[(usize, &str)] = &[$(($what, $name)),*];
    };
}

#[cfg(rpcrdma_has_rq_pages_nfree)]
const RQ_PAGES_NFREE: usize = offset_of!(svc_rqst, rq_pages_nfree);
#[cfg(not(rpcrdma_has_rq_pages_nfree))]
const RQ_PAGES_NFREE: usize = 0;

layout! {
    size_of::<rpc_xprt>(), "rpc_xprt";
    offset_of!(rpc_xprt, queue_lock), "rpc_xprt.queue_lock";
    offset_of!(rpc_xprt, snd_task), "rpc_xprt.snd_task";
    offset_of!(rpc_xprt, stat), "rpc_xprt.stat";
    size_of::<rpc_xprt_ops>(), "rpc_xprt_ops";
    size_of::<xprt_class>(), "xprt_class";
    size_of::<xprt_create>(), "xprt_create";
    size_of::<rpc_rqst>(), "rpc_rqst";
    offset_of!(rpc_rqst, rq_private_buf), "rpc_rqst.rq_private_buf";
    offset_of!(rpc_rqst, rq_rcv_buf), "rpc_rqst.rq_rcv_buf";
    size_of::<rpc_task>(), "rpc_task";
    size_of::<xdr_buf>(), "xdr_buf";
    offset_of!(xdr_buf, tail), "xdr_buf.tail";
    offset_of!(xdr_buf, pages), "xdr_buf.pages";
    offset_of!(xdr_buf, flags), "xdr_buf.flags";
    size_of::<svc_xprt>(), "svc_xprt";
    offset_of!(svc_xprt, xpt_flags), "svc_xprt.xpt_flags";
    offset_of!(svc_xprt, xpt_remotebuf), "svc_xprt.xpt_remotebuf";
    size_of::<svc_xprt_ops>(), "svc_xprt_ops";
    size_of::<svc_xprt_class>(), "svc_xprt_class";
    size_of::<svc_rqst>(), "svc_rqst";
    offset_of!(svc_rqst, rq_arg), "svc_rqst.rq_arg";
    offset_of!(svc_rqst, rq_res), "svc_rqst.rq_res";
    offset_of!(svc_rqst, rq_xprt_ctxt), "svc_rqst.rq_xprt_ctxt";
    offset_of!(svc_rqst, rq_pages), "svc_rqst.rq_pages";
    offset_of!(svc_rqst, rq_respages), "svc_rqst.rq_respages";
    offset_of!(svc_rqst, rq_next_page), "svc_rqst.rq_next_page";
    offset_of!(svc_rqst, rq_maxpages), "svc_rqst.rq_maxpages";
    RQ_PAGES_NFREE, "svc_rqst.rq_pages_nfree";
    size_of::<ib_device>(), "ib_device";
    offset_of!(ib_device, attrs), "ib_device.attrs";
    size_of::<ib_pd>(), "ib_pd";
    offset_of!(ib_pd, local_dma_lkey), "ib_pd.local_dma_lkey";
    size_of::<ib_cq>(), "ib_cq";
    offset_of!(ib_cq, cq_context), "ib_cq.cq_context";
    offset_of!(ib_cq, res), "ib_cq.res";
    size_of::<ib_qp>(), "ib_qp";
    size_of::<ib_mr>(), "ib_mr";
    offset_of!(ib_mr, lkey), "ib_mr.lkey";
    offset_of!(ib_mr, rkey), "ib_mr.rkey";
    offset_of!(ib_mr, iova), "ib_mr.iova";
    offset_of!(ib_mr, length), "ib_mr.length";
    offset_of!(ib_mr, res), "ib_mr.res";
    size_of::<ib_wc>(), "ib_wc";
    offset_of!(ib_wc, wc_flags), "ib_wc.wc_flags";
    offset_of!(ib_wc, ex), "ib_wc.ex";
    size_of::<ib_cqe>(), "ib_cqe";
    size_of::<ib_sge>(), "ib_sge";
    size_of::<ib_send_wr>(), "ib_send_wr";
    size_of::<ib_recv_wr>(), "ib_recv_wr";
    size_of::<ib_reg_wr>(), "ib_reg_wr";
    size_of::<ib_qp_init_attr>(), "ib_qp_init_attr";
    size_of::<ib_client>(), "ib_client";
    size_of::<rdma_cm_id>(), "rdma_cm_id";
    offset_of!(rdma_cm_id, device), "rdma_cm_id.device";
    offset_of!(rdma_cm_id, context), "rdma_cm_id.context";
    offset_of!(rdma_cm_id, qp), "rdma_cm_id.qp";
    offset_of!(rdma_cm_id, event_handler), "rdma_cm_id.event_handler";
    offset_of!(rdma_cm_id, route), "rdma_cm_id.route";
    offset_of!(rdma_cm_id, port_num), "rdma_cm_id.port_num";
    size_of::<rdma_cm_event>(), "rdma_cm_event";
    size_of::<rdma_conn_param>(), "rdma_conn_param";
    size_of::<rdma_rw_ctx>(), "rdma_rw_ctx";
    size_of::<scatterlist>(), "scatterlist";
    size_of::<bio_vec>(), "bio_vec";
    size_of::<page>(), "page";
    size_of::<ctl_table>(), "ctl_table";
    size_of::<ib_qp_attr>(), "ib_qp_attr";
    size_of::<rpc_timeout>(), "rpc_timeout";
    size_of::<delayed_work>(), "delayed_work";
    size_of::<debugfs_short_fops>(), "debugfs_short_fops";
}

/// Compares the layout of all structures, and logs the first difference.
///
/// # Errors
///
/// `EINVAL` if any size or offset differs.
pub(crate) fn check() -> Result {
    const { assert!(LAYOUT.len() < RPCRDMA_LAYOUT_ENTRIES as usize) };
    // SAFETY: The array is a constant of the module's C part.
    let c = unsafe { &rpcrdma_layout };
    for (i, seen) in c.iter().enumerate() {
        let (ours, name) = LAYOUT.get(i).copied().unwrap_or((0, "end of list"));
        if *seen as usize != ours {
            pr_err!("{name}: {seen} in C, {ours} in Rust; rebuild against this kernel's headers\n");
            return Err(kernel::error::code::EINVAL);
        }
    }
    Ok(())
}
