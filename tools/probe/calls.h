/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The Calls of the kernel's client, parsed.
 */

#ifndef CALLS_H
#define CALLS_H

#include "conn.h"
#include "encode.h"

struct call {
	uint32_t xid, credits, proc;
	unsigned int sent;		/* bytes of the Send */
	uint32_t position;		/* of the Read list */
	struct chunk reads;		/* the segments of the Read list */
	struct chunk write;		/* the first Write chunk */
	unsigned int writes;		/* Write chunks */
	struct chunk reply;
	uint8_t *rpc;			/* the RPC message, or the inline part of it */
	unsigned int len;
	bool complete;			/* the Read list has been read into rpc */
	uint32_t program, version, procedure;
};

enum call_event { CALL_NONE, CALL_RECEIVED, CALL_CONN_LOST, CALL_INVALID };

enum call_event next_call(struct conn *c, struct call *call, int ms);
struct call *queued_call(struct conn *c, unsigned int i);
void drop_queued_calls(void);
void free_call(struct call *call);
bool reassemble_call(struct conn *c, struct call *call);

#endif
