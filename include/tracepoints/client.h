/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the client end: connections and Calls. Memory regions and
 * completions are in client_work.h.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_CLIENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_CLIENT_H

#include <linux/tracepoint.h>
#include <trace/misc/sunrpc.h>

#include "args.h"

/* Connections */

DECLARE_EVENT_CLASS(xprtrdma_peer_class,
	TP_PROTO(const struct sockaddr *peer),
	TP_ARGS(peer),
	TP_STRUCT__entry(
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s", __entry->addr, __entry->port)
);

DEFINE_EVENT(xprtrdma_peer_class, xprtrdma_op_inject_dsc,
	TP_PROTO(const struct sockaddr *peer),
	TP_ARGS(peer));

TRACE_EVENT(xprtrdma_op_connect,
	TP_PROTO(const struct sockaddr *peer, unsigned long delay),
	TP_ARGS(peer, delay),
	TP_STRUCT__entry(
		__field(unsigned long, delay)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->delay = delay;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s delay=%lu",
		__entry->addr, __entry->port, __entry->delay)
);

TRACE_EVENT(xprtrdma_op_set_cto,
	TP_PROTO(const struct sockaddr *peer, unsigned long connect,
		 unsigned long reconnect),
	TP_ARGS(peer, connect, reconnect),
	TP_STRUCT__entry(
		__field(unsigned long, connect)
		__field(unsigned long, reconnect)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->connect = connect;
		__entry->reconnect = reconnect;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s connect=%lu reconnect=%lu",
		__entry->addr, __entry->port,
		__entry->connect / HZ, __entry->reconnect / HZ)
);

DECLARE_EVENT_CLASS(xprtrdma_connection_class,
	TP_PROTO(const struct sockaddr *peer, int rc, int connect_status),
	TP_ARGS(peer, rc, connect_status),
	TP_STRUCT__entry(
		__field(int, rc)
		__field(int, connect_status)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->rc = rc;
		__entry->connect_status = connect_status;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s rc=%d connection status=%d",
		__entry->addr, __entry->port,
		__entry->rc, __entry->connect_status)
);

#define DEFINE_CONNECTION_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_connection_class, xprtrdma_##event,	\
		TP_PROTO(const struct sockaddr *peer, int rc,		\
			 int connect_status),				\
		TP_ARGS(peer, rc, connect_status))

DEFINE_CONNECTION_EVENT(connect);
DEFINE_CONNECTION_EVENT(disconnect);

TRACE_EVENT(xprtrdma_inline_thresh,
	TP_PROTO(const struct sockaddr *src, const struct sockaddr *dst,
		 u32 inline_send, u32 inline_recv, u32 max_send, u32 max_recv),
	TP_ARGS(src, dst, inline_send, inline_recv, max_send, max_recv),
	TP_STRUCT__entry(
		__field(unsigned int, inline_send)
		__field(unsigned int, inline_recv)
		__field(unsigned int, max_send)
		__field(unsigned int, max_recv)
		__array(unsigned char, srcaddr, sizeof(struct sockaddr_in6))
		__array(unsigned char, dstaddr, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__entry->inline_send = inline_send;
		__entry->inline_recv = inline_recv;
		__entry->max_send = max_send;
		__entry->max_recv = max_recv;
		rpcrdma_trace_sockaddr(__entry->srcaddr, src);
		rpcrdma_trace_sockaddr(__entry->dstaddr, dst);
	),
	TP_printk("%pISpc -> %pISpc neg send/recv=%u/%u, calc send/recv=%u/%u",
		__entry->srcaddr, __entry->dstaddr,
		__entry->inline_send, __entry->inline_recv,
		__entry->max_send, __entry->max_recv)
);

TRACE_EVENT(xprtrdma_device_removal,
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

TRACE_EVENT(xprtrdma_marshal,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid, u32 hdrlen,
		 const u32 *xdr, u32 rtype, u32 wtype),
	TP_ARGS(task, xid, hdrlen, xdr, rtype, wtype),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
		__field(unsigned int, hdrlen)
		__field(unsigned int, headlen)
		__field(unsigned int, pagelen)
		__field(unsigned int, taillen)
		__field(unsigned int, rtype)
		__field(unsigned int, wtype)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
		__entry->hdrlen = hdrlen;
		__entry->headlen = xdr[0];
		__entry->pagelen = xdr[1];
		__entry->taillen = xdr[2];
		__entry->rtype = rtype;
		__entry->wtype = wtype;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER
		" xid=0x%08x hdr=%u xdr=%u/%u/%u %s/%s",
		__entry->task_id, __entry->client_id, __entry->xid,
		__entry->hdrlen, __entry->headlen, __entry->pagelen,
		__entry->taillen, xprtrdma_show_chunktype(__entry->rtype),
		xprtrdma_show_chunktype(__entry->wtype))
);

