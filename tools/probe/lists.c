// SPDX-License-Identifier: GPL-2.0
/*
 * Chunk lists of unusual form, all of them allowed.
 */

#include "compat.h"

/* The header of a READ or more, with this Write list, to which more is added. */
static void write_list(struct enc *e, uint32_t xid)
{
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_u32(e, 0);
}

static void write_chunk(struct enc *e, struct conn *c, unsigned int at, unsigned int len)
{
	enc_u32(e, 1);
	enc_u32(e, 1);
	enc_seg(e, c->area_mr->rkey, len, area_addr(c, at));
}

static void empty_chunk(struct enc *e)
{
	enc_u32(e, 1);
	enc_u32(e, 0);
}

static void no_more(struct enc *e)
{
	enc_u32(e, 0);
	enc_u32(e, 0);
}

static bool answered(struct conn *c, const struct enc *e, struct reply *r, unsigned int *at,
		     unsigned int ops)
{
	return exchange(c, e, r) && reply_body(r, get_word(e->buf, HDR_XID), at) &&
	       compound_ok_xid(*at ? r->p + *at : c->area + AREA / 2, get_word(e->buf, HDR_XID), ops);
}

/* Read chunks whose segments come in turns: A, B, A. */
static bool t_interleaved(struct conn *c)
{
	static const unsigned int size = 4096;
	struct enc e = { .len = 0 }, m = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int a, b, at;
	struct reply r;

	new_pattern();
	fill_pattern(c->area, 0, 2 * size);
	enc_compound(&m, xid, 3);
	enc_lookup(&m, "probe");
	a = enc_write(&m, 0, size);
	b = enc_write(&m, size, size) + size;
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, a, c->area_mr->rkey, 1000, area_addr(c, 0));
	enc_rseg(&e, b, c->area_mr->rkey, size, area_addr(c, size));
	enc_rseg(&e, a, c->area_mr->rkey, size - 1000, area_addr(c, 1000));
	enc_no_chunks(&e);
	enc_bytes(&e, m.buf, m.len);
	if (!exchange(c, &e, &r))
		return false;
	/* It may be refused, but not be taken for something else. */
	if (get_word(r.p, HDR_PROC) == RDMA_ERROR)
		return is_error(&r, xid, ERR_CHUNK) && alive(c);
	return reply_body(&r, xid, &at) && compound_ok(r.p + at, 3) &&
	       old_read_item(c, 0, 2 * size, 1, false, 0);
}

/* A Read chunk that includes the roundup: in its last segment, or in one of its own. */
static bool t_padded(struct conn *c)
{
	unsigned int size, own, pos, at;

	for (size = 1; size < 8; size++)
		for (own = 0; own < 2; own++) {
			struct enc e = { .len = 0 }, m = { .len = 0 };
			const uint32_t xid = new_xid();
			const unsigned int pad = -size & 3;
			struct reply r;

			new_pattern();
			fill_pattern(c->area, 11, size);
			memset(c->area + size, 0, pad);
			enc_compound(&m, xid, 3);
			enc_lookup(&m, "probe");
			pos = enc_write(&m, 11, size);
			enc_u32(&m, GETFH);
			enc_call_hdr(&e, xid, RDMA_MSG);
			enc_rseg(&e, pos, c->area_mr->rkey, own ? size : size + pad, area_addr(c, 0));
			if (own)
				enc_rseg(&e, pos, c->area_mr->rkey, pad, area_addr(c, size));
			enc_no_chunks(&e);
			enc_bytes(&e, m.buf, m.len);
			if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) ||
			    !compound_ok(r.p + at, 3))
				return fail("%u octets, %u: %s", size, own, probe.reason);
			if (!old_read_item(c, 11, size, 1, false, 0))
				return false;
		}
	return true;
}

