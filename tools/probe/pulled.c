// SPDX-License-Identifier: GPL-2.0
/*
 * A client that has agreed on pulled Replies (Documentation/pulled-replies.rst), and follows that
 * protocol or violates it. A violation may cost the client its connection, but must not affect
 * other clients.
 *
 * guest.sh sets the server's limits: MAX_EXPOSED Replies at a time, each for EXPOSED_SECONDS. The
 * server allows RELEASE_SECONDS more for the invalidation to complete. stall_seconds is longer
 * than all of that.
 */

#include <string.h>
#include <unistd.h>
#include "counters.h"
#include "expect.h"
#include "exposed_reply.h"
#include "group.h"
#include "nfs4.h"
#include "pattern.h"
#include "probe.h"
#include "stall.h"

#define MAX_EXPOSED	4
#define EXPOSED_SECONDS	(8 + 2 * probe.time_factor)
#define LATE_SECONDS	8	/* by which the server may be late on a busy machine */
#define RELEASE_SECONDS	30
#define HELD		4		/* Replies that find no Receive */
#define UNUSED_XID	0xdead0000	/* of no Call */
#define FILE_LEN	16384
#define HOARDERS	9		/* clients that do not release their Replies */
#define FAIR_PAGES	108		/* fewer than the Replies of all HOARDERS have */
#define MAX_PAGES	16384		/* the default of max_exposed_pages */

/* The server retries Sends without a Receive for ever. */
static const struct params params_pulled_rnr = {
	.private_data = { PRIVATE_MSG(0, 3, 3), PULLED_MSG },
	.private_len = PRIVATE_MSG_LEN + PULLED_MSG_LEN,
	.responder = 16, .initiator = 16, .recv_size = 4096, .rnr_forever = true,
};

/* Both ends may invalidate handles of the other. */
static const struct params params_pulled_inv = {
	.private_data = { PRIVATE_MSG(REMOTE_INVALIDATE, 3, 3), PULLED_MSG },
	.private_len = PRIVATE_MSG_LEN + PULLED_MSG_LEN,
	.responder = 16, .initiator = 16, .recv_size = 4096,
};

/* Checks that the server does not expose a Reply. */
static bool long_reply_refused(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct reply r;

	if (!request_long_reply(c, xid) || !get_reply(c, &r, PATIENCE_MS))
		return false;
	return r.any ? is_error(&r, xid, ERR_CHUNK) : fail("no Reply");
}

static bool first_segment_denied(struct conn *c, const struct exposed *x,
				 enum ibv_wr_opcode opcode)
{
	return access_denied(c, opcode, x->seg, 0, x->seg[0].length);
}

/* Pulls the Reply, and sends RDMA_DONE. */
static bool pull_and_done(struct conn *c, const struct exposed *x)
{
	return pull_exposed(c, x) && send_done(c, x->xid);
}

static bool get_pull_and_done(struct conn *c)
{
	struct exposed x;

	return get_exposed(c, &x) && pull_and_done(c, &x);
}

