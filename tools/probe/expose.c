// SPDX-License-Identifier: GPL-2.0
/*
 * A server's exposed Replies, and the client's RDMA_DONEs for them: one for each announcement.
 */

#include <string.h>
#include "answers.h"
#include "expose.h"
#include "probe.h"
#include "serve.h"
#include "transfer.h"

/* RDMA_DONEs that the client has to send, by XID. */
static struct {
	uint32_t xid;
	unsigned int n;
} owed[RECVS];

void forget_owed(void)
{
	memset(owed, 0, sizeof(owed));
}

static void add_owed(uint32_t xid)
{
	static unsigned int last;
	unsigned int i;

	if (first_in_case(&last))
		forget_owed();
	for (i = 0; i < COUNT(owed) - 1 && owed[i].n && owed[i].xid != xid; i++)
		;
	owed[i].xid = xid;
	owed[i].n++;
	serving.call_seen = false;
}

/* Checks an RDMA_DONE. The case has seen what it is about when none is owed any more. */
bool take_done(const struct call *call)
{
	unsigned int i, left = 0;
	bool known = false;

	if (call->sent != HDR_FIXED_LEN || !call->credits)
		return fail("RDMA_DONE of %u bytes, %u credits", call->sent, call->credits);
	for (i = 0; i < COUNT(owed); i++) {
		if (owed[i].n && owed[i].xid == call->xid && !known) {
			known = true;
			owed[i].n--;
		}
		left += owed[i].n;
	}
	serving.call_seen = !left;
	return known ? true : fail("RDMA_DONE for xid %x, which is not exposed", call->xid);
}

/* Puts the right Reply at this place of the exposed part. Returns its length, or 0. */
unsigned int place_reply(struct conn *c, struct call *call, unsigned int at)
{
	unsigned int len;
	const uint8_t *reply = reference_reply(c, call, &len);

	if (!reply)
		return 0;
	memcpy(c->area + EXPOSED_AT + at, reply, len);
	return len;
}

void add_segment(struct conn *c, struct chunk *x, unsigned int at, uint32_t len)
{
	x->seg[x->n++] = area_segment(c, EXPOSED_AT + at, len);
}

/* Sends a message that announces an exposed Reply, for which the client owes an RDMA_DONE. */
bool announce_message(struct conn *c, uint32_t xid, const struct enc *e)
{
	add_owed(xid);
	return send_msg(c, e);
}

bool announce(struct conn *c, uint32_t xid, const struct chunk *x, uint32_t position)
{
	struct enc e = { .len = 0 };
	unsigned int i;

	enc_hdr(&e, xid, RPCRDMA_VERSION, serving.grant, RDMA_NOMSG);
	for (i = 0; i < x->n; i++)
		enc_rseg(&e, position, x->seg[i].handle, x->seg[i].length, x->seg[i].offset);
	enc_no_chunks(&e);
	return announce_message(c, xid, &e);
}

/* Exposes the right Reply in one segment, unless the Call has a Reply chunk for it. */
bool expose_reply(struct conn *c, struct call *call)
{
	struct chunk x = { .n = 0 };
	unsigned int len;

	if (call->reply.n)
		return answer_correctly(c, call);
	len = place_reply(c, call, 0);
	add_segment(c, &x, 0, len);
	return len && announce(c, call->xid, &x, 0);
}
