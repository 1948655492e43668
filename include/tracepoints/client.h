/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the client end.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(_RPCRDMA_TRACE_CLIENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RPCRDMA_TRACE_CLIENT_H

#include <linux/inet.h>
#include <linux/sunrpc/rpc_rdma_cid.h>
#include <linux/tracepoint.h>

#include "args.h"

#include <trace/misc/rdma.h>
#include <trace/misc/sunrpc.h>

/* Completions */

DECLARE_EVENT_CLASS(xprtrdma_completion_class,
	TP_PROTO(struct rpc_rdma_cid cid, u32 status, u32 vendor_err),
	TP_ARGS(cid, status, vendor_err),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, completion_id)
		__field(unsigned long, status)
		__field(unsigned int, vendor_err)
	),
	TP_fast_assign(
		__entry->cq_id = cid.ci_queue_id;
		__entry->completion_id = cid.ci_completion_id;
		__entry->status = status;
		__entry->vendor_err = status ? vendor_err : 0;
	),
	TP_printk("cq.id=%u cid=%d status=%s (%lu/0x%x)",
		__entry->cq_id, __entry->completion_id,
		rdma_show_wc_status(__entry->status),
		__entry->status, __entry->vendor_err)
);

#define DEFINE_COMPLETION_EVENT(event)					\
	DEFINE_EVENT(xprtrdma_completion_class, xprtrdma_##event,	\
		TP_PROTO(struct rpc_rdma_cid cid, u32 status,		\
			 u32 vendor_err),				\
		TP_ARGS(cid, status, vendor_err))

DEFINE_COMPLETION_EVENT(wc_send);

TRACE_EVENT(xprtrdma_wc_receive,
	TP_PROTO(struct rpc_rdma_cid cid, u32 status, u32 vendor_err,
		 u32 received),
	TP_ARGS(cid, status, vendor_err, received),
	TP_STRUCT__entry(
		__field(u32, cq_id)
		__field(int, completion_id)
		__field(u32, received)
		__field(unsigned long, status)
		__field(unsigned int, vendor_err)
	),
	TP_fast_assign(
		__entry->cq_id = cid.ci_queue_id;
		__entry->completion_id = cid.ci_completion_id;
		__entry->received = status ? 0 : received;
		__entry->status = status;
		__entry->vendor_err = status ? vendor_err : 0;
	),
	TP_printk("cq.id=%u cid=%d status=%s (%lu/0x%x) received=%u",
		__entry->cq_id, __entry->completion_id,
		rdma_show_wc_status(__entry->status),
		__entry->status, __entry->vendor_err, __entry->received)
);

/* Connection */

TRACE_EVENT(xprtrdma_op_connect,
	TP_PROTO(const struct sockaddr *peer, unsigned long delay),
	TP_ARGS(peer, delay),
	TP_STRUCT__entry(
		__field(unsigned long, delay)
		__array(char, addr, INET6_ADDRSTRLEN)
		__array(char, port, RPCRDMA_PORTSTRLEN)
	),
	TP_fast_assign(
		__entry->delay = delay;
		rpcrdma_trace_peer(__entry->addr, __entry->port, peer);
	),
	TP_printk("peer=[%s]:%s delay=%lu",
		__entry->addr, __entry->port, __entry->delay)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tracepoints
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE client
#include <trace/define_trace.h>
