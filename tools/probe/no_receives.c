// SPDX-License-Identifier: GPL-2.0
/*
 * A client that posts no further Receives, or few of them, and makes the server's device retry
 * Sends for ever.
 *
 * guest.sh sets the server's max_requests to 8: few requests make a small Send Queue, which is
 * soon full.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counters.h"
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"

#define MOST_CALLS	4096
#define PACE_MS		10
#define FULL_MS		10000	/* in which a Send finds no Receive */
#define SPARED		6	/* Calls by which the second client stays below the server's limit */
#define FLOODED_MS	PATIENCE_MS	/* in which a client that exceeds its grant loses the connection */
#define SLOW_S		35	/* between two Receives */
#define SLOW_ROUNDS	2
#define STALL_S		90	/* the default of stall_seconds */
#define CLIENTS		"12"	/* more than the server has threads */
#define FLOOD_S		"40"
#define LATENCY_MS	15000	/* a thread that waited for a client would do so until the flood ends */

static const char iwarp_no_receive[] =
	"over iWARP a Send without a Receive ends the connection at once";

static bool set_stall_seconds(unsigned int s)
{
	return server_value("stall_seconds") < 0 || set_server_value("stall_seconds", s);
}

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
		if (!post_msg(c, &e) || !wait_cq(c->scq, &wc, FULL_MS) || wc.status)
			break;
		if (i >= RECVS)
			sleep_ms(PACE_MS);
		else if (!wait_cq(c->rcq, &wc, PATIENCE_MS) || wc.status)
			break;
	}
	return i;
}

static bool is_ended(struct conn *c, int ms)
{
	return wait_disconnected(c, ms) ? true : fail("the server keeps the connection");
}

static bool alive_elsewhere(void)
{
	struct conn *other = conn_open(&params_default);
	const bool ok = other && alive(other);

	conn_close(other);
	return ok;
}

/*
 * The server has no Receive left for a client that exceeds its grant, and ends the connection soon:
 * at the latest when the client's own Sends fail because they find no Receive.
 *
 * The second client stops before that, so that only the server can end the connection. It does so
 * after stall_seconds.
 */
static bool t_no_receives(struct conn *c)
{
	const long flooded = server_value("rdma_stat_flooded");
	unsigned int calls, taken;
	struct conn *other;
	bool ok;

	if (is_iwarp(c))
		return skip(iwarp_no_receive);
	if (!set_min_rnr_timer(c))
		return false;
	calls = call_until_full(c, MOST_CALLS);
	if (calls == MOST_CALLS)
		return fail("the server takes Calls without limit");
	if (!is_ended(c, FLOODED_MS))
		return false;
	if (flooded >= 0 && server_value("rdma_stat_flooded") == flooded)
		return fail("the server does not count the client that exceeds its grant");
	if (!set_stall_seconds(3 * probe.time_factor))
		return false;
	other = conn_open(c->params);
	calls -= SPARED;
	ok = other && set_min_rnr_timer(other);
	taken = ok ? call_until_full(other, calls) : 0;
	if (ok && taken < calls)
		ok = fail("the second time the server took %u Calls, expected %u", taken, calls);
	ok = ok && is_ended(other, 60000);
	conn_close(other);
	return set_stall_seconds(STALL_S) && ok && alive_elsewhere();
}

/* Runs hostile clients in another process. */
static pid_t start_flood(void)
{
	const pid_t child = fork();

	if (!child) {
		freopen("/dev/null", "w", stdout);
		execl("/proc/self/exe", "probe", "--flood", "deaf", CLIENTS, FLOOD_S, probe.address,
		      probe.port, probe.dir, NULL);
		_exit(1);
	}
	return child;
}

/* Calls until the process has ended. Each Call must be answered soon. */
static bool answered_meanwhile(struct conn *c, pid_t child)
{
	unsigned int answered = 0;
	struct reply r;
	struct enc e;
	int64_t start;
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		enc_null_call(&e, new_xid());
		start = now_ms();
		if (!send_msg(c, &e) || !get_reply(c, &r, 60000))
			return false;
		if (!r.any || now_ms() - start > LATENCY_MS * probe.time_factor)
			return fail("after %u Calls, one was answered after %lld ms", answered,
				    (long long)(now_ms() - start));
		answered++;
		sleep_ms(100);
	}
	return !status ? true : fail("the other clients: wait status %d", status);
}

/* More clients without Receives than nfsd has threads: no thread may wait for a client. */
static bool t_many(struct conn *c)
{
	pid_t child;
	int status;
	bool ok;

	if (is_iwarp(c))
		return skip(iwarp_no_receive);
	child = start_flood();
	if (child < 0)
		return fail("fork");
	ok = answered_meanwhile(c, child);
	if (!ok) {
		kill(child, SIGTERM);
		waitpid(child, &status, 0);
	}
	return ok;
}

/*
 * The Send Queue is full, and one Reply after the other finds a Receive, each within stall_seconds.
 * The server keeps the connection, however long a Reply waits for room, and sends all Replies.
 */
static bool t_slow(struct conn *c)
{
	const long starved = server_value("rdma_stat_sq_starve");
	unsigned int calls, replies = 0, i;
	struct ibv_wc wc;
	struct enc e;
	struct reply r;

	if (is_iwarp(c))
		return skip(iwarp_no_receive);
	if (!set_min_rnr_timer(c))
		return false;
	for (calls = 0; server_value("rdma_stat_sq_starve") == starved; calls++) {
		enc_null_call(&e, new_xid());
		if (calls == MOST_CALLS)
			return fail("no Reply waits for the Send Queue");
		if (!send_msg(c, &e))
			return false;
		if (calls >= RECVS)
			sleep_ms(PACE_MS);
		else if (!wait_cq(c->rcq, &wc, PATIENCE_MS) || wc.status)
			return fail("no Reply to Call %u", calls);
		else
			replies++;
	}
	for (i = 0; i < SLOW_ROUNDS; i++) {
		/* Not longer on a slow kernel: stall_seconds is not, either. */
		sleep(SLOW_S);
		if (disconnected(c))
			return fail("disconnected after %u Receives", i);
		post_recv(c, i);
		if (!wait_cq(c->rcq, &wc, PATIENCE_MS) || wc.status)
			return fail("no Reply for Receive %u", i);
		replies++;
	}
	for (i = 0; i < RECVS; i++)
		post_recv(c, i);
	for (; replies < calls; replies++) {
		if (!get_reply(c, &r, PATIENCE_MS))
			return false;
		if (!r.any)
			return fail("%u Replies to %u Calls", replies, calls);
	}
	return alive(c);
}

static const struct test tests[] = {
	{ "R8166-3.3.1-10", "a client that posts no Receives", t_no_receives },
	{ "-", "many clients that post no Receives", t_many, .params = &params_default },
	{ "-", "a client that posts few Receives", t_slow },
};

const struct group group_no_receives = {
	.name = "no_receives", .about = "a client that posts no Receives",
	.tests = tests, .n = COUNT(tests), .params = &params_rnr_forever, .open = conn_open,
};
