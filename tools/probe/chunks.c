// SPDX-License-Identifier: GPL-2.0
/*
 * What chunks carry.
 */

#include "compat.h"

static bool t_file(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 1);
	enc_lookup(&e, "probe");
	return exchange(c, &e, &r) && reply_body(&r, xid, &at) && compound_ok(r.p + at, 1);
}

#define INLINE	30001	/* octets that are put together with their Call, at most */

static const unsigned int sizes[] = { 1, 3, 4, 5, 511, 4095, 4096, 4097, 30001, 65536, 100001 };

static bool t_write_read(struct conn *c)
{
	unsigned int i, n;

	for (i = 0; i < COUNT(sizes); i++)
		for (n = 1; n <= 5 && n <= sizes[i]; n += 2)
			if (!old_write_item(c, 0, sizes[i], n, false, false, false) ||
			    !old_read_item(c, 0, sizes[i], n, false, i * 100))
				return fail("%u octets in %u: %s", sizes[i], n, probe.reason);
	return true;
}

static bool t_pzrc(struct conn *c)
{
	unsigned int i, n;

	for (i = 0; i < COUNT(sizes) && sizes[i] <= INLINE; i++)
		for (n = 1; n <= 4; n++)
			if (!old_write_item(c, 7, sizes[i], n, false, true, false) ||
			    !old_read_item(c, 7, sizes[i], 1, false, 0))
				return fail("%u octets in %u: %s", sizes[i], n, probe.reason);
	return true;
}

static bool t_pzrc_and_item(struct conn *c)
{
	unsigned int i, n;

	for (i = 0; i < COUNT(sizes); i++)
		for (n = 1; n <= 4 && n <= sizes[i]; n++)
			if (!old_write_item(c, 9, sizes[i], n, false, true, true) ||
			    !old_read_item(c, 9, sizes[i], 1, false, 0))
				return fail("%u octets in %u: %s", sizes[i], n, probe.reason);
	return true;
}

static bool t_empty_segments(struct conn *c)
{
	return old_write_item(c, 0, 4097, 3, true, false, false) &&
	       old_write_item(c, 0, 4096, 2, true, true, false) &&
	       old_write_item(c, 0, 30001, 2, true, true, true) && old_read_item(c, 0, 30001, 3, true, 0);
}

/* Several WRITEs in one Call, each with its chunk; the list backwards as well. */
static bool t_several(struct conn *c)
{
	static const unsigned int len[3] = { 1000, 4097, 3 };
	int backwards;

	for (backwards = 0; backwards < 2; backwards++) {
		struct enc e = { .len = 0 }, m = { .len = 0 };
		unsigned int pos[3], at, i, off[3] = { 0, 1000, 5097 }, stood = 0;
		struct reply r;
		uint32_t xid = new_xid();

		enc_compound(&m, xid, 5);
		enc_lookup(&m, "probe");
		new_pattern();
		for (i = 0; i < 3; i++) {
			fill_pattern(c->area + i * 65536, off[i], len[i]);
			pos[i] = enc_write(&m, off[i], len[i]) + stood;
			stood += (len[i] + 3) & ~3;
		}
		enc_u32(&m, GETFH);
		enc_call_hdr(&e, xid, RDMA_MSG);
		for (i = 0; i < 3; i++) {
			unsigned int k = backwards ? 2 - i : i;

			enc_rseg(&e, pos[k], c->area_mr->rkey, len[k], area_addr(c, k * 65536));
		}
		enc_no_chunks(&e);
		enc_bytes(&e, m.buf, m.len);
		if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 5))
			return fail("backwards %d: %s", backwards, strdup(probe.reason));
		if (!old_read_item(c, 0, 5100, 2, false, 0))
			return false;
	}
	return true;
}

static bool t_two_results(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at, w = 5;

	if (!old_write_item(c, 0, 9000, 1, false, false, false))
		return false;
	memset(c->area, 0xee, AREA);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 1);
	enc_seg(&e, c->area_mr->rkey, 8192, area_addr(c, 0));
	enc_u32(&e, 1);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 2);
	enc_seg(&e, c->area_mr->rkey, 100, area_addr(c, 65536));
	enc_seg(&e, c->area_mr->rkey, 8192, area_addr(c, 65636));
	enc_u32(&e, 0);
	enc_u32(&e, 0);
	enc_compound(&e, xid, 4);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 5001);
	enc_read(&e, 17, 100);
	enc_read(&e, 3, 2000);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 4))
		return false;
	/* What the empty chunk is for stays in the message. */
	if (!chunk_returned(&r, &w, e.buf + 4 * w, 5001) || !chunk_returned(&r, &w, e.buf + 4 * w, 0) ||
	    !chunk_returned(&r, &w, e.buf + 4 * w, 2000) || !no_more_chunks(&r, w) ||
	    !inline_len_is(&r, at, READ_REPLY_LEN + 2 * READ_RESULT_LEN + 100))
		return false;
	/* Where NFSD has read the other data to is another matter. */
	return check_pattern("first", c->area, 0, 5001);
}

