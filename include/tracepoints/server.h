/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the server end.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_SERVER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_SERVER_H

#include <linux/inet.h>
#include <linux/sunrpc/rpc_rdma_cid.h>
#include <linux/tracepoint.h>

#include "args.h"

#include <trace/misc/rdma.h>

DECLARE_EVENT_CLASS(svcrdma_cid_class,
	TP_PROTO(struct rpc_rdma_cid cid),
	TP_ARGS(cid),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, completion_id)
	),
	TP_fast_assign(
		__entry->cq_id = cid.ci_queue_id;
		__entry->completion_id = cid.ci_completion_id;
	),
	TP_printk("cq.id=%d cid=%d",
		__entry->cq_id, __entry->completion_id)
);

#define DEFINE_CID_EVENT(event)						\
	DEFINE_EVENT(svcrdma_cid_class, svcrdma_##event,		\
		TP_PROTO(struct rpc_rdma_cid cid),			\
		TP_ARGS(cid))

DEFINE_CID_EVENT(wc_send);

TRACE_EVENT(svcrdma_post_send,
	TP_PROTO(struct rpc_rdma_cid cid, u32 num_sge, u32 inv_rkey),
	TP_ARGS(cid, num_sge, inv_rkey),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, completion_id)
		__field(unsigned int, num_sge)
		__field(u32, inv_rkey)
	),
	TP_fast_assign(
		__entry->cq_id = cid.ci_queue_id;
		__entry->completion_id = cid.ci_completion_id;
		__entry->num_sge = num_sge;
		__entry->inv_rkey = inv_rkey;
	),
	TP_printk("cq.id=%u cid=%d num_sge=%u inv_rkey=0x%08x",
		__entry->cq_id, __entry->completion_id,
		__entry->num_sge, __entry->inv_rkey)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE server
#include <trace/define_trace.h>
