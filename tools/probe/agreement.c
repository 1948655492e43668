// SPDX-License-Identifier: GPL-2.0
/*
 * What a server takes from a client's private data, and how long a message may be.
 */

#include "probe.h"

#define ID	0xf6, 0xab, 0x0e, 0x18

/* All bits that have no meaning are set, but that for Remote Invalidation is not. */
const struct terms terms_reserved = {
	.octets = { ID, 1, 0xfe, 3, 3 }, .len = 8, .responder = 16, .longest = 4096,
};

/* The message is not where one would look for it first. */
const struct terms terms_behind = {
	.octets = { 1, 2, 3, 0xf6, 5, 6, 7, 0xf6, 0xab, 10, 11, 12, 13, ID, 1, 0, 3, 3 },
	.len = 21, .responder = 16, .longest = 4096,
};

/* No messages: of another version, of another name, and without an end. */
static const struct terms terms_version_2 = {
	.octets = { ID, 2, 1, 3, 3 }, .len = 8, .responder = 16, .longest = 1024,
};

static const struct terms terms_other_name = {
	.octets = { 0xf6, 0xab, 0x0e, 0x19, 1, 1, 3, 3 }, .len = 8, .responder = 16, .longest = 1024,
};

static const struct terms terms_cut_off = {
	.octets = { ID, 1, 1, 3 }, .len = 7, .responder = 16, .longest = 1024,
};

/* A READ whose Reply is a Send of a little more than so many octets. */
static void read_inline(struct enc *e, uint32_t xid, unsigned int count)
{
	enc_call_hdr(e, xid, RDMA_MSG);
	enc_no_chunks(e);
	enc_compound(e, xid, 2);
	enc_lookup(e, "probe");
	enc_read(e, 0, count);
}

static bool t_longer(struct conn *c)
{
	const uint32_t xid = next_xid++;
	struct enc e = { .n = 0 };
	unsigned int at;
	struct reply r;

	if (peer_sends(c) < 2048)
		return skip("it sends no longer messages");
	read_inline(&e, xid, 1500);
	return exchange(c, &e, &r) && body_at(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_not_longer(struct conn *c)
{
	const uint32_t xid = next_xid++;
	struct enc e = { .n = 0 };

	read_inline(&e, xid, 1500);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool read_plainly(struct conn *c)
{
	const uint32_t xid = next_xid++;
	struct enc e = { .n = 0 };
	unsigned int at;
	struct reply r;

	memset(c->area, 0xee, 100);
	enc_read_call(&e, xid, c->area_mr->rkey, 8192, at_area(c, 0), 100);
	if (!exchange(c, &e, &r) || !body_at(&r, xid, &at) || !compound_ok(r.p + at, 2))
		return false;
	return r.invalidated ? fail("invalidated although not asked to") :
		same("the file", c->area, 0, 100);
}

/*
 * A handle that may be invalidated is given; the Reply does not. Over siw nobody is told of an
 * invalidation: the second READ finds it.
 */
static bool t_plain_sends(struct conn *c)
{
	return read_plainly(c) && read_plainly(c);
}

/* A WRITE of this length, data and all. */
static bool of_length(struct conn *c, unsigned int octets)
{
	const uint32_t xid = next_xid++;
	struct enc e = { .n = 0 };
	unsigned int at, n;
	struct reply r;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	n = octets - enc_write(&e, 0, 0);
	put_word(&e, e.n / 4 - 1, n);
	fill(e.b + e.n, 0, n);
	e.n += n;
	return exchange(c, &e, &r) && body_at(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_1024(struct conn *c)
{
	return of_length(c, 1024) && alive(c);
}

static bool t_agreed(struct conn *c)
{
	return of_length(c, peer_longest(c) < 4096 ? peer_longest(c) : 4096) && alive(c);
}

/* A Send that is longer than its Receive ends the connection, and nothing else. */
static bool t_too_long(struct conn *c)
{
	struct enc e = { .n = 0 };
	struct conn *other;
	struct ibv_wc wc;
	bool ok;

	if (peer_longest(c) >= sizeof(e.b))
		return skip("it receives messages of any length");
	enc_call_hdr(&e, next_xid++, RDMA_MSG);
	memset(e.b + e.n, 0, sizeof(e.b) - e.n);
	e.n = peer_longest(c) + 4;
	if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, 5000))
		return fail("the Send did not complete");
	/* On iWARP it is sent, and what becomes of it comes later. */
	if (!wc.status && !is_iwarp(c))
		return fail("it was received");
	/* This end's queue pair may have failed alone: the other end has to let go, too. */
	if (!event(c, RDMA_CM_EVENT_DISCONNECTED, 5000))
		return fail("the connection was kept: %s", why);
	other = conn_open(&terms_plain);
	ok = other && alive(other);
	conn_close(other);
	return ok;
}

/* Nothing comes that was not asked for. */
static bool t_quiet(struct conn *c)
{
	struct reply r;

	if (!alive(c) || !get_reply(c, &r, 3000))
		return false;
	return r.any ? fail("a message, procedure %u", get_word(r.p, HDR_PROC)) : alive(c);
}

static const struct test tests[] = {
	{ "R8166-3.3.2-1", "messages as long as agreed on", t_agreed },
	{ "R8166-3.3.3-4 R8166-3.3.3-1", "1024 octets without private data", t_1024,
	  .terms = &terms_none },
	{ "R8166-3.3.3-5 R8797-5.1-1", "no private data", t_not_longer, .terms = &terms_none },
	{ "R8797-5.1-1 CM0-3.2-1 CM0-4-1", "private data of another version", t_not_longer,
	  .terms = &terms_version_2 },
	{ "R8797-5.2-2 CM0-4-1", "private data of another name", t_not_longer,
	  .terms = &terms_other_name },
	{ "R8797-5.2-3 CM0-4-1", "private data that is cut off", t_not_longer,
	  .terms = &terms_cut_off },
	{ "R8797-5.2-1", "private data behind other data", t_longer, .terms = &terms_behind },
	{ "R8797-4-3", "all Reserved bits set: longer messages", t_longer, .terms = &terms_reserved },
	{ "R8797-4-3 R8797-4.1-3", "all Reserved bits set: no Remote Invalidation", t_plain_sends,
	  .terms = &terms_reserved },
	{ "R8797-4.1-3 RI3-3.1-1 RI3-3.1-3", "no Remote Invalidation where none is offered",
	  t_plain_sends },
	{ "R8797-4.1-3 RI3-3.1-3", "nor where nothing is said", t_plain_sends,
	  .terms = &terms_none },
	{ "R8797-3.1-1 R8166-2.3.2-2", "a Send that is too long", t_too_long },
	{ "R8166-3.3.1-10 R8167-2-2", "nothing unasked", t_quiet },
};

const struct group group_agreement = {
	.name = "agreement", .about = "a client with private data of every kind",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
