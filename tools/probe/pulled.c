// SPDX-License-Identifier: GPL-2.0
/*
 * A client that has agreed on pulled Replies (Documentation/pulled-replies.rst) and
 * keeps to that agreement or not: what it does is its own loss and nobody else's.
 *
 * The server exposes PLACES Replies at a time, each for SECONDS, and RELEASE more if need be. Its
 * stall_seconds are many more; see guest.sh.
 */

#include "compat.h"

#define PLACES	4
#define SECONDS	(2 * probe.time_factor)
#define RELEASE	30

/* What it says of itself: RFC 8797, with these flags, and that it pulls Replies. */
#define SAYS(flags)	{ 0xf6, 0xab, 0x0e, 0x18, 1, flags, 3, 3, \
			  0xd3, 0x97, 0x1e, 0xa4, 1, 1, 0, 0 }

/* And the server is to wait for Receives as long as it takes. */
static const struct params params_held = {
	.private_data = SAYS(0), .private_len = 16, .responder = 16, .initiator = 16, .recv_size = 4096,
	.rnr_forever = true,
};

/* Or both ends agree on Remote Invalidation. */
static const struct params params_invalidating = {
	.private_data = SAYS(1), .private_len = 16, .responder = 16, .initiator = 16, .recv_size = 4096,
};

static bool is_refused(struct conn *c)
{
	uint32_t xid = new_xid();
	struct reply r;

	if (!request_long_reply(c, xid) || !get_reply(c, &r, 5000))
		return false;
	return r.any ? is_error(&r, xid, ERR_CHUNK) : fail("no answer");
}

static bool is_kept_off(struct conn *c, const struct exposed *x, enum ibv_wr_opcode what)
{
	return access_denied(c, what, x->seg, 0, x->seg[0].length);
}

/* Has the file to read from. */
static bool t_prepare(struct conn *c)
{
	struct enc e = { .len = 0 }, m = { .len = 0 };
	uint32_t xid = new_xid();
	struct reply r;
	unsigned int at, pos;

	fill_pattern(c->area, 0, 16384);
	enc_compound(&m, xid, 2);
	enc_lookup(&m, "probe");
	pos = enc_write(&m, 0, 16384);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_rseg(&e, pos, c->area_mr->rkey, 16384, area_addr(c, 0));
	enc_no_chunks(&e);
	enc_bytes(&e, m.buf, m.len);
	return exchange(c, &e, &r) && reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_agreed(struct conn *c)
{
	int i;

	for (i = 0; i + 8 <= c->peer_private_len; i++)
		if (!memcmp(c->peer_private + i, params_pulled.private_data + 8, 8))
			return true;
	return fail("no second block from the server");
}

static bool t_not_agreed(struct conn *c)
{
	struct conn plain = *c;

	return !t_agreed(&plain) && is_refused(c) && alive(c);
}

static bool t_pull(struct conn *c)
{
	struct exposed x;
	int i;

	for (i = 0; i < 3 * PLACES; i++)
		if (!get_exposed(c, &x) || !pull_exposed(c, &x) || !send_done(c, x.xid))
			return false;
	return alive(c);
}

/*
 * Two READs, and a Write chunk for the first: the data of that goes there, all else is exposed. A
 * Reply chunk that is too small for it comes back unused.
 */
static bool pull_beside_chunks(struct conn *c, bool reply_chunk)
{
	const unsigned int first = 4096, rest = READ_REPLY_LEN + READ_RESULT_LEN + LONG_READ + 3;
	const uint32_t xid = new_xid(), handle = c->area_mr->rkey;
	struct enc e = { .len = 0 };
	struct exposed x;
	struct reply r;
	unsigned int w, reply;

	memset(c->area + AREA / 2, 0xee, first);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, 1);
	enc_seg(&e, handle, first, area_addr(c, AREA / 2));
	enc_u32(&e, 0);
	reply = e.len;
	enc_u32(&e, reply_chunk);
	if (reply_chunk) {
		enc_u32(&e, 1);
		enc_seg(&e, handle, 512, area_addr(c, AREA / 2 + first));
	}
	enc_compound(&e, xid, 3);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, first);
	enc_read(&e, first, LONG_READ);
	if (!exchange(c, &e, &r) || !parse_exposed(&r, xid, &x, &w) ||
	    !chunk_returned(&r, &w, e.buf + 20, first))
		return false;
	if (!reply_chunk && !no_more_chunks(&r, w))
		return false;
	w++;
	if (reply_chunk && !chunk_returned(&r, &w, e.buf + reply, 0))
		return false;
	if (x.length != rest || read_exposed(c, &x))
		return fail("%u octets exposed in %u segments, not %u", x.length, x.n, rest);
	return get_word(c->area, RPC_XID) == xid && compound_ok(c->area, 3) &&
	       check_pattern("what was written", c->area + AREA / 2, 0, first) &&
	       check_pattern("what was pulled", c->area + rest - LONG_READ - 3, first, LONG_READ) &&
	       send_done(c, xid) && alive(c);
}

