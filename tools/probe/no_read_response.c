// SPDX-License-Identifier: GPL-2.0
/*
 * A client that lets none of the server's work requests complete, for longer than the server's
 * stall_seconds, which guest.sh sets to 3.
 */

#include "counters.h"
#include "expect.h"
#include "group.h"
#include "probe.h"
#include "stall.h"

#define STALL_MS	3000
#define LONG_STALL_MS	12000	/* on a busy machine a Receive may be seconds late */
#define HELD		4	/* Replies that find no Receive */

static const char iwarp_no_receive[] =
	"over iWARP a Send without a Receive ends the connection at once";

/* The server polls for a stall now and then, and the CM needs time to report the disconnect. */
static bool is_ended(struct conn *c)
{
	return wait_disconnected(c, PATIENCE_MS) ? true :
		fail("the server keeps a connection on which nothing completes");
}

static bool t_reads_unanswered(struct conn *c)
{
	struct conn *other;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP that ends the connection at once");
	if (!stop_read_responses(c) || !is_ended(c))
		return false;
	other = conn_open(&params_default);
	ok = other && alive(other);
	conn_close(other);
	return ok;
}

static bool t_no_receive(struct conn *c)
{
	if (is_iwarp(c))
		return skip(iwarp_no_receive);
	return withhold_receives(c, HELD) && is_ended(c);
}

static bool set_stall_ms(unsigned int ms)
{
	return server_value("stall_seconds") < 0 ||
	       set_server_value("stall_seconds", ms / 1000 * probe.time_factor);
}

static bool receive_now_and_then(struct conn *c)
{
	struct ibv_wc wc;
	unsigned int i;

	if (!withhold_receives(c, HELD))
		return false;
	for (i = 0; i < HELD; i++) {
		sleep_ms(LONG_STALL_MS / 3);
		if (disconnected(c))
			return fail("disconnected after %u Receives", i);
		post_recv(c, i);
		if (!wait_cq(c->rcq, &wc, PATIENCE_MS) || wc.status)
			return fail("no Reply for Receive %u", i);
	}
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	return alive(c);
}

/* One Receive per third of stall_seconds is progress. */
static bool t_few_receives(struct conn *unused)
{
	struct conn *c;
	bool ok;

	if (is_iwarp(unused))
		return skip(iwarp_no_receive);
	if (!set_stall_ms(LONG_STALL_MS))
		return false;
	c = conn_open(&params_rnr_forever);
	ok = c && receive_now_and_then(c);
	conn_close(c);
	return set_stall_ms(STALL_MS) && ok;
}

static bool t_idle(struct conn *c)
{
	if (!alive(c))
		return false;
	sleep_ms(3 * STALL_MS);
	return disconnected(c) ? fail("the server closed an idle connection") : alive(c);
}

static const struct test tests[] = {
	{ "-", "RDMA Reads are not answered", t_reads_unanswered, .params = &params_long_timeout },
	{ "-", "Replies find no Receive", t_no_receive },
	{ "-", "Replies find a Receive now and then", t_few_receives },
	{ "-", "nothing is outstanding", t_idle },
};

const struct group group_no_read_response = {
	.name = "no_read_response", .about = "a client that lets nothing complete",
	.tests = tests, .n = COUNT(tests), .params = &params_rnr_forever, .open = conn_open,
};
