// SPDX-License-Identifier: GPL-2.0
/*
 * A client that never posts a Receive again, and has the server try for ever.
 */

#include "probe.h"

#define SPARED	6	/* Receives that the second client leaves to the server */

/* Calls until nothing is received any more, or so many times; returns how many Calls were. */
static unsigned int call_on(struct conn *c, unsigned int most)
{
	struct ibv_wc wc;
	struct enc e;
	unsigned int i;

	for (i = 0; i < most; i++) {
		enc_null_call(&e, next_xid++);
		if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, 3000) || wc.status)
			break;
	}
	return i;
}

/* Has the server try again soon, or its retries of another kind run out before. */
static bool promises(struct conn *c)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };

	return !ibv_modify_qp(c->id->qp, &attr, IBV_QP_MIN_RNR_TIMER) ? true :
		fail("ibv_modify_qp: %s", strerror(errno));
}

static bool ends(struct conn *c)
{
	unsigned int i;

	for (i = 0; i < 600 && !gone(c); i++)
		usleep(100000 * patience);
	return c->left ? true : fail("it still waits");
}

/*
 * The Send Queue is full then, and threads wait for it. A client whose Sends find no
 * Receive gives up, which ends that: the second one leaves some over, and does not.
 */
static bool t_deaf(struct conn *c)
{
	unsigned int calls;
	struct conn *other;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	if (!promises(c))
		return false;
	calls = call_on(c, 4096);
	if (calls == 4096)
		return fail("it takes everything");
	if (!ends(c))
		return false;
	other = conn_open(c->terms);
	if (!other)
		return false;
	calls -= SPARED;
	ok = promises(other) &&
	     (call_on(other, calls) == calls ? ends(other) : fail("it takes less and less"));
	conn_close(other);
	if (!ok)
		return false;
	other = conn_open(&terms_plain);
	ok = other && alive(other);
	if (other)
		conn_close(other);
	return ok;
}

static const struct test tests[] = {
	{ "-", "a peer that does not listen", t_deaf },
};

const struct group group_no_receives = {
	.name = "no_receives", .about = "a client that does not listen",
	.tests = tests, .n = COUNT(tests), .terms = &terms_slow, .open = conn_open,
};