static bool t_beside_chunks(struct conn *c)
{
	return pull_beside_chunks(c, false) && pull_beside_chunks(c, true);
}

/* Who keeps RDMA_DONE back has no more places, and no more memory after a while. */
static bool t_never(struct conn *c)
{
	struct exposed x[PLACES], again;
	int i;

	for (i = 0; i < PLACES; i++)
		if (!get_exposed(c, &x[i]))
			return false;
	if (!is_refused(c))
		return false;
	sleep(SECONDS + 2);
	if (!is_refused(c) || !alive(c))
		return false;
	for (i = 0; i < PLACES; i++)
		if (!send_done(c, x[i].xid))
			return false;
	usleep(300000);
	return get_exposed(c, &again) && pull_exposed(c, &again) && send_done(c, again.xid) && alive(c);
}

static bool t_stray(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct exposed x, y;
	int i;

	if (!get_exposed(c, &x) || !get_exposed(c, &y) || !pull_exposed(c, &x))
		return false;
	for (i = 0; i < 20; i++)
		if (!send_done(c, x.xid) || !send_done(c, 0xdead0000 + i))
			return false;
	/* With garbage behind it, and too short. */
	enc_hdr(&e, 0xdead1000, 1, 0xffffffff, RDMA_DONE);
	for (i = 0; i < 40; i++)
		enc_u32(&e, 0xffffffff);
	if (!ignored(c, &e))
		return false;
	e.len = 12;
	if (!ignored(c, &e))
		return false;
	/* The other one is still there. */
	return pull_exposed(c, &y) && send_done(c, y.xid) && alive(c);
}

/* RDMA_DONE for a Reply that cannot have been seen. */
static bool t_early(struct conn *c)
{
	struct exposed x;
	struct reply r;
	uint32_t xid;
	int i;

	for (i = 0; i < 5 * PLACES; i++) {
		xid = new_xid();
		if (!request_long_reply(c, xid) || !send_done(c, xid) || !get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("no answer");
		/* It came too early, or just in time. */
		send_done(c, xid);
	}
	usleep(300000);
	return get_exposed(c, &x) && pull_exposed(c, &x) && send_done(c, x.xid) && alive(c);
}

/* What ends a connection ends no other. */
static bool alive_elsewhere(void)
{
	struct conn *c = conn_open(&params_pulled);
	struct exposed x;
	bool ok = c && get_exposed(c, &x) && pull_exposed(c, &x) && send_done(c, x.xid) && alive(c);

	conn_close(c);
	return ok;
}

static bool t_write(struct conn *c)
{
	struct exposed x;

	return get_exposed(c, &x) && is_kept_off(c, &x, IBV_WR_RDMA_WRITE) && alive_elsewhere();
}

/* One octet before what is exposed, and one behind it, are nobody's. */
static bool t_beyond(struct conn *unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i < 2; i++) {
		struct conn *c = conn_open(&params_pulled);
		const struct segment *s;
		struct exposed x;
		bool ok = c && get_exposed(c, &x);

		s = i ? &x.seg[0] : &x.seg[x.n - 1];
		ok = ok && access_denied(c, IBV_WR_RDMA_READ, s, i ? -1 : (int64_t)s->length, 1);
		conn_close(c);
		if (!ok)
			return false;
	}
	return alive_elsewhere();
}

static bool t_foreign(struct conn *c)
{
	struct exposed x, y;
	struct conn *other = conn_open(&params_pulled);
	int64_t begin;
	bool ok;

	if (!other || !get_exposed(other, &x))
		return false;
	begin = now_ms();
	ok = is_kept_off(c, &x, IBV_WR_RDMA_READ);
	/* If the word of that is lost, it may take longer than a Reply is exposed. */
	if (ok && now_ms() - begin < SECONDS * 900)
		ok = pull_exposed(other, &x) && send_done(other, x.xid) && get_exposed(other, &y) &&
			pull_exposed(other, &y) && alive(other);
	conn_close(other);
	return ok && alive_elsewhere();
}

static bool t_late(struct conn *c)
{
	struct exposed x;

	if (!get_exposed(c, &x))
		return false;
	sleep(SECONDS + 2);
	return is_kept_off(c, &x, IBV_WR_RDMA_READ) && alive_elsewhere();
}

