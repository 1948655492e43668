// SPDX-License-Identifier: GPL-2.0
/*
 * Headers, right and wrong.
 */

#include "compat.h"

static bool t_null(struct conn *c)
{
	return alive(c);
}

static bool t_private(struct conn *c)
{
	static const uint8_t id[4] = { 0xf6, 0xab, 0x0e, 0x18 };

	if (c->peer_private_len < 8 || memcmp(c->peer_private, id, 4) || c->peer_private[4] != 1)
		return fail("no message (%d octets)", c->peer_private_len);
	return c->peer_private[5] & 0xfe ? fail("flags %x", c->peer_private[5]) : true;
}

static bool t_credits(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();

	enc_null_call(&e, xid);
	if (!exchange(c, &e, &r))
		return false;
	return get_word(r.p, HDR_CREDITS) ? true : fail("no credits granted");
}

static bool t_version(struct conn *c)
{
	static const uint32_t others[] = { 0, 2, 0xffffffff };
	unsigned int i;

	for (i = 0; i < COUNT(others); i++) {
		struct enc e = { .len = 0 };
		struct reply r;
		uint32_t xid = new_xid();

		enc_hdr(&e, xid, others[i], 32, RDMA_MSG);
		enc_no_chunks(&e);
		enc_nfs4_call(&e, xid, 0);
		if (!exchange(c, &e, &r) || !is_err_vers(&r, xid, others[i]) || !alive(c))
			return false;
	}
	return true;
}

static bool t_short(struct conn *c)
{
	/* A length of zero cannot be told from no message by some providers. */
	static const unsigned int lengths[] = { 1, 4, 8, 12, 15, 16, 20, 24, 27 };
	unsigned int i;

	for (i = 0; i < COUNT(lengths); i++) {
		struct enc e = { .len = 0 };

		enc_call_hdr(&e, new_xid(), RDMA_MSG);
		enc_no_chunks(&e);
		e.len = lengths[i];
		if (!ignored(c, &e))
			return fail("%u octets: %s", lengths[i], probe.reason);
	}
	return true;
}

/* A Call of the NULL procedure by another procedure of the transport. */
static void by_procedure(struct enc *e, uint32_t xid, uint32_t proc)
{
	enc_call_hdr(e, xid, proc);
	if (proc == RDMA_MSGP)
		enc_u64(e, 0x800000000);
	if (proc == RDMA_ERROR)
		enc_u32(e, ERR_CHUNK);
	enc_no_chunks(e);
	enc_nfs4_call(e, xid, 0);
}

static bool t_msgp(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	by_procedure(&e, xid, RDMA_MSGP);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_unknown_procedure(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	by_procedure(&e, xid, 77);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_done(struct conn *c)
{
	struct enc e = { .len = 0 };

	by_procedure(&e, new_xid(), RDMA_DONE);
	return ignored(c, &e);
}

static bool t_error(struct conn *c)
{
	struct enc e = { .len = 0 };

	by_procedure(&e, new_xid(), RDMA_ERROR);
	return ignored(c, &e);
}

/*
 * No chunk holds the payload: there is none, or only one of another list, or only a Read chunk
 * that belongs elsewhere. That there is a Call behind the header is of no help.
 */
static bool t_nomsg_empty(struct conn *c)
{
	enum { NO_CHUNK, READ_CHUNK, WRITE_CHUNK, REPLY_CHUNK, KINDS };
	const uint32_t handle = c->area_mr->rkey;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		const uint32_t xid = new_xid();
		struct enc e = { .len = 0 }, m = { .len = 0 };

		enc_nfs4_call(&m, xid, 0);
		memcpy(c->area, m.buf, m.len);
		enc_call_hdr(&e, xid, RDMA_NOMSG);
		if (kind == READ_CHUNK)
			enc_rseg(&e, m.len, handle, m.len, area_addr(c, 0));
		enc_u32(&e, 0);
		if (kind == WRITE_CHUNK) {
			enc_u64(&e, 0x100000001);
			enc_seg(&e, handle, 4096, area_addr(c, 0));
		}
		enc_u32(&e, 0);
		if (kind == REPLY_CHUNK) {
			enc_u64(&e, 0x100000001);
			enc_seg(&e, handle, 4096, area_addr(c, 0));
		} else {
			enc_u32(&e, 0);
		}
		enc_bytes(&e, m.buf, m.len);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return fail("kind %d: %s", kind, probe.reason);
	}
	return true;
}

/* A Call with another XID than its header's, inline or to be pulled: is it refused? */
static bool of_two_xids(struct conn *c, bool pulled, bool *refused)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 }, m = { .len = 0 };
	struct reply r;

	enc_nfs4_call(&m, xid ^ 0x80000000, 0);
	memcpy(c->area, m.buf, m.len);
	enc_call_hdr(&e, xid, pulled ? RDMA_NOMSG : RDMA_MSG);
	if (pulled)
		enc_rseg(&e, 0, c->area_mr->rkey, m.len, area_addr(c, 0));
	enc_no_chunks(&e);
	if (!pulled)
		enc_bytes(&e, m.buf, m.len);
	if (!exchange(c, &e, &r))
		return false;
	*refused = get_word(r.p, HDR_PROC) == RDMA_ERROR;
	return (!*refused || is_error(&r, xid, ERR_CHUNK)) && alive(c);
}

