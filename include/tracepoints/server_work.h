/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the server end: work requests and their completions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_SERVER_WORK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_SERVER_WORK_H

#include <linux/tracepoint.h>
#include <trace/misc/rdma.h>

#include "args.h"

/* Success, or a beginning */

DECLARE_EVENT_CLASS(svcrdma_cid_class,
	TP_PROTO(struct rpc_rdma_cid cid),
	TP_ARGS(cid),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
	),
	TP_printk("cq.id=%d cid=%d",
		__entry->cq_id, __entry->completion_id)
);

#define DEFINE_CID_EVENT(event)						\
	DEFINE_EVENT(svcrdma_cid_class, svcrdma_##event,		\
		TP_PROTO(struct rpc_rdma_cid cid),			\
		TP_ARGS(cid))

DEFINE_CID_EVENT(post_recv);
DEFINE_CID_EVENT(wc_send);
DEFINE_CID_EVENT(read_finished);

TRACE_EVENT(svcrdma_wc_recv,
	TP_PROTO(struct rpc_rdma_cid cid, u32 received),
	TP_ARGS(cid, received),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(u32, received)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->received = received;
	),
	TP_printk("cq.id=%u cid=%d received=%u",
		__entry->cq_id, __entry->completion_id, __entry->received)
);

TRACE_EVENT(svcrdma_wc_read,
	TP_PROTO(struct rpc_rdma_cid cid, u32 totalbytes, s64 latency),
	TP_ARGS(cid, totalbytes, latency),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(s64, read_latency)
		__field(unsigned int, totalbytes)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->read_latency = latency;
		__entry->totalbytes = totalbytes;
	),
	TP_printk("cq.id=%u cid=%d totalbytes=%u latency-us=%lld",
		__entry->cq_id, __entry->completion_id,
		__entry->totalbytes, __entry->read_latency)
);

/* Failure: flushed as the queue pair stopped, or the reason for it to stop */

DECLARE_EVENT_CLASS(svcrdma_completion_class,
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

#define DEFINE_FAILURE_EVENT(event)					\
	DEFINE_EVENT(svcrdma_completion_class, svcrdma_##event,		\
		TP_PROTO(struct rpc_rdma_cid cid, u32 status,		\
			 u32 vendor_err),				\
		TP_ARGS(cid, status, vendor_err))

DEFINE_FAILURE_EVENT(wc_send_flush);
DEFINE_FAILURE_EVENT(wc_send_err);
DEFINE_FAILURE_EVENT(wc_recv_flush);
DEFINE_FAILURE_EVENT(wc_recv_err);
DEFINE_FAILURE_EVENT(wc_read_flush);
DEFINE_FAILURE_EVENT(wc_read_err);

/* Posting */

TRACE_EVENT(svcrdma_post_send,
	TP_PROTO(struct rpc_rdma_cid cid, u32 num_sge, u32 inv_rkey),
	TP_ARGS(cid, num_sge, inv_rkey),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(unsigned int, num_sge)
		__field(u32, inv_rkey)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->num_sge = num_sge;
		__entry->inv_rkey = inv_rkey;
	),
	TP_printk("cq.id=%u cid=%d num_sge=%u inv_rkey=0x%08x",
		__entry->cq_id, __entry->completion_id,
		__entry->num_sge, __entry->inv_rkey)
);

TRACE_EVENT(svcrdma_rq_post_err,
	TP_PROTO(const struct sockaddr *peer, int status),
	TP_ARGS(peer, status),
	TP_STRUCT__entry(
		__field(int, status)
		RPCRDMA_REMOTE_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		rpcrdma_assign_remote;
	),
	TP_printk("addr=%s status=%d", __entry->addr, __entry->status)
);

DECLARE_EVENT_CLASS(svcrdma_post_chunk_class,
	TP_PROTO(struct rpc_rdma_cid cid, int sqecount),
	TP_ARGS(cid, sqecount),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(int, sqecount)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->sqecount = sqecount;
	),
	TP_printk("cq.id=%u cid=%d sqecount=%d",
		__entry->cq_id, __entry->completion_id, __entry->sqecount)
);

#define DEFINE_POST_CHUNK_EVENT(event)					\
	DEFINE_EVENT(svcrdma_post_chunk_class, svcrdma_##event,		\
		TP_PROTO(struct rpc_rdma_cid cid, int sqecount),	\
		TP_ARGS(cid, sqecount))

DEFINE_POST_CHUNK_EVENT(post_read_chunk);
DEFINE_POST_CHUNK_EVENT(post_write_chunk);
DEFINE_POST_CHUNK_EVENT(post_reply_chunk);

TRACE_EVENT(svcrdma_dma_map_rw_err,
	TP_PROTO(u32 cq_id, u64 offset, u32 handle, u32 nents, int status),
	TP_ARGS(cq_id, offset, handle, nents, status),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(u32, handle)
		__field(u64, offset)
		__field(unsigned int, nents)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		__entry->handle = handle;
		__entry->offset = offset;
		__entry->nents = nents;
		__entry->status = status;
	),
	TP_printk("cq.id=%u 0x%016llx:0x%08x nents=%u status=%d",
		__entry->cq_id, __entry->offset, __entry->handle,
		__entry->nents, __entry->status)
);

/* The Send Queue */

DECLARE_EVENT_CLASS(svcrdma_sendqueue_class,
	TP_PROTO(struct rpc_rdma_cid cid, int avail, int depth),
	TP_ARGS(cid, avail, depth),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(int, avail)
		__field(int, depth)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->avail = avail;
		__entry->depth = depth;
	),
	TP_printk("cq.id=%u cid=%d sc_sq_avail=%d/%d",
		__entry->cq_id, __entry->completion_id,
		__entry->avail, __entry->depth)
);

#define DEFINE_SENDQUEUE_EVENT(event)					\
	DEFINE_EVENT(svcrdma_sendqueue_class, svcrdma_##event,		\
		TP_PROTO(struct rpc_rdma_cid cid, int avail, int depth),\
		TP_ARGS(cid, avail, depth))

DEFINE_SENDQUEUE_EVENT(sq_full);
DEFINE_SENDQUEUE_EVENT(sq_retry);

TRACE_EVENT(svcrdma_sq_post_err,
	TP_PROTO(struct rpc_rdma_cid cid, int avail, int depth, int status),
	TP_ARGS(cid, avail, depth, status),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(int, avail)
		__field(int, depth)
		__field(int, status)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->avail = avail;
		__entry->depth = depth;
		__entry->status = status;
	),
	TP_printk("cq.id=%u cid=%d sc_sq_avail=%d/%d status=%d",
		__entry->cq_id, __entry->completion_id,
		__entry->avail, __entry->depth, __entry->status)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE server_work
#include <trace/define_trace.h>
