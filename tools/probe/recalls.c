// SPDX-License-Identifier: GPL-2.0
/*
 * A client whose server calls it on the backchannel, to recall delegations.
 */

#include <unistd.h>
#include "counters.h"
#include "delay.h"
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"
#include "session.h"

#define ERROR_FLAGS	(SEQ4_STATUS_CB_PATH_DOWN | SEQ4_STATUS_BACKCHANNEL_FAULT)
#define XID_FLIP	0x80000000	/* turns an XID of the server into one that it does not use */

/* nfsd gives up a backchannel Call after more than this: a tenth of the lease time in guest.sh. */
#define NFSD_WAITS_MS	(16000 * probe.time_factor)

/* How long one more Call may take to arrive, on the slowest machine. */
#define EXTRA_CALL_MS	1500

/*
 * How long nfsd is delayed before it learns that a connection is lost. No watchdog of the kernel
 * fires within that time.
 */
#define LOST_DELAY_MS	(3000 + 500 * probe.time_factor)
#define LOST_ATTEMPTS	3	/* on a busy machine it may take longer to see that */

/* How long a thread that takes a Reply is delayed before it wakes the RPC task. */
#define WAKE_DELAY_MS	(1000 + 200 * probe.time_factor)
#define WAKE_ATTEMPTS	8

/* Checks that a recall has the right form, and that its Reply is accepted. */
static bool t_recall(struct conn *c)
{
	struct reply back = { .p = NULL };
	struct enc e;
	uint32_t flags;
	int i;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	enc_recall_reply(&e, &back, 1);
	if (!send_msg(c, &e))
		return false;
	for (i = 0; i < 5; i++) {
		usleep(100000);
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (flags)
			return fail("SEQUENCE status flags %x", flags);
	}
	return alive(c);
}

/* As many Calls as were granted, and the Reply to a recall, all at once. */
static bool t_calls_and_reply(struct conn *c)
{
	struct reply back = { .p = NULL }, r;
	struct enc e, answer;
	bool seen[RECVS] = { false };
	uint32_t flags, granted, first;
	unsigned int i, n, at;
	unsigned long rnr;
	int64_t called_at;
	int ms;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	called_at = now_ms();
	if (!sequence_status(c, &flags, &granted))
		return false;
	rnr = rnr_count(c);
	n = granted < RECVS - MAX_CALLBACKS ? granted : RECVS - MAX_CALLBACKS;
	first = probe.next_xid;
	enc_recall_reply(&answer, &back, 1);
	for (i = 0; i < n; i++) {
		enc_null_call(&e, new_xid());
		if (!post_msg(c, &e))
			return false;
	}
	if (!post_msg(c, &answer))
		return false;
	for (i = 0; i <= n; i++)
		if (!wait_sent(c))
			return fail("Send %u: %s", i, probe.reason);
	for (i = 0; i < n; i++)
		if (!next_forward_reply(c, &r) || !answers_one(&r, first, n, seen, &at))
			return fail("%u Replies to %u Calls: %s", i, n, probe.reason);
	if (!sequence_status(c, &flags, NULL))
		return false;
	/* A completed Send need not have arrived on iWARP, but the SEQUENCE behind it has. */
	ms = now_ms() - called_at;
	if (flags && ms > NFSD_WAITS_MS)
		return skip("nfsd may have given up the recall before its Reply");
	if (flags)
		return fail("SEQUENCE status flags %x, %d ms after the recall", flags, ms);
	return no_rnr_since(c, rnr) && alive(c);
}

static bool is_outstanding(const uint32_t *outstanding, unsigned int n, uint32_t xid)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (outstanding[i] == xid)
			return true;
	return false;
}

/* Checks that no other backchannel Calls arrive than retransmissions of these. */
static bool no_more_callbacks(struct conn *c, const uint32_t *outstanding, unsigned int n)
{
	const int64_t start = now_ms();
	struct reply back;

	while (now_ms() - start < EXTRA_CALL_MS &&
	       next_callback(c, &back, EXTRA_CALL_MS / probe.time_factor)) {
		if (!new_or_retransmitted(&back))
			return false;
		if (!is_outstanding(outstanding, n, get_word(back.p, HDR_XID)))
			return fail("more than %u outstanding Calls, after a stray RDMA_ERROR", n);
	}
	return true;
}

