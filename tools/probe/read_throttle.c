// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that wait for their turn to be pulled. guest.sh sets the server's total, of which
 * strangers have half, and over iWARP has it make 72 regions for a connection.
 */

#include "compat.h"

#define TOTAL		528	/* pages */
#define CALLS		24	/* at a time, of which some wait */
#define WRITES		8	/* that need not wait: together they are 512 pages */
#define PIECES		60	/* of a Call: each takes a region */
#define PIECE		4096
#define ROUNDS		6

/* Calls that have waited for others to be pulled; negative if the server does not say. */
static long held_back(void)
{
	FILE *f = fopen("/proc/sys/sunrpc/svc_rdma/rdma_stat_held_back", "r");
	long calls;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &calls) != 1)
		calls = -1;
	fclose(f);
	return calls;
}

/* Has so much written at a time; how many Calls were held back meanwhile. */
static bool write_at_once(struct conn *c, unsigned int n, long *held)
{
	const uint32_t first = probe.next_xid;
	const long before = held_back();
	bool seen[CALLS] = { 0 };
	unsigned int i, at;
	struct reply r;

	if (!post_writes(c, n))
		return false;
	for (i = 0; i < n; i++) {
		if (!wait_sent(c) || !get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("%u of %u WRITEs were answered", i, n);
		if (!answers_one(&r, first, n, seen, &at) || !compound_ok(r.p + at, 2))
			return false;
	}
	*held = held_back() - before;
	return true;
}

/*
 * Beside @c, and another one that no export has admitted yet, a stranger has all that the
 * server pulls for strangers, and keeps it for as long as the server bears.
 */
static bool beside_stranger(struct conn *c, struct conn *stranger)
{
	struct conn *other;
	const long before = held_back();
	long held;
	bool ok;

	if (!stop_read_responses(stranger))
		return false;
	usleep(200000 * probe.time_factor);
	if (held_back() == before)
		return fail("the server pulls all of a stranger's Calls at a time");
	other = conn_open(&params_default);
	ok = other && write_at_once(other, WRITES, &held);
	conn_close(other);
	if (!ok)
		return false;
	if (!held)
		return fail("the stranger had not all that strangers may have");
	if (!write_at_once(c, WRITES - 2, &held))
		return false;
	if (held)
		return fail("%ld Calls waited for what a stranger keeps", held);
	return disconnected(stranger) ? fail("the stranger was ended before") : true;
}

/* What strangers take is nothing to those that an export has admitted. */
static bool t_strangers(struct conn *c)
{
	struct conn *stranger;
	long held;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP Reads that are not answered end the connection at once");
	if (held_back() < 0)
		return skip("the server has no total for what it pulls");
	if (!write_at_once(c, 1, &held))
		return false;
	stranger = conn_open(&params_long_timeout);
	ok = stranger && beside_stranger(c, stranger);
	conn_close(stranger);
	return ok;
}

static void write_in_pieces(struct conn *c, struct enc *e, uint32_t xid)
{
	struct enc m = { .len = 0 };
	unsigned int i, position;

	enc_compound(&m, xid, 2);
	enc_lookup(&m, "probe");
	position = enc_write(&m, 0, PIECES * PIECE);
	e->len = 0;
	enc_call_hdr(e, xid, RDMA_MSG);
	for (i = 0; i < PIECES; i++)
		enc_rseg(e, position, c->area_mr->rkey, PIECE, area_addr(c, i * PIECE));
	enc_no_chunks(e);
	enc_bytes(e, m.buf, m.len);
}

static bool set_total(unsigned int pages)
{
	FILE *f = fopen("/proc/sys/sunrpc/svc_rdma/max_pulled_pages", "w");
	bool ok;

	if (!f)
		return fail("max_pulled_pages: %s", strerror(errno));
	ok = fprintf(f, "%u\n", pages) > 0;
	return !fclose(f) && ok ? true : fail("max_pulled_pages: %s", strerror(errno));
}

/*
 * While Calls wait for each other's regions, or because there is a total, that total falls to
 * nothing and rises again. Whoever waits is told.
 */
static bool total_changes(struct conn *c)
{
	const uint32_t first = probe.next_xid;
	bool seen[CALLS] = { 0 };
	unsigned int i, at;
	struct reply r;
	struct enc e;

	for (i = 0; i < CALLS; i++) {
		write_in_pieces(c, &e, new_xid());
		if (!post_msg(c, &e))
			return false;
	}
	for (i = 0; i < CALLS; i++) {
		if (!set_total(i & 1 ? TOTAL : 1) || !wait_sent(c) || !get_reply(c, &r, 5000))
			return false;
		if (!r.any)
			return fail("%u of %u Calls were answered", i, CALLS);
		if (!answers_one(&r, first, CALLS, seen, &at) || !compound_ok(r.p + at, 2))
			return false;
	}
	return true;
}

static bool t_total_changes(struct conn *c)
{
	unsigned int i;
	bool ok = true;

	if (held_back() < 0)
		return skip("the server has no total for what it pulls");
	for (i = 0; ok && i < ROUNDS; i++)
		ok = total_changes(c);
	return set_total(TOTAL) && ok && alive(c);
}

static const struct test tests[] = {
	{ "-", "a stranger who has all that strangers may have", t_strangers },
	{ "-", "a total that changes", t_total_changes },
};

const struct group group_read_throttle = {
	.name = "read_throttle", .about = "Calls that wait for their turn to be pulled",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
