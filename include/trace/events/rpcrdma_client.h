/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the client: connections, Calls, MRs, and completions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_TRACE_RPCRDMA_CLIENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RPCRDMA_CLIENT_H

#include <linux/dma-direction.h>
#include <linux/tracepoint.h>
#include <trace/misc/rdma.h>
#include <trace/misc/sunrpc.h>
#include <trace/misc/rpcrdma.h>

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

TRACE_EVENT(xprtrdma_decode_seg,
	TP_PROTO(u32 handle, u32 length, u64 offset),
	TP_ARGS(handle, length, offset),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(u32, length)
		__field(u64, offset)
	),
	TP_fast_assign(
		__entry->handle = handle;
		__entry->length = length;
		__entry->offset = offset;
	),
	TP_printk("%u@0x%016llx:0x%08x",
		__entry->length, __entry->offset, __entry->handle)
);

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

/* Backchannel Calls */

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

TRACE_EVENT(xprtrdma_err_unrecognized,
	TP_PROTO(struct rpcrdma_trace_task task, u32 xid, u32 code),
	TP_ARGS(task, xid, code),
	TP_STRUCT__entry(
		RPCRDMA_TASK_FIELDS
		__field(u32, xid)
		__field(u32, procedure)
	),
	TP_fast_assign(
		rpcrdma_assign_task;
		__entry->xid = xid;
		__entry->procedure = code;
	),
	TP_printk(SUNRPC_TRACE_TASK_SPECIFIER " xid=0x%08x procedure=%u",
		__entry->task_id, __entry->client_id,
		__entry->xid, __entry->procedure)
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

/* MRs */

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

TRACE_EVENT(xprtrdma_frwr_dereg,
	TP_PROTO(const struct rpcrdma_trace_mr *mr, int rc),
	TP_ARGS(mr, rc),
	TP_STRUCT__entry(
		RPCRDMA_MR_FIELDS
		__field(int, rc)
	),
	TP_fast_assign(
		rpcrdma_assign_mr;
		__entry->rc = rc;
	),
	TP_printk("mr.id=%u nents=%d %u@0x%016llx:0x%08x (%s): rc=%d",
		__entry->mr_id, __entry->nents, __entry->length,
		__entry->offset, __entry->handle,
		xprtrdma_show_direction(__entry->dir), __entry->rc)
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

#endif /* _TRACE_RPCRDMA_CLIENT_H */

#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rpcrdma_client
#include <trace/define_trace.h>
