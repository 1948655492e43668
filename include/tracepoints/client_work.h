/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the client end: memory regions, work requests and their
 * completions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_CLIENT_WORK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_CLIENT_WORK_H

#include <linux/dma-direction.h>
#include <linux/tracepoint.h>
#include <trace/misc/rdma.h>
#include <trace/misc/sunrpc.h>

#include "args.h"

/* Memory regions */

TRACE_DEFINE_ENUM(DMA_BIDIRECTIONAL);
TRACE_DEFINE_ENUM(DMA_TO_DEVICE);
TRACE_DEFINE_ENUM(DMA_FROM_DEVICE);
TRACE_DEFINE_ENUM(DMA_NONE);

#define xprtrdma_show_direction(x)					\
	__print_symbolic(x,						\
		{ DMA_BIDIRECTIONAL,	"BIDIR" },			\
		{ DMA_TO_DEVICE,	"TO_DEVICE" },			\
		{ DMA_FROM_DEVICE,	"FROM_DEVICE" },		\
		{ DMA_NONE,		"NONE" })

TRACE_EVENT(xprtrdma_createmrs,
	TP_PROTO(const struct sockaddr *peer, u32 count),
	TP_ARGS(peer, count),
	TP_STRUCT__entry(
		RPCRDMA_PEER_FIELDS
		__field(unsigned int, count)
	),
	TP_fast_assign(
		__entry->count = count;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s created %u MRs",
		__entry->addr, __entry->port, __entry->count)
);

TRACE_EVENT(xprtrdma_nomrs_err,
	TP_PROTO(const struct sockaddr *peer, struct rpcrdma_trace_task task),
	TP_ARGS(peer, task),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " peer=[%s]:%s",
		__entry->task_id, __entry->client_id,
		__entry->addr, __entry->port)
);

DECLARE_EVENT_CLASS(xprtrdma_mr_class,
	TP_PROTO(struct rpcrdma_trace_task task,
		 const struct rpcrdma_trace_mr *mr),
	TP_ARGS(task, mr),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		RPCRDMA_MR_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		rpcrdma_assign_mr;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER
		" mr.id=%u nents=%d %u@0x%016llx:0x%08x (%s)",
		__entry->task_id, __entry->client_id, __entry->mr_id,
		__entry->nents, __entry->length, __entry->offset,
		__entry->handle, xprtrdma_show_direction(__entry->dir))
);

#define DEFINE_MR_EVENT(event)						\
	DEFINE_EVENT(xprtrdma_mr_class, xprtrdma_mr_##event,		\
		TP_PROTO(struct rpcrdma_trace_task task,		\
			 const struct rpcrdma_trace_mr *mr),		\
		TP_ARGS(task, mr))

DEFINE_MR_EVENT(map);
DEFINE_MR_EVENT(fastreg);
DEFINE_MR_EVENT(localinv);
DEFINE_MR_EVENT(reminv);

TRACE_EVENT(xprtrdma_mr_unmap,
	TP_PROTO(const struct rpcrdma_trace_mr *mr),
	TP_ARGS(mr),
	TP_STRUCT__entry(
		RPCRDMA_MR_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_mr;
	),
	TP_printk("mr.id=%u nents=%d %u@0x%016llx:0x%08x (%s)",
		__entry->mr_id, __entry->nents, __entry->length,
		__entry->offset, __entry->handle,
		xprtrdma_show_direction(__entry->dir))
);

TRACE_EVENT(xprtrdma_frwr_alloc,
	TP_PROTO(u32 mr_id, int rc),
	TP_ARGS(mr_id, rc),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(int, rc)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->rc = rc;
	),
	TP_printk("mr.id=%u: rc=%d", __entry->mr_id, __entry->rc)
);

TRACE_EVENT(xprtrdma_frwr_sgerr,
	TP_PROTO(u32 mr_id, u64 addr, u32 dir, int nents),
	TP_ARGS(mr_id, addr, dir, nents),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(u64, addr)
		__field(u32, dir)
		__field(int, nents)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->addr = addr;
		__entry->dir = dir;
		__entry->nents = nents;
	),
	TP_printk("mr.id=%u DMA addr=0x%llx (%s) sg_nents=%d",
		__entry->mr_id, __entry->addr,
		xprtrdma_show_direction(__entry->dir), __entry->nents)
);