/* Waits until the server has taken RDMA_DONEs and exposes Replies again. */
static bool exposes_again(struct conn *c)
{
	const int64_t start = now_ms();
	struct exposed x;
	struct reply r;
	unsigned int w;
	uint32_t xid;

	do {
		xid = new_xid();
		if (!request_long_reply(c, xid) || !get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("no Reply");
		if (!is_error(&r, xid, ERR_CHUNK))
			return parse_exposed(&r, xid, &x, &w) && no_more_chunks(&r, w) &&
			       pull_and_done(c, &x);
		sleep_ms(100);
	} while (now_ms() - start < PATIENCE_MS * probe.time_factor);
	return fail("the server exposes no Reply after the RDMA_DONEs");
}

/* Checks that the server serves another client. */
static bool alive_elsewhere(void)
{
	struct conn *c = conn_open(&params_pulled);
	const bool ok = c && get_pull_and_done(c) && alive(c);

	conn_close(c);
	return ok;
}

/* Writes the file that the other cases read. */
static bool t_prepare(struct conn *c)
{
	const struct segment data = area_segment(c, 0, FILE_LEN);
	struct enc e = { .len = 0 };

	fill_pattern(c->area, 0, FILE_LEN);
	enc_write_call(&e, new_xid(), &data);
	return compound_succeeds(c, &e, 2);
}

static bool t_agreed(struct conn *c)
{
	static const uint8_t block[] = { PULLED_MSG };
	int i;

	for (i = 0; i + PULLED_MSG_LEN <= c->peer_private_len; i++)
		if (!memcmp(c->peer_private + i, block, PULLED_MSG_LEN))
			return true;
	return fail("the server's private data offers no pulled Replies");
}

static bool t_not_agreed(struct conn *c)
{
	return !t_agreed(c) && long_reply_refused(c) && alive(c);
}

static bool t_pull(struct conn *c)
{
	int i;

	for (i = 0; i < 3 * MAX_EXPOSED; i++)
		if (!get_pull_and_done(c))
			return false;
	return alive(c);
}

enum reply_chunk { NO_REPLY_CHUNK, SHORT_REPLY_CHUNK };

/*
 * Two READs, with a Write chunk for the first one's data. The server exposes the rest. A Reply
 * chunk that is too short for it is returned unused.
 */
static bool pull_beside_chunks(struct conn *c, enum reply_chunk reply_chunk)
{
	const unsigned int first = 4096;
	const unsigned int rest = READ_REPLY_LEN + READ_RESULT_LEN + xdr_align(LONG_READ);
	const uint32_t xid = new_xid(), handle = c->area_mr->rkey;
	struct enc e = { .len = 0 };
	unsigned int w, write_list, reply;
	struct exposed x;
	struct reply r;

	memset(c->area + AREA / 2, 0xee, first);
	enc_call_hdr(&e, xid, RDMA_MSG);
	enc_list_end(&e);
	write_list = e.len;
	enc_wchunk(&e, handle, first, area_addr(c, AREA / 2));
	enc_list_end(&e);
	reply = e.len;
	if (reply_chunk == SHORT_REPLY_CHUNK)
		enc_wchunk(&e, handle, 512, area_addr(c, AREA / 2 + first));
	else
		enc_no_reply_chunk(&e);
	enc_compound(&e, xid, 3);
	enc_lookup(&e, "probe");
	enc_read(&e, 0, first);
	enc_read(&e, first, LONG_READ);
	if (!exchange(c, &e, &r) || !parse_exposed(&r, xid, &x, &w) ||
	    !chunk_returned(&r, &w, e.buf + write_list, first))
		return false;
	if (reply_chunk == NO_REPLY_CHUNK && !no_more_chunks(&r, w))
		return false;
	w++;		/* the end of the Write list */
	if (reply_chunk == SHORT_REPLY_CHUNK && !chunk_returned(&r, &w, e.buf + reply, 0))
		return false;
	if (x.length != rest || read_exposed(c, &x))
		return fail("%u bytes are exposed in %u segments, expected %u", x.length, x.n, rest);
	return compound_ok_xid(c->area, xid, 3) &&
	       check_pattern("data in the Write chunk", c->area + AREA / 2, 0, first) &&
	       check_pattern("data in the exposed Reply", c->area + rest - xdr_align(LONG_READ),
			     first, LONG_READ) &&
	       send_done(c, xid) && alive(c);
}

static bool t_beside_chunks(struct conn *c)
{
	return pull_beside_chunks(c, NO_REPLY_CHUNK) && pull_beside_chunks(c, SHORT_REPLY_CHUNK);
}

/*
 * Without RDMA_DONE the client uses up its exposed Replies. The server ends their exposure after a
 * while, but exposes no others until the RDMA_DONEs arrive.
 */
static bool t_no_done(struct conn *c)
{
	struct exposed x[MAX_EXPOSED];
	int i;

	for (i = 0; i < MAX_EXPOSED; i++)
		if (!get_exposed(c, &x[i]))
			return false;
	if (!long_reply_refused(c))
		return false;
	sleep(EXPOSED_SECONDS + LATE_SECONDS);
	if (!long_reply_refused(c) || !alive(c))
		return false;
	for (i = 0; i < MAX_EXPOSED; i++)
		if (!send_done(c, x[i].xid))
			return false;
	return exposes_again(c) && alive(c);
}

/* RDMA_DONEs twice, with an XID that is not exposed, too long, and too short. */
static bool t_stray_done(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct exposed x, y;
	int i;

	if (!get_exposed(c, &x) || !get_exposed(c, &y) || !pull_exposed(c, &x))
		return false;
	for (i = 0; i < 20; i++)
		if (!send_done(c, x.xid) || !send_done(c, UNUSED_XID + i))
			return false;
	enc_hdr(&e, UNUSED_XID + 0x1000, RPCRDMA_VERSION, 0xffffffff, RDMA_DONE);
	for (i = 0; i < 40; i++)
		enc_u32(&e, 0xffffffff);
	if (!ignored(c, &e))
		return false;
	e.len = HDR_FIXED_LEN - 4;
	if (!ignored(c, &e))
		return false;
	/* The other Reply is still exposed. */
	return pull_and_done(c, &y) && alive(c);
}

/* An RDMA_DONE right behind the Call: it arrives before or after the Reply is exposed. */
static bool t_early_done(struct conn *c)
{
	struct reply r;
	uint32_t xid;
	int i;

	for (i = 0; i < 5 * MAX_EXPOSED; i++) {
		xid = new_xid();
		if (!request_long_reply(c, xid) || !send_done(c, xid) || !get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("no Reply");
		send_done(c, xid);
	}
	return exposes_again(c) && alive(c);
}

static bool t_write(struct conn *c)
{
	struct exposed x;

	return get_exposed(c, &x) && first_segment_denied(c, &x, IBV_WR_RDMA_WRITE) &&
	       alive_elsewhere();
}

/* One byte before, or behind, the exposed Reply. */
static bool t_beyond(struct conn *unused)
{
	unsigned int before;

	(void)unused;
	for (before = 0; before < 2; before++) {
		struct conn *c = conn_open(&params_pulled);
		const struct segment *s;
		struct exposed x;
		bool ok = c && get_exposed(c, &x);

		s = before ? &x.seg[0] : &x.seg[x.n - 1];
		ok = ok && access_denied(c, IBV_WR_RDMA_READ, s,
					 before ? -1 : (int64_t)s->length, 1);
		conn_close(c);
		if (!ok)
			return false;
	}
	return alive_elsewhere();
}

/* A Reply that is exposed to another client, which can still pull it. */
static bool t_foreign(struct conn *c)
{
	struct conn *other = conn_open(&params_pulled);
	struct exposed x;
	int64_t begin;
	bool ok;

	if (!other || !get_exposed(other, &x))
		return false;
	begin = now_ms();
	ok = first_segment_denied(c, &x, IBV_WR_RDMA_READ);
	/* If the NAK is lost, the denial may take longer than the Reply is exposed. */
	if (ok && now_ms() - begin < EXPOSED_SECONDS * 900) {
		struct exposed y;

		ok = pull_and_done(other, &x) && get_exposed(other, &y) &&
		     pull_exposed(other, &y) && alive(other);
	}
	conn_close(other);
	return ok && alive_elsewhere();
}

static bool t_late(struct conn *c)
{
	struct exposed x;

	if (!get_exposed(c, &x))
		return false;
	sleep(EXPOSED_SECONDS + LATE_SECONDS);
	return first_segment_denied(c, &x, IBV_WR_RDMA_READ) && alive_elsewhere();
}

/*
 * The server's LOCAL_INV waits behind Sends that find no Receive. The server has to close the
 * connection after RELEASE_SECONDS.
 */
static bool t_held_release(struct conn *c)
{
	struct exposed x;
	int64_t begin;
	int i;

	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	if (!get_exposed(c, &x))
		return false;
	begin = now_ms();
	if (!withhold_receives(c, HELD))
		return false;
	for (i = 0; i < EXPOSED_SECONDS + 60 * probe.time_factor && !disconnected(c); i++)
		sleep(1);
	if (!c->disconnected)
		return fail("the server keeps the Reply's pages for ever");
	if (now_ms() - begin < RELEASE_SECONDS * 1000)
		return fail("disconnected after %d s, before the limit of %d s", i,
			    RELEASE_SECONDS);
	return alive_elsewhere();
}

/* RDMA_DONE invalidates the first or the last handle of its Reply. */
static bool t_invalidate(struct conn *c)
{
	struct exposed x;
	int i;

	for (i = 0; i < 3 * MAX_EXPOSED; i++)
		if (!get_exposed(c, &x) || !pull_exposed(c, &x) ||
		    !post_done_invalidating(c, x.xid, x.seg[i & 1 ? 0 : x.n - 1].handle) ||
		    !wait_sent(c))
			return false;
	return alive(c);
}

/*
 * Messages that invalidate a handle of Reply @y, which they are not about. The server may
 * disconnect before it acknowledges them, so they are only posted.
 */
static bool done_with_another(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return post_done_invalidating(c, x->xid, y->seg[0].handle);
}

static bool unknown_done(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	(void)x;
	return post_done_invalidating(c, UNUSED_XID, y->seg[0].handle);
}

static bool second_done(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	return send_done(c, x->xid) && post_done_invalidating(c, x->xid, y->seg[0].handle);
}

static bool call_invalidating(struct conn *c, const struct exposed *x, const struct exposed *y)
{
	struct enc e;

	(void)x;
	enc_null_call(&e, new_xid());
	return post_invalidating(c, &e, y->seg[0].handle);
}

/* The server cannot tell which Reply lost its handle. It has to close this connection only. */
static bool t_foreign_handle(struct conn *unused)
{
	static bool (*const ways[])(struct conn *, const struct exposed *, const struct exposed *) = {
		done_with_another, unknown_done, second_done, call_invalidating,
	};
	unsigned int i;

	(void)unused;
	for (i = 0; i < COUNT(ways); i++) {
		struct conn *c = conn_open(&params_pulled_inv);
		struct exposed x, y;
		bool ok;

		ok = c && get_exposed(c, &x) && get_exposed(c, &y) && pull_exposed(c, &x) &&
		     ways[i](c, &x, &y);
		if (ok && !wait_disconnected(c, PATIENCE_MS))
			ok = fail("way %u: still connected", i);
		conn_close(c);
		if (!ok)
			return false;
	}
	return alive_elsewhere();
}

static bool t_disconnect(struct conn *c)
{
	struct exposed x;
	int i, n;

	for (n = 0; n < 10; n++) {
		struct conn *other = conn_open(&params_pulled);

		for (i = 0; other && i < MAX_EXPOSED; i++)
			if (!get_exposed(other, &x))
				return false;
		conn_close(other);
	}
	return alive(c) && alive_elsewhere();
}

/* Requests long Replies until the server exposes no more, and sends no RDMA_DONE. */
static bool hoard(struct conn *c)
{
	struct reply r;
	uint32_t xid;
	int i;

	for (i = 0; i < MAX_EXPOSED; i++) {
		xid = new_xid();
		if (!request_long_reply(c, xid) || !get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("no Reply");
		if (is_error(&r, xid, ERR_CHUNK))
			break;
	}
	return i ? true : fail("no Reply is exposed to a new client");
}

/* The server notices after its client that a connection has ended. */
static bool wait_none_exposed(void)
{
	unsigned int ms;

	for (ms = 0; server_value("exposed_pages") > 0; ms += 100) {
		if (ms >= PATIENCE_MS)
			return fail("%ld pages stay exposed", server_value("exposed_pages"));
		sleep_ms(100);
	}
	return true;
}

/* Each of many clients has Replies exposed, although none of them releases any. */
static bool t_hoarders(struct conn *unused)
{
	struct conn *c[HOARDERS] = { NULL };
	bool ok = set_server_value("max_exposed_pages", FAIR_PAGES) &&
		  set_server_value("exposed_seconds", 600);
	unsigned int i;

	(void)unused;
	for (i = 0; ok && i < HOARDERS; i++) {
		c[i] = conn_open(&params_pulled);
		ok = c[i] && hoard(c[i]);
		if (!ok)
			fail("client %u: %s", i, probe.reason);
	}
	ok = ok && alive_elsewhere();
	for (i = 0; i < HOARDERS; i++)
		conn_close(c[i]);
	ok = ok && wait_none_exposed();
	return set_server_value("exposed_seconds", EXPOSED_SECONDS) &&
	       set_server_value("max_exposed_pages", MAX_PAGES) && ok;
}

static const struct test tests[] = {
	{ "RR4-4.1-1", "WRITE of the test file", t_prepare, .params = &params_default },
	{ "R8797-6-1", "the server offers pulled Replies", t_agreed },
	{ "RR4-4.1.1-2", "no exposed Replies if not agreed", t_not_agreed,
	  .params = &params_default },
	{ "RR4-4.1-1 RR4-4.1-2 RR4-4.1.1-3", "pull, and RDMA_DONE", t_pull },
	{ "RR4-4.1-3 RR4-4.1.1-1", "pull what does not fit in the chunks", t_beside_chunks },
	{ "RR4-4.1.3-6", "no RDMA_DONE", t_no_done },
	{ "RR4-4.1.3-4", "RDMA_DONE twice, and for unknown XIDs", t_stray_done },
	{ "RR4-4.1.3-4", "RDMA_DONE too early", t_early_done },
	{ "RR4-7-1", "an exposed Reply cannot be written", t_write },
	{ "R8166-8.1-1 RR4-7-2", "nothing beside an exposed Reply can be read", t_beyond },
	{ "R8166-8.1.1-1", "another client's exposed Reply cannot be read", t_foreign },
	{ "RR4-4.1.3-6", "an exposed Reply cannot be read too late", t_late },
	{ "-", "the end of an exposure is held up", t_held_release,
	  .params = &params_pulled_rnr },
	{ "-", "RDMA_DONE invalidates a handle of its Reply", t_invalidate,
	  .params = &params_pulled_inv },
	{ "-", "a message invalidates a handle of another Reply", t_foreign_handle },
	{ "RR4-4.1.3-6", "disconnect with Replies exposed", t_disconnect },
	{ "-", "many clients release no Reply", t_hoarders },
	{ "RR4-4.1-1", "the server still exposes Replies", t_pull },
};

const struct group group_pulled = {
	.name = "pulled", .about = "a client that pulls Replies, or does not",
	.tests = tests, .n = COUNT(tests), .params = &params_pulled, .open = conn_open,
};
