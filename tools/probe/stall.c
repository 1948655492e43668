// SPDX-License-Identifier: GPL-2.0
/*
 * Ways for a client to keep the server's work requests from completing.
 */

#include <errno.h>
#include <string.h>
#include "nfs4.h"
#include "probe.h"
#include "stall.h"
#include "transfer.h"

#define WRITES		24	/* the server is still reading for them after the last was sent */

/* Posts @n WRITEs of WRITE_SIZE bytes, each with a Read chunk. */
bool post_writes(struct conn *c, unsigned int n)
{
	struct segment data;
	struct enc e;
	unsigned int i;

	for (i = 0; i < n; i++) {
		data = area_segment(c, i % (AREA / WRITE_SIZE) * WRITE_SIZE, WRITE_SIZE);
		e.len = 0;
		enc_write_call(&e, new_xid(), &data);
		if (!post_msg(c, &e))
			return false;
	}
	return true;
}

/*
 * Makes the server read, and answers no RDMA Read from then on: a queue pair in the RESET state
 * drops all packets. With params_long_timeout the server's device waits very long.
 */
bool stop_read_responses(struct conn *c)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	unsigned int i;

	if (!post_writes(c, WRITES))
		return false;
	for (i = 0; i < WRITES; i++)
		if (!wait_sent(c))
			return false;
	if (ibv_modify_qp(c->id->qp, &reset, IBV_QP_STATE))
		return fail("ibv_modify_qp: %s", strerror(errno));
	return true;
}

/* Makes the server send Replies, and posts no Receives for the last @replies of them. */
bool withhold_receives(struct conn *c, unsigned int replies)
{
	struct ibv_wc wc;
	struct enc e;
	unsigned int i;

	if (!set_min_rnr_timer(c))
		return false;
	for (i = 0; i < RECVS + replies; i++) {
		enc_null_call(&e, new_xid());
		if (!send_msg(c, &e))
			return false;
		if (i < RECVS && !wait_cq(c->rcq, &wc, PATIENCE_MS))
			return fail("no Reply to Call %u", i);
	}
	return true;
}