/* An error of the transport or of NFS_PROGRAM, and nothing written. */
static bool no_room(struct conn *c, const struct enc *e, uint32_t xid)
{
	struct reply r;
	unsigned int at, i;

	memset(c->area, 0xee, AREA);
	if (!exchange(c, e, &r))
		return false;
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR ? !is_error(&r, xid, ERR_CHUNK) : !reply_body(&r, xid, &at))
		return false;
	if (get_word(r.p, HDR_PROC) != RDMA_ERROR && (!at || (!get_word(r.p + at, RPC_ACCEPT_STAT) && !get_word(r.p + at, NFS_STATUS))))
		return fail("served, procedure %u, %u octets", get_word(r.p, HDR_PROC), r.len);
	for (i = 0; i < AREA; i++)
		if (c->area[i] != 0xee)
			return fail("something was written");
	return alive(c);
}

/* A READ with this Write chunk and this Reply chunk, in two segments, if they are not 0. */
static bool with_room(struct conn *c, unsigned int write, unsigned int reply)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int i;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_u32(&e, 0);
	if (write)
		enc_u64(&e, 0x100000002);
	for (i = 0; write && i < 2; i++)
		enc_seg(&e, c->area_mr->rkey, write / 2, area_addr(c, i * write / 2));
	enc_u32(&e, 0);
	if (reply)
		enc_u64(&e, 0x100000002);
	else
		enc_u32(&e, 0);
	for (i = 0; reply && i < 2; i++)
		enc_seg(&e, c->area_mr->rkey, reply / 2, area_addr(c, i * reply / 2));
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 8192);
	return no_room(c, &e, xid);
}

static bool t_small_write(struct conn *c)
{
	return with_room(c, 2048, 0);
}

static bool t_small_reply(struct conn *c)
{
	return with_room(c, 0, 1000);
}

static bool t_no_reply(struct conn *c)
{
	return with_room(c, 0, 0);
}

/* The Reply to a Call without arguments, in the chunk that old_enc_reply_chunk_hdr() gives. */
static bool null_written(struct conn *c, const struct reply *r, const struct enc *e, uint32_t xid)
{
	unsigned int w = 6;

	if (!chunk_returned(r, &w, e->buf + 4 * w, 24))
		return false;
	if (get_word(c->area, RPC_XID) != xid || get_word(c->area, RPC_TYPE) != 1 || get_word(c->area, RPC_ACCEPT_STAT))
		return fail("xid %x (wanted %x), msg_type %u, accept_stat %u", get_word(c->area, RPC_XID), xid,
			    get_word(c->area, RPC_TYPE), get_word(c->area, RPC_ACCEPT_STAT));
	return true;
}

static bool t_reply_chunk(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid;
	unsigned int at, n, i, w;

	if (!old_write_item(c, 0, 9000, 1, false, false, false))
		return false;
	for (n = 1; n <= 4; n++) {
		xid = new_xid();
		memset(c->area, 0xee, 65536);
		e.len = 0;
		enc_call_hdr(&e, xid, RDMA_MSG);
		enc_u32(&e, 0);
		enc_u32(&e, 0);
		enc_u32(&e, 1);
		enc_u32(&e, n);
		for (i = 0; i < n; i++)
			enc_seg(&e, c->area_mr->rkey, 16384 / n, area_addr(c, i * (16384 / n)));
		enc_compound(&e, xid, 2);
		enc_lookup(&e, "probe");
		enc_read(&e, 0, 8001);
		if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
			return false;
		if (at || get_word(r.p, HDR_PROC) != RDMA_NOMSG)
			return fail("not a Long Reply");
		/* The roundup is part of what is long. */
		w = 6;
		if (!chunk_returned(&r, &w, e.buf + 4 * w, READ_REPLY_LEN + 8004) ||
		    !compound_ok_xid(c->area, xid, 2) || !check_pattern("data", c->area + READ_REPLY_LEN, 0, 8001))
			return false;
	}
	/* A short Reply although there is a chunk. */
	xid = new_xid();
	e.len = 0;
	old_enc_reply_chunk_hdr(&e, xid, c->area_mr->rkey, 16384, area_addr(c, 0));
	enc_nfs4_call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	w = 6;
	/* Allowed, if wasteful. */
	if (!at)
		return null_written(c, &r, &e, xid);
	return chunk_returned(&r, &w, e.buf + 4 * w, 0);
}