/* Three READs, and Write chunks for two of them. */
static bool t_run_out(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = 5;
	struct reply r;
	struct enc e;

	if (!old_write_item(c, 0, 9000, 1, false, false, false))
		return false;
	memset(c->area, 0xee, 65536);
	write_list(&e, xid);
	write_chunk(&e, c, 0, 2000);
	write_chunk(&e, c, 32768, 2000);
	no_more(&e);
	enc_compound(&e, xid, 4);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 2000);
	enc_read(&e, 2000, 1000);
	enc_read(&e, 3000, 500);
	if (!answered(c, &e, &r, &at, 4))
		return false;
	if (!chunk_returned(&r, &w, e.buf + 4 * w, 2000) || !chunk_returned(&r, &w, e.buf + 4 * w, 1000) ||
	    !no_more_chunks(&r, w))
		return false;
	/* The third stays in the message. */
	if (!inline_len_is(&r, at, READ_REPLY_LEN + 2 * READ_RESULT_LEN + 500))
		return false;
	/* Where NFSD has read the other data to is another matter. */
	return check_pattern("first", c->area, 0, 2000);
}

/* A chunk for which there is no result: the READ fails. */
static bool t_unused(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = 5;
	struct reply r;
	struct enc e;

	write_list(&e, xid);
	enc_u32(&e, 1);
	enc_u32(&e, 2);
	enc_seg(&e, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_seg(&e, c->area_mr->rkey, 4096, area_addr(c, 4096));
	no_more(&e);
	enc_compound(&e, xid, 1);
	enc_read(&e, 0, 8192);		/* of a directory */
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (!at || !get_word(r.p + at, NFS_STATUS))
		return fail("it did not fail");
	return chunk_returned(&r, &w, e.buf + 4 * w, 0) && no_more_chunks(&r, w);
}

/* An empty Write chunk: the result stays in the payload, which makes that long. */
static bool t_forced_inline(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = 5;
	struct reply r;
	struct enc e;

	if (!old_write_item(c, 0, 60000, 1, false, false, false))
		return false;
	memset(c->area, 0xee, AREA);
	write_list(&e, xid);
	empty_chunk(&e);
	enc_u32(&e, 0);
	write_chunk(&e, c, AREA / 2, 100000);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, 60000);
	if (!answered(c, &e, &r, &at, 2))
		return false;
	if (at)
		return fail("a short Reply");
	if (!chunk_returned(&r, &w, e.buf + 4 * w, 0))
		return false;
	if (get_word(r.p, w++))
		return fail("two Write chunks came back");
	return chunk_returned(&r, &w, e.buf + 4 * w, READ_REPLY_LEN + 60000) &&
	       check_pattern("data", c->area + AREA / 2 + READ_REPLY_LEN, 0, 60000);
}

/* A path of a symbolic link is a result that a Write chunk may take, and so has to. */
static bool t_readlink(struct conn *c)
{
	const uint32_t xid = new_xid();
	unsigned int at, w = 5;
	struct reply r;
	struct enc e;

	write_list(&e, xid);
	write_chunk(&e, c, 0, 4096);
	no_more(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "link");
	enc_u32(&e, READLINK);
	if (!answered(c, &e, &r, &at, 2))
		return false;
	/* What it is is not looked at: NFSD says that it starts where its length does. */
	return chunk_returned(&r, &w, e.buf + 4 * w, strlen("probe")) && no_more_chunks(&r, w) &&
	       inline_len_is(&r, at, READLINK_REPLY_LEN);
}

/* All there is in one Call, each of that many segments. */
static bool everything(struct conn *c, unsigned int n, struct reply *r, struct enc *e,
		       unsigned int *lists)
{
	const unsigned int size = 1600;
	const uint32_t xid = new_xid();
	struct enc m = { .len = 0 };
	unsigned int i, pos, from = AREA / 4, each;

	new_pattern();
	fill_pattern(c->area, 5, size);
	memset(c->area + 8192, 0xee, size);
	enc_compound(&m, xid, 3);
	enc_lookup(&m, "probe");
	pos = enc_write(&m, 5, size);
	enc_read(&m, 5, size);
	memcpy(c->area + from, m.buf, m.len);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_NOMSG);
	each = m.len / n & ~3;
	for (i = 0; i < n; i++)
		enc_rseg(e, 0, c->area_mr->rkey, i < n - 1 ? each : m.len - i * each,
			 area_addr(c, from + i * each));
	each = size / n;
	for (i = 0; i < n; i++)
		enc_rseg(e, pos, c->area_mr->rkey, i < n - 1 ? each : size - i * each,
			 area_addr(c, i * each));
	enc_u32(e, 0);
	*lists = e->len;
	enc_u32(e, 1);
	enc_u32(e, n);
	for (i = 0; i < n; i++)
		enc_seg(e, c->area_mr->rkey, size, area_addr(c, 8192 + i * size));
	enc_u32(e, 0);
	enc_u32(e, 1);
	enc_u32(e, n);
	for (i = 0; i < n; i++)
		enc_seg(e, c->area_mr->rkey, 4096, area_addr(c, AREA / 2 + i * 4096));
	return exchange(c, e, r);
}

