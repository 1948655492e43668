// SPDX-License-Identifier: GPL-2.0
/*
 * Calls whose Read chunks wait, because the server limits the pages that it reads at a time.
 *
 * guest.sh sets that limit to LIMIT pages. Clients that no export has accepted yet share half of
 * it. Over iWARP the server has 72 MRs for a connection.
 */

#include "counters.h"
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"
#include "stall.h"

#define LIMIT		2112	/* pages */
#define CALLS		24	/* at a time, of which some wait */
#define FITTING_WRITES	6	/* 384 pages, less than a quarter */
#define EXCESS_WRITES	5	/* 320 pages: exceeds the share of an unaccepted client */
#define FAIR_WRITES	4	/* 256 pages: a quarter of what two other clients leave */
#define SEGS		60	/* of a Call: each takes an MR */
#define SEG_LEN		4096
#define ROUNDS		6
#define MEETINGS	100	/* tries until the Calls of a client are read at the same time */

static const char no_limit[] = "the server has no limit for what it reads";

/* The server's count of Calls that had to wait, or -1 if it does not count. */
static long held_back(void)
{
	return server_value("rdma_stat_held_back");
}

/* Waits for Reply @i to one of @n compounds of two operations, whose XIDs start at @first. */
static bool take_reply(struct conn *c, uint32_t first, unsigned int n, unsigned int i, bool *seen)
{
	unsigned int at;
	struct reply r;

	if (!wait_sent(c) || !get_reply(c, &r, PATIENCE_MS))
		return false;
	if (!r.any)
		return fail("%u Replies to %u Calls", i, n);
	return answers_one(&r, first, n, seen, &at) && compound_ok(r.p + at, 2);
}

/* Concurrent WRITEs. @held is the number of Calls that had to wait meanwhile. */
static bool write_concurrently(struct conn *c, unsigned int n, long *held)
{
	const uint32_t first = probe.next_xid;
	const long before = held_back();
	bool seen[CALLS] = { 0 };
	unsigned int i;

	if (!post_writes(c, n))
		return false;
	for (i = 0; i < n; i++)
		if (!take_reply(c, first, n, i, seen))
			return false;
	*held = held_back() - before;
	return true;
}

/*
 * Makes Calls of a new client wait, which no export has accepted. They wait for one another only
 * if the server reads for all of them at the same time, which a busy machine may prevent.
 */
static bool unaccepted_waits(void)
{
	struct conn *c = conn_open(&params_default);
	unsigned int i;
	long held = 0;
	bool ok = c != NULL;

	for (i = 0; ok && !held && i < MEETINGS; i++)
		ok = write_concurrently(c, EXCESS_WRITES, &held);
	conn_close(c);
	return ok && !held ? fail("pages are left for clients that are not accepted") : ok;
}

/*
 * @unaccepted, which no export has accepted, uses up the pages of such clients, and keeps them by
 * not answering RDMA Reads. A second client that is not accepted has to wait. @accepted does not.
 */
static bool write_beside(struct conn *accepted, struct conn *unaccepted)
{
	const long before = held_back();
	unsigned int ms;
	long held;

	if (!stop_read_responses(unaccepted))
		return false;
	for (ms = 0; held_back() == before && ms < PATIENCE_MS; ms += 100)
		sleep_ms(100);
	if (held_back() == before)
		return fail("the server reads all Calls of a client that is not accepted");
	if (!unaccepted_waits())
		return false;
	if (!write_concurrently(accepted, FITTING_WRITES, &held))
		return false;
	if (held)
		return fail("%ld Calls of an accepted client waited", held);
	return disconnected(unaccepted) ? fail("the client with the pages was disconnected") : true;
}

static bool t_unaccepted(struct conn *c)
{
	struct conn *unaccepted;
	long held;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP unanswered RDMA Reads end the connection at once");
	if (held_back() < 0)
		return skip(no_limit);
	/* The export accepts this client. */
	if (!write_concurrently(c, 1, &held))
		return false;
	unaccepted = conn_open(&params_long_timeout);
	ok = unaccepted && write_beside(c, unaccepted);
	conn_close(unaccepted);
	return ok;
}

/* A client that an export accepts, and that then keeps the pages of its Calls. */
static struct conn *open_hoarder(void)
{
	struct conn *c = conn_open(&params_long_timeout);
	long held;

	if (c && write_concurrently(c, 1, &held) && stop_read_responses(c))
		return c;
	conn_close(c);
	return NULL;
}

/* Two clients have more Calls than there are pages. Pages are left for a third one. */
static bool t_fair(struct conn *c)
{
	struct conn *first, *second;
	long held;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP unanswered RDMA Reads end the connection at once");
	if (held_back() < 0)
		return skip(no_limit);
	if (!write_concurrently(c, 1, &held))
		return false;
	first = open_hoarder();
	second = first ? open_hoarder() : NULL;
	ok = second != NULL;
	sleep_ms(200);
	ok = ok && write_concurrently(c, FAIR_WRITES, &held);
	if (ok && held)
		ok = fail("%ld Calls waited for other clients", held);
	conn_close(second);
	conn_close(first);
	return ok;
}

/* A WRITE whose Read chunk has SEGS segments. */
static void enc_write_segments(struct conn *c, struct enc *e, uint32_t xid)
{
	struct enc rpc = { .len = 0 };
	unsigned int i, position;

	enc_compound(&rpc, xid, 2);
	enc_lookup(&rpc, "probe");
	position = enc_write(&rpc, 0, SEGS * SEG_LEN);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < SEGS; i++)
		enc_rseg(e, position, c->area_mr->rkey, SEG_LEN, area_addr(c, i * SEG_LEN));
	enc_no_chunks(e);
	enc_bytes(e, rpc.buf, rpc.len);
}

static bool set_limit(unsigned int pages)
{
	return set_server_value("max_pulled_pages", pages);
}

/*
 * The limit drops to one page and rises again while Calls wait, for pages or for MRs. No wakeup
 * may be lost.
 */
static bool change_limit(struct conn *c)
{
	const uint32_t first = probe.next_xid;
	bool seen[CALLS] = { 0 };
	unsigned int i;
	struct enc e;

	for (i = 0; i < CALLS; i++) {
		enc_write_segments(c, &e, new_xid());
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < CALLS; i++)
		if (!set_limit(i & 1 ? LIMIT : 1) || !take_reply(c, first, CALLS, i, seen))
			return false;
	return true;
}

static bool t_limit_changes(struct conn *c)
{
	unsigned int i;
	bool ok = true;

	if (held_back() < 0)
		return skip(no_limit);
	for (i = 0; ok && i < ROUNDS; i++)
		ok = change_limit(c);
	return set_limit(LIMIT) && ok && alive(c);
}

static const struct test tests[] = {
	{ "-", "an unaccepted client uses up the pages of such clients", t_unaccepted },
	{ "-", "two clients use up as many pages as they get", t_fair },
	{ "-", "the limit changes while Calls wait", t_limit_changes },
};

const struct group group_read_throttle = {
	.name = "read_throttle", .about = "a client whose Read chunks exceed the server's limit",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
