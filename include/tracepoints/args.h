/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What several trace events take as arguments.
 */

#ifndef _RPCRDMA_TRACE_ARGS_H
#define _RPCRDMA_TRACE_ARGS_H

#include <linux/inet.h>
#include <linux/sprintf.h>
#include <linux/sunrpc/addr.h>
#include <linux/types.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>

#define RPCRDMA_PORTSTRLEN	sizeof("65535")

/* An RPC task as SUNRPC's own events name it: "task:%08x@%08x". */
struct rpcrdma_trace_task {
	u32 task_id;
	u32 client_id;
};

/* A segment, and the memory region behind it. */
struct rpcrdma_trace_mr {
	u32 mr_id;
	u32 nents;
	u32 handle;
	u32 length;
	u64 offset;
	u32 dir;
};

/* Address and port as strings; @sap is IPv4 or IPv6. */
static inline void rpcrdma_trace_peer(char *addr, char *port,
				      const struct sockaddr *sap)
{
	snprintf(addr, INET6_ADDRSTRLEN, "%pISc", sap);
	snprintf(port, RPCRDMA_PORTSTRLEN, "%u", rpc_get_port(sap));
}

#endif
