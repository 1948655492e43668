// SPDX-License-Identifier: GPL-2.0
/*
 * A client that has agreed on pulled Replies (Documentation/pulled-replies.rst) and
 * keeps to that agreement or not: what it does is its own loss and nobody else's.
 *
 * The server exposes PLACES Replies at a time, each for SECONDS.
 */

#include "probe.h"

#define PLACES	4
#define SECONDS	(2 * patience)
#define OCTETS	8001

const struct terms terms_pulled = {
	.octets = {
		0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3,
		0xd3, 0x97, 0x1e, 0xa4, 1, 1, 0, 0,
	},
	.len = 16, .responder = 16, .initiator = 16, .longest = 4096,
};

/* And on Remote Invalidation. */
static const struct terms terms_invalidating = {
	.octets = {
		0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3,
		0xd3, 0x97, 0x1e, 0xa4, 1, 1, 0, 0,
	},
	.len = 16, .responder = 16, .initiator = 16, .longest = 4096,
};

/* A Reply that is exposed. */
struct exposed {
	uint32_t xid, length;
	unsigned int n;
	struct segment seg[SEGMENTS];
};

static bool ask(struct conn *c, uint32_t xid)
{
	struct enc e = { .n = 0 };

	hdr(&e, xid, 1, 32, MSG);
	lists_none(&e);
	compound(&e, xid, 2);
	op_lookup(&e, "probe");
	op_read(&e, 0, OCTETS);
	return send_msg(c, &e);
}

static bool is_exposed(const struct reply *r, uint32_t xid, struct exposed *x)
{
	unsigned int w = 4;

	if (r->len < 28 + 24 || get(r->p, 0) != xid || get(r->p, 3) != NOMSG)
		return fail("%u octets, xid %x (wanted %x), proc %u", r->len, get(r->p, 0), xid,
			    get(r->p, 3));
	x->xid = xid;
	x->length = 0;
	for (x->n = 0; get(r->p, w) == 1 && x->n < SEGMENTS; x->n++, w += 6) {
		if (get(r->p, w + 1))
			return fail("segment %u is not at Position zero", x->n);
		x->seg[x->n].handle = get(r->p, w + 2);
		x->seg[x->n].length = get(r->p, w + 3);
		x->seg[x->n].offset = (uint64_t)get(r->p, w + 4) << 32 | get(r->p, w + 5);
		x->length += x->seg[x->n].length;
	}
	if (!x->n || x->length < OCTETS || x->length > 65536)
		return fail("%u octets in %u segments", x->length, x->n);
	return true;
}

static bool expose(struct conn *c, struct exposed *x)
{
	uint32_t xid = next_xid++;
	struct reply r;

	if (!ask(c, xid) || !get_reply(c, &r, 5000))
		return false;
	return r.any ? is_exposed(&r, xid, x) : fail("no answer");
}

static bool is_refused(struct conn *c)
{
	uint32_t xid = next_xid++;
	struct reply r;

	if (!ask(c, xid) || !get_reply(c, &r, 5000))
		return false;
	return r.any ? is_error(&r, xid, ERR_CHUNK) : fail("no answer");
}

/* Reads what is exposed; the status of the first completion that is not good. */
static int reach(struct conn *c, const struct exposed *x)
{
	unsigned int i, at = 0;
	int status;

	memset(c->area, 0xee, x->length);
	for (i = 0; i < x->n; i++) {
		status = rdma(c, IBV_WR_RDMA_READ, x->seg[i].handle, x->seg[i].offset,
			      x->seg[i].length, at);
		if (status)
			return status;
		at += x->seg[i].length;
	}
	return 0;
}

static bool is_kept_off(struct conn *c, const struct exposed *x, enum ibv_wr_opcode what)
{
	return kept_off(c, what, x->seg, 0, x->seg[0].length);
}