DECLARE_EVENT_CLASS(xprtrdma_call_failed_class,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid, int ret),
	TP_ARGS(task, xid, ret),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
		__field(int, ret)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
		__entry->ret = ret;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " xid=0x%08x ret=%d",
		__entry->task_id, __entry->client_id,
		__entry->xid, __entry->ret)
);

#define DEFINE_CALL_FAILED_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_call_failed_class, xprtrdma_##event,	\
		TP_PROTO(struct rpcrdma_trace_task task, u32 xid,	\
			 int ret),					\
		TP_ARGS(task, xid, ret))

DEFINE_CALL_FAILED_EVENT(marshal_failed);
DEFINE_CALL_FAILED_EVENT(prepsend_failed);

TRACE_EVENT(xprtrdma_chunk_read,
	TP_PROTO(struct rpcrdma_trace_task task, u32 pos,
		 const struct rpcrdma_trace_mr *mr, bool is_last),
	TP_ARGS(task, pos, mr, is_last),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(unsigned int, pos)
		__field(int, nents)
		RPCRDMA_SEGMENT_FIELDS
		__field(bool, is_last)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->pos = pos;
		__entry->nents = mr->nents;
		rpcrdma_assign_segment;
		__entry->is_last = is_last;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER
		" pos=%u %u@0x%016llx:0x%08x (%s)",
		__entry->task_id, __entry->client_id, __entry->pos,
		__entry->length, __entry->offset, __entry->handle,
		__entry->is_last ? "last" : "more")
);

DECLARE_EVENT_CLASS(xprtrdma_chunk_class,
	TP_PROTO(struct rpcrdma_trace_task task,
		 const struct rpcrdma_trace_mr *mr, bool is_last),
	TP_ARGS(task, mr, is_last),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(int, nents)
		RPCRDMA_SEGMENT_FIELDS
		__field(bool, is_last)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->nents = mr->nents;
		rpcrdma_assign_segment;
		__entry->is_last = is_last;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER
		" %u@0x%016llx:0x%08x (%s)",
		__entry->task_id, __entry->client_id,
		__entry->length, __entry->offset, __entry->handle,
		__entry->is_last ? "last" : "more")
);

#define DEFINE_CHUNK_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_chunk_class, xprtrdma_chunk_##event,	\
		TP_PROTO(struct rpcrdma_trace_task task,		\
			 const struct rpcrdma_trace_mr *mr,		\
			 bool is_last),					\
		TP_ARGS(task, mr, is_last))

DEFINE_CHUNK_EVENT(write);
DEFINE_CHUNK_EVENT(reply);

TRACE_EVENT(xprtrdma_post_send,
	TP_PROTO(struct rpcrdma_trace_task task, struct rpc_rdma_cid cid,
		 u32 num_sge, bool signaled),
	TP_ARGS(task, cid, num_sge, signaled),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, completion_id)
		RPCRDMA_TASK_FIELDS
		__field(int, num_sge)
		__field(int, signaled)
	),
	TP_fast_assign(
		__entry->cq_id = cid.ci_queue_id;
		__entry->completion_id = cid.ci_completion_id;
		rpcrdma_assign_task;
		__entry->num_sge = num_sge;
		__entry->signaled = signaled;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER
		" cq.id=%u cid=%d (%d SGE%s) %s",
		__entry->task_id, __entry->client_id,
		__entry->cq_id, __entry->completion_id,
		__entry->num_sge, __entry->num_sge == 1 ? "" : "s",
		__entry->signaled ? "signaled" : "")
);