/* An RDMA_ERROR to the server's Call with this XID. */
static void enc_callback_error(struct enc *e, uint32_t xid, uint32_t credits)
{
	e->len = 0;
	enc_hdr(e, xid, RPCRDMA_VERSION, credits, RDMA_ERROR);
	enc_u32(e, ERR_CHUNK);
}

/*
 * The client grants some credits, and the server has @recalls to make. The number of outstanding
 * Calls has to be the smallest of these and of what the server has requested. A retransmission
 * is no further Call.
 */
static bool calls_as_granted(struct conn *c, unsigned int credits, unsigned int recalls)
{
	struct reply back = { .p = NULL };
	uint32_t outstanding[8];
	struct enc e, stray;
	unsigned int i, most, n = 0;

	if (!get_recall(c, &back))
		return false;
	most = get_word(back.p, HDR_CREDITS);
	most = most < credits ? most : credits;
	enc_recall_reply(&e, &back, credits);
	if (!send_msg(c, &e) || !cause_recalls(c, recalls))
		return false;
	for (i = 0; i < COUNT(outstanding); i++) {
		const int ms = n < most ? PATIENCE_MS : EXTRA_CALL_MS / probe.time_factor;

		if (!next_callback(c, &back, ms))
			break;
		if (!new_or_retransmitted(&back))
			return false;
		if (is_outstanding(outstanding, n, get_word(back.p, HDR_XID)))
			continue;
		outstanding[n++] = get_word(back.p, HDR_XID);
		enc_recall_reply(&e, &back, credits);
	}
	if (n != most)
		return fail("%u outstanding Calls, expected %u", n, most);
	/* An RDMA_ERROR with an unknown XID grants nothing. */
	enc_callback_error(&stray, get_word(e.buf, HDR_XID) ^ XID_FLIP, COUNT(outstanding));
	if (n < recalls && (!send_msg(c, &stray) || !no_more_callbacks(c, outstanding, n)))
		return false;
	/* The Reply to the last Call grants another one. */
	if (!send_msg(c, &e))
		return false;
	if (n == recalls)
		return true;
	if (!next_callback(c, &back, PATIENCE_MS))
		return fail("no further Call after a Reply");
	return new_or_retransmitted(&back);
}

static bool t_one_credit(struct conn *c)
{
	return calls_as_granted(c, 1, 2);
}

static bool t_two_credits(struct conn *c)
{
	return calls_as_granted(c, 2, 2);
}

/* guest.sh limits the server to two. */
static bool t_more_than_requested(struct conn *c)
{
	return calls_as_granted(c, 0xffffffff, MAX_RECALLS);
}

/*
 * RDMA_ERROR ends a backchannel Call before nfsd gives it up. What nfsd says of its backchannel
 * after NFSD_WAITS_MS proves nothing. The server may call again at any time.
 */
static bool t_refused(struct conn *c)
{
	struct reply back = { .p = NULL };
	struct enc e;
	int64_t called_at;
	uint32_t flags, xid;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	called_at = now_ms();
	xid = get_word(back.p, HDR_XID);
	/* An unknown XID ends nothing. */
	enc_callback_error(&e, xid ^ XID_FLIP, 1);
	if (!send_msg(c, &e) || !sequence_status(c, &flags, NULL))
		return false;
	if (flags)
		return fail("SEQUENCE status flags %x", flags);
	enc_callback_error(&e, xid, 1);
	if (!send_msg(c, &e))
		return false;
	for (;;) {
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (now_ms() - called_at > NFSD_WAITS_MS)
			return fail("RDMA_ERROR did not end the Call");
		if (flags & ERROR_FLAGS)
			return sequence_status(c, &flags, NULL);
		usleep(100000);
	}
}

/* Waits until the server reports that its backchannel does not work. */
static bool wait_backchannel_down(struct conn *c, int ms)
{
	const int64_t start = now_ms();
	uint32_t flags;

	do {
		if (!sequence_status(c, &flags, NULL))
			return false;
		if (flags & ERROR_FLAGS)
			return true;
		usleep(20000);
	} while (now_ms() - start < ms);
	return fail("the backchannel is not reported down within %d ms", ms);
}

