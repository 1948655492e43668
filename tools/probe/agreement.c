// SPDX-License-Identifier: GPL-2.0
/*
 * What a server takes from a client's private data, and how long a message may be.
 */

#include "compat.h"

#define ID	0xf6, 0xab, 0x0e, 0x18

/* No messages: of another version, of another name, and without an end. */
static const struct params params_version_2 = {
	.private_data = { ID, 2, 1, 3, 3 }, .private_len = 8, .responder = 16, .recv_size = 1024,
};

static const struct params params_other_name = {
	.private_data = { 0xf6, 0xab, 0x0e, 0x19, 1, 1, 3, 3 }, .private_len = 8, .responder = 16, .recv_size = 1024,
};

static const struct params params_cut_off = {
	.private_data = { ID, 1, 1, 3 }, .private_len = 7, .responder = 16, .recv_size = 1024,
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
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at;
	struct reply r;

	if (peer_send_size(c) < 2048)
		return skip("it sends no longer messages");
	read_inline(&e, xid, 1500);
	return exchange(c, &e, &r) && reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_not_longer(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	read_inline(&e, xid, 1500);
	return refused(c, &e, xid, ERR_CHUNK);
}

static bool read_plainly(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at;
	struct reply r;

	memset(c->area, 0xee, 100);
	old_enc_read_call(&e, xid, c->area_mr->rkey, 8192, area_addr(c, 0), 100);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at) || !compound_ok(r.p + at, 2))
		return false;
	return r.invalidated ? fail("invalidated although not asked to") :
		check_pattern("the file", c->area, 0, 100);
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
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };
	unsigned int at, n;
	struct reply r;

	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_no_chunks(&e);
	enc_compound(&e, xid, 2);
	enc_lookup(&e, "probe");
	n = octets - enc_write(&e, 0, 0);
	put_word(&e, e.len / 4 - 1, n);
	fill_pattern(e.buf + e.len, 0, n);
	e.len += n;
	return exchange(c, &e, &r) && reply_body(&r, xid, &at) && compound_ok(r.p + at, 2);
}

static bool t_1024(struct conn *c)
{
	return of_length(c, 1024) && alive(c);
}

static bool t_agreed(struct conn *c)
{
	return of_length(c, peer_recv_size(c) < 4096 ? peer_recv_size(c) : 4096) && alive(c);
}

/* A Send that is longer than its Receive ends the connection, and nothing else. */
static bool t_too_long(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct conn *other;
	struct ibv_wc wc;
	bool ok;

	if (peer_recv_size(c) >= sizeof(e.buf))
		return skip("it receives messages of any length");
	enc_call_hdr(&e, new_xid(), RDMA_MSG);
	memset(e.buf + e.len, 0, sizeof(e.buf) - e.len);
	e.len = peer_recv_size(c) + 4;
	if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, 5000))
		return fail("the Send did not complete");
	/* On iWARP it is sent, and what becomes of it comes later. */
	if (!wc.status && !is_iwarp(c))
		return fail("it was received");
	/* This end's queue pair may have failed alone: the other end has to let go, too. */
	if (!event(c, RDMA_CM_EVENT_DISCONNECTED, 5000))
		return fail("the connection was kept: %s", probe.reason);
	other = conn_open(&params_default);
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
	  .params = &params_no_private },
	{ "R8166-3.3.3-5 R8797-5.1-1", "no private data", t_not_longer, .params = &params_no_private },
	{ "R8797-5.1-1 CM0-3.2-1 CM0-4-1", "private data of another version", t_not_longer,
	  .params = &params_version_2 },
	{ "R8797-5.2-2 CM0-4-1", "private data of another name", t_not_longer,
	  .params = &params_other_name },
	{ "R8797-5.2-3 CM0-4-1", "private data that is cut off", t_not_longer,
	  .params = &params_cut_off },
	{ "R8797-5.2-1", "private data behind other data", t_longer, .params = &params_prefixed },
	{ "R8797-4-3", "all Reserved bits set: longer messages", t_longer, .params = &params_reserved_bits },
	{ "R8797-4-3 R8797-4.1-3", "all Reserved bits set: no Remote Invalidation", t_plain_sends,
	  .params = &params_reserved_bits },
	{ "R8797-4.1-3 RI3-3.1-1 RI3-3.1-3", "no Remote Invalidation where none is offered",
	  t_plain_sends },
	{ "R8797-4.1-3 RI3-3.1-3", "nor where nothing is said", t_plain_sends,
	  .params = &params_no_private },
	{ "R8797-3.1-1 R8166-2.3.2-2", "a Send that is too long", t_too_long },
	{ "R8166-3.3.1-10 R8167-2-2", "nothing unasked", t_quiet },
};

const struct group group_agreement = {
	.name = "agreement", .about = "a client with private data of every kind",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
