/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the server: connections, Calls and Replies, and completions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_TRACE_RPCRDMA_SERVER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RPCRDMA_SERVER_H

#include <linux/tracepoint.h>
#include <trace/misc/rdma.h>
#include <trace/misc/rpcrdma.h>

/* Connections */

DECLARE_EVENT_CLASS(svcrdma_accept_class,
	TP_PROTO(const struct sockaddr *peer, long status),
	TP_ARGS(peer, status),
	TP_STRUCT__entry(
		__field(long, status)
		RPCRDMA_REMOTE_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		rpcrdma_assign_remote;
	),
	TP_printk("addr=%s status=%ld", __entry->addr, __entry->status)
);

#define DEFINE_ACCEPT_EVENT(event)					\
	DEFINE_EVENT(svcrdma_accept_class, svcrdma_##event##_err,	\
		TP_PROTO(const struct sockaddr *peer, long status),	\
		TP_ARGS(peer, status))

DEFINE_ACCEPT_EVENT(qp);
DEFINE_ACCEPT_EVENT(fabric);
DEFINE_ACCEPT_EVENT(accept);

TRACE_EVENT(svcrdma_qp_error,
	TP_PROTO(u32 event, const char *device, const struct sockaddr *peer),
	TP_ARGS(event, device, peer),
	TP_STRUCT__entry(
		__field(unsigned int, event)
		__string(device, device)
		__array(char, addr, INET6_ADDRSTRLEN + 10)
	),
	TP_fast_assign(
		__entry->event = event;
		__assign_str(device);
		memset(__entry->addr, 0, sizeof(__entry->addr));
		snprintf(__entry->addr, sizeof(__entry->addr), "%pISpc", peer);
	),
	TP_printk("addr=%s dev=%s event=%s (%u)",
		__entry->addr, __get_str(device),
		rdma_show_ib_event(__entry->event), __entry->event)
);

TRACE_EVENT(svcrdma_device_removal,
	TP_PROTO(const char *device, const struct sockaddr *peer),
	TP_ARGS(device, peer),
	TP_STRUCT__entry(
		__string(name, device)
		__array(unsigned char, addr, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__assign_str(name);
		rpcrdma_trace_sockaddr(__entry->addr, peer);
	),
	TP_printk("device %s to be removed, disconnecting %pISpc",
		__get_str(name), __entry->addr)
);

/* Calls */

TRACE_EVENT(svcrdma_decode_rqst,
	TP_PROTO(struct rpc_rdma_cid cid, const u32 *fixed, u32 hdrlen),
	TP_ARGS(cid, fixed, hdrlen),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		RPCRDMA_FIXED_FIELDS
		__field(unsigned int, hdrlen)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		rpcrdma_assign_fixed;
		__entry->hdrlen = hdrlen;
	),
	TP_printk("cq.id=%u cid=%d xid=0x%08x vers=%u credits=%u proc=%s hdrlen=%u",
		__entry->cq_id, __entry->completion_id, __entry->xid,
		__entry->vers, __entry->credits,
		svcrdma_show_proc(__entry->proc), __entry->hdrlen)
);

TRACE_EVENT(svcrdma_decode_short_err,
	TP_PROTO(struct rpc_rdma_cid cid, u32 hdrlen),
	TP_ARGS(cid, hdrlen),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(unsigned int, hdrlen)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->hdrlen = hdrlen;
	),
	TP_printk("cq.id=%u cid=%d hdrlen=%u",
		__entry->cq_id, __entry->completion_id, __entry->hdrlen)
);

DECLARE_EVENT_CLASS(svcrdma_bad_call_class,
	TP_PROTO(struct rpc_rdma_cid cid, const u32 *fixed),
	TP_ARGS(cid, fixed),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		RPCRDMA_FIXED_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		rpcrdma_assign_fixed;
	),
	TP_printk("cq.id=%u cid=%d xid=0x%08x vers=%u credits=%u proc=%u",
		__entry->cq_id, __entry->completion_id, __entry->xid,
		__entry->vers, __entry->credits, __entry->proc)
);

#define DEFINE_BAD_CALL_EVENT(event)					\
	DEFINE_EVENT(svcrdma_bad_call_class,				\
		svcrdma_decode_##event##_err,				\
		TP_PROTO(struct rpc_rdma_cid cid, const u32 *fixed),	\
		TP_ARGS(cid, fixed))

DEFINE_BAD_CALL_EVENT(badvers);
DEFINE_BAD_CALL_EVENT(drop);
DEFINE_BAD_CALL_EVENT(badproc);
DEFINE_BAD_CALL_EVENT(parse);

TRACE_EVENT(svcrdma_decode_rseg,
	TP_PROTO(struct rpc_rdma_cid cid, u32 segno, u32 position, u32 handle,
		 u32 length, u64 offset),
	TP_ARGS(cid, segno, position, handle, length, offset),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(u32, segno)
		__field(u32, position)
		RPCRDMA_SEGMENT_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->segno = segno;
		__entry->position = position;
		__entry->handle = handle;
		__entry->length = length;
		__entry->offset = offset;
	),
	TP_printk("cq.id=%u cid=%d segno=%u position=%u %u@0x%016llx:0x%08x",
		__entry->cq_id, __entry->completion_id, __entry->segno,
		__entry->position, __entry->length, __entry->offset,
		__entry->handle)
);

