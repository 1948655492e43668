// SPDX-License-Identifier: GPL-2.0
/*
 * A client that posts no further Receives, and makes the server's device retry Sends for ever.
 */

#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"

#define MOST_CALLS	4096
#define PACE_MS		10
#define SPARED		6	/* Calls by which the second client stays below the server's limit */

/*
 * Calls until the server takes no more; returns how many Calls it took. A server need not repost
 * Receives for a client that exceeds its credits. So each of the first RECVS Calls waits for its
 * Reply; after that, nfsd gets some time to process each Call.
 */
static unsigned int call_until_full(struct conn *c, unsigned int most)
{
	struct ibv_wc wc;
	struct enc e;
	unsigned int i;

	for (i = 0; i < most; i++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, 3000) || wc.status)
			break;
		if (i >= RECVS)
			sleep_ms(PACE_MS);
		else if (!wait_cq(c->rcq, &wc, 5000) || wc.status)
			break;
	}
	return i;
}

static bool is_ended(struct conn *c)
{
	return wait_disconnected(c, 60000) ? true : fail("the server still waits");
}

/*
 * The Send Queue is full when the server takes no more Calls, and nfsd threads wait for it. The
 * first client's own Sends then find no Receive either, which ends its connection. The second
 * client stops before that, so that only the server can end the connection.
 */
static bool t_no_receives(struct conn *c)
{
	unsigned int calls, taken;
	struct conn *other;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	if (!set_min_rnr_timer(c))
		return false;
	calls = call_until_full(c, MOST_CALLS);
	if (calls == MOST_CALLS)
		return fail("the server takes Calls without limit");
	if (!is_ended(c))
		return false;
	other = conn_open(c->params);
	if (!other)
		return false;
	calls -= SPARED;
	ok = set_min_rnr_timer(other);
	taken = ok ? call_until_full(other, calls) : 0;
	if (ok && taken < calls)
		ok = fail("the second time the server took %u Calls, expected %u", taken, calls);
	ok = ok && is_ended(other);
	conn_close(other);
	if (!ok)
		return false;
	other = conn_open(&params_default);
	ok = other && alive(other);
	if (other)
		conn_close(other);
	return ok;
}

static const struct test tests[] = {
	{ "-", "a client that posts no Receives", t_no_receives },
};

const struct group group_no_receives = {
	.name = "no_receives", .about = "a client that posts no Receives",
	.tests = tests, .n = COUNT(tests), .params = &params_rnr_forever, .open = conn_open,
};
