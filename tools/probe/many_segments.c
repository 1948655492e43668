// SPDX-License-Identifier: GPL-2.0
/*
 * A client with chunks of many segments.
 */

#include <string.h>
#include "expect.h"
#include "file_io.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"

#define REPLY_AT	(AREA / 2)	/* the Reply chunk's place in the area */

/* Places in the area, and bytes, of a Call with chunks of every kind. */
enum {
	EVERY_SIZE = 1600, EVERY_OFFSET = 5, EVERY_CALL_AT = AREA / 4, EVERY_SINK_AT = 8192,
	EVERY_ROOM = 4096,
};

/* A Read chunk of @n segments. */
static void enc_area_rchunk(struct enc *e, struct conn *c, unsigned int position,
			    unsigned int n, unsigned int each, unsigned int at, unsigned int len)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		enc_rseg(e, position, c->area_mr->rkey, i < n - 1 ? each : len - i * each,
			 area_addr(c, at + i * each));
}

/*
 * WRITE and READ in one Call, with a Position-zero chunk, a Read chunk, a Write chunk and a Reply
 * chunk, each of @n segments. @write_list is where in the message the Write list starts.
 */
static bool send_every_chunk(struct conn *c, unsigned int n, struct reply *r, struct enc *e,
			     unsigned int *write_list)
{
	const uint32_t handle = c->area_mr->rkey, xid = new_xid();
	struct enc rpc = { .len = 0 };
	unsigned int i, position;

	new_pattern();
	fill_pattern(c->area, EVERY_OFFSET, EVERY_SIZE);
	memset(c->area + EVERY_SINK_AT, 0xee, EVERY_SIZE);
	enc_compound(&rpc, xid, 3);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, EVERY_OFFSET, EVERY_SIZE);
	enc_read(&rpc, EVERY_OFFSET, EVERY_SIZE);
	memcpy(c->area + EVERY_CALL_AT, rpc.buf, rpc.len);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_NOMSG);
	enc_area_rchunk(e, c, 0, n, rpc.len / n & ~3, EVERY_CALL_AT, rpc.len);
	enc_area_rchunk(e, c, position, n, EVERY_SIZE / n, 0, EVERY_SIZE);
	enc_list_end(e);
	*write_list = e->len;
	enc_chunk_head(e, n);
	for (i = 0; i < n; i++)
		enc_seg(e, handle, EVERY_SIZE, area_addr(c, EVERY_SINK_AT + i * EVERY_SIZE));
	enc_list_end(e);
	enc_chunk_head(e, n);
	for (i = 0; i < n; i++)
		enc_seg(e, handle, EVERY_ROOM, area_addr(c, REPLY_AT + i * EVERY_ROOM));
	return exchange(c, e, r);
}

/* Checks the Reply: the data that was READ is the data that was WRITTEN. */
static bool check_every_chunk(struct conn *c, const struct reply *r, const struct enc *e,
			      unsigned int write_list)
{
	const unsigned int reply_len = READ_REPLY_LEN + WRITE_RESULT_LEN;
	const uint8_t *offered = e->buf + write_list;
	const uint32_t xid = get_word(e->buf, HDR_XID);
	unsigned int at, w = HDR_WRITE_LIST;

	if (!reply_body(r, xid, &at) ||
	    !compound_ok_xid(at ? r->p + at : c->area + REPLY_AT, xid, 3) ||
	    !chunk_returned(r, &w, offered, EVERY_SIZE))
		return false;
	if (get_word(r->p, w++))
		return fail("two Write chunks are returned");
	offered += 4 * (w - HDR_WRITE_LIST);
	if (!chunk_returned(r, &w, offered, at ? 0 : reply_len) ||
	    (at && !inline_len_is(r, at, reply_len)))
		return false;
	return check_pattern("data", c->area + EVERY_SINK_AT, EVERY_OFFSET, EVERY_SIZE);
}

static bool t_every_chunk(struct conn *c)
{
	unsigned int write_list;
	struct reply r;
	struct enc e;

	return send_every_chunk(c, 16, &r, &e, &write_list) &&
	       check_every_chunk(c, &r, &e, write_list);
}

