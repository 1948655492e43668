// SPDX-License-Identifier: GPL-2.0
/*
 * A client's handling of exposed Replies.
 */

#include <string.h>
#include "expect.h"
#include "exposed_reply.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define LONGEST		65536	/* bytes of a Reply that is plausible */

/* Sends a READ whose Reply is too long for a Send, without a chunk for it. */
bool request_long_reply(struct conn *c, uint32_t xid)
{
	struct enc e = { .len = 0 };

	enc_inline_read_call(&e, xid, LONG_READ);
	return send_msg(c, &e);
}

/* Parses the announcement of an exposed Reply. @w is the first word behind its Read list. */
bool parse_exposed(const struct reply *r, uint32_t xid, struct exposed *x, unsigned int *w)
{
	const uint8_t *p = r->p + HDR_FIXED_LEN;

	if (r->len < HDR_EMPTY_LEN + RSEGMENT_LEN || get_word(r->p, HDR_XID) != xid ||
	    get_word(r->p, HDR_PROC) != RDMA_NOMSG)
		return fail("%u bytes, xid %x (expected %x), proc %u", r->len,
			    get_word(r->p, HDR_XID), xid, get_word(r->p, HDR_PROC));
	x->xid = xid;
	x->length = 0;
	for (x->n = 0; get_word(p, 0) == 1 && x->n < SEGMENTS; x->n++, p += RSEGMENT_LEN) {
		if (get_word(p, 1))
			return fail("segment %u is at Position %u", x->n, get_word(p, 1));
		x->seg[x->n] = (struct segment) {
			.handle = get_word(p, 2), .length = get_word(p, 3),
			.offset = get_dword(p, 4),
		};
		x->length += x->seg[x->n].length;
	}
	if (!x->n || x->length < LONG_READ || x->length > LONGEST)
		return fail("%u bytes exposed in %u segments", x->length, x->n);
	*w = HDR_LISTS + RSEGMENT_WORDS * x->n + 1;
	return true;
}

/* Makes the server expose a Reply. */
bool get_exposed(struct conn *c, struct exposed *x)
{
	const uint32_t xid = new_xid();
	struct reply r;
	unsigned int w;

	if (!request_long_reply(c, xid) || !get_reply(c, &r, PATIENCE_MS))
		return false;
	if (!r.any)
		return fail("no Reply");
	return parse_exposed(&r, xid, x, &w) && no_more_chunks(&r, w);
}

/* Reads the exposed Reply. Returns the first completion status that is not success. */
int read_exposed(struct conn *c, const struct exposed *x)
{
	unsigned int i, at = 0;
	int status;

	memset(c->area, 0xee, x->length);
	for (i = 0; i < x->n; i++) {
		status = rdma(c, IBV_WR_RDMA_READ, &x->seg[i], at);
		if (status)
			return status;
		at += x->seg[i].length;
	}
	return 0;
}

/* Reads and verifies the exposed Reply. */
bool pull_exposed(struct conn *c, const struct exposed *x)
{
	const int status = read_exposed(c, x);

	if (status)
		return fail("RDMA Read: %d", status);
	if (!compound_ok_xid(c->area, x->xid, 2))
		return false;
	return check_pattern("data", c->area + x->length - xdr_align(LONG_READ), 0, LONG_READ);
}

bool send_done(struct conn *c, uint32_t xid)
{
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_DONE);
	return send_msg(c, &e);
}

/* Posts an RDMA_DONE that invalidates a handle of the server. */
bool post_done_invalidating(struct conn *c, uint32_t xid, uint32_t handle)
{
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_DONE);
	return post_invalidating(c, &e, handle);
}