/* All of it was done: what came back is what has just been written. */
static bool is_everything(struct conn *c, const struct reply *r, const struct enc *e,
			  unsigned int lists)
{
	const uint32_t xid = get_word(e->buf, HDR_XID);
	unsigned int at, w = 5;

	if (!reply_body(r, xid, &at) ||
	    !compound_ok_xid(at ? r->p + at : c->area + AREA / 2, xid, 3) ||
	    !chunk_returned(r, &w, e->buf + lists, 1600))
		return false;
	if (get_word(r->p, w++))
		return fail("two Write chunks came back");
	lists += 4 * (w - 5);
	if (!chunk_returned(r, &w, e->buf + lists, at ? 0 : READ_REPLY_LEN + WRITE_RESULT_LEN) ||
	    (at && !inline_len_is(r, at, READ_REPLY_LEN + WRITE_RESULT_LEN)))
		return false;
	return check_pattern("data", c->area + 8192, 5, 1600);
}

static bool t_everything(struct conn *c)
{
	unsigned int lists;
	struct reply r;
	struct enc e;

	return everything(c, 16, &r, &e, &lists) && is_everything(c, &r, &e, lists);
}

/* Ever more segments: all of them served, or refused, and the connection stays. */
static bool t_ever_more(struct conn *c)
{
	unsigned int n, lists;
	struct reply r;
	struct enc e;

	for (n = 17; n <= 44; n += 3) {
		if (!everything(c, n, &r, &e, &lists))
			return fail("%u segments: %s", n, probe.reason);
		if (get_word(r.p, HDR_PROC) == RDMA_ERROR ? !is_error(&r, get_word(e.buf, HDR_XID), ERR_CHUNK) :
					   !is_everything(c, &r, &e, lists))
			return fail("%u segments: %s", n, probe.reason);
	}
	return alive(c);
}

/*
 * WRITEs in many small pieces, as many at a time as may be. Where the device reads into
 * regions (iWARP) there are fewer of those than pieces: some have to wait.
 */
static bool t_many_pieces(struct conn *c)
{
	enum { CALLS = 30, PIECES = 60, PIECE = 64, SIZE = PIECES * PIECE };
	const uint32_t first = probe.next_xid;
	bool seen[CALLS] = { false };
	unsigned int i, n, pos, at;
	struct reply r;

	probe.next_xid += CALLS;
	new_pattern();
	fill_pattern(c->area, 0, CALLS * SIZE);
	for (n = 0; n < CALLS; n++) {
		struct enc e = { .len = 0 }, m = { .len = 0 };

		enc_compound(&m, first + n, 2);
		enc_lookup(&m, "probe");
		pos = enc_write(&m, n * SIZE, SIZE);
		enc_hdr(&e, first + n, 1, CALLS, RDMA_MSG);
		for (i = 0; i < PIECES; i++)
			enc_rseg(&e, pos, c->area_mr->rkey, PIECE, area_addr(c, n * SIZE + i * PIECE));
		enc_no_chunks(&e);
		enc_bytes(&e, m.buf, m.len);
		if (!send_msg(c, &e))
			return false;
	}
	for (n = 0; n < CALLS; n++) {
		if (!get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("%u answers to %u Calls", n, CALLS);
		if (!answers_one(&r, first, CALLS, seen, &at) || !compound_ok(r.p + at, 2))
			return false;
	}
	for (n = 0; n < CALLS; n++) {
		if (!old_read_item(c, n * SIZE, SIZE, 1, false, 0))
			return false;
	}
	return true;
}

/* Offsets are the client's affair: here the first octet has none. */
static bool t_offset_zero(struct conn *c)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	struct enc e = { .len = 0 }, m = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int pos, at;
	struct ibv_mr *mr;
	struct reply r;
	bool ok;

	if (is_iwarp(c))
		return skip("siw does not know of other offsets than addresses");
	mr = ibv_reg_mr_iova(c->pd, c->area, 8192, 0, access);
	if (!mr)
		return fail("ibv_reg_mr_iova: %s", strerror(errno));
	new_pattern();
	fill_pattern(c->area, 3, 8192);
	enc_compound(&m, xid, 2);
	enc_lookup(&m, "probe");
	pos = enc_write(&m, 3, 8192);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, pos, mr->rkey, 8192, 0);
	enc_no_chunks(&e);
	enc_bytes(&e, m.buf, m.len);
	ok = answered(c, &e, &r, &at, 2);
	ibv_dereg_mr(mr);
	return ok && old_read_item(c, 3, 8192, 1, false, 0);
}