/* What is to end the exposure waits behind a Send, as long as the client likes: no longer. */
static bool t_held(struct conn *c)
{
	struct exposed x;
	int64_t begin;
	int i;

	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	if (!get_exposed(c, &x))
		return false;
	begin = now_ms();
	if (!withhold_receives(c, 4))
		return false;
	for (i = 0; i < SECONDS + 60 * probe.time_factor && !disconnected(c); i++)
		sleep(1);
	if (!c->disconnected)
		return fail("its pages are held for ever");
	if (now_ms() - begin < RELEASE * 1000)
		return fail("the connection ended after %d s, for another reason", i);
	return alive_elsewhere();
}

/* Any handle of the Reply that it is about. */
static bool t_invalidate(struct conn *c)
{
	struct exposed x;
	int i;

	for (i = 0; i < 3 * PLACES; i++)
		if (!get_exposed(c, &x) || !pull_exposed(c, &x) ||
		    !post_done_invalidating(c, x.xid, x.seg[i & 1 ? 0 : x.n - 1].handle) || !wait_sent(c))
			return false;
	return alive(c);
}

/*
 * What invalidates the handle of a Reply that it is not about. The server may be gone before
 * it has acknowledged that.
 */
static bool done_with_another(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return post_done_invalidating(c, x->xid, y->seg[0].handle);
}

static bool done_with_nothing(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	(void)x;
	return post_done_invalidating(c, 0xdead0000, y->seg[0].handle);
}

static bool done_twice(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return send_done(c, x->xid) && post_done_invalidating(c, x->xid, y->seg[0].handle);
}

static bool call_with(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	struct enc e;

	(void)x;
	enc_null_call(&e, new_xid());
	return post_invalidating(c, &e, y->seg[0].handle);
}

/* What was about that handle cannot be told any more: the connection ends, and no other one. */
static bool t_foreign_handle(struct conn *unused)
{
	static bool (*const ways[])(struct conn *, const struct exposed *, const struct exposed *) = {
		done_with_another, done_with_nothing, done_twice, call_with,
	};
	unsigned int i;

	(void)unused;
	for (i = 0; i < COUNT(ways); i++) {
		struct conn *c = conn_open(&params_invalidating);
		struct exposed x, y;
		bool ok;
		int ms;

		ok = c && get_exposed(c, &x) && get_exposed(c, &y) && pull_exposed(c, &x) && ways[i](c, &x, &y);
		for (ms = 0; ok && ms < 5000 * probe.time_factor && !disconnected(c); ms += 10)
			usleep(10000);
		if (ok && !c->disconnected)
			ok = fail("way %u: the connection was kept", i);
		conn_close(c);
		if (!ok)
			return false;
	}
	return alive_elsewhere();
}

static bool t_gone(struct conn *c)
{
	struct exposed x;
	int i, n;

	for (n = 0; n < 10; n++) {
		struct conn *other = conn_open(&params_pulled);

		for (i = 0; other && i < PLACES; i++)
			if (!get_exposed(other, &x))
				return false;
		conn_close(other);
	}
	return alive(c) && alive_elsewhere();
}

static const struct test tests[] = {
	{ "RR4-4.1-1", "the file to read from", t_prepare, .params = &params_default },
	{ "R8797-6-1", "both ends say so", t_agreed },
	{ "RR4-4.1.1-2", "not agreed on", t_not_agreed, .params = &params_default },
	{ "RR4-4.1-1 RR4-4.1-2 RR4-4.1.1-3", "pull, and say so", t_pull },
	{ "RR4-4.1-3 RR4-4.1.1-1", "pull what the chunks do not hold", t_beside_chunks },
	{ "RR4-4.1.3-6", "never say so", t_never },
	{ "RR4-4.1.3-4", "say so twice, and about what is not there", t_stray },
	{ "RR4-4.1.3-4", "say so too early", t_early },
	{ "RR4-7-1", "write to what is exposed", t_write },
	{ "R8166-8.1-1 RR4-7-2", "read beside what is exposed", t_beyond },
	{ "R8166-8.1.1-1", "read what is exposed to another", t_foreign },
	{ "RR4-4.1.3-6", "read too late", t_late },
	{ "-", "hold up the end of an exposure", t_held, .params = &params_held },
	{ "-", "say so, and invalidate a handle", t_invalidate, .params = &params_invalidating },
	{ "-", "invalidate the handle of another Reply", t_foreign_handle },
	{ "RR4-4.1.3-6", "leave with Replies exposed", t_gone },
	{ "RR4-4.1-1", "and all is well", t_pull },
};

const struct group group_pulled = {
	.name = "pulled", .about = "a client that pulls Replies, or does not",
	.tests = tests, .n = COUNT(tests), .params = &params_pulled, .open = conn_open,
};
