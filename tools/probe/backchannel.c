// SPDX-License-Identifier: GPL-2.0
/*
 * A server that calls its client (RFC 8167), rightly and wrongly, and looks at what
 * the client says.
 *
 * It takes one connection, on which somebody tries to mount by NFSv4.1: the first
 * Calls, of the NULL procedure, come before the client has a callback service, and
 * the first COMPOUND when it has. That is refused in the end, and the mount fails.
 */

#include <sys/wait.h>
#include "compat.h"

#define GRANT		32
#define MANY		(5000 / probe.time_factor)	/* Calls, */
#define WHILE		40			/* and seconds, without one of the client */

enum { EXCHANGE_ID = 42, NFS4ERR_DELAY = 10008 };
enum { EX_FAIL = 32 };		/* of mount(8) */

/* What a client has granted last. */
static unsigned int granted;

/* The forward Call that waits. */
static uint32_t forward_xid, forward_proc;

static void reverse_call(struct enc *e, uint32_t xid, uint32_t vers, uint32_t credits)
{
	e->len = 0;
	enc_hdr(e, xid, vers, credits, RDMA_MSG);
	enc_no_chunks(e);
	enc_rpc_null(e, xid, CALLBACK);
}

static bool is_reply(const struct reply *r, uint32_t xid)
{
	const uint8_t *rpc = r->p + 28;

	if (r->len < 28 + 24 || get_word(r->p, HDR_XID) != xid || get_word(r->p, HDR_VERS) != 1 || get_word(r->p, HDR_PROC) != RDMA_MSG)
		return fail("%u octets, xid %x (wanted %x), vers %u, proc %u", r->len,
			    get_word(r->p, HDR_XID), xid, get_word(r->p, HDR_VERS), get_word(r->p, HDR_PROC));
	if (get_word(r->p, 4) || get_word(r->p, 5) || get_word(r->p, 6))
		return fail("a Reply with chunks");
	if (get_word(rpc, RPC_XID) != xid || get_word(rpc, RPC_TYPE) != 1 || get_word(rpc, RPC_REPLY_STAT) || get_word(rpc, RPC_ACCEPT_STAT))
		return fail("xid %x, msg_type %u, stat %u, accept_stat %u", get_word(rpc, RPC_XID),
			    get_word(rpc, RPC_TYPE), get_word(rpc, RPC_REPLY_STAT), get_word(rpc, RPC_ACCEPT_STAT));
	if (!get_word(r->p, HDR_CREDITS))
		return fail("no credits");
	granted = get_word(r->p, HDR_CREDITS);
	return true;
}

/* A Call that is answered as it should be. */
static bool served(struct conn *c, uint32_t xid, uint32_t credits)
{
	struct reply r;
	struct enc e;

	reverse_call(&e, xid, 1, credits);
	return exchange(c, &e, &r) && is_reply(&r, xid);
}

/* So many Calls at once are granted, or as many as can be kept account of. */
static unsigned int at_once(void)
{
	return granted < RECVS - GRANT ? granted : RECVS - GRANT;
}

/* Sends @n Calls at once; returns how many were answered, each once, or -1. */
static int burst(struct conn *c, unsigned int n, int ms)
{
	const unsigned long early = rnr_count(c);
	const uint32_t first = probe.next_xid;
	bool seen[RECVS] = { false };
	struct reply r;
	struct ibv_wc wc;
	unsigned int i, answered = 0;
	struct enc e;

	probe.next_xid += n;
	for (i = 0; i < n; i++) {
		reverse_call(&e, first + i, 1, 16);
		if (!post_msg(c, &e))
			return -1;
	}
	for (i = 0; i < n; i++)
		if (!wait_cq(c->scq, &wc, 3000) || wc.status) {
			fail("Send %u: %s", i, ibv_wc_status_str(wc.status));
			return -1;
		}
	while (answered < n) {
		if (!get_reply(c, &r, ms))
			return -1;
		if (!r.any)
			break;
		i = get_word(r.p, HDR_XID) - first;
		if (i >= n || seen[i] || !is_reply(&r, first + i)) {
			fail("an answer too many, or a wrong one");
			return -1;
		}
		seen[i] = true;
		answered++;
	}
	return no_rnr_since(c, early) ? (int)answered : -1;
}

static bool is_refused(struct conn *c, const struct enc *e, uint32_t xid)
{
	struct reply r;

	if (!exchange(c, e, &r) || !is_error(&r, xid, ERR_CHUNK))
		return false;
	granted = get_word(r.p, HDR_CREDITS);
	return granted ? true : fail("no credits");
}