static bool pull(struct conn *c, const struct exposed *x)
{
	int status = reach(c, x);

	if (status)
		return fail("RDMA Read: %d", status);
	if (!compound_ok(c->area, 2) || get(c->area, 0) != x->xid)
		return fail("not the Reply");
	return same("data", c->area + x->length - OCTETS - 3, 0, OCTETS);
}

static bool done(struct conn *c, uint32_t xid)
{
	struct enc e = { .n = 0 };

	hdr(&e, xid, 1, 32, DONE);
	return send_msg(c, &e);
}

/* And one handle is not needed any more. */
static bool done_with(struct conn *c, uint32_t xid, uint32_t handle)
{
	struct enc e = { .n = 0 };

	hdr(&e, xid, 1, 32, DONE);
	return post_invalidating(c, &e, handle);
}

/* Has the file to read from. */
static bool t_prepare(struct conn *c)
{
	struct enc e = { .n = 0 }, m = { .n = 0 };
	uint32_t xid = next_xid++;
	struct reply r;
	unsigned int at, pos;

	fill(c->area, 0, 16384);
	compound(&m, xid, 2);
	op_lookup(&m, "probe");
	pos = op_write(&m, 0, 16384);
	hdr(&e, xid, 1, 32, MSG);
	rseg(&e, pos, c->area_mr->rkey, 16384, at_area(c, 0));
	lists_none(&e);
	bytes(&e, m.b, m.n);
	return exchange(c, &e, &r) && body_at(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_agreed(struct conn *c)
{
	int i;

	for (i = 0; i + 8 <= c->peer_private_len; i++)
		if (!memcmp(c->peer_private + i, terms_pulled.octets + 8, 8))
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
		if (!expose(c, &x) || !pull(c, &x) || !done(c, x.xid))
			return false;
	return alive(c);
}

/* Who keeps RDMA_DONE back has no more places, and no more memory after a while. */
static bool t_never(struct conn *c)
{
	struct exposed x[PLACES], again;
	int i;

	for (i = 0; i < PLACES; i++)
		if (!expose(c, &x[i]))
			return false;
	if (!is_refused(c))
		return false;
	sleep(SECONDS + 2);
	if (!is_refused(c) || !alive(c))
		return false;
	for (i = 0; i < PLACES; i++)
		if (!done(c, x[i].xid))
			return false;
	usleep(300000);
	return expose(c, &again) && pull(c, &again) && done(c, again.xid) && alive(c);
}

static bool t_stray(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct exposed x, y;
	int i;

	if (!expose(c, &x) || !expose(c, &y) || !pull(c, &x))
		return false;
	for (i = 0; i < 20; i++)
		if (!done(c, x.xid) || !done(c, 0xdead0000 + i))
			return false;
	/* With garbage behind it, and too short. */
	hdr(&e, 0xdead1000, 1, 0xffffffff, DONE);
	for (i = 0; i < 40; i++)
		u32(&e, 0xffffffff);
	if (!ignored(c, &e))
		return false;
	e.n = 12;
	if (!ignored(c, &e))
		return false;
	/* The other one is still there. */
	return pull(c, &y) && done(c, y.xid) && alive(c);
}

/* RDMA_DONE for a Reply that cannot have been seen. */
static bool t_early(struct conn *c)
{
	struct exposed x;
	struct reply r;
	uint32_t xid;
	int i;

	for (i = 0; i < 5 * PLACES; i++) {
		xid = next_xid++;
		if (!ask(c, xid) || !done(c, xid) || !get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("no answer");
		/* It came too early, or just in time. */
		done(c, xid);
	}
	usleep(300000);
	return expose(c, &x) && pull(c, &x) && done(c, x.xid) && alive(c);
}

/* What ends a connection ends no other. */
static bool alive_elsewhere(void)
{
	struct conn *c = conn_open(&terms_pulled);
	struct exposed x;
	bool ok = c && expose(c, &x) && pull(c, &x) && done(c, x.xid) && alive(c);

	conn_close(c);
	return ok;
}

static bool t_write(struct conn *c)
{
	struct exposed x;

	return expose(c, &x) && is_kept_off(c, &x, IBV_WR_RDMA_WRITE) && alive_elsewhere();
}

static bool t_foreign(struct conn *c)
{
	struct exposed x, y;
	struct conn *other = conn_open(&terms_pulled);
	int64_t begin;
	bool ok;

	if (!other || !expose(other, &x))
		return false;
	begin = now_ms();
	ok = is_kept_off(c, &x, IBV_WR_RDMA_READ);
	/* If the word of that is lost, it may take longer than a Reply is exposed. */
	if (ok && now_ms() - begin < SECONDS * 900)
		ok = pull(other, &x) && done(other, x.xid) && expose(other, &y) &&
			pull(other, &y) && alive(other);
	conn_close(other);
	return ok && alive_elsewhere();
}

static bool t_late(struct conn *c)
{
	struct exposed x;

	if (!expose(c, &x))
		return false;
	sleep(SECONDS + 2);
	return is_kept_off(c, &x, IBV_WR_RDMA_READ) && alive_elsewhere();
}

/* Any handle of the Reply that it is about. */
static bool t_invalidate(struct conn *c)
{
	struct exposed x;
	int i;

	for (i = 0; i < 3 * PLACES; i++)
		if (!expose(c, &x) || !pull(c, &x) ||
		    !done_with(c, x.xid, x.seg[i & 1 ? 0 : x.n - 1].handle) || !sent(c))
			return false;
	return alive(c);
}

/*
 * What invalidates the handle of a Reply that it is not about. The server may be gone before
 * it has acknowledged that.
 */
static bool done_with_another(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return done_with(c, x->xid, y->seg[0].handle);
}

static bool done_with_nothing(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	(void)x;
	return done_with(c, 0xdead0000, y->seg[0].handle);
}

static bool done_twice(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return done(c, x->xid) && done_with(c, x->xid, y->seg[0].handle);
}

static bool call_with(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	struct enc e;

	(void)x;
	null_call(&e, next_xid++);
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
		struct conn *c = conn_open(&terms_invalidating);
		struct exposed x, y;
		bool ok;
		int ms;

		ok = c && expose(c, &x) && expose(c, &y) && pull(c, &x) && ways[i](c, &x, &y);
		for (ms = 0; ok && ms < 5000 * patience && !gone(c); ms += 10)
			usleep(10000);
		if (ok && !c->left)
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
		struct conn *other = conn_open(&terms_pulled);

		for (i = 0; other && i < PLACES; i++)
			if (!expose(other, &x))
				return false;
		conn_close(other);
	}
	return alive(c) && alive_elsewhere();
}

static const struct test tests[] = {
	{ "RR4-4.1-1", "the file to read from", t_prepare, .terms = &terms_plain },
	{ "R8797-6-1", "both ends say so", t_agreed },
	{ "RR4-4.1.1-2", "not agreed on", t_not_agreed, .terms = &terms_plain },
	{ "RR4-4.1-1 RR4-4.1-2 RR4-4.1.1-3", "pull, and say so", t_pull },
	{ "RR4-4.1.3-6", "never say so", t_never },
	{ "RR4-4.1.3-4", "say so twice, and about what is not there", t_stray },
	{ "RR4-4.1.3-4", "say so too early", t_early },
	{ "RR4-7-1", "write to what is exposed", t_write },
	{ "R8166-8.1.1-1", "read what is exposed to another", t_foreign },
	{ "RR4-4.1.3-6", "read too late", t_late },
	{ "-", "say so, and invalidate a handle", t_invalidate, .terms = &terms_invalidating },
	{ "-", "invalidate the handle of another Reply", t_foreign_handle },
	{ "RR4-4.1.3-6", "leave with Replies exposed", t_gone },
	{ "RR4-4.1-1", "and all is well", t_pull },
};

const struct group group_pulled = {
	.name = "pulled", .about = "a client that pulls Replies, or does not",
	.tests = tests, .n = COUNT(tests), .terms = &terms_pulled, .open = conn_open,
};