TRACE_EVENT(xprtrdma_frwr_maperr,
	TP_PROTO(u32 mr_id, u64 addr, u32 dir, int num_mapped, int nents),
	TP_ARGS(mr_id, addr, dir, num_mapped, nents),
	TP_STRUCT__entry(
		__field(u32, mr_id)
		__field(u64, addr)
		__field(u32, dir)
		__field(int, num_mapped)
		__field(int, nents)
	),
	TP_fast_assign(
		__entry->mr_id = mr_id;
		__entry->addr = addr;
		__entry->dir = dir;
		__entry->num_mapped = num_mapped;
		__entry->nents = nents;
	),
	TP_printk("mr.id=%u DMA addr=0x%llx (%s) nents=%d of %d",
		__entry->mr_id, __entry->addr,
		xprtrdma_show_direction(__entry->dir),
		__entry->num_mapped, __entry->nents)
);

TRACE_EVENT(xprtrdma_mrs_zap,
	TP_PROTO(struct rpcrdma_trace_task task),
	TP_ARGS(task),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_task;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER,
		__entry->task_id, __entry->client_id)
);

TRACE_EVENT(xprtrdma_post_linv_err,
	TP_PROTO(struct rpcrdma_trace_task task, int status),
	TP_ARGS(task, status),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(int, status)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->status = status;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " status=%d",
		__entry->task_id, __entry->client_id, __entry->status)
);

TRACE_EVENT(xprtrdma_dma_maperr,
	TP_PROTO(u64 addr),
	TP_ARGS(addr),
	TP_STRUCT__entry(
		__field(u64, addr)
	),
	TP_fast_assign(
		__entry->addr = addr;
	),
	TP_printk("dma addr=0x%llx", __entry->addr)
);

/* Receives */

TRACE_EVENT(xprtrdma_post_recvs,
	TP_PROTO(const struct sockaddr *peer, u32 cq_id, u32 count,
		 int posted),
	TP_ARGS(peer, cq_id, count, posted),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(unsigned int, count)
		__field(int, posted)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->count = count;
		__entry->posted = posted;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s cq.id=%d %u new recvs, %d active",
		__entry->addr, __entry->port, __entry->cq_id,
		__entry->count, __entry->posted)
);

TRACE_EVENT(xprtrdma_post_recvs_err,
	TP_PROTO(const struct sockaddr *peer, u32 cq_id, int status),
	TP_ARGS(peer, cq_id, status),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, status)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->status = status;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s cq.id=%d rc=%d",
		__entry->addr, __entry->port, __entry->cq_id, __entry->status)
);

/* Completions */

#define DEFINE_COMPLETION_EVENT(class, event)				\
	DEFINE_EVENT(class, xprtrdma_##event,				\
		TP_PROTO(struct rpc_rdma_cid cid, u32 status,		\
			 u32 vendor_err),				\
		TP_ARGS(cid, status, vendor_err))

DECLARE_EVENT_CLASS(xprtrdma_completion_class,
	TP_PROTO(struct rpc_rdma_cid cid, u32 status, u32 vendor_err),
	TP_ARGS(cid, status, vendor_err),
	TP_STRUCT__entry(
		RPCRDMA_COMPLETION_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_completion;
	),
	TP_printk("cq.id=%u cid=%d status=%s (%lu/0x%x)",
		__entry->cq_id, __entry->completion_id,
		rdma_show_wc_status(__entry->status),
		__entry->status, __entry->vendor_err)
);

DEFINE_COMPLETION_EVENT(xprtrdma_completion_class, wc_send);

DECLARE_EVENT_CLASS(xprtrdma_mr_completion_class,
	TP_PROTO(struct rpc_rdma_cid cid, u32 status, u32 vendor_err),
	TP_ARGS(cid, status, vendor_err),
	TP_STRUCT__entry(
		RPCRDMA_COMPLETION_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_completion;
	),
	TP_printk("cq.id=%u mr.id=%d status=%s (%lu/0x%x)",
		__entry->cq_id, __entry->completion_id,
		rdma_show_wc_status(__entry->status),
		__entry->status, __entry->vendor_err)
);

DEFINE_COMPLETION_EVENT(xprtrdma_mr_completion_class, wc_fastreg);
DEFINE_COMPLETION_EVENT(xprtrdma_mr_completion_class, wc_li);
DEFINE_COMPLETION_EVENT(xprtrdma_mr_completion_class, wc_li_done);

TRACE_EVENT(xprtrdma_wc_receive,
	TP_PROTO(struct rpc_rdma_cid cid, u32 status, u32 vendor_err,
		 u32 received),
	TP_ARGS(cid, status, vendor_err, received),
	TP_STRUCT__entry(
		RPCRDMA_COMPLETION_FIELDS
		__field(u32, received)
	),
	TP_fast_assign(
		rpcrdma_assign_completion;
		__entry->received = status ? 0 : received;
	),
	TP_printk("cq.id=%u cid=%d status=%s (%lu/0x%x) received=%u",
		__entry->cq_id, __entry->completion_id,
		rdma_show_wc_status(__entry->status),
		__entry->status, __entry->vendor_err, __entry->received)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE client_work
#include <trace/define_trace.h>