static bool t_both(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at, w = 5, octets;

	if (!old_write_item(c, 0, 9000, 1, false, false, false))
		return false;
	/* Data to the Write chunk; the directory, too long to be sent, to the Reply chunk. */
	memset(c->area, 0xee, AREA);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 1);
	enc_seg(&e, c->area_mr->rkey, 8192, area_addr(c, 0));
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 1);
	enc_seg(&e, c->area_mr->rkey, 65536, area_addr(c, 65536));
	enc_compound(&e, xid, 5);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 7001);
	enc_u32(&e, PUTROOTFH);
	enc_lookup(&e, probe.dir);
	enc_u32(&e, READDIR);
	enc_u64(&e, 0);
	enc_u64(&e, 0);
	enc_u32(&e, 32768);
	enc_u32(&e, 32768);
	enc_u32(&e, 1);
	enc_u32(&e, 0x18);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at)
		return fail("the directory is too short for this test");
	octets = get_word(r.p, 15);
	if (!chunk_returned(&r, &w, e.buf + 4 * w, 7001))
		return false;
	w++;
	if (!chunk_returned(&r, &w, e.buf + 4 * w, octets) || !compound_ok_xid(c->area + 65536, xid, 5) ||
	    !check_pattern("data", c->area, 0, 7001))
		return false;
	/* The data is in one of them only: what follows READ's count is the next result. */
	if (get_word(c->area + 65536, 18) != 7001 || get_word(c->area + 65536, 19) != PUTROOTFH)
		return fail("READ of %u octets, then operation %u", get_word(c->area + 65536, 18),
			    get_word(c->area + 65536, 19));
	for (at = octets; at < 65536; at++)
		if (c->area[65536 + at] != 0xee)
			return fail("more was written than %u octets", octets);
	return true;
}

/* Who says nothing of itself is old, and may refuse a short Reply where it gave a chunk. */
static bool t_old_requester(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at;

	memset(c->area, 0xee, 4096);
	old_enc_reply_chunk_hdr(&e, xid, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_nfs4_call(&e, xid, 0);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (at || get_word(r.p, HDR_PROC) != RDMA_NOMSG)
		return fail("a short Reply");
	return null_written(c, &r, &e, xid);
}

static const struct test tests[] = {
	{ "R8166-3.5.1-1", "the file to test with", t_file },
	{ "R8166-3.4.4-1 R8166-3.4.6-2 R8166-3.4.6-3 R8166-3.4.6.2-2 R8166-3.4.6.2-3 R8166-4.3.2-2 R8166-4.3.2.2-2",
	  "WRITE by Read chunk, READ by Write chunk", t_write_read },
	{ "R8166-3.5.3-5 R8166-3.5.3-8 R8166-4-3", "Position-zero chunks", t_pzrc },
	{ "R8267-6.4.2-2", "Position-zero chunk and Read chunk", t_pzrc_and_item },
	{ "R8166-3.4.3-1", "empty segments", t_empty_segments },
	{ "R8166-3.4.5-1", "several Read chunks", t_several },
	{ "R8166-4.3.2.3-3", "several Write chunks, one of them empty", t_two_results },
	{ "R8267-3.1-3", "a Write chunk that is too small", t_small_write },
	{ "R8166-4.5.3-2 R8267-3.1-3", "a Reply chunk that is too small", t_small_reply },
	{ "R8166-3.3.2-1 R8267-3.1-1", "no Reply chunk for a long Reply", t_no_reply },
	{ "R8166-3.5.3-7 R8166-3.5.3-2 R8166-4.3.3-3 R8166-4.3.3-2", "Reply chunks", t_reply_chunk },
	{ "R8166-4.3.3-2", "a Reply chunk without private data", t_old_requester,
	  .params = &params_no_private },
	{ "R8166-3.5.3-6", "Write chunk and Reply chunk", t_both },
};

const struct group group_chunks = {
	.name = "chunks", .about = "a client with chunks of every kind",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
