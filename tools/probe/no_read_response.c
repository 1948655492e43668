// SPDX-License-Identifier: GPL-2.0
/*
 * A client that keeps nothing of what the server has under way moving, for longer than
 * the server's stall_seconds, which are 3 here.
 */

#include "probe.h"

#define STALL		3	/* seconds; see guest.sh */
#define HELD		4	/* Replies that find no Receive */
#define UNANSWERED	24	/* pulled long after the last of them has been sent */

/* As long as there is: 4 us * 2^31, and that seven times. */
const struct terms terms_patient = {
	.octets = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 }, .len = 8, .responder = 16,
	.longest = 4096, .answers_in = 31,
};

static bool ended(struct conn *c)
{
	unsigned int i;

	/* Until the server looks, and the connection manager has said so. */
	for (i = 0; i < 8 * STALL && !gone(c); i++)
		usleep(1000000 * patience);
	return c->left ? true : fail("what the server has under way is held up for ever");
}

/* Of PULLED octets each. */
bool post_writes(struct conn *c, unsigned int n)
{
	struct enc e;
	unsigned int i;

	for (i = 0; i < n; i++) {
		e.n = 0;
		enc_write_call(&e, next_xid++, c->area_mr->rkey, at_area(c, i % (AREA / PULLED) * PULLED),
			       PULLED);
		if (!post_msg(c, &e))
			return false;
	}
	return true;
}

/*
 * The client says how long the server's device is to wait for answers, and then it is not
 * there: a queue pair that is reset hears nothing.
 */
bool leave_unanswered(struct conn *c)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	unsigned int i;

	if (!post_writes(c, UNANSWERED))
		return false;
	for (i = 0; i < UNANSWERED; i++)
		if (!sent(c))
			return false;
	if (ibv_modify_qp(c->id->qp, &reset, IBV_QP_STATE))
		return fail("ibv_modify_qp: %s", strerror(errno));
	return true;
}

static bool t_unanswered(struct conn *c)
{
	struct conn *other;
	bool ok;

	if (is_iwarp(c))
		return skip("over iWARP that ends the connection at once");
	if (!leave_unanswered(c) || !ended(c))
		return false;
	other = conn_open(&terms_plain);
	ok = other && alive(other);
	conn_close(other);
	return ok;
}

/* Has the server send Replies, and posts no Receive for the last ones. */
bool hold_replies(struct conn *c)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };
	struct ibv_wc wc;
	struct enc e;
	unsigned int i;

	if (ibv_modify_qp(c->id->qp, &attr, IBV_QP_MIN_RNR_TIMER))
		return fail("ibv_modify_qp: %s", strerror(errno));
	for (i = 0; i < RECVS + HELD; i++) {
		enc_null_call(&e, next_xid++);
		if (!send_msg(c, &e))
			return false;
		if (i < RECVS && !wait_cq(c->rcq, &wc, 5000))
			return fail("no answer to Call %u", i);
	}
	return true;
}

static bool t_held(struct conn *c)
{
	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	return hold_replies(c) && ended(c);
}

/* One Receive now and then is enough to stay. */
static bool t_slow(struct conn *c)
{
	struct ibv_wc wc;
	unsigned int i;

	if (is_iwarp(c))
		return skip("over iWARP a Send without a Receive ends the connection at once");
	if (!hold_replies(c))
		return false;
	for (i = 0; i < HELD; i++) {
		usleep(500000 * STALL * patience);
		if (gone(c))
			return fail("ended after %u Receives", i);
		post_recv(c, i);
		if (!wait_cq(c->rcq, &wc, 3000) || wc.status)
			return fail("Reply %u did not come", i);
	}
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	return alive(c);
}

/* So may who has nothing under way. */
static bool t_idle(struct conn *c)
{
	if (!alive(c))
		return false;
	usleep(3000000 * STALL * patience);
	return gone(c) ? fail("an idle connection was ended") : alive(c);
}

static const struct test tests[] = {
	{ "-", "RDMA Reads that are not answered", t_unanswered, .terms = &terms_patient },
	{ "-", "Replies that find no Receive", t_held },
	{ "-", "Replies that find one now and then", t_slow },
	{ "-", "nothing under way", t_idle },
};

const struct group group_no_read_response = {
	.name = "no_read_response", .about = "a client that keeps nothing moving",
	.tests = tests, .n = COUNT(tests), .terms = &terms_slow, .open = conn_open,
};
