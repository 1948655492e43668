/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the server end: connections, Calls and Replies. Work
 * requests and their completions are in server_work.h.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_SERVER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_SERVER_H

#include <linux/tracepoint.h>
#include <trace/misc/rdma.h>

#include "args.h"

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

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE server
#include <trace/define_trace.h>