/* Every kind of chunk, with this XID. */
static bool chunks(struct conn *c, uint32_t xid)
{
	struct enc e;
	int kind;

	for (kind = 0; kind < 4; kind++) {
		e.len = 0;
		enc_hdr(&e, xid, 1, 16, kind == 3 ? RDMA_NOMSG : RDMA_MSG);
		switch (kind) {
		case 0:
		case 3:
			enc_rseg(&e, kind ? 0 : 40, c->area_mr->rkey, 4096, area_addr(c, 0));
			enc_no_chunks(&e);
			break;
		default:
			enc_u32(&e, 0);
			if (kind == 2)
				enc_u32(&e, 0);
			enc_u32(&e, 1);
			enc_u32(&e, 1);
			enc_seg(&e, c->area_mr->rkey, 4096, area_addr(c, 0));
			if (kind == 1)
				enc_u32(&e, 0);
			enc_u32(&e, 0);
		}
		if (kind == 2)
			e.len -= 4;
		if (kind != 3)
			enc_rpc_null(&e, xid, CALLBACK);
		if (!is_refused(c, &e, xid))
			return false;
	}
	return true;
}

/* An error is an answer at once: the client has looked at all that was sent before. */
static bool has_looked(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct enc e = { .len = 0 };

	enc_hdr(&e, xid, 1, 16, RDMA_NOMSG);
	enc_rseg(&e, 0, c->area_mr->rkey, 4096, area_addr(c, 0));
	enc_no_chunks(&e);
	return is_refused(c, &e, xid);
}

static bool t_chunks(struct conn *c)
{
	return chunks(c, new_xid());
}

/* The Call that waits is another one. */
static bool t_chunks_same_xid(struct conn *c)
{
	return chunks(c, forward_xid);
}

static bool t_other_version(struct conn *c)
{
	const uint32_t xid = new_xid();
	struct reply r;
	struct enc e;

	reverse_call(&e, xid, 2, 16);
	return exchange(c, &e, &r) && is_err_vers(&r, xid, 2);
}

static bool t_no_service(struct conn *c)
{
	struct enc e;

	reverse_call(&e, new_xid(), 1, 16);
	return not_answered(c, &e);
}

/* More than the client ever has Receives, one after another. */
static bool t_many_unserved(struct conn *c)
{
	const unsigned long early = rnr_count(c);
	struct enc e;
	int i;

	for (i = 0; i < 1000; i++) {
		reverse_call(&e, new_xid(), 1, 16);
		if (!send_msg(c, &e) || (i % 8 == 7 && !has_looked(c)))
			return false;
	}
	return no_rnr_since(c, early);
}

static bool t_served(struct conn *c)
{
	return served(c, new_xid(), 16);
}

static bool t_same_xid(struct conn *c)
{
	return served(c, forward_xid, 16);
}

static bool t_requests(struct conn *c)
{
	return served(c, new_xid(), 0) && served(c, new_xid(), 1) &&
	       served(c, new_xid(), 0xffffffff);
}

static bool t_all_at_once(struct conn *c)
{
	int answered, n;

	if (!t_served(c))
		return false;
	n = at_once();
	answered = burst(c, n, 5000);
	if (answered >= 0 && answered < n)
		return fail("%d answers to %d Calls", answered, n);
	return answered >= 0;
}

/* Beyond the grant, but not beyond the Receives. */
static bool t_too_many(struct conn *c)
{
	int i, n;

	for (i = 0; t_served(c) && i < 20; i++) {
		n = at_once();
		if (burst(c, n + GRANT - 1, 500) < n)
			return fail("%s; round %d", probe.reason, i);
	}
	return t_all_at_once(c);
}

