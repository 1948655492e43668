// SPDX-License-Identifier: GPL-2.0
/*
 * A client with Read lists that are invalid, or longer than the server supports.
 */

#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"

/* A Read segment, at a Position relative to the data of a WRITE. */
struct item {
	int position;
	uint32_t len;
};

/* A WRITE of @count bytes with these Read segments, and @inline_len bytes of inline data. */
static void enc_write_items(struct conn *c, struct enc *e, uint32_t xid, const struct item *items,
			    unsigned int n, unsigned int count, unsigned int inline_len)
{
	struct enc rpc = { .len = 0 };
	unsigned int i, position;

	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, 0, count);
	enc_bytes(&rpc, c->area, inline_len);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < n; i++)
		enc_rseg(e, position + items[i].position, c->area_mr->rkey, items[i].len,
			 area_addr(c, 0));
	enc_no_chunks(e);
	enc_bytes(e, rpc.buf, rpc.len);
}

static bool items_written(struct conn *c, const struct item *items, unsigned int n,
			  unsigned int count)
{
	struct enc e;

	enc_write_items(c, &e, new_xid(), items, n, count, 0);
	return compound_succeeds(c, &e, 2);
}

static bool items_refused(struct conn *c, const struct item *items, unsigned int n,
			  unsigned int count)
{
	const uint32_t xid = new_xid();
	struct enc e;

	enc_write_items(c, &e, xid, items, n, count, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_unaligned_positions(struct conn *c)
{
	static const struct item valid = { 0, 4096 };
	static const struct item invalid[] = { { 1, 4096 }, { 2, 4096 }, { 3, 4096 } };
	unsigned int i;

	if (!items_written(c, &valid, 1, 4096))
		return false;
	for (i = 0; i < COUNT(invalid); i++)
		if (!items_refused(c, &invalid[i], 1, 4096))
			return false;
	return true;
}

/* A NULL Call with a Read chunk at this Position. */
static bool position_refused(struct conn *c, uint32_t position)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, position, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_nfs4_call(&e, xid, NFSPROC4_NULL);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_far_positions(struct conn *c)
{
	return position_refused(c, 0xfffffffc) && position_refused(c, 4096) &&
	       position_refused(c, 65536) && position_refused(c, 0x7ffffffc);
}

static bool t_positions(struct conn *c)
{
	static const struct item adjacent[] = { { 0, 4096 }, { 4096, 4096 } };
	static const struct item overlapping[] = { { 0, 4096 }, { 4, 4096 } };

	return items_written(c, adjacent, 2, 8192) && items_refused(c, overlapping, 2, 8192) &&
	       position_refused(c, 0);
}

/* Huge lengths: of a Position-zero chunk, and of the second segment of a WRITE's data. */
static bool t_read_lengths(struct conn *c)
{
	static const uint32_t huge[] = { 0xffffffff, 0x7fffffff, 0xfffff000, 64 << 20 };
	const struct item valid[] = { { 0, 1 }, { 0, 4095 } };
	unsigned int i;

	if (!items_written(c, valid, 2, 4096))
		return false;
	for (i = 0; i < COUNT(huge); i++) {
		const struct item items[] = { { 0, 1 }, { 0, huge[i] } };
		const uint32_t xid = new_xid();
		struct enc e = { .len = 0 };

		enc_call_hdr(&e, xid, RDMA_NOMSG);
		enc_rseg(&e, 0, c->area_mr->rkey, huge[i], area_addr(c, 0));
		enc_no_chunks(&e);
		if (!refused(c, &e, xid, ERR_CHUNK) || !items_refused(c, items, 2, 4096))
			return false;
	}
	return true;
}

/* Data in forty chunks, with inline data between: the server reassembles or refuses it. */
static bool t_many_chunks(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct item items[40];
	unsigned int i, at;
	struct reply r;
	struct enc e;

	for (i = 0; i < COUNT(items); i++)
		items[i] = (struct item) { .position = 8 * i, .len = 4 };
	enc_write_items(c, &e, xid, items, COUNT(items), 8 * COUNT(items), 4 * COUNT(items));
	if (!exchange(c, &e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	return reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static const struct test tests[] = {
	{ "R8166-3.4.5-3", "Positions that are no multiple of four", t_unaligned_positions },
	{ "R8166-4.5.2-1", "Positions beyond the message", t_far_positions },
	{ "R8166-4.5.2-1", "overlapping Read chunks", t_positions },
	{ "R8166-3.4.4-2 R8166-8.1.4-1", "huge Read chunks", t_read_lengths },
	{ "R8166-8.1.4-1", "more Read chunks than the server supports", t_many_chunks },
};

const struct group group_bad_read_lists = {
	.name = "bad_read_lists", .about = "a client with invalid Read lists",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
