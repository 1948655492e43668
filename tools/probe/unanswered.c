// SPDX-License-Identifier: GPL-2.0
/*
 * A client that does not answer its server's backchannel Calls, or that answers them when nfsd has
 * given them up. Such a Call stays outstanding (RFC 8167, Section 4.1).
 */

#include <unistd.h>
#include "expect.h"
#include "group.h"
#include "probe.h"
#include "session.h"

#define ENOUGH	16	/* the server needs no more */

/* nfsd gives up a backchannel Call within this time: a tenth of the lease time in guest.sh. */
#define GIVEN_UP_MS	(22000 * probe.time_factor)

/* A minute later the Reply is overdue. */
#define OVERDUE_MS	(GIVEN_UP_MS + 65000)

/* How long another Call may take to arrive, on the slowest machine. */
#define EXTRA_CALL_MS	2000

/* Grants @credits with the Reply to a first recall, and makes the server recall @n delegations. */
static bool grant_and_cause(struct conn *c, unsigned int credits, unsigned int n)
{
	struct reply back = { .p = NULL };
	struct enc e;

	if (!get_recall(c, &back))
		return false;
	enc_recall_reply(&e, &back, credits);
	return send_msg(c, &e) && cause_recalls(c, n);
}

/* Takes the next Call within @ms, and makes the Reply to it, which is not sent. */
static bool take_call(struct conn *c, struct enc *e, unsigned int credits, int ms)
{
	struct reply back;

	if (!next_callback(c, &back, ms))
		return fail("no backchannel Call");
	if (!new_or_retransmitted(&back))
		return false;
	enc_recall_reply(e, &back, credits);
	return true;
}

/* Checks that for @ms no Call arrives but retransmissions of these two. */
static bool no_call_but(struct conn *c, const struct enc *a, const struct enc *b, int ms)
{
	const int64_t end = now_ms() + ms;
	struct reply back;
	uint32_t xid;
	int64_t left;

	/* next_callback() multiplies the time. */
	while ((left = end - now_ms()) > 0 &&
	       next_callback(c, &back, left / probe.time_factor + 1)) {
		if (!new_or_retransmitted(&back))
			return false;
		xid = get_word(back.p, HDR_XID);
		if (xid != get_word(a->buf, HDR_XID) && xid != get_word(b->buf, HDR_XID))
			return fail("another Call, beyond the grant");
	}
	return true;
}

/*
 * The server has credits for other Calls, so it keeps the connection, with the client's Calls. The
 * late Reply is accepted.
 */
static bool t_unanswered(struct conn *c)
{
	struct enc late;
	uint32_t flags;
	int64_t start;

	if (!grant_and_cause(c, ENOUGH, 1) || !take_call(c, &late, ENOUGH, PATIENCE_MS))
		return false;
	for (start = now_ms(); now_ms() - start < OVERDUE_MS; usleep(2000000))
		if (!sequence_status(c, &flags, NULL))
			return fail("%d ms after the Call: %s", (int)(now_ms() - start), probe.reason);
	/* nfsd may have called again. */
	return send_msg(c, &late) && sequence_status(c, &flags, NULL);
}

/*
 * The only credit belongs to a Call without a Reply: the server does not exceed the grant, and ends
 * the connection, on which it could never call again.
 */
static bool t_no_credit_left(struct conn *c)
{
	struct enc late;

	if (!grant_and_cause(c, 1, 2) || !take_call(c, &late, 1, PATIENCE_MS))
		return false;
	if (!no_call_but(c, &late, &late, OVERDUE_MS))
		return false;
	return wait_disconnected(c, PATIENCE_MS / 2) ? true :
		fail("the connection is kept without a credit");
}

/* The Reply to a Call that nfsd has given up arrives twice: it returns one credit, once. */
static bool t_late_reply_twice(struct conn *c)
{
	struct enc first, second, third;

	if (!grant_and_cause(c, 2, MAX_RECALLS) || !take_call(c, &first, 2, PATIENCE_MS) ||
	    !take_call(c, &second, 2, PATIENCE_MS))
		return false;
	if (!no_call_but(c, &first, &second, GIVEN_UP_MS))
		return false;
	if (!send_msg(c, &first) || !send_msg(c, &first))
		return false;
	if (!take_call(c, &third, 2, GIVEN_UP_MS))
		return false;
	return no_call_but(c, &second, &third, EXTRA_CALL_MS) && alive(c);
}

static const struct test tests[] = {
	{ "R8167-4.1-3", "the late Reply to a backchannel Call arrives twice", t_late_reply_twice },
	{ "R8167-4.1-3", "the only credit belongs to a Call without a Reply", t_no_credit_left },
	{ "-", "a backchannel Call without a Reply for more than a minute", t_unanswered },
};

const struct group group_unanswered = {
	.name = "unanswered", .about = "a client that does not answer its server's Calls",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