/* The transport may look at the XID in its own header alone. */
static bool t_xid(struct conn *c)
{
	bool refused;

	return of_two_xids(c, false, &refused);
}

/* Who compares them compares those of Long Calls as well. */
static bool t_xid_pulled(struct conn *c)
{
	bool compares, refused;

	if (!of_two_xids(c, false, &compares) || !of_two_xids(c, true, &refused))
		return false;
	return refused || !compares ? true : fail("compared if inline only");
}

/*
 * A READ with a Write chunk or a Reply chunk, or a WRITE with a Read chunk, all of them good
 * but that this, and not 1, says that there is one.
 */
static void discriminated(struct conn *c, struct enc *e, uint32_t xid, unsigned int list,
			  uint32_t present)
{
	const uint32_t handle = c->area_mr->rkey;

	e->len = 0;
	if (list == 0)
		old_enc_write_call(e, xid, handle, area_addr(c, 0), 1000);
	if (list == 1)
		old_enc_read_call(e, xid, handle, 4096, area_addr(c, 0), 1000);
	if (list == 2) {
		old_enc_reply_chunk_hdr(e, xid, handle, 8192, area_addr(c, 0));
		enc_compound(e, xid, 2);
		enc_lookup(e, "probe");
		enc_read(e, 0, 5000);
	}
	put_word(e, 4 + list, present);
}

/* Discriminators that are no booleans, in each list: nothing but that is wrong with them. */
static bool t_discriminators(struct conn *c)
{
	static const uint32_t none[] = { 2, 5, 0x01000000, 0xffffffff };
	struct enc e;
	struct reply r;
	unsigned int list, i, at;
	uint32_t xid;

	for (list = 0; list < 3; list++) {
		xid = new_xid();
		discriminated(c, &e, xid, list, 1);
		if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
			return fail("list %u as it should be: %s", list, probe.reason);
		for (i = 0; i < COUNT(none); i++) {
			xid = new_xid();
			discriminated(c, &e, xid, list, none[i]);
			if (!refused(c, &e, xid, ERR_CHUNK))
				return fail("list %u, %x: %s", list, none[i], probe.reason);
		}
	}
	return true;
}

/* Counts beyond the message, in the Write list and in the Reply chunk. */
static bool t_counts(struct conn *c)
{
	static const uint32_t counts[] = { 0x7fffffff, 0x10000000, 0xffffffff, 300 };
	struct enc e = { .len = 0 };
	unsigned int i;
	uint32_t xid;

	for (i = 0; i < 8; i++) {
		xid = new_xid();
		e.len = 0;
		enc_call_hdr(&e, xid, RDMA_MSG);
		enc_u32(&e, 0);
		if (i & 1)
			enc_u32(&e, 0);
		enc_u32(&e, 1);
		enc_u32(&e, counts[i / 2]);
		enc_seg(&e, c->area_mr->rkey, 4096, area_addr(c, 0));
		enc_no_chunks(&e);
		enc_nfs4_call(&e, xid, 0);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return false;
	}
	return true;
}

/* A Read segment, so many octets from where the data of a WRITE belongs. */
struct item {
	int by;
	uint32_t len;
};

/* A WRITE with these Read segments for its data, and so many octets of it inline. */
static void write_of(struct conn *c, struct enc *e, uint32_t xid, const struct item *items,
		     unsigned int n, unsigned int count, unsigned int inl)
{
	struct enc m = { .len = 0 };
	unsigned int i, pos;

	enc_compound(&m, xid, 2);
	enc_lookup(&m, "probe");
	pos = enc_write(&m, 0, count);
	enc_bytes(&m, c->area, inl);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < n; i++)
		enc_rseg(e, pos + items[i].by, c->area_mr->rkey, items[i].len, area_addr(c, 0));
	enc_no_chunks(e);
	enc_bytes(e, m.buf, m.len);
}