/*
 * The count of a WRITE is not that of its Read chunk. More than there is is not written:
 * what is behind the chunk is somebody else's.
 */
static bool t_disagree(struct conn *c)
{
	static const unsigned int counts[] = { 4, 4092, 4100, 0x7fffffff, 0xffffffff };
	static const unsigned int size = 4096;
	unsigned int i;

	if (!old_write_item(c, 0, 3 * size, 1, false, false, false))
		return false;
	memset(c->area, 0xee, 3 * size);
	for (i = 0; i < COUNT(counts); i++) {
		struct enc e = { .len = 0 }, m = { .len = 0 };
		const uint32_t xid = new_xid();
		unsigned int pos, at;
		struct reply r;

		enc_compound(&m, xid, 2);
		enc_lookup(&m, "probe");
		pos = enc_write(&m, 0, counts[i]);
		enc_call_hdr(&e, xid, RDMA_MSG);
		enc_rseg(&e, pos, c->area_mr->rkey, size, area_addr(c, 0));
		enc_no_chunks(&e);
		enc_bytes(&e, m.buf, m.len);
		if (!exchange(c, &e, &r))
			return false;
		/* The transport may see it, or the RPC service, or NFS_PROGRAM. */
		if (get_word(r.p, HDR_PROC) == RDMA_ERROR ? !is_error(&r, xid, ERR_CHUNK) : !reply_body(&r, xid, &at))
			return false;
		if (get_word(r.p, HDR_PROC) != RDMA_ERROR && counts[i] > size && !get_word(r.p + at, RPC_ACCEPT_STAT) &&
		    !get_word(r.p + at, NFS_STATUS))
			return fail("%u octets of %u: served", counts[i], size);
		if (!alive(c))
			return false;
	}
	return old_read_item(c, size, 2 * size, 1, false, 0);
}

static const struct test tests[] = {
	{ "R8166-3.4.5-4", "segments of two Read chunks in turns", t_interleaved },
	{ "R8166-3.4.5.2-4 R8166-3.4.5.2-2", "Read chunks with roundup", t_padded },
	{ "R8166-4.3.2.1-2 R8267-6.4.1-2", "more results than Write chunks", t_run_out },
	{ "R8166-4.3.2.2-2", "a Write chunk without a result", t_unused },
	{ "R8166-4.3.2.3-3 R8166-4.3.2.3-4", "an empty Write chunk", t_forced_inline },
	{ "R8267-4-1 R8166-4.3.2-2", "READLINK by Write chunk", t_readlink },
	{ "R8267-6.4.2-2 R8166-4.3.3-3", "all kinds of chunks in one Call", t_everything },
	{ "R8267-6.4.2-3", "ever more segments", t_ever_more },
	{ "-", "more pieces than there are regions for", t_many_pieces },
	{ "R8166-4.4.3-1", "memory whose offsets start at zero", t_offset_zero },
	{ "R8166-4.5.2-2", "a WRITE and its chunk disagree", t_disagree },
};

const struct group group_lists = {
	.name = "lists", .about = "a client with chunk lists of unusual form",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
