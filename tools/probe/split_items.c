// SPDX-License-Identifier: GPL-2.0
/*
 * A client that tears apart what belongs together: some of it is inline, some in a Read chunk.
 */

#include "compat.h"

enum { SYMLINK3 = 10 };

/* Begins a compound of so many operations in the directory, without chunks. */
static void begin(struct enc *e, unsigned int ops)
{
	const uint32_t xid = new_xid();

	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_compound(e, xid, ops);
}

static bool done(struct conn *c, const struct enc *e, unsigned int ops, struct reply *r,
		 unsigned int *at)
{
	return exchange(c, e, r) && reply_body(r, get_word(e->buf, HDR_XID), at) && compound_ok(r->p + *at, ops);
}

/* The handle of the directory, which is the same for each version. */
static unsigned int directory(struct conn *c, uint8_t handle[64])
{
	unsigned int at, len;
	struct reply r;
	struct enc e;

	begin(&e, 1);
	enc_u32(&e, GETFH);
	if (!done(c, &e, 1, &r, &at))
		return 0;
	/* Behind the results of PUTROOTFH and LOOKUP. */
	at += 36 + 8 + 8 + 8;
	len = get_word(r.p + at, RPC_XID);
	if (!len || len > 64) {
		fail("a handle of %u octets", len);
		return 0;
	}
	memcpy(handle, r.p + at + 4, len);
	return len;
}

static bool removed(struct conn *c, const char *name)
{
	unsigned int at;
	struct reply r;
	struct enc e;

	begin(&e, 1);
	enc_u32(&e, REMOVE);
	enc_string(&e, name);
	return done(c, &e, 1, &r, &at);
}

/* The link says what it was made with, and nothing that was in the server's memory before. */
static bool leads_to(struct conn *c, const char *name, const char *text)
{
	const unsigned int len = strlen(text);
	unsigned int at;
	struct reply r;
	struct enc e;

	begin(&e, 2);
	enc_lookup(&e, name);
	enc_u32(&e, READLINK);
	if (!done(c, &e, 2, &r, &at))
		return false;
	at += 36 + 8 + 8 + 8 + 8;
	if (get_word(r.p + at, RPC_XID) != len)
		return fail("%u octets, not %u", get_word(r.p + at, RPC_XID), len);
	if (memcmp(r.p + at + 4, text, len))
		return fail("\"%.16s...%.16s\"", r.p + at + 4, r.p + at + 4 + len - 16);
	return true;
}

/* A SYMLINK of which so many octets are in a chunk, and all others inline behind them. */
static bool symlink_torn(struct conn *c, unsigned int in_chunk, unsigned int size)
{
	static unsigned int links;
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 }, m = { .len = 0 };
	char name[FILE_NAME_LEN], text[4096];
	unsigned int i, len, pos, at;
	uint8_t handle[64];
	struct reply r;

	len = directory(c, handle);
	if (!len)
		return false;
	snprintf(name, sizeof(name), "torn-%d-%u", getpid(), links++);
	for (i = 0; i < size; i++)
		text[i] = 'a' + i % 26;
	text[size] = 0;
	memcpy(c->area, text, in_chunk);

	enc_rpc_call(&m, xid, 3, SYMLINK3);
	enc_opaque(&m, handle, len);
	enc_string(&m, name);
	/* No attributes in particular. */
	for (i = 0; i < 6; i++)
		enc_u32(&m, 0);
	enc_u32(&m, size);
	pos = m.len;
	enc_bytes(&m, text + in_chunk, size - in_chunk);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, pos, c->area_mr->rkey, in_chunk, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_bytes(&e, m.buf, m.len);
	if (!exchange(c, &e, &r))
		return false;
	/* A server that sees that such an item is not to be torn says so. */
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	if (!reply_body(&r, xid, &at))
		return false;
	if (get_word(r.p + at, RPC_ACCEPT_STAT) || get_word(r.p + at, NFS_STATUS))
		return fail("accept_stat %u, status %u", get_word(r.p + at, RPC_ACCEPT_STAT), get_word(r.p + at, NFS_STATUS));
	return leads_to(c, name, text) && removed(c, name);
}

static bool t_symlink(struct conn *c)
{
	unsigned int turn;

	for (turn = 0; turn < 8; turn++) {
		/* What was in those pages before. */
		if (!old_write_item(c, 0, 16384, 1, false, false, false))
			return false;
		if (!symlink_torn(c, 4, 1000) || !symlink_torn(c, 996, 1000))
			return false;
	}
	return true;
}

/* Its credential is in a chunk, or some of what is before or behind that. */
static bool credential_torn(struct conn *c, bool pulled)
{
	static const unsigned int chunk[][2] = {
		{ 4, 4 }, { 20, 4 }, { 24, 4 }, { 28, 4 }, { 32, 24 }, { 32, 4 }, { 52, 4 }, { 56, 4 },
		{ 60, 4 },
	};
	unsigned int i;

	for (i = 0; i < COUNT(chunk); i++) {
		const unsigned int from = chunk[i][0], len = chunk[i][1];
		struct enc e = { .len = 0 }, m = { .len = 0 }, rest = { .len = 0 };
		const uint32_t xid = new_xid();

		enc_nfs4_call(&m, xid, 0);
		memcpy(c->area, m.buf + from, len);
		enc_bytes(&rest, m.buf, from);
		enc_bytes(&rest, m.buf + from + len, m.len - from - len);
		enc_call_hdr(&e, xid, pulled ? RDMA_NOMSG : RDMA_MSG);
		if (pulled) {
			memcpy(c->area + AREA / 2, rest.buf, rest.len);
			enc_rseg(&e, 0, c->area_mr->rkey, rest.len, area_addr(c, AREA / 2));
		}
		enc_rseg(&e, from, c->area_mr->rkey, len, area_addr(c, 0));
		enc_no_chunks(&e);
		if (!pulled)
			enc_bytes(&e, rest.buf, rest.len);
		if (!refused(c, &e, xid, ERR_CHUNK))
			return fail("octets %u to %u: %s", from, from + len - 1, probe.reason);
	}
	return true;
}

static bool t_credential(struct conn *c)
{
	return credential_torn(c, false);
}

static bool t_credential_pulled(struct conn *c)
{
	return credential_torn(c, true);
}

static const struct test tests[] = {
	{ "R8166-8.1-1", "a link's text, torn", t_symlink },
	{ "R8166-8.2.2-1", "a credential in a Read chunk", t_credential },
	{ "R8166-8.2.2-1", "a credential beside its Long Call", t_credential_pulled },
};

const struct group group_split_items = {
	.name = "split_items", .about = "a client that tears items apart",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