static bool writes(struct conn *c, const struct item *items, unsigned int n, unsigned int count)
{
	const uint32_t xid = new_xid();
	unsigned int at;
	struct reply r;
	struct enc e;

	write_of(c, &e, xid, items, n, count, 0);
	return exchange(c, &e, &r) && reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool refuses(struct conn *c, const struct item *items, unsigned int n, unsigned int count)
{
	const uint32_t xid = new_xid();
	struct enc e;

	write_of(c, &e, xid, items, n, count, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

/* What is wrong with them is the position alone: where the data belongs, all is well. */
static bool t_odd_positions(struct conn *c)
{
	static const struct item good = { 0, 4096 }, odd[] = { { 1, 4096 }, { 2, 4096 }, { 3, 4096 } };

	return writes(c, &good, 1, 4096) && refuses(c, &odd[0], 1, 4096) &&
	       refuses(c, &odd[1], 1, 4096) && refuses(c, &odd[2], 1, 4096);
}

static bool position(struct conn *c, uint32_t position)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, position, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_nfs4_call(&e, xid, 0);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool t_far_positions(struct conn *c)
{
	return position(c, 0xfffffffc) && position(c, 4096) && position(c, 65536) &&
	       position(c, 0x7ffffffc);
}

static bool t_positions(struct conn *c)
{
	static const struct item next[] = { { 0, 4096 }, { 4096, 4096 } };
	static const struct item overlapping[] = { { 0, 4096 }, { 4, 4096 } };

	return writes(c, next, 2, 8192) && refuses(c, overlapping, 2, 8192) && position(c, 0);
}

/* The Call alone, or one octet of the data and all too many. */
static bool t_read_lengths(struct conn *c)
{
	static const uint32_t bad[] = { 0xffffffff, 0x7fffffff, 0xfffff000, 64 << 20 };
	const struct item good[] = { { 0, 1 }, { 0, 4095 } };
	unsigned int i;

	if (!writes(c, good, 2, 4096))
		return false;
	for (i = 0; i < COUNT(bad); i++) {
		const struct item items[] = { { 0, 1 }, { 0, bad[i] } };
		const uint32_t xid = new_xid();
		struct enc e = { .len = 0 };

		enc_call_hdr(&e, xid, RDMA_NOMSG);
		enc_rseg(&e, 0, c->area_mr->rkey, bad[i], area_addr(c, 0));
		enc_no_chunks(&e);
		if (!refused(c, &e, xid, ERR_CHUNK) || !refuses(c, items, 2, 4096))
			return false;
	}
	return true;
}

/* An item in many small chunks, with inline data between: to be put together, or refused. */
static bool t_many_chunks(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct item items[40];
	unsigned int k, at;
	struct reply r;
	struct enc e;

	for (k = 0; k < COUNT(items); k++)
		items[k] = (struct item){ 8 * k, 4 };
	write_of(c, &e, xid, items, COUNT(items), 8 * COUNT(items), 4 * COUNT(items));
	if (!exchange(c, &e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	return reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static const struct test tests[] = {
	{ "R8166-3.5.1-1 R8166-4.2.4-1 R8166-4.2.1-1", "a Call without arguments", t_null },
	{ "R8166-3.3.3-1 R8797-1-1", "without private data", t_null, .params = &params_no_private },
	{ "R8797-4-3 CM0-3.1-1 CM0-3.1-2 CM0-3.1.1-2", "private data of the server", t_private },
	{ "R8166-3.3.1-2 R8166-3.3.1-4", "credits", t_credits },
	{ "R8166-4.5.1-1 R8166-4.5-4 R8166-4.5-5 R8166-4.5-6", "another version", t_version },
	{ "R8166-4.5-1", "too short to be a header", t_short },
	{ "R8166-4.6.1-2", "RDMA_MSGP", t_msgp },
	{ "R8166-4.5.2-1 R8166-4.5-2", "an unknown procedure", t_unknown_procedure },
	{ "R8166-4.6.2-2", "RDMA_DONE", t_done },
	{ "R8166-4.2.4-5", "RDMA_ERROR", t_error },
	{ "R8166-4.2.4-2 R8166-4.5.2-1", "RDMA_NOMSG without a chunk", t_nomsg_empty },
	{ "R8166-4.2.1-2", "different XIDs in header and payload", t_xid },
	{ "R8166-4.2.1-2", "different XIDs in a Long Call", t_xid_pulled },
	{ "R8166-4.1.2-6", "discriminators that are no booleans", t_discriminators },
	{ "R8166-4.5.2-1 R8166-4.5-2", "more segments than the message holds", t_counts },
	{ "R8166-3.4.5-3", "Positions that are no multiple of four", t_odd_positions },
	{ "R8166-4.5.2-1", "Positions beyond the message", t_far_positions },
	{ "R8166-4.5.2-1", "chunks in each other's place", t_positions },
	{ "R8166-3.4.4-2 R8166-8.1.4-1", "bad Read lengths", t_read_lengths },
	{ "R8166-8.1.4-1", "more chunks than it takes", t_many_chunks },
	{ "R8166-4.5-2", "and all is well", t_null },
};

const struct group group_headers = {
	.name = "headers", .about = "a client with headers right and wrong",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
