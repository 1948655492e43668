// SPDX-License-Identifier: GPL-2.0
/*
 * Headers, right and wrong.
 */

#include "probe.h"

bool t_null(struct conn *c)
{
	return alive(c);
}

bool t_private(struct conn *c)
{
	static const uint8_t id[4] = { 0xf6, 0xab, 0x0e, 0x18 };

	if (c->peer_private_len < 8 || memcmp(c->peer_private, id, 4) || c->peer_private[4] != 1)
		return fail("no message (%d octets)", c->peer_private_len);
	return c->peer_private[5] == 1 ? true : fail("flags %x", c->peer_private[5]);
}

bool t_credits(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	call(&e, xid, 0);
	if (!exchange(c, &e, &r))
		return false;
	return get(r.p, 2) ? true : fail("no credits granted");
}

bool t_version(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct reply r;
	uint32_t xid = next_xid++;

	hdr(&e, xid, 2, 32, MSG);
	lists_none(&e);
	call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !is_error(&r, xid, ERR_VERS))
		return false;
	if (get(r.p, 1) != 2 || get(r.p, 5) != 1 || get(r.p, 6) != 1)
		return fail("vers %u, range %u..%u", get(r.p, 1), get(r.p, 5), get(r.p, 6));
	return alive(c);
}

bool t_short(struct conn *c)
{
	unsigned int n;

	for (n = 0; n < 28; n += 4) {
		struct enc e = { .n = 0 };

		hdr(&e, next_xid++, 1, 32, MSG);
		lists_none(&e);
		e.n = n;
		/* A length of zero cannot be told from no message by some providers. */
		if (n && !ignored(c, &e))
			return false;
	}
	return true;
}

bool t_procs(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSGP);
	u32(&e, 8);
	u32(&e, 0);
	lists_none(&e);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	e.n = 0;
	xid = next_xid++;
	hdr(&e, xid, 1, 32, 77);
	lists_none(&e);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	e.n = 0;
	hdr(&e, next_xid++, 1, 32, DONE);
	lists_none(&e);
	if (!ignored(c, &e))
		return false;
	e.n = 0;
	hdr(&e, next_xid++, 1, 32, ERROR);
	u32(&e, ERR_CHUNK);
	lists_none(&e);
	return ignored(c, &e);
}

bool t_nomsg_empty(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, NOMSG);
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

bool t_xid(struct conn *c)
{
	struct enc e = { .n = 0 };
	uint32_t xid = next_xid++;

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	call(&e, xid ^ 0x80000000, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

bool t_bad_lists(struct conn *c)
{
	static const uint32_t counts[] = { 0x7fffffff, 0x10000000, 0xffffffff, 300 };
	struct enc e = { .n = 0 };
	unsigned int i;
	uint32_t xid;

	/* Discriminators that are no booleans, in each list. */
	for (i = 0; i < 3; i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		u32(&e, i == 0 ? 5 : 0);
		u32(&e, i == 1 ? 5 : 0);
		u32(&e, i == 2 ? 5 : 0);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* Counts beyond the message, in the Write list and in the Reply chunk. */
	for (i = 0; i < 8; i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		u32(&e, 0);
		if (i & 1)
			u32(&e, 0);
		u32(&e, 1);
		u32(&e, counts[i / 2]);
		seg(&e, c->area_mr->rkey, 4096, at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	return true;
}

bool t_positions(struct conn *c)
{
	static const uint32_t bad[] = { 3, 0xfffffffc, 4096, 65536, 0x7ffffffc };
	struct enc e = { .n = 0 };
	unsigned int i;
	uint32_t xid;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		rseg(&e, bad[i], c->area_mr->rkey, 4096, at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* Overlapping chunks. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, 40, c->area_mr->rkey, 4096, at_area(c, 0));
	rseg(&e, 44, c->area_mr->rkey, 4096, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	if (!refused(c, &e, xid, ERR_CHUNK))
		return false;
	/* A Position-zero chunk in a message that has its payload inline. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, 0, c->area_mr->rkey, 64, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

bool t_read_lengths(struct conn *c)
{
	static const uint32_t bad[] = { 0xffffffff, 0x7fffffff, 0xfffff000, 64 << 20 };
	struct enc e = { .n = 0 };
	unsigned int i, k;
	uint32_t xid;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, NOMSG);
		rseg(&e, 0, c->area_mr->rkey, bad[i], at_area(c, 0));
		lists_none(&e);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
		xid = next_xid++;
		e.n = 0;
		hdr(&e, xid, 1, 32, MSG);
		rseg(&e, 40, c->area_mr->rkey, 1, at_area(c, 0));
		rseg(&e, 40, c->area_mr->rkey, bad[i], at_area(c, 0));
		lists_none(&e);
		call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	/* More chunks than anybody pulls. */
	xid = next_xid++;
	e.n = 0;
	hdr(&e, xid, 1, 32, MSG);
	for (k = 0; k < 40; k++)
		rseg(&e, 4 + 8 * k, c->area_mr->rkey, 4, at_area(c, 0));
	lists_none(&e);
	call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}