/* The server has to serve the Call, or refuse it. */
static bool t_more_segments(struct conn *c)
{
	unsigned int n, write_list;
	struct reply r;
	struct enc e;
	bool ok;

	for (n = 17; n <= 44; n += 3) {
		ok = send_every_chunk(c, n, &r, &e, &write_list);
		if (ok && get_word(r.p, HDR_PROC) == RDMA_ERROR)
			ok = is_error(&r, get_word(e.buf, HDR_XID), ERR_CHUNK);
		else if (ok)
			ok = check_every_chunk(c, &r, &e, write_list);
		if (!ok)
			return fail("%u segments: %s", n, probe.reason);
	}
	return alive(c);
}

/*
 * Concurrent WRITEs with many small segments. An iWARP server needs an MR for each segment, and
 * has fewer MRs than that: some Calls have to wait.
 */
static bool t_many_segments(struct conn *c)
{
	enum { CALLS = 30, SEGS = 60, SEG_LEN = 64, SIZE = SEGS * SEG_LEN };
	const uint32_t first = probe.next_xid;
	bool seen[CALLS] = { false };
	unsigned int n, position, at;
	struct reply r;

	probe.next_xid += CALLS;
	new_pattern();
	fill_pattern(c->area, 0, CALLS * SIZE);
	for (n = 0; n < CALLS; n++) {
		struct enc e = { .len = 0 }, rpc = { .len = 0 };

		enc_compound(&rpc, first + n, 2);
		enc_lookup(&rpc, "probe");
		position = enc_write(&rpc, n * SIZE, SIZE);
		enc_hdr(&e, first + n, RPCRDMA_VERSION, CALLS, RDMA_MSG);
		enc_area_rchunk(&e, c, position, SEGS, SEG_LEN, n * SIZE, SIZE);
		enc_no_chunks(&e);
		enc_bytes(&e, rpc.buf, rpc.len);
		if (!send_msg(c, &e))
			return false;
	}
	for (n = 0; n < CALLS; n++) {
		if (!get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("%u Replies to %u Calls", n, CALLS);
		if (!answers_one(&r, first, CALLS, seen, &at) || !compound_ok(r.p + at, 2))
			return false;
	}
	for (n = 0; n < CALLS; n++)
		if (!read_item(c, n * SIZE, SIZE))
			return false;
	return true;
}

/* Bytes of the Reply's header for one Write chunk of this many segments. */
#define CHUNK_OF_1K	((1024 - HDR_EMPTY_LEN - CHUNK_HEAD_LEN) / SEGMENT_LEN)

/*
 * A WRITE of four bytes to the start of the file, with a Write chunk of @n segments, which no result
 * of it uses, and whose return does not fit in a Reply of 1024 bytes.
 */
static bool t_no_return(struct conn *c)
{
	const unsigned int n = CHUNK_OF_1K + 1;
	struct enc e = { .len = 0 };
	const uint32_t xid = new_xid();
	unsigned int i;

	if (!write_item(c, 0, 64))
		return false;
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	enc_chunk_head(&e, n);
	for (i = 0; i < n; i++)
		enc_seg(&e, c->area_mr->rkey, 64, area_addr(c, REPLY_AT + 64 * i));
	enc_list_end(&e);
	enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	enc_write(&e, 0, 4);
	enc_bytes(&e, "once", 4);
	return refused(c, &e, xid, ERR_CHUNK) && read_item(c, 0, 64);
}

static const struct test tests[] = {
	{ "R8267-6.4.2-2 R8166-4.3.3-3", "all kinds of chunks in one Call", t_every_chunk },
	{ "R8267-6.4.2-3", "an increasing number of segments", t_more_segments },
	{ "-", "more segments than the server has MRs", t_many_segments },
	{ "R8267-6.4.2-2", "a Write chunk that no Reply can return: the Call is not executed",
	  t_no_return, .params = &params_1k },
};

const struct group group_many_segments = {
	.name = "many_segments", .about = "a client with chunks of many segments",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