TRACE_EVENT(xprtrdma_post_send_err,
	TP_PROTO(struct rpcrdma_trace_task task, u32 cq_id, int rc),
	TP_ARGS(task, cq_id, rc),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		RPCRDMA_TASK_FIELDS
		__field(int, rc)
	),
	TP_fast_assign(
		__entry->cq_id = cq_id;
		rpcrdma_assign_task;
		__entry->rc = rc;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " cq.id=%u rc=%d",
		__entry->task_id, __entry->client_id,
		__entry->cq_id, __entry->rc)
);

/* Reverse Calls */

TRACE_EVENT(xprtrdma_cb_setup,
	TP_PROTO(const struct sockaddr *peer, unsigned int reqs),
	TP_ARGS(peer, reqs),
	TP_STRUCT__entry(
		__field(unsigned int, reqs)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->reqs = reqs;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s %u reqs",
		__entry->addr, __entry->port, __entry->reqs)
);

DECLARE_EVENT_CLASS(xprtrdma_callback_class,
	TP_PROTO(const struct sockaddr *peer, u32 xid),
	TP_ARGS(peer, xid),
	TP_STRUCT__entry(
		__field(u32, xid)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->xid = xid;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s xid=0x%08x",
		__entry->addr, __entry->port, __entry->xid)
);

#define DEFINE_CALLBACK_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_callback_class, xprtrdma_cb_##event,	\
		TP_PROTO(const struct sockaddr *peer, u32 xid),		\
		TP_ARGS(peer, xid))

DEFINE_CALLBACK_EVENT(call);
DEFINE_CALLBACK_EVENT(reply);

/* Replies */

TRACE_EVENT(xprtrdma_reply,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid, u32 credits),
	TP_ARGS(task, xid, credits),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
		__field(unsigned int, credits)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
		__entry->credits = credits;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " xid=0x%08x credits=%u",
		__entry->task_id, __entry->client_id,
		__entry->xid, __entry->credits)
);

DECLARE_EVENT_CLASS(xprtrdma_bad_reply_class,
	TP_PROTO(const struct sockaddr *peer, u32 xid, u32 version, u32 proc),
	TP_ARGS(peer, xid, version, proc),
	TP_STRUCT__entry(
		__field(u32, xid)
		__field(u32, version)
		__field(u32, proc)
		RPCRDMA_PEER_FIELDS
	),
	TP_fast_assign(
		__entry->xid = xid;
		__entry->version = version;
		__entry->proc = proc;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s xid=0x%08x version=%u proc=%u",
		__entry->addr, __entry->port,
		__entry->xid, __entry->version, __entry->proc)
);

#define DEFINE_BAD_REPLY_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_bad_reply_class,				\
		xprtrdma_reply_##event##_err,				\
		TP_PROTO(const struct sockaddr *peer, u32 xid,		\
			 u32 version, u32 proc),			\
		TP_ARGS(peer, xid, version, proc))

DEFINE_BAD_REPLY_EVENT(vers);
DEFINE_BAD_REPLY_EVENT(rqst);
DEFINE_BAD_REPLY_EVENT(short);
DEFINE_BAD_REPLY_EVENT(hdr);

TRACE_EVENT(xprtrdma_err_vers,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid, u32 min, u32 max),
	TP_ARGS(task, xid, min, max),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
		__field(u32, min)
		__field(u32, max)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
		__entry->min = min;
		__entry->max = max;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " xid=0x%08x versions=[%u, %u]",
		__entry->task_id, __entry->client_id,
		__entry->xid, __entry->min, __entry->max)
);

TRACE_EVENT(xprtrdma_err_chunk,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid),
	TP_ARGS(task, xid),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " xid=0x%08x",
		__entry->task_id, __entry->client_id, __entry->xid)
);

TRACE_EVENT(xprtrdma_fixup,
	TP_PROTO(struct rpcrdma_trace_task task, u32 fixup, const u32 *xdr),
	TP_ARGS(task, fixup, xdr),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(unsigned long, fixup)
		__field(size_t, headlen)
		__field(unsigned int, pagelen)
		__field(size_t, taillen)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->fixup = fixup;
		__entry->headlen = xdr[0];
		__entry->pagelen = xdr[1];
		__entry->taillen = xdr[2];
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " fixup=%lu xdr=%zu/%u/%zu",
		__entry->task_id, __entry->client_id, __entry->fixup,
		__entry->headlen, __entry->pagelen, __entry->taillen)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE client
#include <trace/define_trace.h>
