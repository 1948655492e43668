// SPDX-License-Identifier: GPL-2.0
/*
 * A server that calls its client (RFC 8167) with valid and invalid messages.
 *
 * All cases of a group use one connection, on which mount(8) mounts by NFSv4.1. The client's
 * first Calls, of the NULL procedure, arrive before it has a callback service. Its first COMPOUND
 * arrives after that. The server refuses it in the end, and the mount fails.
 */

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "backchannel_calls.h"
#include "counters.h"
#include "expect.h"
#include "group.h"
#include "nfs4.h"
#include "probe.h"
#include "serve.h"
#include "work.h"

/* How long, and how many, backchannel Calls go on without a forward Call. */
#define LONG_CALLS	(5000 / probe.time_factor)
#define LONG_SECONDS	40

#define MOUNT_FAILED	32	/* EX_FAIL of mount(8) */

enum { EXCHANGE_ID = 42, NFS4ERR_DELAY = 10008 };

/* The client's Call that is outstanding. */
static uint32_t forward_xid, forward_proc;

static pid_t mounting;

static bool t_chunks(struct conn *c)
{
	return chunks_refused(c, new_xid());
}

/* XIDs of the two directions are unrelated. */
static bool t_chunks_same_xid(struct conn *c)
{
	return chunks_refused(c, forward_xid);
}

static bool t_other_version(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct reply r;
	struct enc e;

	enc_backchannel_call(&e, xid, 2, BACKCHANNEL_CREDITS);
	return exchange(c, &e, &r) && is_err_vers(&r, xid, 2);
}

static bool t_no_service(struct conn *c)
{
	struct enc e;

	enc_backchannel_call(&e, new_xid(), RPCRDMA_VERSION, BACKCHANNEL_CREDITS);
	return not_answered(c, &e);
}

/* More Calls, one by one, than the client ever has Receives. */
static bool t_many_unserved(struct conn *c)
{
	const unsigned long rnr = rnr_count(c);
	struct enc e;
	int i;

	for (i = 0; i < 1000; i++) {
		enc_backchannel_call(&e, new_xid(), RPCRDMA_VERSION, BACKCHANNEL_CREDITS);
		if (!send_msg(c, &e) || (i % 8 == 7 && !has_processed(c)))
			return false;
	}
	return no_rnr_since(c, rnr);
}

static bool t_served(struct conn *c)
{
	return is_served(c, new_xid(), BACKCHANNEL_CREDITS);
}

static bool t_same_xid(struct conn *c)
{
	return is_served(c, forward_xid, BACKCHANNEL_CREDITS);
}

static bool t_requests(struct conn *c)
{
	return is_served(c, new_xid(), 0) && is_served(c, new_xid(), 1) &&
	       is_served(c, new_xid(), 0xffffffff);
}

static bool t_all_at_once(struct conn *c)
{
	int answered, n;

	if (!t_served(c))
		return false;
	n = backchannel_window();
	answered = burst(c, n);
	if (answered >= 0 && answered < n)
		return fail("%d Replies to %d Calls", answered, n);
	return answered >= 0;
}

/* More Calls than were granted, but not more than the client has Receives. */
static bool t_too_many(struct conn *c)
{
	int i, n;

	for (i = 0; t_served(c) && i < 20; i++) {
		n = backchannel_window();
		if (burst_beyond(c, n + FORWARD_GRANT - 1, n) < n)
			return fail("%s; round %d", probe.reason, i);
	}
	return t_all_at_once(c);
}

