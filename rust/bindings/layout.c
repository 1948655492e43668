// SPDX-License-Identifier: GPL-2.0
/*
 * The C compiler's sizes and offsets of the structures that C and Rust share,
 * in the order of layout.rs.
 */

#include <linux/stddef.h>

#include "../../include/bindings.h"

#ifdef rpcrdma_has_rq_pages_nfree
#define RQ_PAGES_NFREE offsetof(struct svc_rqst, rq_pages_nfree)
#else
#define RQ_PAGES_NFREE 0
#endif

const u32 rpcrdma_layout[RPCRDMA_LAYOUT_ENTRIES] = {
	sizeof(struct rpc_xprt),
	offsetof(struct rpc_xprt, queue_lock),
	offsetof(struct rpc_xprt, snd_task),
	offsetof(struct rpc_xprt, stat),
	sizeof(struct rpc_xprt_ops),
	sizeof(struct xprt_class),
	sizeof(struct xprt_create),
	sizeof(struct rpc_rqst),
	offsetof(struct rpc_rqst, rq_private_buf),
	offsetof(struct rpc_rqst, rq_rcv_buf),
	sizeof(struct rpc_task),
	sizeof(struct xdr_buf),
	offsetof(struct xdr_buf, tail),
	offsetof(struct xdr_buf, pages),
	offsetof(struct xdr_buf, flags),
	sizeof(struct svc_xprt),
	offsetof(struct svc_xprt, xpt_flags),
	offsetof(struct svc_xprt, xpt_remotebuf),
	sizeof(struct svc_xprt_ops),
	sizeof(struct svc_xprt_class),
	sizeof(struct svc_rqst),
	offsetof(struct svc_rqst, rq_arg),
	offsetof(struct svc_rqst, rq_res),
	offsetof(struct svc_rqst, rq_xprt_ctxt),
	offsetof(struct svc_rqst, rq_pages),
	offsetof(struct svc_rqst, rq_respages),
	offsetof(struct svc_rqst, rq_next_page),
	offsetof(struct svc_rqst, rq_maxpages),
	RQ_PAGES_NFREE,
	sizeof(struct ib_device),
	offsetof(struct ib_device, attrs),
	sizeof(struct ib_pd),
	offsetof(struct ib_pd, local_dma_lkey),
	sizeof(struct ib_cq),
	offsetof(struct ib_cq, cq_context),
	offsetof(struct ib_cq, res),
	sizeof(struct ib_qp),
	sizeof(struct ib_mr),
	offsetof(struct ib_mr, lkey),
	offsetof(struct ib_mr, rkey),
	offsetof(struct ib_mr, iova),
	offsetof(struct ib_mr, length),
	offsetof(struct ib_mr, res),
	sizeof(struct ib_wc),
	offsetof(struct ib_wc, wc_flags),
	offsetof(struct ib_wc, ex),
	sizeof(struct ib_cqe),
	sizeof(struct ib_sge),
	sizeof(struct ib_send_wr),
	sizeof(struct ib_recv_wr),
	sizeof(struct ib_reg_wr),
	sizeof(struct ib_qp_init_attr),
	sizeof(struct ib_client),
	sizeof(struct rdma_cm_id),
	offsetof(struct rdma_cm_id, device),
	offsetof(struct rdma_cm_id, context),
	offsetof(struct rdma_cm_id, qp),
	offsetof(struct rdma_cm_id, event_handler),
	offsetof(struct rdma_cm_id, route),
	offsetof(struct rdma_cm_id, port_num),
	sizeof(struct rdma_cm_event),
	sizeof(struct rdma_conn_param),
	sizeof(struct rdma_rw_ctx),
	sizeof(struct scatterlist),
	sizeof(struct bio_vec),
	sizeof(struct page),
	sizeof(struct ctl_table),
	sizeof(struct ib_qp_attr),
	sizeof(struct rpc_timeout),
	sizeof(struct delayed_work),
	sizeof(struct debugfs_short_fops),
};
