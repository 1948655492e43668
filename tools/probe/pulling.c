// SPDX-License-Identifier: GPL-2.0
/*
 * What a client does with a Reply that is exposed to it.
 */

#include "probe.h"

/* Asks for more than a message holds, and offers no chunk for it. */
bool ask_much(struct conn *c, uint32_t xid)
{
	struct enc e = { .n = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, ASKED);
	return send_msg(c, &e);
}

/* Leaves @at behind the Read list. */
bool is_exposed_beside(const struct reply *r, uint32_t xid, struct exposed *x, unsigned int *at)
{
	unsigned int w = 4;

	if (r->len < 28 + 24 || get_word(r->p, HDR_XID) != xid || get_word(r->p, HDR_PROC) != RDMA_NOMSG)
		return fail("%u octets, xid %x (wanted %x), proc %u", r->len, get_word(r->p, HDR_XID), xid,
			    get_word(r->p, HDR_PROC));
	x->xid = xid;
	x->length = 0;
	for (x->n = 0; get_word(r->p, w) == 1 && x->n < SEGMENTS; x->n++, w += 6) {
		if (get_word(r->p, w + 1))
			return fail("segment %u is not at Position zero", x->n);
		x->seg[x->n].handle = get_word(r->p, w + 2);
		x->seg[x->n].length = get_word(r->p, w + 3);
		x->seg[x->n].offset = (uint64_t)get_word(r->p, w + 4) << 32 | get_word(r->p, w + 5);
		x->length += x->seg[x->n].length;
	}
	if (!x->n || x->length < ASKED || x->length > 65536)
		return fail("%u octets in %u segments", x->length, x->n);
	*at = w + 1;
	return true;
}

static bool is_exposed(const struct reply *r, uint32_t xid, struct exposed *x)
{
	unsigned int w;

	return is_exposed_beside(r, xid, x, &w) && no_more_returned(r, w);
}

bool have_exposed(struct conn *c, struct exposed *x)
{
	uint32_t xid = next_xid++;
	struct reply r;

	if (!ask_much(c, xid) || !get_reply(c, &r, 5000))
		return false;
	return r.any ? is_exposed(&r, xid, x) : fail("no answer");
}

/* Reads what is exposed; the status of the first completion that is not good. */
int read_exposed(struct conn *c, const struct exposed *x)
{
	unsigned int i, at = 0;
	int status;

	memset(c->area, 0xee, x->length);
	for (i = 0; i < x->n; i++) {
		status = rdma(c, IBV_WR_RDMA_READ, x->seg[i].handle, x->seg[i].offset,
			      x->seg[i].length, at);
		if (status)
			return status;
		at += x->seg[i].length;
	}
	return 0;
}

bool pull_exposed(struct conn *c, const struct exposed *x)
{
	int status = read_exposed(c, x);

	if (status)
		return fail("RDMA Read: %d", status);
	if (!compound_ok(c->area, 2) || get_word(c->area, RPC_XID) != x->xid)
		return fail("not the Reply");
	return same("data", c->area + x->length - ASKED - 3, 0, ASKED);
}

bool say_done(struct conn *c, uint32_t xid)
{
	struct enc e = { .n = 0 };

	enc_call_hdr(&e, xid, RDMA_DONE);
	return send_msg(c, &e);
}

/* And one handle is not needed any more. */
bool say_done_with(struct conn *c, uint32_t xid, uint32_t handle)
{
	struct enc e = { .n = 0 };

	enc_call_hdr(&e, xid, RDMA_DONE);
	return post_invalidating(c, &e, handle);
}