/*
 * A lost connection ends its backchannel Calls. nfsd itself gives up such a Call and looks for
 * another connection, so it is delayed: it must be the transport that ends the Call.
 */
static bool lose_call(struct conn *c)
{
	struct conn *lost = conn_open(&params_default);
	struct reply back = { .p = NULL };
	uint32_t flags;
	bool ok;

	ok = lost && get_recall(lost, &back) && is_callback(&back) &&
	     sequence_status(c, &flags, NULL);
	if (ok && flags)
		ok = fail("SEQUENCE status flags %x", flags);
	if (ok && !delay_start("function=nfsd4_conn_lost entry=1 delay_ms=%d", LOST_DELAY_MS))
		ok = skip("nfsd cannot be delayed");
	conn_close(lost);
	if (!ok)
		return false;
	ok = wait_backchannel_down(c, LOST_DELAY_MS - 1000);
	if (!delay_end())
		return fail("delay_fn cannot be unloaded");
	return ok && alive(c);
}

static bool t_call_lost(struct conn *c)
{
	unsigned int i;
	bool ok = false;

	for (i = 0; i < LOST_ATTEMPTS && !ok && !probe.skip_reason; i++)
		ok = lose_call(c);
	return ok;
}

/*
 * The server takes the Reply to a recall, and is delayed before it wakes the RPC task. Meanwhile
 * it gives up its Calls (rpc_shutdown_client). @freed counts requests that were freed then.
 */
static bool give_up_during_reply(struct conn *c, unsigned int *given_up, unsigned int *freed)
{
	struct reply back = { .p = NULL }, r;
	struct enc e;
	bool ok;

	if (!get_recall(c, &back) || !is_callback(&back))
		return false;
	enc_recall_reply(&e, &back, 1);
	if (!delay_start("delay_ms=%d,0,0 limit=1 entry=1,1,1 "
			 "function=rpc_wake_up_queued_task,rpc_shutdown_client,xprt_free_slot",
			 WAKE_DELAY_MS))
		return skip("SUNRPC cannot be delayed");
	ok = post_msg(c, &e) && post_backchannel_ctl(c) && wait_sent(c) && wait_sent(c) &&
	     next_forward_reply(c, &r);
	/* The delay, which began before that Reply, is over by then. */
	usleep(1000 * WAKE_DELAY_MS);
	if (ok && !delay_concurrent("%*u,%u,%u", given_up, freed))
		ok = fail("delay_fn reports no concurrent calls");
	if (!delay_end())
		return fail("delay_fn cannot be unloaded");
	return ok;
}

/* A request must not be freed while a thread takes the Reply to it. */
static bool t_given_up(struct conn *unused)
{
	unsigned int given_up = 0, freed = 0, i;

	(void)unused;
	for (i = 0; i < WAKE_ATTEMPTS && !given_up; i++) {
		struct conn *c = conn_open(&params_default);
		const bool ok = c && give_up_during_reply(c, &given_up, &freed);

		conn_close(c);
		if (!ok)
			return false;
	}
	if (freed)
		return fail("a request was freed while its Reply was taken");
	return given_up ? true : fail("no Call was given up while its Reply was taken");
}

static const struct test tests[] = {
	{ "R8167-5.1-2 R8167-5.1-3 R8167-5.1-4 R8167-6-2", "a backchannel Call", t_recall },
	{ "R8167-4.3.2-1 R8167-4.3.2-2", "all granted Calls and a backchannel Reply at once",
	  t_calls_and_reply },
	{ "R8167-4.1-3 R8167-4.1-5", "one credit for backchannel Calls", t_one_credit },
	{ "R8167-4.1-3 R8167-5.1-1", "two credits for backchannel Calls", t_two_credits },
	{ "-", "more credits than the server requested", t_more_than_requested },
	{ "R8167-5.3-4", "a backchannel Call is refused", t_refused },
	{ "R8167-5.4-1", "a backchannel Call's connection is lost", t_call_lost },
	{ "-", "a backchannel Call is given up while its Reply is taken", t_given_up },
};

const struct group group_session = {
	.name = "session", .about = "a client that is called by its server",
	.tests = tests, .n = COUNT(tests), .open = conn_open,
};