/* A good header, and RPC is what it is about: its service answers. */
static bool t_nonsense(struct conn *c)
{
	struct enc e = { .len = 0 };
	struct reply r;
	uint32_t xid = new_xid();
	unsigned int at;

	enc_hdr(&e, xid, 1, 16, RDMA_MSG);
	enc_no_chunks(&e);
	enc_u32(&e, xid);
	enc_u32(&e, 0);
	/* An RPC without a header may be answered or not. */
	if (!send_msg(c, &e) || !get_reply(c, &r, 300))
		return false;
	if (r.any && !reply_body(&r, xid, &at))
		return false;
	e.len = 0;
	xid = new_xid();
	enc_hdr(&e, xid, 1, 16, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_null(&e, xid, CALLBACK + 77);
	if (!exchange(c, &e, &r) || !reply_body(&r, xid, &at))
		return false;
	if (get_word(r.p + at, RPC_TYPE) != 1 || get_word(r.p + at, RPC_REPLY_STAT) || get_word(r.p + at, RPC_ACCEPT_STAT) != PROG_UNAVAIL)
		return fail("another program: msg_type %u, stat %u, accept_stat %u",
			    get_word(r.p + at, RPC_TYPE), get_word(r.p + at, RPC_REPLY_STAT), get_word(r.p + at, RPC_ACCEPT_STAT));
	return t_served(c);
}

/* Waits for the next forward Call; it may offer chunks for its Reply. */
static bool next_forward(struct conn *c)
{
	struct reply r;
	unsigned int at;

	if (!get_reply(c, &r, 10000) || !r.any)
		return fail("no Call");
	forward_xid = get_word(r.p, HDR_XID);
	if (!reply_body(&r, forward_xid, &at))
		return false;
	forward_proc = get_word(r.p + at, RPC_ACCEPT_STAT);
	return !get_word(r.p + at, RPC_TYPE) ? true : fail("msg_type %u", get_word(r.p + at, RPC_TYPE));
}

static bool answer(struct conn *c, uint32_t accept_stat)
{
	struct enc e = { .len = 0 };

	enc_hdr(&e, forward_xid, 1, GRANT, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, forward_xid, accept_stat);
	return send_msg(c, &e);
}

/* The client is told to ask again. */
static bool answer_later(struct conn *c)
{
	struct enc e = { .len = 0 };

	enc_hdr(&e, forward_xid, 1, GRANT, RDMA_MSG);
	enc_no_chunks(&e);
	enc_rpc_reply(&e, forward_xid, 0);
	enc_u32(&e, NFS4ERR_DELAY);
	enc_u32(&e, 0);
	enc_u32(&e, 1);
	enc_u32(&e, EXCHANGE_ID);
	enc_u32(&e, NFS4ERR_DELAY);
	return send_msg(c, &e);
}

/*
 * Many Calls while none comes from the client; the one that waits would lose patience
 * if it waited for a minute.
 */
static bool t_reverse_only(struct conn *c)
{
	time_t start;
	int calls = 0;

	if (!answer_later(c) || !next_forward(c))
		return false;
	start = time(NULL);
	while (calls < MANY || time(NULL) - start < WHILE) {
		if (!t_all_at_once(c))
			return fail("%s; after %d Calls", probe.reason, calls);
		calls += granted;
	}
	printf("# %d Calls\n", calls);
	return true;
}

static pid_t mounting;

/* Does the mount end with the Reply that it has waited for? */
static bool mount_fails(void)
{
	int i, status;

	for (i = 0; i < 200 * probe.time_factor; i++, usleep(100000)) {
		if (waitpid(mounting, &status, WNOHANG) != mounting)
			continue;
		mounting = 0;
		if (WIFEXITED(status) && WEXITSTATUS(status) == EX_FAIL)
			return true;
		return fail("mount ended with status %x", status);
	}
	return fail("the Reply has not ended the mount");
}

/* The client is told at last that there is nothing to mount. */
static bool t_forward(struct conn *c)
{
	struct reply r;

	if (!get_reply(c, &r, 0))
		return false;
	if (r.any)
		return fail("the client has not waited for its Reply");
	return answer(c, 1) && mount_fails();
}

/* A connection on which somebody mounts; the Call of a mount before it may still come. */
static struct conn *open_early(const struct params *params)
{
	struct conn *c;
	int i;

	if (!conn_listen())
		return NULL;
	mounting = start_work(mount_v41);
	for (i = 0; i < 3; i++) {
		c = conn_accept(params, 10000);
		if (c && next_forward(c))
			return c;
		conn_close(c);
	}
	fail("no client that calls");
	return NULL;
}

static struct conn *open_served(const struct params *params)
{
	struct conn *c = open_early(params);

	granted = 0;
	while (c && forward_proc == 0)
		if (!answer(c, 0) || !next_forward(c)) {
			conn_close(c);
			return NULL;
		}
	return c;
}

static void leave(void)
{
	if (mounting)
		kill_work(mounting);
	mounting = 0;
}

static const struct test early[] = {
	{ "R8167-5.3-3 R8167-4.1-2", "chunks", t_chunks },
	{ "R8167-2.4.1-1 R8167-2.4-1", "chunks, the XID of a forward Call", t_chunks_same_xid },
	{ "R8166-4.5.1-1", "another version", t_other_version },
	{ "R8167-6-1", "a Call is dropped", t_no_service },
	{ "R8167-6-1 R8167-4.3.1-1", "many Calls are dropped", t_many_unserved },
};

const struct group group_backchannel_early = {
	.name = "backchannel_early", .about = "a server that calls before its client has a service",
	.tests = early, .n = COUNT(early), .open = open_early, .keep_open = true, .cleanup = leave,
};

static const struct test tests[] = {
	{ "R8167-5.2-1 R8167-5.2-2 R8167-5.2-3 R8167-6-3", "a Call", t_served },
	{ "R8167-2.4.1-1 R8167-2.4-1", "the XID of a forward Call", t_same_xid },
	{ "R8167-4.1-4", "any request for credits", t_requests },
	{ "R8167-4.1-2 R8167-4.3.1-1", "as many Calls as were granted", t_all_at_once },
	{ "-", "more Calls than were granted", t_too_many },
	{ "R8167-5.3-3", "chunks", t_chunks },
	{ "R8167-2.4.1-1", "chunks, the XID of a forward Call", t_chunks_same_xid },
	{ "R8166-4.5.1-1", "another version", t_other_version },
	{ "R8166-4.5.2-2", "nonsense", t_nonsense },
	{ "R8167-2.3-1 R8167-4.3.1-1", "many Calls, and none of the client", t_reverse_only },
	{ "R8167-4.1-1", "the forward Call still waits", t_forward },
};

const struct group group_backchannel = {
	.name = "backchannel", .about = "a server that calls its client",
	.tests = tests, .n = COUNT(tests), .open = open_served, .keep_open = true, .cleanup = leave,
};