/* The transport header is valid, so the RPC layer of the client has to reply. */
static bool t_bad_payload(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at;
	const uint8_t *rpc;

	/* A Call that ends behind its message type may be answered or not. */
	enc_hdr(&e, xid, RPCRDMA_VERSION, BACKCHANNEL_CREDITS, RDMA_MSG);
	enc_no_chunks(&e);
	enc_u32(&e, xid);
	enc_u32(&e, RPC_CALL);
	if (!send_msg(c, &e) || !get_reply(c, &r, 300))
		return false;
	if (r.any && !reply_body(&r, xid, &at))
		return false;
	/* An unknown program. */
	e.len = 0;
	xid = new_xid();
	enc_hdr(&e, xid, RPCRDMA_VERSION, BACKCHANNEL_CREDITS, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_null(&e, xid, CALLBACK + 77);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	rpc = r.p + at;
	if (get_word(rpc, RPC_TYPE) != RPC_REPLY || get_word(rpc, RPC_REPLY_STAT) ||
	    get_word(rpc, RPC_ACCEPT_STAT) != PROG_UNAVAIL)
		return fail("unknown program: msg_type %u, reply_stat %u, accept_stat %u",
			    get_word(rpc, RPC_TYPE), get_word(rpc, RPC_REPLY_STAT),
			    get_word(rpc, RPC_ACCEPT_STAT));
	return t_served(c);
}

/* Waits for the next forward Call, which may offer chunks for its Reply. */
static bool next_forward_call(struct conn *c)
{
	struct reply r;
	unsigned int at;

	if (!get_reply(c, &r, PATIENCE_MS) || !r.any)
		return fail("no forward Call");
	forward_xid = get_word(r.p, HDR_XID);
	if (!reply_body(&r, forward_xid, &at))
		return false;
	forward_proc = get_word(r.p + at, RPC_PROCEDURE);
	return get_word(r.p + at, RPC_TYPE) == RPC_CALL ? true :
		fail("forward msg_type %u", get_word(r.p + at, RPC_TYPE));
}

/* The Reply to the outstanding forward Call, up to its results. */
static void enc_forward_reply(struct enc *e, uint32_t accept_stat)
{
	e->len = 0;
	enc_hdr(e, forward_xid, RPCRDMA_VERSION, FORWARD_GRANT, RDMA_MSG);
	enc_no_chunks(e);
	enc_rpc_reply(e, forward_xid, accept_stat);
}

static bool answer_forward(struct conn *c, uint32_t accept_stat)
{
	struct enc e;

	enc_forward_reply(&e, accept_stat);
	return send_msg(c, &e);
}

/* Makes the client retry its EXCHANGE_ID later. */
static bool answer_delay(struct conn *c)
{
	struct enc e;

	enc_forward_reply(&e, ACCEPT_SUCCESS);
	enc_u32(&e, NFS4ERR_DELAY);
	enc_u32(&e, 0);		/* tag */
	enc_u32(&e, 1);		/* results */
	enc_u32(&e, EXCHANGE_ID);
	enc_u32(&e, NFS4ERR_DELAY);
	return send_msg(c, &e);
}

/* Many backchannel Calls in a row. The outstanding forward Call would time out after a minute. */
static bool t_only_backchannel(struct conn *c)
{
	time_t start;
	int calls = 0;

	if (!answer_delay(c) || !next_forward_call(c))
		return false;
	start = time(NULL);
	while (calls < LONG_CALLS || time(NULL) - start < LONG_SECONDS) {
		if (!t_all_at_once(c))
			return fail("%s; after %d Calls", probe.reason, calls);
		calls += backchannel_granted;
	}
	printf("# %d Calls\n", calls);
	return true;
}

/* Waits until mount(8) has failed. */
static bool mount_fails(void)
{
	int i, status;

	for (i = 0; i < 10 * PATIENCE_MS / 1000 * probe.time_factor; i++, usleep(100000)) {
		if (waitpid(mounting, &status, WNOHANG) != mounting)
			continue;
		mounting = 0;
		if (WIFEXITED(status) && WEXITSTATUS(status) == MOUNT_FAILED)
			return true;
		return fail("mount ended with status %x", status);
	}
	return fail("mount does not end after the Reply to its Call");
}

/* The forward Call is still outstanding, and its Reply ends the mount. */
static bool t_forward(struct conn *c)
{
	struct reply r;

	if (!get_reply(c, &r, 0))
		return false;
	if (r.any)
		return fail("the client sent another message while its Call was outstanding");
	return answer_forward(c, PROG_UNAVAIL) && mount_fails();
}

/* Connects with a client that mounts. A Call of an earlier mount may arrive first. */
static struct conn *open_early(const struct params *params)
{
	struct conn *c;
	int i;

	if (!conn_listen())
		return NULL;
	mounting = start_work(mount_v41);
	for (i = 0; i < 3; i++) {
		c = conn_accept(params, PATIENCE_MS);
		if (c && next_forward_call(c))
			return c;
		conn_close(c);
	}
	fail("no client that calls");
	return NULL;
}

/* The same, and waits for the client's first COMPOUND. */
static struct conn *open_served(const struct params *params)
{
	struct conn *c = open_early(params);

	backchannel_granted = 0;
	while (c && forward_proc == NFSPROC4_NULL)
		if (!answer_forward(c, ACCEPT_SUCCESS) || !next_forward_call(c)) {
			conn_close(c);
			return NULL;
		}
	return c;
}

static void stop_mount(void)
{
	if (mounting)
		kill_work(mounting);
	mounting = 0;
}

static const struct test early[] = {
	{ "R8167-5.3-3 R8167-4.1-2", "chunks are refused", t_chunks },
	{ "R8167-2.4.1-1 R8167-2.4-1", "chunks are refused, with the XID of a forward Call",
	  t_chunks_same_xid },
	{ "R8166-4.5.1-1", "another version", t_other_version },
	{ "R8167-6-1", "a Call is dropped", t_no_service },
	{ "R8167-6-1 R8167-4.3.1-1", "many Calls are dropped", t_many_unserved },
};

const struct group group_backchannel_early = {
	.name = "backchannel_early",
	.about = "a server that calls before its client has a callback service",
	.tests = early, .n = COUNT(early), .open = open_early, .keep_open = true,
	.cleanup = stop_mount,
};

static const struct test tests[] = {
	{ "R8167-5.2-1 R8167-5.2-2 R8167-5.2-3 R8167-6-3", "a Call", t_served },
	{ "R8167-2.4.1-1 R8167-2.4-1", "a Call with the XID of a forward Call", t_same_xid },
	{ "R8167-4.1-4", "any request for credits", t_requests },
	{ "R8167-4.1-2 R8167-4.3.1-1", "as many Calls as were granted", t_all_at_once },
	{ "-", "more Calls than were granted", t_too_many },
	{ "R8167-5.3-3", "chunks are refused", t_chunks },
	{ "R8167-2.4.1-1", "chunks are refused, with the XID of a forward Call",
	  t_chunks_same_xid },
	{ "R8166-4.5.1-1", "another version", t_other_version },
	{ "R8166-4.5.2-2", "a malformed RPC Call, and an unknown program", t_bad_payload },
	{ "R8167-2.3-1 R8167-4.3.1-1", "many Calls, and none of the client", t_only_backchannel },
	{ "R8167-4.1-1", "the forward Call is still outstanding", t_forward },
};

const struct group group_backchannel = {
	.name = "backchannel", .about = "a server that calls its client",
	.tests = tests, .n = COUNT(tests), .open = open_served, .keep_open = true,
	.cleanup = stop_mount,
};
