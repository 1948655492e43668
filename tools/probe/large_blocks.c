// SPDX-License-Identifier: GPL-2.0
/*
 * A client with READs and WRITEs of 4 MiB, the longest that nfsd can be set to. Linux's NFS client
 * stops at 1 MiB.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define BLOCK		(4 << 20)
#define START		5		/* of the data in its first page */
#define BEHIND		64		/* bytes after the data, which nothing may change */
#define UNTOUCHED	0xee
#define MEMORY		(BLOCK + 2 * 4096)

/* Memory for one case: the connection's area is too small. */
struct memory {
	uint8_t *p;
	struct ibv_mr *mr;
};

static bool memory_get(struct conn *c, struct memory *m)
{
	m->p = aligned_alloc(4096, MEMORY);
	m->mr = m->p ? ibv_reg_mr(c->pd, m->p, MEMORY, IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!m->mr) {
		free(m->p);
		return fail("no memory: %s", strerror(errno));
	}
	return true;
}

static void memory_put(struct memory *m)
{
	ibv_dereg_mr(m->mr);
	free(m->p);
}

static uint64_t address(const struct memory *m, unsigned int at)
{
	return (uintptr_t)m->p + at;
}

/* A Read chunk of @n segments. */
static void enc_read_chunk(struct enc *e, const struct memory *m, unsigned int position,
			   unsigned int n, unsigned int at, unsigned int len)
{
	const unsigned int each = len / n & ~3;
	unsigned int i;

	for (i = 0; i < n; i++)
		enc_rseg(e, position, m->mr->rkey, i < n - 1 ? each : len - i * each,
			 address(m, at + i * each));
}

/* A WRITE of a new pattern, in a Read chunk of @n segments. */
static bool write_block(struct conn *c, struct memory *m, unsigned int n)
{
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int position;

	new_pattern();
	fill_pattern(m->p + START, 0, BLOCK);
	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, 0, BLOCK);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_read_chunk(&e, m, position, n, START, BLOCK);
	enc_no_chunks(&e);
	enc_bytes(&e, rpc.buf, rpc.len);
	return compound_succeeds(c, &e, 2);
}

/* A WRITE of a new pattern, all of whose Call is in a Position-zero chunk of @n segments. */
static bool write_long_call(struct conn *c, struct memory *m, unsigned int n)
{
	struct enc e = { .len = 0 }, rpc = { .len = 0 };
	const uint32_t xid = new_xid();

	new_pattern();
	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	enc_write(&rpc, 0, BLOCK);
	memcpy(m->p + START, rpc.buf, rpc.len);
	fill_pattern(m->p + START + rpc.len, 0, BLOCK);
	enc_call_hdr(&e, xid, RDMA_NOMSG);
	enc_read_chunk(&e, m, 0, n, START, rpc.len + BLOCK);
	enc_no_chunks(&e);
	return compound_succeeds(c, &e, 2);
}

/* A READ through a Write chunk of @n segments: the server returns all of the pattern, once. */
static bool read_block(struct conn *c, struct memory *m, unsigned int n)
{
	const unsigned int each = BLOCK / n;
	struct enc e = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int i, at, w = HDR_WRITE_LIST;
	struct reply r;

	memset(m->p, UNTOUCHED, MEMORY);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_chunk_head(&e, n);
	for (i = 0; i < n; i++)
		enc_seg(&e, m->mr->rkey, i < n - 1 ? each : BLOCK - i * each,
			address(m, START + i * each));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, BLOCK);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2) ||
	    !same_chunk_returned(&r, &w, &e, BLOCK) || !no_more_chunks(&r, w) ||
	    !inline_len_is(&r, at, READ_REPLY_LEN))
		return false;
	if (get_word(r.p + at, READ_COUNT) != BLOCK)
		return fail("%u bytes READ, expected %u", get_word(r.p + at, READ_COUNT), BLOCK);
	for (i = 0; i < START; i++)
		if (m->p[i] != UNTOUCHED)
			return fail("the server wrote before the data");
	for (i = 0; i < BEHIND; i++)
		if (m->p[START + BLOCK + i] != UNTOUCHED)
			return fail("the server wrote beyond the data");
	return check_pattern("data", m->p + START, 0, BLOCK);
}

/* WRITEs by @write, and READs, with chunks of several numbers of segments. */
static bool with_segments(struct conn *c, bool (*write)(struct conn *, struct memory *,
							unsigned int))
{
	static const unsigned int segments[] = { 1, 16, 60 };
	struct memory m;
	bool ok = true;
	unsigned int i;

	if (!memory_get(c, &m))
		return false;
	for (i = 0; ok && i < COUNT(segments); i++) {
		ok = write(c, &m, segments[i]) && read_block(c, &m, segments[i]);
		if (!ok)
			fail("%u segments: %s", segments[i], probe.reason);
	}
	memory_put(&m);
	return ok;
}

static bool t_read_chunks(struct conn *c)
{
	return with_segments(c, write_block);
}

static bool t_long_calls(struct conn *c)
{
	return with_segments(c, write_long_call);
}

static const struct test tests[] = {
	{ "-", "WRITEs of 4 MiB in Read chunks, and READs of them", t_read_chunks },
	{ "-", "WRITEs of 4 MiB in Position-zero chunks, and READs of them", t_long_calls },
};

const struct group group_large_blocks = {
	.name = "large_blocks", .about = "a client with READs and WRITEs of 4 MiB",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
