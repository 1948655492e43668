/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arguments and fields that several trace events share.
 */

#ifndef _TRACE_MISC_RPCRDMA_H
#define _TRACE_MISC_RPCRDMA_H

#include <linux/inet.h>
#include <linux/sprintf.h>
#include <linux/string.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/rpc_rdma_cid.h>
#include <linux/types.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>

/* An RPC task, as SUNRPC's own events identify it: "task:%08x@%08x". */
struct rpcrdma_trace_task {
	u32 task_id;
	u32 client_id;
};

#define RPCRDMA_TASK_FIELDS						\
	__field(unsigned int, task_id)					\
	__field(unsigned int, client_id)

#define rpcrdma_assign_task						\
	__entry->task_id = task.task_id;				\
	__entry->client_id = task.client_id

/* An MR, and the segment that it exposes. */
struct rpcrdma_trace_mr {
	u32 mr_id;
	u32 nents;
	u32 handle;
	u32 length;
	u64 offset;
	u32 dir;
};

#define RPCRDMA_SEGMENT_FIELDS						\
	__field(u32, handle)						\
	__field(u32, length)						\
	__field(u64, offset)

#define rpcrdma_assign_segment						\
	__entry->handle = mr->handle;					\
	__entry->length = mr->length;					\
	__entry->offset = mr->offset

#define RPCRDMA_MR_FIELDS						\
	__field(u32, mr_id)						\
	__field(int, nents)						\
	RPCRDMA_SEGMENT_FIELDS						\
	__field(u32, dir)

#define rpcrdma_assign_mr						\
	__entry->mr_id = mr->mr_id;					\
	__entry->nents = mr->nents;					\
	rpcrdma_assign_segment;						\
	__entry->dir = mr->dir

/* A completion. Drivers set vendor_err only on failure. */
#define RPCRDMA_CID_FIELDS						\
	__field(u32, cq_id)						\
	__field(int, completion_id)

#define rpcrdma_assign_cid						\
	__entry->cq_id = cid.ci_queue_id;				\
	__entry->completion_id = cid.ci_completion_id

#define RPCRDMA_COMPLETION_FIELDS					\
	RPCRDMA_CID_FIELDS						\
	__field(unsigned long, status)					\
	__field(unsigned int, vendor_err)

#define rpcrdma_assign_completion					\
	rpcrdma_assign_cid;						\
	__entry->status = status;					\
	__entry->vendor_err = status ? vendor_err : 0

/* The address of a peer, IPv4 or IPv6, or NULL if it is unknown. */
#define RPCRDMA_PORTSTRLEN	sizeof("65535")

#define RPCRDMA_PEER_FIELDS						\
	__array(char, addr, INET6_ADDRSTRLEN)				\
	__array(char, port, RPCRDMA_PORTSTRLEN)

/* A record begins as an earlier one has left the memory. */
static inline void rpcrdma_trace_peer(char *addr, char *port,
				      const struct sockaddr *sap)
{
	memset(addr, 0, INET6_ADDRSTRLEN);
	memset(port, 0, RPCRDMA_PORTSTRLEN);
	snprintf(addr, INET6_ADDRSTRLEN, "%pISc", sap);
	snprintf(port, RPCRDMA_PORTSTRLEN, "%u", sap ? rpc_get_port(sap) : 0);
}

/* Copies the address as a binary sockaddr. */
static inline void rpcrdma_trace_sockaddr(unsigned char *to,
					  const struct sockaddr *sap)
{
	if (sap)
		memcpy(to, sap, sizeof(struct sockaddr_in6));
	else
		memset(to, 0, sizeof(struct sockaddr_in6));
}

/* The address of a client without its port, which differs for each connection. */
#define RPCRDMA_REMOTE_FIELD						\
	__array(char, addr, INET6_ADDRSTRLEN)

#define rpcrdma_assign_remote						\
	memset(__entry->addr, 0, INET6_ADDRSTRLEN);			\
	snprintf(__entry->addr, INET6_ADDRSTRLEN, "%pISc", peer)

/* The fixed words of a header in host order: XID, version, credits, procedure. */
#define RPCRDMA_FIXED_FIELDS						\
	__field(u32, xid)						\
	__field(u32, vers)						\
	__field(u32, proc)						\
	__field(u32, credits)

#define rpcrdma_assign_fixed						\
	__entry->xid = fixed[0];					\
	__entry->vers = fixed[1];					\
	__entry->credits = fixed[2];					\
	__entry->proc = fixed[3]

/* The ways to convey a Call or its Reply: ChunkType in rust/trace/args.rs. */
#define xprtrdma_show_chunktype(x)					\
	__print_symbolic(x,						\
		{ 0, "inline" },					\
		{ 1, "pullup" },					\
		{ 2, "mapped" },					\
		{ 3, "read list" },					\
		{ 4, "*read list" },					\
		{ 5, "write list" },					\
		{ 6, "reply chunk" })

/* Procedures of RFC 8166 section 4.2.4. */
#define svcrdma_show_proc(x)						\
	__print_symbolic(x,						\
		{ 0, "RDMA_MSG" },					\
		{ 1, "RDMA_NOMSG" },					\
		{ 2, "RDMA_MSGP" },					\
		{ 3, "RDMA_DONE" },					\
		{ 4, "RDMA_ERROR" })

#endif