DECLARE_EVENT_CLASS(svcrdma_write_segment_class,
	TP_PROTO(struct rpc_rdma_cid cid, u32 segno, u32 handle, u32 length,
		 u64 offset),
	TP_ARGS(cid, segno, handle, length, offset),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(u32, segno)
		RPCRDMA_SEGMENT_FIELDS
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->segno = segno;
		__entry->handle = handle;
		__entry->length = length;
		__entry->offset = offset;
	),
	TP_printk("cq.id=%u cid=%d segno=%u %u@0x%016llx:0x%08x",
		__entry->cq_id, __entry->completion_id, __entry->segno,
		__entry->length, __entry->offset, __entry->handle)
);

#define DEFINE_WRITE_SEGMENT_EVENT(event)				\
	DEFINE_EVENT(svcrdma_write_segment_class, svcrdma_##event,	\
		TP_PROTO(struct rpc_rdma_cid cid, u32 segno,		\
			 u32 handle, u32 length, u64 offset),		\
		TP_ARGS(cid, segno, handle, length, offset))

DEFINE_WRITE_SEGMENT_EVENT(decode_wseg);
DEFINE_WRITE_SEGMENT_EVENT(encode_wseg);

TRACE_EVENT(svcrdma_page_overrun_err,
	TP_PROTO(struct rpc_rdma_cid cid, u32 pageno),
	TP_ARGS(cid, pageno),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(unsigned int, pageno)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->pageno = pageno;
	),
	TP_printk("cq.id=%u cid=%d pageno=%u",
		__entry->cq_id, __entry->completion_id, __entry->pageno)
);

/* Replies */

DECLARE_EVENT_CLASS(svcrdma_error_class,
	TP_PROTO(u32 xid),
	TP_ARGS(xid),
	TP_STRUCT__entry(
		__field(u32, xid)
	),
	TP_fast_assign(
		__entry->xid = xid;
	),
	TP_printk("xid=0x%08x", __entry->xid)
);

DEFINE_EVENT(svcrdma_error_class, svcrdma_err_vers,
	TP_PROTO(u32 xid), TP_ARGS(xid));
DEFINE_EVENT(svcrdma_error_class, svcrdma_err_chunk,
	TP_PROTO(u32 xid), TP_ARGS(xid));

TRACE_EVENT(svcrdma_small_wrch_err,
	TP_PROTO(struct rpc_rdma_cid cid, u32 remaining, u32 seg_no,
		 u32 num_segs),
	TP_ARGS(cid, remaining, seg_no, num_segs),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(unsigned int, remaining)
		__field(unsigned int, seg_no)
		__field(unsigned int, num_segs)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->remaining = remaining;
		__entry->seg_no = seg_no;
		__entry->num_segs = num_segs;
	),
	TP_printk("cq.id=%u cid=%d remaining=%u seg_no=%u num_segs=%u",
		__entry->cq_id, __entry->completion_id, __entry->remaining,
		__entry->seg_no, __entry->num_segs)
);

TRACE_EVENT(svcrdma_send_pullup,
	TP_PROTO(struct rpc_rdma_cid cid, u32 hdrlen, u32 msglen),
	TP_ARGS(cid, hdrlen, msglen),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(unsigned int, hdrlen)
		__field(unsigned int, msglen)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->hdrlen = hdrlen;
		__entry->msglen = msglen;
	),
	TP_printk("cq.id=%u cid=%d hdr=%u msg=%u (total %u)",
		__entry->cq_id, __entry->completion_id, __entry->hdrlen,
		__entry->msglen, __entry->hdrlen + __entry->msglen)
);

TRACE_EVENT(svcrdma_send_err,
	TP_PROTO(const struct sockaddr *peer, u32 xid, int status),
	TP_ARGS(peer, xid, status),
	TP_STRUCT__entry(
		__field(int, status)
		__field(u32, xid)
		RPCRDMA_REMOTE_FIELD
	),
	TP_fast_assign(
		__entry->status = status;
		__entry->xid = xid;
		rpcrdma_assign_remote;
	),
	TP_printk("addr=%s xid=0x%08x status=%d",
		__entry->addr, __entry->xid, __entry->status)
);

/* Starts and successful completions */

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

/* Failed and flushed completions */

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
DEFINE_FAILURE_EVENT(wc_write_flush);
DEFINE_FAILURE_EVENT(wc_write_err);

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

TRACE_EVENT(svcrdma_dma_map_err,
	TP_PROTO(struct rpc_rdma_cid cid, u64 dma_addr, u32 length),
	TP_ARGS(cid, dma_addr, length),
	TP_STRUCT__entry(
		RPCRDMA_CID_FIELDS
		__field(u64, dma_addr)
		__field(u32, length)
	),
	TP_fast_assign(
		rpcrdma_assign_cid;
		__entry->dma_addr = dma_addr;
		__entry->length = length;
	),
	TP_printk("cq.id=%u cid=%d dma_addr=%llu length=%u",
		__entry->cq_id, __entry->completion_id,
		__entry->dma_addr, __entry->length)
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

#endif /* _TRACE_RPCRDMA_SERVER_H */

#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rpcrdma_server
#include <trace/define_trace.h>
